"""What is read out of texts by rule: failures, settings that are meant, beginnings of new code, and what a request wants."""

from __future__ import annotations

import ast

import pytest

from growbox_app.agent.kinds import object_of, understood
from growbox_app.agent.readings import (
    asserted,
    called_in,
    case_begins,
    failed_at,
    is_better,
    meant,
    own_beginning,
    printed,
    script_begins,
    tally,
    values_in,
    wants_several,
)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=2)", (3, 2)),
        ("2 failed, 7 passed in 0.31s", (2, 7)),
        ("test result: FAILED. 4 passed; 1 failed; 0 ignored", (1, 4)),
        ("make: *** [test] Segmentation fault", (1, 0)),
    ],
)
def test_a_failed_run_says_how_many_failed(text: str, counts: tuple[int, int]) -> None:
    assert tally(text) == counts


def test_fewer_failures_are_better_only_where_no_test_is_lost() -> None:
    assert is_better((1, 4), (2, 3))
    assert not is_better((2, 3), (2, 3))
    assert not is_better((1, 0), (2, 3))  # nothing could be imported any more


def test_a_failure_shows_what_was_called() -> None:
    said = '  File "/x/test_a.py", line 4, in test\n    self.assertEqual(area(2), 6)\n>       assert side(3) == 1\nprint(x)\n'
    assert called_in(said) == {"assertEqual", "area", "side"}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            '  File "/x/t.py", line 4, in test\n    self.assertEqual(area(2), 6)\nAssertionError: 5 != 6\n',
            "self.assertEqual(area(2), 6) → AssertionError: 5 != 6",
        ),
        (
            ">       assert side(n) == 1\nE       assert 2 == 1\nFAILED t.py::test_side - assert 2 == 1\n1 failed",
            "assert side(n) == 1 → FAILED t.py::test_side - assert 2 == 1",
        ),
        ("make: *** [test] Error: it hangs", "make: *** [test] Error: it hangs"),
        ("all is well", ""),
    ],
)
def test_a_failure_is_told_with_the_line_where_it_happened(said: str, told: str) -> None:
    assert failed_at(said) == told


def test_what_a_test_wants_is_told_apart_from_where_code_broke() -> None:
    assert asserted("assert side(n) == 1 → AssertionError: 2 != 1") == "assert side(n) == 1"
    assert asserted("return side(n) → RecursionError: too deep") == ""
    assert asserted("line 3: invalid syntax") == ""


@pytest.mark.parametrize(
    ("text", "line", "begun"),
    [
        ("return a // b + 1", "return a // b", "return a // b + 1"),
        ("return (a - 1) * b", "return a // b", "return (a"),
        ("return abs(a)", "return a // b", "return abs("),
        ("return x", "return a", "return x"),
        ("返回 一二", "返回 三", "返回 一二"),
        ("", "return a", ""),
    ],
)
def test_a_change_is_known_by_its_first_own_words(text: str, line: str, begun: str) -> None:
    assert own_beginning(text, line, words=2) == begun


def test_one_line_that_was_printed_is_known() -> None:
    assert printed("exit code 0\n137\n") == "137"
    assert printed("exit code 0\n1\n2\n") == ""
    assert printed("exit code 0\n") == ""


@pytest.mark.parametrize(
    ("wish", "values", "several"),
    [
        ("Set the pool size to 12", {"12"}, False),
        ('Set host to "db.local" and port to 5433', {"db.local", "5433"}, True),
        ("把日志级别改成 debug", {"debug"}, False),
        ("超时设为 45 秒，重试改成 3 次", {"45", "3"}, True),
        ("Write the name of our release into it", set(), False),
    ],
)
def test_a_wish_spells_out_values(wish: str, values: set[str], several: bool) -> None:
    assert values_in(wish) == values
    assert wants_several(wish) is several


def test_of_two_settings_the_one_is_meant_that_is_left() -> None:
    lines = ["body_limit = 1", "port = 2", "host = 3"]
    wish = "Set the body limit to 5 and the port to 6"
    assert meant(wish, lines, (0, 1, 2)) == {0}
    assert meant(wish, lines, (1, 2)) == {1}
    assert meant("Make it faster", lines, (0, 1, 2)) == frozenset()


@pytest.mark.parametrize("path", ["a b/数据.csv", "x.json", "notes.txt"])
def test_a_script_begins_with_reading_its_data(path: str) -> None:
    begun = script_begins(["tool.sh", path])
    ast.parse(begun)
    assert path in begun


def test_without_data_a_script_begins_as_it_likes() -> None:
    assert script_begins(["tool.sh"]) == ""


@pytest.mark.parametrize("is_new", [True, False])
def test_a_test_begins_so_that_it_can_be_finished(is_new: bool) -> None:
    ast.parse(case_begins("a.b", "to_sum", unittest=True, is_new=is_new) + "Equal(1, 1)")
    ast.parse(case_begins("a.b", "to_sum", unittest=False, is_new=is_new) + "1)")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Write the name of our mascot into about.md", "the name of our mascot"),
        ("把主持人的名字填进 plan.md", "主持人的名字"),
        ("Why does it fail?", ""),
    ],
)
def test_what_a_request_wants_to_be_put_somewhere(text: str, wanted: str) -> None:
    assert object_of(text) == wanted


@pytest.mark.parametrize(
    ("text", "signature"),
    [
        ("Add a function mean(values, start) to a.py", "mean(values, start)"),
        ("Add the function `mean` to a.py", "mean"),
        ("给 a.py 增加函数 mean", "mean"),
        ("Add a function that counts", ""),
    ],
)
def test_a_request_names_a_function(text: str, signature: str) -> None:
    assert understood(text, ["a.py"]).signature == signature
