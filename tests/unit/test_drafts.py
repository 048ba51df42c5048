"""Code that is written in a prompt of its own: what is asked, what is taken, when there is one, and its way through the hands."""

from __future__ import annotations

import ast
import asyncio
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from growbox_app.agent import drafts
from growbox_app.agent.drafts import Draft
from growbox_app.agent.protocol import ToolCall
from growbox_app.agent.works.tested import DRAFTS_MAX
from growbox_app.agent.works.work import Stage, Work
from growbox_app.api import AskRequest, Phase, PhaseChanged, ToolCalled, TurnEvent, TurnFinished
from growbox_app.approval_face import ApprovalAnswer, ApprovalAsked
from growbox_app.assistant import GrowBox
from memory.values import NodeStatus
from tests.fakes.application import run_application, scripted
from tests.unit.test_guided_turns import calls, project, turn
from tests.unit.test_stages import edited, known_calls, ran, read, work_on

__all__ = ["project"]

AREA = '"""Shapes."""\n\n\ndef side(a):\n    return a\n\n\ndef area(a, b):\n    """Its area."""\n    return a + b\n'
TEST = "class Case:\n    def test(self):\n        self.assertEqual(area(2, 3), 6)\n        self.assertEqual(side(2), 2)\n"
FAILED = 'exit code 1\n  File "/x/tests/test_area.py", line 3, in test\n    self.assertEqual(area(2, 3), 6)\nAssertionError: 5 != 6\nFAILED (failures=1)\n'
RIGHT = 'def area(a, b):\n    """Its area."""\n    return a * b'
METHOD = Draft(
    path="pkg/box.py",
    code="    def size(self):\n\n        return self.width",
    begins="    def size(self):\n        ",
    checks=("assertEqual(Box(2).size(), 4)",),
)


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def failing(code: str = AREA) -> Work:
    """A fix whose test has failed, and whose files were read."""
    work = work_on("The test fails, fix it")
    known_calls(work)
    ran(work, "make test", ok=False, text=FAILED)
    known_calls(work)
    read(work, "tests/test_area.py", TEST)
    read(work, "pkg/area.py", code)
    assert work.stage is Stage.EDIT
    return work


# -- when there is one ------------------------------------------------------------------------
def test_the_function_that_fails_is_written_anew_with_what_the_tests_say_of_it() -> None:
    draft = failing().next_draft()
    assert draft is not None
    assert draft.path == "pkg/area.py"
    assert draft.code == 'def area(a, b):\n    """Its area."""\n    return a + b'
    assert draft.begins == 'def area(a, b):\n    """Its area."""\n    '
    assert draft.checks == ["assertEqual(area(2, 3), 6)"]
    assert (draft.tried, draft.failure) == ([], "")


def test_what_was_taken_back_is_shown_with_its_failure_and_not_written_again() -> None:
    work = failing()
    draft = work.next_draft()
    assert draft is not None
    wrong = draft.code.replace("+", "-")
    call = drafts.taken(fenced(wrong), draft)
    assert call is not None
    edited(work, "pkg/area.py", old=draft.code, new=wrong, before=AREA)
    known_calls(work)
    ran(work, "make test", ok=False, text=FAILED.replace("5 != 6", "-1 != 6"))
    (back,) = known_calls(work)
    assert (back.name, back.arguments["content"]) == ("file_write", AREA)
    work.saw("pkg/area.py", AREA)
    work.took(back, ok=True, text="", path="pkg/area.py", before=AREA, by_rule=True)
    again = work.next_draft()
    assert again is not None
    assert again.code == draft.code
    assert again.tried == [wrong]
    assert "-1 != 6" in again.failure
    assert drafts.taken(fenced(wrong), again) is None


def test_drafts_come_to_an_end() -> None:
    work = failing()
    assert sum(work.next_draft() is not None for _ in range(DRAFTS_MAX + 2)) == DRAFTS_MAX


