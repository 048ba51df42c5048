"""What is undone is read from the checkpoints themselves: after a restart, an undone undoing, a forgotten turn, a crash."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from growbox_app.shadow import archive
from growbox_app.shadow.undoing import undone
from growbox_app.shadow.values import CheckpointLimits
from tests.unit.test_checkpoints import World, run


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def called(world: World, name: str, answer: str = "a1") -> str:
    """A call that makes a file of this name; returns its checkpoint."""
    taken = world.take(answer)
    world.write(name)
    world.finish(taken)
    return taken.id


def undone_in(world: World, *ids: str) -> set[str]:
    """As a new process tells it."""
    world.restart()
    return set(run(world.checkpoints.undone(ids)))


def test_an_undone_call_is_undone_after_a_restart_and_its_undoing_is_not_for_ever(
    world: World,
) -> None:
    call = called(world, "a.txt")
    assert undone_in(world, call) == set()
    back = world.restore(call).undo_id
    assert undone_in(world, call, back) == {call}
    again = world.restore(back).undo_id
    assert undone_in(world, call, back, again) == {back}
    world.restore(again)
    assert undone_in(world, call, back, again) == {call, again}


def test_undoing_a_turn_counts_for_each_of_its_calls_and_for_those_of_later_ones(
    world: World,
) -> None:
    before = called(world, "a.txt", "t1")
    turn = [called(world, name, "t2") for name in ("b.txt", "c.txt")]
    later = called(world, "d.txt", "t3")
    run(world.checkpoints.restore_turn("t2"))
    new = called(world, "e.txt", "t4")
    assert undone_in(world, before, *turn, later, new) == {*turn, later}
    assert undone_in(world, turn[1]) == {turn[1]}


def test_what_conflicts_prevented_is_not_undone(world: World) -> None:
    call = called(world, "a.txt")
    world.write("a.txt", b"mine")
    assert not world.restore(call).is_done
    assert undone_in(world, call) == set()
    assert world.restore(call, force=True).is_done
    assert undone_in(world, call) == {call}


def test_a_restore_that_a_crash_cut_off_is_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = called(world, "a.txt")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(archive, "carry_out", die)
        with pytest.raises(KeyboardInterrupt):
            world.restore(call)
    world.restart()
    run(world.checkpoints.recover())
    assert undone_in(world, call) == set()
    assert world.restore(call).is_done
    assert undone_in(world, call) == {call}


def test_checkpoints_that_are_gone_take_no_others_word_away(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = called(world, "a.txt", "forgotten")
    second = called(world, "b.txt")
    world.restore(first)
    run(world.checkpoints.forget(["forgotten"]))
    assert undone_in(world, first, second) == {second}


def test_where_nothing_was_saved_or_all_is_damaged_nothing_is_undone(tmp_path: Path) -> None:
    world = World(tmp_path, CheckpointLimits())
    assert undone_in(world) == set()
    assert undone_in(world, "k-1", "nonsense", "../x-1") == set()
    call = called(world, "a.txt")
    world.restore(call)
    for path in (world.data / "checkpoints").glob("*/objects/*/*"):
        path.unlink()
    assert undone_in(world, call) == set()


@pytest.mark.parametrize("seed", range(4))
def test_a_call_is_undone_exactly_when_its_file_is_not_there(world: World, seed: int) -> None:
    chance = random.Random(seed)
    files: dict[str, str] = {}
    known: list[str] = []
    for step in range(12):
        if not known or chance.random() < 0.5:
            known.append(called(world, f"{step}.txt"))
            files[known[-1]] = f"{step}.txt"
        else:
            undo_id = world.restore(chance.choice(known)).undo_id
            assert undo_id is not None
            known.append(undo_id)
        gone = {call for call, name in files.items() if not (world.root / name).exists()}
        assert set(run(world.checkpoints.undone(files))) == gone


class Taken:
    def __init__(self, number: int, restores: int | None = None) -> None:
        self.number = number
        self.restores = restores


def records(*restores: int | None) -> Iterator[Taken]:
    yield from (Taken(number, target) for number, target in enumerate(restores))


def test_the_fold() -> None:
    assert undone(records()) == set()
    assert undone(records(None, None)) == set()
    assert undone(records(None, None, 1, None, 0)) == {0, 1, 2, 3}
    assert undone(records(None, 0, 1, None, 2)) == {0, 2, 3}
