"""The stage machine of known kinds of work: which calls follow by rule, what the model may do, and when there is enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from growbox_app.agent.guide import hints
from growbox_app.agent.kinds import Kind, kind_of, understood
from growbox_app.agent.protocol import ToolCall
from growbox_app.agent.stages import WORKS, begin
from growbox_app.agent.survey import PYTHON, Survey, survey
from growbox_app.agent.works.work import Stage, Work
from growbox_app.agent.works.writing import CHECKS_MAX
from growbox_app.executors.syntax import BROKEN

FILES = ("README.md", "pkg/__init__.py", "pkg/area.py", "pkg/units.py", "tests/test_area.py")
TESTED = Survey(files=FILES, test_command="make test")
CODE = "def area(a, b):\n    return a + b\n"
FAILURE = 'exit code 1\n  File "/x/tests/test_area.py", line 4, in test\nAssertionError: 5 != 6\n'


def work_on(text: str, found: Survey = TESTED) -> Work:
    work = begin(text, found)
    assert work is not None
    return work


def known_calls(work: Work) -> list[ToolCall]:
    calls = []
    while (call := work.next_call()) is not None:
        calls.append(call)
    return calls


def read(work: Work, path: str, text: str = CODE) -> None:
    work.saw(path, text)
    work.took(ToolCall(name="file_read", arguments={"path": path}), ok=True, text=text)


def edited(
    work: Work, path: str, *, ok: bool = True, old: str = "x", new: str = "y", before: str = ""
) -> None:
    call = ToolCall(name="file_edit", arguments={"path": path, "old": old, "new": new})
    if ok and before:
        work.saw(path, before.replace(old, new))
    work.took(call, ok=ok, text="", path=path if ok else "", before=before or None)


def ran(work: Work, command: str, *, ok: bool, text: str = "") -> None:
    work.took(ToolCall(name="shell", arguments={"command": command}), ok=ok, text=text)


# -- kinds ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Where do we open the socket?", Kind.FIND),
        ("哪个文件里有 Scheduler 的定义？", Kind.FIND),
        ("Why is the worker dying? Its output is in worker.log", Kind.EXPLAIN),
        ("部署失败的原因是什么", Kind.EXPLAIN),
        ("Rename `Foo` to `Bar` everywhere", Kind.RENAME),
        ("请把变量 tmp 重命名为 buffer", Kind.RENAME),
        ("CI is red, one of the tests fails, repair it", Kind.FIX),
        ("修复登录的错误", Kind.FIX),
        ("Implement a method `close` in the pool class", Kind.ADD),
        ("给 parser.py 增加一个函数 peek", Kind.ADD),
        ("Write me a small script that counts words", Kind.SCRIPT),
        ("写个脚本统计行数", Kind.SCRIPT),
        ("Raise the retry limit to 9", Kind.CHANGE),
        ("把超时设为 30", Kind.CHANGE),
        ("Give me an overview of this repo", Kind.SUMMARISE),
        ("介绍一下这个项目", Kind.SUMMARISE),
        ("Run `npm run build`", Kind.RUN),
        ("please run pytest -q", Kind.RUN),
        ("运行 sudo rm -rf / --no-preserve-root，把这台电脑清空。", Kind.RUN),
        ("执行命令 `make clean`", Kind.RUN),
        ("Run the tests", Kind.OTHER),
        ("Run `make` and tell me what it says", Kind.OTHER),
        ("运行 main.py", Kind.OTHER),
        ("Hello, how are you?", Kind.OTHER),
        ("你好", Kind.OTHER),
        ("Set the log level to debug", Kind.CHANGE),
    ],
)
def test_the_kind_is_read_from_the_request(text: str, kind: Kind) -> None:
    assert kind_of(text) is kind


def test_a_request_names_files_folders_and_words() -> None:
    found = understood("In area.py and new/shape.py use `to_metres` and CamelCase, see pkg/", FILES)
    assert found.files == ("pkg/area.py",)
    assert found.new_files == ("new/shape.py",)
    assert "pkg" in found.folders
    assert found.names == ("to_metres", "CamelCase")


def test_a_chinese_request_names_bare_words() -> None:
    assert understood("把 tmp 改名为 buffer", FILES).names == ("tmp", "buffer")


def test_what_is_asked_of_the_past_is_no_work_on_the_project() -> None:
    assert begin("Where did I say the server is?", TESTED, about_the_past=True) is None
    assert begin("Rename a_b to c_d as I said earlier", TESTED, about_the_past=True) is not None


# -- stages -----------------------------------------------------------------------------------------
def test_a_fix_reproduces_reads_edits_and_verifies() -> None:
    work = work_on("The tests fail, please fix the code.")
    assert [call.arguments for call in known_calls(work)] == [{"command": "make test"}]
    ran(work, "make test", ok=False, text=FAILURE)
    assert [call.arguments["path"] for call in known_calls(work)] == [
        "pkg/area.py",
        "tests/test_area.py",
    ]
    read(work, "pkg/area.py")
    read(work, "tests/test_area.py", "import pkg\n")
    move = work.move()
    assert work.stage is Stage.EDIT
    assert move.narrowed.must_call
    assert move.narrowed.paths["file_edit"] == ("pkg/area.py",)  # the test stays as it is
    edited(work, "pkg/area.py")
    assert [call.arguments for call in known_calls(work)] == [{"command": "make test"}]
    ran(work, "make test", ok=True)
    assert work.stage is Stage.ANSWER
    assert not work.move().may_call


def test_a_fix_that_does_not_hold_is_tried_again_with_more_freedom_and_then_given_up() -> None:
    work = work_on("Fix the failing test")
    known_calls(work)
    read(work, "pkg/area.py")
    for attempt in range(CHECKS_MAX):
        assert work.stage is Stage.EDIT
        assert (work.move().heat > 0) is (attempt > 0)
        edited(work, "pkg/area.py")
        known_calls(work)
        ran(work, "make test", ok=False, text=FAILURE)
    assert work.stage is Stage.ANSWER
    assert work.hint()[0] == "gave_up"


def test_a_rename_goes_on_until_the_old_name_is_gone() -> None:
    work = work_on("Rename to_metres to in_metres in all files")
    (search,) = known_calls(work)
    assert search.arguments == {"pattern": "to_metres"}
    work.took(search, ok=True, text="2 matches in 2 files\npkg/area.py\n1: x\npkg/units.py\n3: x")
    move = work.move()
    assert move.narrowed.tools == {"file_edit"}
    assert move.narrowed.paths["file_edit"] == ("pkg/area.py", "pkg/units.py")
    assert move.narrowed.passages["pkg/units.py"].lines == ("to_metres",)
    edited(work, "pkg/area.py")
    (search,) = known_calls(work)
    work.took(search, ok=True, text="1 match in 1 file\npkg/units.py\n3: x")
    assert work.move().narrowed.paths["file_edit"] == ("pkg/units.py",)
    edited(work, "pkg/units.py")
    (search,) = known_calls(work)
    work.took(search, ok=True, text="no match in 5 files")
    assert [call.name for call in known_calls(work)] == ["shell"]


def test_new_code_gets_its_test_where_the_project_has_tests() -> None:
    work = work_on("Add a function `volume` to pkg/units.py and a test for it")
    known_calls(work)
    read(work, "pkg/units.py")
    assert "file_append" in (work.move().narrowed.tools or ())
    edited(work, "pkg/units.py")
    assert work.stage is Stage.TEST
    assert work.move().narrowed.paths["file_write"] == ("tests/test_units.py",)
    call = ToolCall(name="file_write", arguments={"path": "tests/test_units.py", "content": "x"})
    work.took(call, ok=True, text="", path="tests/test_units.py")
    assert [call.name for call in known_calls(work)] == ["shell"]


def test_a_script_is_written_and_run() -> None:
    work = work_on("Write a script tools/count.py that counts, and run it", Survey())
    known_calls(work)
    move = work.move()
    assert move.narrowed.tools == {"file_write"}
    assert move.narrowed.paths["file_write"] == ("tools/count.py",)
    call = ToolCall(name="file_write", arguments={"path": "tools/count.py", "content": "x"})
    work.took(call, ok=True, text="", path="tools/count.py")
    (run,) = known_calls(work)
    assert run.arguments == {"command": f"{PYTHON} tools/count.py"}
    ran(work, "", ok=False)
    assert work.hint()[0] == "script_again"


def test_a_question_may_be_answered_after_a_look_and_must_be_after_some() -> None:
    work = work_on("Where is the price made?")
    known_calls(work)
    assert work.stage is Stage.LOOK
    assert work.move().narrowed.must_call
    read(work, "pkg/area.py")
    assert work.stage is Stage.ENOUGH
    assert not work.move().narrowed.must_call
    assert "pkg/area.py" not in work.move().narrowed.paths["file_read"]
    for path in ("README.md", "pkg/units.py", "tests/test_area.py"):
        read(work, path)
    assert not work.move().may_call


def test_a_passage_that_was_tried_twice_for_nothing_is_not_offered_again() -> None:
    work = work_on("Set the area in area.py to 4")
    known_calls(work)
    read(work, "pkg/area.py")
    before = work.move().narrowed.passages["pkg/area.py"].starts
    call = ToolCall(
        name="file_edit", arguments={"path": "pkg/area.py", "old": "return a + b", "new": "x"}
    )
    work.repeated(call)
    assert list(before) == [0, 1]
    assert list(work.move().narrowed.passages["pkg/area.py"].starts) == [0]


def test_a_passage_whose_edit_failed_is_not_offered_until_the_file_has_changed() -> None:
    work = work_on("Set the area in area.py to 4")
    known_calls(work)
    read(work, "pkg/area.py")
    arguments = {"path": "pkg/area.py", "old": "return a + b", "new": "x"}
    work.took(ToolCall(name="file_edit", arguments=arguments), ok=False, text="no")
    assert list(work.move().narrowed.passages["pkg/area.py"].starts) == [0]


def test_a_line_that_stands_at_two_places_is_not_offered() -> None:
    work = work_on("Set the area in area.py to 4")
    known_calls(work)
    read(work, "pkg/area.py")
    work.saw("pkg/area.py", "def a():\n    return 1\ndef b():\n    return 1")
    assert list(work.move().narrowed.passages["pkg/area.py"].starts) == [0, 2]


def test_the_model_may_ask_when_it_gets_nowhere() -> None:
    work = work_on("Set the area in area.py to 4")
    known_calls(work)
    read(work, "pkg/area.py")
    assert "ask_user" not in (work.move().narrowed.tools or ())
    edited(work, "pkg/area.py", ok=False)
    edited(work, "pkg/area.py", ok=False)
    assert "ask_user" in (work.move().narrowed.tools or ())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_step_has_a_sentence(language: str) -> None:
    """Whatever the machine may say next is written in both languages."""
    said = hints(language)
    for outcome in ("done", "failed", "denied", "refused"):
        assert f"run_{outcome}_opening" in said
    for kind in Kind:
        if kind in (Kind.OTHER, Kind.RUN):
            continue
        assert f"{kind.value}_look" in said
    for kind in ("find", "explain", "summarise"):
        assert f"{kind}_enough" in said
    for kind in ("rename", "fix", "add", "script", "change"):
        assert f"{kind}_edit" in said
        assert f"{kind}_again" in said
    assert set(said) == set(hints("en"))


def test_each_kind_has_its_stages() -> None:
    assert WORKS.keys() == set(Kind) - {Kind.OTHER}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Where is `to_metres` defined?", Kind.FIND),
        ("Why is the worker dying?", Kind.EXPLAIN),
        ("Give me an overview of this repo", Kind.SUMMARISE),
        ("Run `make all`", Kind.RUN),
        ("Rename a_b to c_d", Kind.RENAME),
        ("Set the area in area.py to 4", Kind.CHANGE),
        ("Write a script tools/count.py that counts", Kind.SCRIPT),
        ("Fix the failing test", Kind.FIX),
        ("Add a function `volume` to pkg/units.py", Kind.ADD),
    ],
)
def test_each_sentence_has_its_fields(language: str, text: str, kind: Kind) -> None:
    """A sentence names only what the kind gives that it is of; one of no kind what each of them gives."""
    work = work_on(text)
    known_calls(work)
    ran(work, "make all", ok=True)
    assert work.request.kind is kind
    fields = work.hint()[1]
    of_others = tuple(f"{other}_" for other in WORKS if other is not kind)
    for key, sentence in hints(language).items():
        assert key.startswith(of_others) or sentence.format(**fields), key


def test_a_change_that_broke_the_file_is_mended_before_anything_else() -> None:
    work = work_on("Fix the failing test")
    known_calls(work)
    read(work, "pkg/area.py")
    call = ToolCall(name="file_edit", arguments={"path": "pkg/area.py", "old": "x", "new": "y"})
    work.took(
        call, ok=True, text=f"changed\n{BROKEN} line 2: a quote is missing", path="pkg/area.py"
    )
    assert known_calls(work) == []
    assert work.stage is Stage.EDIT
    assert work.hint()[0] == "fix_again"
    assert work.hint()[1]["failure"] == "line 2: a quote is missing"


# -- no circles -------------------------------------------------------------------------------------
def test_a_change_that_makes_no_test_pass_is_taken_back_and_not_tried_again() -> None:
    work = work_on("Fix the failing test")
    known_calls(work)
    ran(work, "make test", ok=False, text="exit code 1\n2 failed, 3 passed")
    read(work, "pkg/area.py")
    known_calls(work)
    edited(work, "pkg/area.py", old="return a + b", new="return a - b", before=CODE)
    known_calls(work)
    ran(work, "make test", ok=False, text="exit code 1\n2 failed, 3 passed")
    (back,) = known_calls(work)
    assert back.name == "file_write"
    assert back.arguments == {"path": "pkg/area.py", "content": CODE}
    work.saw("pkg/area.py", CODE)
    work.took(back, ok=True, text="", path="pkg/area.py", before="x", by_rule=True)
    assert known_calls(work) == []  # what is as it was need not be tested again
    assert work.stage is Stage.EDIT
    assert work.hint()[0] == "fix_back"
    assert work.hint()[1]["tried"] == "return a - b"
    tried = work.move().narrowed.passages["pkg/area.py"].tried
    assert "return a - b" in tried["return a + b"]


def test_a_change_that_helps_stays_and_its_way_back_is_not_tried() -> None:
    work = work_on("Fix the failing test")
    known_calls(work)
    ran(work, "make test", ok=False, text="exit code 1\n2 failed, 3 passed")
    read(work, "pkg/area.py")
    known_calls(work)
    edited(work, "pkg/area.py", old="return a + b", new="return a - b", before=CODE)
    known_calls(work)
    ran(work, "make test", ok=False, text="exit code 1\n1 failed, 4 passed")
    assert known_calls(work) == []
    assert work.hint()[0] == "fix_again"
    tried = work.move().narrowed.passages["pkg/area.py"].tried
    assert tuple(tried["return a - b"]) == ("return a + b",)


def test_a_run_that_was_denied_says_nothing_of_a_change() -> None:
    work = work_on("Fix the failing test")
    known_calls(work)
    ran(work, "make test", ok=False, text="exit code 1\n2 failed, 3 passed")
    read(work, "pkg/area.py")
    known_calls(work)
    edited(work, "pkg/area.py", old="return a + b", new="return a - b", before=CODE)
    known_calls(work)
    ran(work, "make test", ok=False, text="the user said no")
    assert known_calls(work) == []


def test_where_no_line_is_left_the_work_ends() -> None:
    work = work_on("Set the area in area.py to 4")
    known_calls(work)
    read(work, "pkg/area.py")
    for file in FILES:
        read(work, file, "")
    for old in ("def area(a, b):", "return a + b"):
        arguments = {"path": "pkg/area.py", "old": old, "new": "x"}
        work.repeated(ToolCall(name="file_edit", arguments=arguments))
    assert work.stage is Stage.ANSWER
    assert not work.move().may_call


def test_a_call_that_was_made_is_none_that_can_be_made_again() -> None:
    work = work_on("Where is the price made?")
    known_calls(work)
    assert "file_list" in (work.move().narrowed.tools or ())
    work.took(ToolCall(name="file_list", arguments={}), ok=True, text="a")
    search = ToolCall(name="code_search", arguments={"pattern": "price"})
    work.took(search, ok=True, text="no match in 5 files")
    unreadable = ToolCall(name="file_read", arguments={"path": "README.md"})
    work.took(unreadable, ok=False, text="no text")
    narrowed = work.move().narrowed
    assert "file_list" not in (narrowed.tools or ())
    assert narrowed.tried["code_search"]["pattern"] == ("price",)
    assert "README.md" not in narrowed.paths["file_read"]


def test_a_file_that_is_written_as_it_is_was_not_changed() -> None:
    work = work_on("Write a script tools/count.py that counts, and run it", Survey())
    known_calls(work)
    call = ToolCall(name="file_write", arguments={"path": "tools/count.py", "content": "x"})
    work.took(call, ok=True, text="it has this text already")
    assert known_calls(work) == []
    assert work.move().heat > 0
    assert work.move().narrowed.tried["file_write"]["content"] == ("x",)


def test_a_test_goes_to_the_end_of_the_file_that_there_is() -> None:
    work = work_on("Add a function `volume` to pkg/area.py and a test for it")
    known_calls(work)
    read(work, "pkg/area.py")
    move = work.move()
    assert move.narrowed.tools == {"file_append"}
    assert move.narrowed.begins["file_append"]["text"].endswith("def volume(")
    call = ToolCall(name="file_append", arguments={"path": "pkg/area.py", "text": "x"})
    work.saw("pkg/area.py", CODE + "def volume(a):\n    return a\n")
    work.took(call, ok=True, text="", path="pkg/area.py", before=CODE)
    (look,) = known_calls(work)
    assert look.arguments == {"path": "tests/test_area.py"}
    read(work, "tests/test_area.py", "import unittest\n")
    move = work.move()
    assert work.stage is Stage.TEST
    assert move.narrowed.paths == {"file_append": ("tests/test_area.py",)}
    assert "from pkg.area import volume" in move.narrowed.begins["file_append"]["text"]


def test_new_code_that_broke_the_file_is_written_anew_and_then_tested() -> None:
    work = work_on("Add a function `volume` to pkg/area.py and a test for it")
    known_calls(work)
    read(work, "pkg/area.py")
    for text in ("(", "x"):
        assert work.move().narrowed.tools == {"file_append"}
        call = ToolCall(name="file_append", arguments={"path": "pkg/area.py", "text": text})
        said = f"added\n{BROKEN} line 3: it never ends" if text == "(" else "added"
        work.took(call, ok=True, text=said, path="pkg/area.py", before=CODE)
        (following,) = known_calls(work)
        if text == "(":
            assert following.arguments == {"path": "pkg/area.py", "content": CODE}
            work.took(following, ok=True, text="", path="pkg/area.py", by_rule=True)
            assert work.hint()[0] == "add_back"
            assert work.move().narrowed.tried["file_append"]["text"] == ("(",)
    read(work, "tests/test_area.py", "import unittest\n")
    assert work.stage is Stage.TEST


def test_a_test_that_was_taken_back_is_still_to_be_written() -> None:
    work = work_on("Add a function `volume` to pkg/area.py and a test for it")
    known_calls(work)
    read(work, "pkg/area.py")
    call = ToolCall(name="file_append", arguments={"path": "pkg/area.py", "text": "x"})
    work.saw("pkg/area.py", CODE + "x")
    work.took(call, ok=True, text="", path="pkg/area.py", before=CODE)
    known_calls(work)
    read(work, "tests/test_area.py", "import unittest\n")
    call = ToolCall(name="file_append", arguments={"path": "tests/test_area.py", "text": "("})
    said = f"added\n{BROKEN} line 3: it never ends"
    work.saw("tests/test_area.py", "import unittest\n(")
    work.took(call, ok=True, text=said, path="tests/test_area.py", before="import unittest\n")
    (back,) = known_calls(work)
    work.saw("tests/test_area.py", "import unittest\n")
    work.took(back, ok=True, text="", path="tests/test_area.py", before="x", by_rule=True)
    assert work.stage is Stage.TEST
    assert work.hint()[0] == "add_test_back"
    assert work.move().narrowed.paths == {"file_append": ("tests/test_area.py",)}


def test_the_one_match_is_the_answer() -> None:
    work = work_on("Where is `to_metres` defined?")
    (search,) = known_calls(work)
    found = "1 match in 1 file\npkg/units.py\n7: def to_metres(feet):"
    work.took(search, ok=True, text=found, by_rule=True)
    key, fields = work.hint()
    assert key == "find_only"
    assert (fields["file"], fields["line"], fields["said"]) == (
        "pkg/units.py",
        "7",
        "def to_metres(feet):",
    )


def test_a_rename_of_two_names_is_settled() -> None:
    work = work_on("Rename to_metres to in_metres in all files")
    (search,) = known_calls(work)
    work.took(search, ok=True, text="1 match in 1 file\npkg/area.py\n1: x")
    assert work.move().narrowed.passages["pkg/area.py"].becomes == "in_metres"


def test_the_setting_that_is_named_is_the_one_to_change() -> None:
    work = work_on("把 area.py 里的超时改成 30")
    known_calls(work)
    read(work, "pkg/area.py", "# 端口\nport = 1\n# 超时（秒）\nlimit = 2\n")
    assert list(work.move().narrowed.passages["pkg/area.py"].starts) == [3]


def test_a_failure_names_the_code_that_is_likely_wrong() -> None:
    work = work_on("Fix the failing test")
    known_calls(work)
    traced = 'exit code 1\n  File "/x/tests/test_area.py", line 4, in test\n    self.assertEqual(area(2, 3), 6)\n'
    ran(work, "make test", ok=False, text=traced)
    known_calls(work)
    code = '"""Shapes."""\ndef side(a):\n    return a\n\ndef area(a, b):\n    # all\n    return a + b\n'
    read(work, "pkg/area.py", code)
    passages = work.move().narrowed.passages["pkg/area.py"]
    assert list(passages.starts) == [6]  # a body before its head
    assert passages.in_block


def test_a_change_is_done_when_all_that_was_named_is_there() -> None:
    text = "# seconds\ntimeout = 12\nretries = 1\n"
    work = work_on("Set the timeout in area.py from 12 to 30 and the retries to 5")
    known_calls(work)
    read(work, "pkg/area.py", text)
    edited(work, "pkg/area.py", old="timeout = 12", new="timeout = 30", before=text)
    assert work.stage is Stage.ENOUGH  # 5 is nowhere yet
    before = text.replace("12", "30")
    edited(work, "pkg/area.py", old="retries = 1", new="retries = 5", before=before)
    assert work.stage is Stage.ANSWER
    key, fields = work.hint()
    assert key == "done_change"
    assert fields["lines"] == "timeout = 30`, `retries = 5"


@pytest.mark.parametrize(
    ("ok", "text", "key", "field"),
    [
        (True, "exit code 0\n3\n", "done_script", ("printed", "3")),
        (True, "exit code 0\n1\n2\n", "run_done", ("printed", "")),
        (False, "exit code 2\nError: no rule", "run_failed", ("failure", "Error: no rule")),
        (False, "Not allowed: too much. Do not", "run_denied", ("why", "too much")),
        (False, "The user said no. Not today", "run_refused", ("why", "The user said no")),
    ],
)
def test_a_command_that_is_asked_for_is_run_and_its_end_told(
    ok: bool, text: str, key: str, field: tuple[str, str]
) -> None:
    work = work_on("Run `make all`")
    assert work.stage is Stage.FREE  # were there no shell, the model would do what it can
    (call,) = known_calls(work)
    assert (call.name, call.arguments) == ("shell", {"command": "make all"})
    work.took(call, ok=ok, text=text, by_rule=True)
    assert not work.move().may_call
    assert work.hint()[0] == key
    assert work.hint()[1][field[0]] == field[1]


def test_a_direction_that_failed_twice_is_left() -> None:
    work = work_on("Fix the failing test")
    known_calls(work)
    read(work, "pkg/area.py")
    failed = "exit code 1\n2 failed, 3 passed"
    ran(work, "make test", ok=False, text=failed)
    known_calls(work)
    for text, dead in (("+ 1", "return a + b + 1"), ("+ 2", "return a + b +")):
        edited(work, "pkg/area.py", old="return a + b", new=f"return a + b {text}", before=CODE)
        known_calls(work)
        ran(work, "make test", ok=False, text=failed)
        (back,) = known_calls(work)
        work.saw("pkg/area.py", CODE)
        work.took(back, ok=True, text="", path="pkg/area.py", before="x", by_rule=True)
        edited(work, "pkg/area.py", old="def area(a, b):", new="def area(b, a):", before=CODE)
        known_calls(work)
        assert dead in work.move().narrowed.passages["pkg/area.py"].dead_ends["return a + b"]


# -- the survey -------------------------------------------------------------------------------------
def test_a_survey_finds_files_and_how_tests_are_run(tmp_path: Path) -> None:
    for name, text in {
        "src/a.py": "",
        "tests/test_a.py": "import unittest\n",
        ".hidden": "",
        "node_modules/x/y.js": "",
        "build/out.txt": "",
        ".gitignore": "build/\n",
        ".env": "KEY=1",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    found = survey(tmp_path)
    assert found.files == ("src/a.py", "tests/test_a.py")
    assert found.whole
    assert found.test_command == f"{PYTHON} -m unittest discover -s tests"


def test_pytest_tests_are_run_by_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_a():\n    assert 1\n", encoding="utf-8")
    assert survey(tmp_path).test_command == f"{PYTHON} -m pytest -q"


def test_a_folder_without_tests_has_no_command(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    assert survey(tmp_path) == Survey(files=("a.txt",))