def test_a_no_is_heard() -> None:
    work = failing()
    draft = work.next_draft()
    assert draft is not None
    edited(work, "pkg/area.py", ok=False, old=draft.code, new=RIGHT)
    assert work.next_draft() is None


@pytest.mark.parametrize(
    "code",
    [
        "AREA = 5\n",
        "def area(a, b):\n" + "    a += 1\n" * 50,
        f"{AREA}\n\n{AREA}",
        AREA.replace("def area(a, b):", "def area(\n    a,\n    b,\n):"),
    ],
    ids=["nothing of that name", "too long", "two of that name", "a head of several lines"],
)
def test_where_it_is_not_one_short_function_there_is_none(code: str) -> None:
    assert failing(code).next_draft() is None


def test_other_work_has_none() -> None:
    work = work_on("Add a function volume(a, b, c) to pkg/area.py")
    known_calls(work)
    read(work, "pkg/area.py", AREA)
    assert work.next_draft() is None


# -- what is asked ----------------------------------------------------------------------------
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_retry_shows_the_last_try_and_why_it_failed(language: str) -> None:
    draft = failing().next_draft()
    assert draft is not None
    first = drafts.request(1, language, draft)
    said = "".join(first.messages[-1].parts)
    assert fenced(draft.code) in said
    assert "assertEqual(area(2, 3), 6)" in said
    assert first.temperature == 0
    tried = Draft(
        path=draft.path,
        code=draft.code,
        begins=draft.begins,
        checks=draft.checks,
        tried=("def area(a, b):\n    return 0",),
        failure="0 != 6",
    )
    again = drafts.request(2, language, tried)
    said = "".join(again.messages[-1].parts)
    assert "return 0" in said
    assert "return a + b" not in said
    assert "0 != 6" in said
    assert again.temperature > 0


# -- what is taken ----------------------------------------------------------------------------
def test_a_method_comes_back_to_its_place() -> None:
    call = drafts.taken(fenced("def size(self):\n    return self.width ** 2"), METHOD)
    assert call is not None
    assert call.name == "file_edit"
    assert call.arguments["old"] == METHOD.code
    assert call.arguments["new"] == "    def size(self):\n        return self.width ** 2"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot do that.",
        "```python\ndef size(self):\n    return 1",
        fenced("def other(self):\n    return 1"),
        fenced("def size(self):\n    return self.width   \n\n"),
    ],
    ids=["nothing", "prose", "not closed", "another function", "what it was"],
)
def test_what_is_no_new_code_is_none(text: str) -> None:
    assert drafts.taken(text, METHOD) is None


NAMES = st.sampled_from(["a", "b", "total", "名字"])
STATEMENTS = st.lists(st.tuples(NAMES, st.integers(0, 99)), min_size=1, max_size=6)


@settings(max_examples=60)
@given(STATEMENTS, STATEMENTS, st.integers(0, 2))
def test_a_draft_is_the_same_code_at_any_depth(
    old: list[tuple[str, int]], new: list[tuple[str, int]], depth: int
) -> None:
    """Whatever the model writes, it lands in the function's place, as deep as that, and nothing else of the file changes."""
    by = "    " * depth

    def function(lines: list[tuple[str, int]]) -> str:
        return "\n".join(["def f(a):", *(f"    {name} = {value}" for name, value in lines)])

    code = textwrap.indent(function(old), by)
    draft = Draft(path="x.py", code=code, begins=f"{by}def f(a):\n{by}    ", checks=())
    call = drafts.taken(fenced(function(new)), draft)
    if old == new:
        assert call is None
        return
    assert call is not None
    heads = "".join(f"{'    ' * level}class C{level}:\n" for level in range(depth))
    file = f"{heads}{code}\n\n\nLAST = 1\n"
    changed = file.replace(call.arguments["old"], call.arguments["new"], 1)
    assert ast.dump(ast.parse(changed)) == ast.dump(
        ast.parse(file.replace(code, textwrap.indent(function(new), by)))
    )


