"""Circles in what a model writes: told from honest text that repeats itself."""

from __future__ import annotations

import pytest

from growbox_app.engine.textual import degenerate, lists_the_same


def numbered(count: int, text: str) -> str:
    return "".join(f"{n}. {text}\n" for n in range(1, count + 1))


@pytest.mark.parametrize("text", ["**Save** the record.", "**存一条记录**：`store.py` 负责。"])
def test_a_list_of_the_same_items_is_a_circle(text: str) -> None:
    assert not lists_the_same(numbered(4, text))
    assert lists_the_same("All files:\n\n" + numbered(5, text))
    assert lists_the_same(numbered(5, text).replace("\n", "\n\n"))


@pytest.mark.parametrize(
    "text",
    [
        "[0, 0, 0, 0],\n" * 9,
        "- the same\n" * 9,
        numbered(9, "-"),
        "".join(f"{n}. item {n} is here\n" for n in range(9)),
        "1. the same\n" * 9,
        "| 1 | ok |\n| 2 | ok |\n" * 5,
        "",
    ],
)
def test_what_only_looks_alike_is_none(text: str) -> None:
    assert not lists_the_same(text)


def test_ids_go_round_only_when_all_of_them_do() -> None:
    assert degenerate([1, 2, 3] * 120)
    assert degenerate(list(range(60)) * 6)
    assert not degenerate([1, 2, 3] * 100)
    assert not degenerate([*[1, 2, 3] * 119, 9])
