"""Tool calls as models really write them: all these are read, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from growbox_app.agent.protocol import (
    CallFilter,
    ToolCall,
    ended_at_line,
    first_round,
    parse_tool_call,
    unwound,
    without_thoughts,
)

KNOWN = {"file_read"}
READ = ToolCall(name="file_read", arguments={"path": "a.py", "first": "3"})


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "file_read", "arguments": {"path": "a.py", "first": 3}}</tool_call>',
        'I look.\n<tool_call>\n{"name": "file_read", "arguments": {"path": "a.py", "first": 3}}\n</tool_call>',
        '<tool_call>{"name": "file_read", "arguments": {"path": "a.py", "first": "3"}}',
        '<tool_call>{"name": "file_read", "arguments": {"path": "a.py", "first": 3}}}</tool_call>',
        '<tool_call>{"name": "file_read", "parameters": {"path": "a.py", "first": 3}}</tool_call>',
        '<tool_call>{"tool": "file_read", "args": {"path": "a.py", "first": 3}}</tool_call>',
        '{"name": "file_read", "arguments": "{\\"path\\": \\"a.py\\", \\"first\\": 3}"}',
        '```json\n{"name": "file_read", "arguments": {"path": "a.py", "first": 3}}\n```',
        '[{"name": "file_read", "arguments": {"path": "a.py", "first": 3}}]',
        '{"type": "function", "function": {"name": "file_read", "arguments": {"path": "a.py", "first": 3}}}',
        "<tool_call><function=file_read>\n<parameter=path>\na.py\n</parameter>\n<parameter=first>3</parameter></function></tool_call>",
        "<function=file_read><parameter=path>a.py</parameter><parameter=first>3</parameter></function>",
        '<think>First I <tool_call>x</tool_call> look.</think>\n{"name": "file_read", "arguments": {"path": "a.py", "first": 3}}',
    ],
)
def test_a_call_is_read_however_it_is_spelled(text: str) -> None:
    assert parse_tool_call(text, KNOWN) == READ


def test_a_forgotten_quotation_mark_ends_the_value() -> None:
    text = '<tool_call>{"name": "file_read", "arguments": {"path": "a.py}}</tool_call> <tool_call>{"}}</tool_call>'
    found = parse_tool_call(text, KNOWN)
    assert found == ToolCall(name="file_read", arguments={"path": "a.py"})
    again = text.replace("a.py}}</tool_call>", "a.py}}<tool_call> and")
    assert parse_tool_call(again, KNOWN) == found


@pytest.mark.parametrize(
    "text",
    [
        "I would call file_read.",
        '{"name": "Ada", "arguments": {"path": "a.py"}}',
        'Here: {"name": "file_read", "arguments": {"path": "a.py"}} is a call.',
        '<tool_call>{"name": "file_read", "arguments": {"path": "a',
        '<tool_call>{"name": "file_read", "arguments": ["a.py"]}</tool_call>',
        '{"name": "file_read", "arguments": {"path": "a.py"}} and more',
        "[]",
        '<think>{"name": "file_read", "arguments": {"path": "a.py"}}',
    ],
)
def test_everything_else_is_an_answer(text: str) -> None:
    assert parse_tool_call(text, KNOWN) is None


def test_thoughts_are_taken_out_only_where_an_answer_begins_with_them() -> None:
    assert without_thoughts("<think>\na\nb</think>\n\nYes.") == "Yes."
    assert without_thoughts("<thinking>never closed") == ""
    assert without_thoughts("Write `<think>` so.") == "Write `<think>` so."


def test_a_streamed_answer_shows_no_call() -> None:
    shown = CallFilter()
    parts = ["I look", ".\n<tool", '_call>{"name": ', '"file_read"}</tool_call>']
    assert "".join(map(shown.feed, parts)) + shown.finish() == "I look.\n"


@pytest.mark.parametrize("size", [1, 3, 50])
def test_a_streamed_thought_is_not_shown(size: int) -> None:
    text = "<think>\nHm, <b>2</b>.\n</think>\n\nIt is 2."
    shown = CallFilter()
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    assert "".join(map(shown.feed, parts)) + shown.finish() == "It is 2."


@pytest.mark.parametrize("text", ["<thin lines> are drawn", "<", "  Two spaces"])
def test_what_only_looks_like_a_thought_is_shown(text: str) -> None:
    shown = CallFilter()
    assert "".join(shown.feed(letter) for letter in text) + shown.finish() == text


@pytest.mark.parametrize("mark", ['"}}', '\\"}}', "}}", '\\n\\"}} '])
@pytest.mark.parametrize(
    "tag",
    ["<tool_call>", "<tool-call>", "<toolCall> The code", "<tool", "</tool Call>", "</toolCall>"],
)
def test_a_last_text_that_was_not_closed_ends_where_another_call_begins(
    mark: str, tag: str
) -> None:
    text = '<tool_call>{"name": "file_edit", "arguments": {"path": "a.py", "new": "x = 1' + mark
    call = parse_tool_call(text + tag, {"file_edit"})
    assert call is not None
    assert call.arguments["new"].rstrip("\n") == "x = 1"


@pytest.mark.parametrize("begun", ["", "\\n  on", "\\n  once\\n  twi", "\\"])
def test_a_text_that_ran_in_a_circle_ends_with_the_whole_lines_of_its_first_round(
    begun: str,
) -> None:
    head = '<tool_call>{"name": "file_edit", "arguments": {"path": "a.py", "new": "x = \\"1\\"'
    call = parse_tool_call(unwound(head + "\\n  once\\n  twice" * 4 + begun), {"file_edit"})
    assert call is not None
    assert call.arguments["new"] in ('x = "1"\n  once\n  twice\n', 'x = "1"\n  once\n')


def test_a_call_that_broke_off_can_end_with_its_last_whole_line() -> None:
    text = '<tool_call>{"name": "file_edit", "arguments": {"path": "a.py", "new": "x = 1\\n  y()\\n  z('
    call = parse_tool_call(ended_at_line(text), {"file_edit"})
    assert call is not None
    assert call.arguments["new"] == "x = 1\n  y()"
    assert ended_at_line("x\\ny") == ""
    assert ended_at_line('<tool_call>{"name": "file_edit"') == ""


LIST = "Files:\n\n1. `a.py` reads.\n2. `b.py` writes.\n\n"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (LIST + "3. It ends.\n4. It ends.\n\n5. It ends.\n6. It", LIST + "3. It ends."),
        (LIST + "3. It ends.\n4. It ends.\n5.", LIST + "3. It ends."),
        ("存：\n1. 存记录\n2. 存记录\n3. 存记录\n", "存：\n1. 存记录"),
        ("It is so. " + "And so on. " * 9, "It is so. And so on"),
        (LIST + "3. `c.py` ends.", LIST + "3. `c.py` ends."),
        ("x\nx\ny", "x\nx\ny"),
        ("", ""),
    ],
)
def test_of_an_answer_that_ran_in_a_circle_the_first_round_stays(text: str, kept: str) -> None:
    assert first_round(text) == kept


@pytest.mark.parametrize(
    "text", ["", "a", "ha ha ha ha", "<tool_call>ab", '<tool_call>{"name": "x"}', "\n" * 9]
)
def test_what_is_no_call_in_a_circle_is_left_alone(text: str) -> None:
    assert unwound(text) == ""


def test_a_call_that_only_breaks_off_is_none() -> None:
    text = '<tool_call>{"name": "file_edit", "arguments": {"path": "a.py", "new": "x = 1'
    assert parse_tool_call(text, {"file_edit"}) is None
