"""The background: fixed passages about nothing in particular, against which a question's cosines are read.

e5's cosine between a question and *anything* depends on the question and on the passage's language (seen with e5-small on
400 chat messages: mean calibrated similarity −0.6 to 0.9 by question; 24 unrelated questions reached 1.2, an answering
passage of another question had 0.7). Fixed thresholds, even calibrated ones, cannot separate that. Measured in standard
deviations above the same question's cosines to these passages, answers stood at 4 to 12 and the best unrelated at 2.2 to 3.7.

Source: Z-norm, Auckenthaler, Carey and Lloyd-Thomas, "Score normalization for text-independent speaker verification systems"
(2000); the same idea as CSLS in cross-lingual retrieval (Conneau et al. 2018). The vectors are stored per embedder epoch; changing a
passage needs a new `BACKGROUND_VERSION`.
"""

from __future__ import annotations

from memory.text import is_unspaced

BACKGROUND_VERSION = "1"

SPACED = (
    "Thank you, that was very helpful.",
    "Hello, nice to meet you. How can I help you today?",
    "Okay, I will try that and tell you how it went.",
    "The weather has been lovely this week, so we went for a walk in the park.",
    "I had a problem today and I do not know how to solve it.",
    "You can start with the basics and then practise a little every day.",
    "She moved to a smaller flat near the station last autumn.",
    "The meeting was moved to Thursday afternoon because two people are away.",
    "That is a good idea. Let us look at the options first.",
    "The function returns a list of tuples sorted by the second element.",
    "Remember to close the file handle when an exception is raised.",
    "I renamed the module and updated all of its imports.",
    "The build failed because a header file was missing.",
    "Add a unit test for the empty case before you change the loop.",
    "for index, item in enumerate(items): print(index, item)",
    "def total(values): return sum(value for value in values if value > 0)",
    "The page loads slowly on a mobile connection, so we compress the images.",
    "We store the user's choice in a small configuration file.",
    "He plays the guitar in a band and teaches music at the weekend.",
    "The recipe needs flour, two eggs, some butter and a pinch of salt.",
    "My brother is going to study abroad next year.",
    "The train was late, so I missed the first half of the film.",
    "According to the report, sales rose slightly in the second quarter.",
    "Sorry, I do not have enough information to answer that.",
    "There are several ways to do this, depending on the version you use.",
    "The error message says that the connection was refused.",
    "It took three attempts, but the new version is running now.",
    "In my opinion the book is better than the film.",
    "Please write the summary in two short paragraphs.",
    "The library is open from nine to five except on Sundays.",
    "The garden needs water twice a week in summer.",
    "Each thread waits for the lock and then writes one record.",
)
UNSPACED = (
    "谢谢你，这对我很有帮助。",
    "你好，很高兴认识你，今天有什么可以帮你的吗？",
    "好的，我会试一试，然后告诉你结果。",
    "这几天天气很好，我们去公园散步了。",
    "我今天遇到了一个麻烦，不知道该怎么解决。",
    "你可以先从基础开始，然后每天练习一点。",
    "她去年秋天搬到了车站附近的一套小房子里。",
    "会议改到了周四下午，因为有两个人不在。",
    "这是个好主意，我们先看看有哪些选择。",
    "这个函数返回一个按第二个元素排序的列表。",
    "抛出异常的时候要记得关闭文件。",
    "我把模块改了名字，也更新了所有的导入。",
    "构建失败了，因为缺少一个头文件。",
    "修改循环之前，先为空的情况加一个单元测试。",
    "用一个字典记录每个单词出现的次数，然后按次数排序。",
    "先检查参数是否合法，再把结果写进日志。",
    "手机网络下页面打开很慢，所以我们压缩了图片。",
    "用户的选择保存在一个小的配置文件里。",
    "他在乐队里弹吉他，周末教人音乐。",
    "这道菜需要面粉、两个鸡蛋、一点黄油和少许盐。",
    "我弟弟明年要出国读书。",
    "火车晚点了，所以我错过了电影的前半段。",
    "根据报告，第二季度的销售额略有上升。",
    "抱歉，我没有足够的信息来回答这个问题。",
    "有好几种做法，取决于你使用的版本。",
    "错误信息显示连接被拒绝了。",
    "试了三次，新版本终于跑起来了。",
    "我觉得书比电影好看。",
    "请用两小段话写出总结。",
    "图书馆周日不开门，其他时间九点到五点开放。",
    "夏天花园每周要浇两次水。",
    "每个线程都要先等锁，然后写入一条记录。",
)


def passages() -> tuple[str, ...]:
    """All of them, in the order in which their vectors are stored."""
    return SPACED + UNSPACED


def side(text: str) -> int:
    """Which half a passage is compared with: 0 spaced, 1 unspaced scripts."""
    return int(is_unspaced(text))
