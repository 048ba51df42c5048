"""What kind of work a request asks for, and what it names: by rule, in English and Chinese. Pure.

A wrong guess costs little: it only chooses which tools are in view and what is looked at first. What fits no rule is `OTHER`, where the
model is as free as it is without this.

Source: design 5.1, "a stage machine for known kinds of work".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath


class Kind(StrEnum):
    """Kinds of work that have stages of their own."""

    FIND = "find"
    EXPLAIN = "explain"
    RENAME = "rename"
    FIX = "fix"
    ADD = "add"
    SCRIPT = "script"
    CHANGE = "change"
    SUMMARISE = "summarise"
    RUN = "run"
    OTHER = "other"


_RULES: tuple[tuple[Kind, str], ...] = (
    (Kind.RENAME, r"\brenam(?:e|ing)\b|重命名|改名|更名"),
    (
        Kind.SCRIPT,
        r"\b(?:write|create|make)\b.{0,40}\b(?:script|program)\b|(?:写|编写|创建).{0,20}(?:脚本|程序)",
    ),
    (
        Kind.FIX,
        r"\b(?:fix|repair)\b|\bdebug (?:the|this|it|why)\b|\btests?\b.{0,20}\bfail|\bfailing\b|修复|修好|修正|改好"
        r"|测试.{0,12}(?:失败|不通过|没通过|通不过)",
    ),
    (
        Kind.ADD,
        r"\b(?:add|implement|write|create)\b.{0,60}\b(?:function|method|class|helper|test)s?\b"
        r"|(?:添加|增加|新增|实现|加|写).{0,30}(?:函数|方法|类|测试)",
    ),
    (
        Kind.EXPLAIN,
        r"\bwhy\b|\bexplain\b|\bwhat (?:went wrong|caused|is the cause)\b|\bcause of\b"
        r"|为什么|为何|原因|解释|怎么回事|出了什么(?:问题|错)",
    ),
    (
        Kind.SUMMARISE,
        r"\bsummar(?:y of|ise|ize)\b|\boverview\b|\bwhat (?:is|does) (?:in )?(?:this|the) (?:folder|project|repo\w*)\b"
        r"|\bdescribe (?:this|the) (?:folder|project|repo)|总结|概括|概述|概览|介绍一下|简要说明|是做什么的|有什么内容",
    ),
    (
        Kind.CHANGE,
        r"\b(?:change|set|update|increase|raise|lower|reduce|enable|disable|switch|put|replace)\b"
        r"|改成|改为|设为|设成|设置为|调整|调到|调成|更新|换成|启用|关闭|打开|填入|填上|写入|写进",
    ),
    (
        Kind.FIND,
        r"\bwhere\b|\bwhich (?:file|line|module)\b|\bfind\b|\blocate\b|\bdefin(?:ed|ition)\b"
        r"|在哪|哪个文件|哪一行|找到|查找|定义",
    ),
)
_COMPILED = tuple((kind, re.compile(words, re.IGNORECASE)) for kind, words in _RULES)

_QUOTED = re.compile(r"`([^`\n]{2,80})`|“([^”\n]{2,80})”|「([^」\n]{2,80})」|\"([^\"\n]{2,80})\"")
_CODE_WORD = re.compile(
    r"(?<![\w./-])(?:[A-Za-z][a-z0-9]*(?:_[A-Za-z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+"
    r"|[a-z]+(?:[A-Z][a-z0-9]*)+|[A-Z]+(?:_[A-Z0-9]+)+|[A-Za-z_]\w*(?=\(\)))(?![\w/-])"
)
_BESIDE_CHINESE = re.compile(r"(?<![A-Za-z0-9_./-])[A-Za-z_][A-Za-z0-9_]{2,}(?![A-Za-z0-9_/-])")
_CHINESE = re.compile("[\u4e00-\u9fff]")
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*\.[A-Za-z]\w{0,7}|(?:[\w.-]+/)+[\w.-]*", re.ASCII)
_COMMAND = re.compile(
    r"(?:python3? -m (?:pytest|unittest)[\w./ =:-]*|pytest[\w./ =:-]*|npm test|cargo test|go test [\w./]+|make \w+)"
)
_RUN = re.compile(
    rf"^(?:please\s+)?(?:run|execute)\s+(?:`([^`\n]+)`|({_COMMAND.pattern}))"
    r"|^请?(?:运行|执行)(?:一下)?(?:命令)?\s*(?:[`“「]([^`”」\n]+)[`”」]|([\x21-\x5f\x61-\x7e]+(?: [\x21-\x5f\x61-\x7e]+)+))",
    re.IGNORECASE,
)
_AND_THEN = re.compile(r"\b(?:and|then|until)\b|然后|再|并|直到", re.IGNORECASE)
_FUNCTION = re.compile(
    r"(?:\bfunction\b|函数)\s*(?:called|named|名为|名叫|叫)?\s*([`“\"「]?)([A-Za-z_]\w*)(\([^()\n]*\))?"
)
_OBJECT = re.compile(
    r"\b(?:put|write|fill|insert|enter|add|copy|set|use|change|update)\s+(?P<en>[^\n.,;:!?]{4,80}?)\s+(?:into|in|to|as|for|from|at)\b"
    r"|[把将](?P<zh>[^\n，。；：！？]{2,40}?)(?:写进|写入|写到|填进|填入|填上|填到|放进|放到|加进|加入|加到|记入|记到|改成|改为|设为|设成|换成|复制到)",
    re.IGNORECASE,
)
NAMES_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked. `files` of those named exist, `new_files` do not; `names` are identifiers and quoted words, in their order.

    `signature`: the function that is spoken of, with its parameters where they are given; empty where it has no name.
    """

    text: str
    kind: Kind
    files: tuple[str, ...]
    new_files: tuple[str, ...]
    folders: tuple[str, ...]
    names: tuple[str, ...]
    command: str
    wants_test: bool
    signature: str = ""


