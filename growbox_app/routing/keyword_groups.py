"""Groups of words by which a wish and a tool are brought together, in Chinese and English. Pure; plain data.

A wish in one language finds a tool that is described in the other. Source: seed item M18.
"""

from __future__ import annotations

from collections.abc import Mapping

from memory.text import folded, terms

GROUPS: Mapping[str, tuple[str, ...]] = {
    "database": ("database", "sql", "sqlite", "postgres", "mysql", "table", "数据库", "数据表", "查表"),
    "git": ("git", "github", "gitlab", "commit", "branch", "issue", "pull request", "仓库", "提交", "分支", "合并请求", "议题"),
    "browser": ("browser", "web", "page", "url", "website", "screenshot", "浏览器", "网页", "网站", "网址", "上网", "截图", "链接"),
    "memory": ("memory", "note", "remember", "recall", "记忆", "笔记", "记住", "回忆"),
    "search": ("search", "find", "lookup", "搜索", "查找", "检索", "搜一下"),
    "gui": ("window", "click", "mouse", "keyboard", "desktop", "窗口", "点击", "鼠标", "键盘", "桌面"),
    "schedule": ("schedule", "calendar", "reminder", "event", "meeting", "日程", "日历", "提醒", "会议", "定时"),
    "config": ("config", "setting", "option", "environment", "配置", "设置", "环境变量", "选项"),
    "file": ("file", "folder", "directory", "path", "文件", "目录", "文件夹", "路径"),
    "message": ("mail", "email", "slack", "chat", "message", "send", "邮件", "邮箱", "消息", "发送", "聊天"),
    "time": ("time", "date", "timezone", "clock", "时间", "日期", "时区", "几点"),
    "weather": ("weather", "forecast", "temperature", "天气", "预报", "气温"),
    "document": ("document", "pdf", "word", "spreadsheet", "excel", "文档", "表格", "电子表格"),
    "network": ("http", "request", "api", "fetch", "download", "网络", "请求", "接口", "下载"),
}  # fmt: skip


def groups_of(text: str) -> frozenset[str]:
    """The groups a text speaks of."""
    whole = folded(text)
    own = frozenset(terms(text))
    return frozenset(
        name
        for name, words in GROUPS.items()
        if any(_stands_in(word, whole, own) for word in words)
    )


def _stands_in(word: str, whole: str, own: frozenset[str]) -> bool:
    """Chinese words and phrases anywhere, English ones as words."""
    if not word.isascii() or " " in word:
        return word in whole
    return own.issuperset(terms(word))