# -- through the hands ------------------------------------------------------------------------
MEANT = "# meant: return a + b"
"""What the scripted engine writes as the body of a function that has this in it."""


def test_a_draft_is_asked_about_checked_and_told(tmp_path: Path, project: Path) -> None:
    file = project / "sums.py"
    file.write_text(f"def add(a, b):\n    return a - b  {MEANT}\n", encoding="utf-8")
    events = turn(tmp_path, project, "The test fails, please fix the code")
    done = [event for event in events if isinstance(event, ToolCalled)]
    assert [call.name for call in done][-2:] == ["file_edit", "shell"]
    assert [call.ok for call in done] == [False, True, True, True, True]
    assert done[-2].checkpoint
    assert file.read_text(encoding="utf-8") == "def add(a, b):\n    return a + b\n"


def test_a_draft_that_the_user_denies_changes_nothing(tmp_path: Path, project: Path) -> None:
    file = project / "sums.py"
    before = f"def add(a, b):\n    return a - b  {MEANT}\n"
    file.write_text(before, encoding="utf-8")
    events = turn(tmp_path, project, "The test fails, please fix the code", denied=("file_edit",))
    assert calls(events).count("file_edit") == 1
    assert file.read_text(encoding="utf-8") == before


def test_without_a_grammar_there_are_no_drafts(tmp_path: Path, project: Path) -> None:
    (project / "sums.py").write_text(f"def add(a, b):\n    return a - b  {MEANT}\n")
    events = turn(tmp_path, project, "The test fails, please fix the code", constrained=False)
    assert "file_edit" not in calls(events)


def test_a_call_of_a_draft_is_one_of_the_models() -> None:
    """It is no way back: the work counts it as a change that is to be checked."""
    work = failing()
    draft = work.next_draft()
    assert draft is not None
    call = drafts.taken(fenced(RIGHT), draft)
    assert call is not None
    new = AREA.replace(draft.code, RIGHT)
    work.saw("pkg/area.py", new)
    work.took(call, ok=True, text="", path="pkg/area.py", before=AREA)
    assert known_calls(work) == [ToolCall(name="shell", arguments={"command": "make test"})]
    ran(work, "make test", ok=True, text="exit code 0\n")
    assert work.stage is Stage.ANSWER
    key, fields = work.hint()
    assert key == "done_change"
    assert fields["lines"] == "return a * b"


def test_a_stop_ends_a_draft(tmp_path: Path, project: Path) -> None:
    """Nothing comes of what was being written, and the turn ends as one that was stopped."""
    file, test = project / "sums.py", project / "test_sums.py"
    before = f"def add(a, b):\n    return a - b  {MEANT}\n"
    file.write_text(before, encoding="utf-8")
    asserted = "self.assertEqual(sums.add(1, 2), 3)"
    text = test.read_text(encoding="utf-8")
    test.write_text(text.replace(asserted, f"{asserted}  # patient"), encoding="utf-8")
    events: list[TurnEvent] = []

    async def body(app: GrowBox) -> None:
        opened = await app.library.open_project(project)
        request = AskRequest(text="The test fails, please fix the code", project_id=opened.id)
        async with asyncio.TaskGroup() as group:
            async for event in app.ask(request):
                events.append(event)
                if isinstance(event, ApprovalAsked):
                    app.answer_approval(ApprovalAnswer(id=event.approval.id, allowed=True))
                if isinstance(event, PhaseChanged) and event.phase is Phase.WRITING:
                    group.create_task(app.stop())

    run_application(lambda: scripted(tmp_path), body, {"models.context_tokens": 16384})
    last = events[-1]
    assert isinstance(last, TurnFinished)
    assert last.status is NodeStatus.CANCELLED
    assert "file_edit" not in calls(events)
    assert file.read_text(encoding="utf-8") == before