def kind_of(text: str) -> Kind:
    """The kind of work; the first rule that fits."""
    rest = Kind.RUN if _command_to_run(text) else Kind.OTHER
    return next((kind for kind, words in _COMPILED if words.search(text)), rest)


def _command_to_run(text: str) -> str:
    """The command that a request spells out, if running it is all that it asks for."""
    found = _RUN.search(text)
    if found is None or _AND_THEN.search(text, found.end()):
        return ""
    command = next(part for part in found.groups() if part).strip(" .")
    return "" if _PATH.fullmatch(command) else command


def object_of(text: str) -> str:
    """What a request wants to be put somewhere, or changed: what stands between the verb and the place. Empty where there is no such part.

    A request is about its file and its verb as much as about this; what was said of it before is found by it alone.
    """
    found = _OBJECT.search(text)
    return (found["en"] or found["zh"]).strip() if found else ""


def understood(text: str, files: Sequence[str]) -> Request:
    """A request beside the files of the project."""
    named, new, folders = _paths(text, files)
    command = _COMMAND.search(text)
    return Request(
        text=text,
        kind=kind_of(text),
        files=named,
        new_files=new,
        folders=folders,
        names=_names(text, {*named, *new}),
        command=command.group().strip(" .") if command else _command_to_run(text),
        wants_test=bool(re.search(r"\btests?\b|测试", text, re.IGNORECASE)),
        signature=_signature(text),
    )


def _signature(text: str) -> str:
    found = _FUNCTION.search(text)
    if found is None:
        return ""
    quote, name, parameters = found.groups(default="")
    is_name = quote or parameters or "_" in name or found.group().startswith("函数")
    return name + (parameters if len(parameters) > 2 else "") if is_name else ""


def _paths(
    text: str, files: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Files that exist, files that do not, and folders; each once, in the order of the text."""
    known: dict[str, None] = {}
    new: dict[str, None] = {}
    folders: dict[str, None] = {}
    all_folders = {str(parent) for file in files for parent in PurePosixPath(file).parents}
    for found in _PATH.findall(text):
        name = found.removeprefix("./").rstrip(".")
        if name.rstrip("/") in all_folders:
            folders[name.rstrip("/")] = None
            continue
        match = [file for file in files if file == name] or [
            file for file in files if PurePosixPath(file).name == name
        ]
        if len(match) == 1:
            known[match[0]] = None
        elif not match and "." in PurePosixPath(name).name[1:]:
            new[name] = None
    for word in re.findall(r"[\w-]+", text, re.ASCII):
        if word in all_folders:
            folders[word] = None
    return tuple(known), tuple(new), tuple(folders)


def _names(text: str, paths: set[str]) -> tuple[str, ...]:
    found: dict[int, str] = {}
    for match in _QUOTED.finditer(text):
        found[match.start()] = next(part for part in match.groups() if part).removesuffix("()")
    pattern = [_CODE_WORD] + ([_BESIDE_CHINESE] if _CHINESE.search(text) else [])
    quoted = [match.span() for match in _QUOTED.finditer(text)]
    for words in pattern:
        for match in words.finditer(text):
            if not any(start <= match.start() < end for start, end in quoted):
                found.setdefault(match.start(), match.group())
    tails = {PurePosixPath(path).name for path in paths} | paths
    parts = {part for path in paths for part in re.split(r"[/.]", path)}
    names = [found[at] for at in sorted(found)]
    kept = [n for n in names if n not in tails and n not in parts and not _COMMAND.fullmatch(n)]
    return tuple(dict.fromkeys(kept))[:NAMES_MAX]
