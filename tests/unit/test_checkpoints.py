"""Checkpoints on real folders: every byte, mode and link comes back, and nobody else's work is touched."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from growbox_app.checkpoints import Checkpoints
from growbox_app.clock import SystemClock
from growbox_app.shadow.values import (
    Checkpoint,
    CheckpointKind,
    CheckpointLimits,
    CheckpointTrouble,
    SkipReason,
)
from tests.fakes.clock import FakeClock
from tests.fakes.folders import contents_of

T = TypeVar("T")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX names, modes and links")


class World:
    """A project and its checkpoints."""

    def __init__(self, folder: Path, limits: CheckpointLimits | None = None) -> None:
        self.data = folder / "data"
        self.root = folder / "project"
        self.root.mkdir()
        self.clock = FakeClock()
        self.limits = limits
        self.restart()

    def restart(self) -> None:
        self.checkpoints = Checkpoints(self.data, self.clock, self.limits)

    def write(self, name: str, content: bytes = b"x\n") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def take(self, answer: str = "a1", paths: list[Path] | None = None) -> Checkpoint:
        return run(self.checkpoints.take(self.root, "a call", answer, paths=paths))

    def finish(self, checkpoint: Checkpoint) -> None:
        run(self.checkpoints.finish(checkpoint.id))

    def restore(self, checkpoint_id: str, **options: Any):
        return run(self.checkpoints.restore(checkpoint_id, **options))

    def contents(self) -> dict[str, object]:
        return contents_of(self.root)

    def names(self, paths: tuple[Path, ...]) -> list[str]:
        return [path.relative_to(self.root).as_posix() for path in paths]


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


AWKWARD = {
    "crlf.txt": b"a\r\nb\r\n",
    "bom.txt": b"\xef\xbb\xbfhello\n",
    "utf16.txt": "数据".encode("utf-16"),
    "no_end.txt": b"no line end",
    "empty.txt": b"",
    "binary.bin": bytes(range(256)) * 20,
    "目录/说明.md": "# 你好\n".encode(),
    "a b/c'd\"e.txt": b"odd\n",
    ".hidden/.gitattributes": b"* text=auto eol=crlf ident\n",
    ".gitattributes": b"* text eol=lf filter=x\n",
}


def test_everything_comes_back_byte_for_byte(world):
    for name, content in AWKWARD.items():
        world.write(name, content)
    (world.root / "empty folder" / "deep").mkdir(parents=True)
    before = world.contents()
    checkpoint = world.take()
    shutil.rmtree(world.root / "目录")
    (world.root / "empty.txt").unlink()
    (world.root / "empty folder" / "deep").rmdir()
    world.write("crlf.txt", b"a\nb\n")
    world.write("bom.txt", b"hello\n")
    world.write("new/deep/file.txt")
    world.finish(checkpoint)
    after = world.contents()

    report = world.restore(checkpoint.id)

    assert world.contents() == before
    assert report.is_done
    assert world.names(report.removed) == ["new/deep/file.txt"]
    assert set(world.names(report.restored)) >= {"crlf.txt", "bom.txt", "empty.txt", "目录/说明.md"}
    assert report.undo_id is not None
    world.restore(report.undo_id)
    assert world.contents() == after


@POSIX
def test_modes_links_and_names_that_are_no_text_come_back(world):
    world.write("run.sh", b"#!/bin/sh\n").chmod(0o755)
    world.write("private.txt").chmod(0o600)
    (world.root / "link").symlink_to("run.sh")
    (world.root / "dangling").symlink_to("/nowhere/at all")
    odd = world.write(os.fsdecode(b"caf\xe9\n.txt"), b"latin\n")
    before = world.contents()
    checkpoint = world.take()
    (world.root / "run.sh").chmod(0o644)
    (world.root / "private.txt").unlink()
    (world.root / "link").unlink()
    world.write("link", b"a file now")
    (world.root / "dangling").unlink()
    odd.unlink()
    world.finish(checkpoint)
    world.restore(checkpoint.id)
    assert world.contents() == before


@POSIX
def test_nothing_is_written_through_a_link(world, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file.txt").write_bytes(b"theirs")
    world.write("folder/file.txt", b"ours")
    checkpoint = world.take()
    world.write("folder/file.txt", b"changed")
    world.finish(checkpoint)
    shutil.rmtree(world.root / "folder")
    (world.root / "folder").symlink_to(outside)
    report = world.restore(checkpoint.id, force=True)
    assert world.names(report.failed) == ["folder/file.txt"]
    assert (outside / "file.txt").read_bytes() == b"theirs"
    assert [path.name for path in outside.iterdir()] == ["file.txt"]


def test_a_file_becomes_a_folder_and_back(world):
    world.write("thing", b"a file")
    world.write("other/file")
    before = world.contents()
    checkpoint = world.take()
    (world.root / "thing").unlink()
    world.write("thing/inside")
    shutil.rmtree(world.root / "other")
    world.write("other", b"now a file")
    world.finish(checkpoint)
    world.restore(checkpoint.id)
    assert world.contents() == before


def test_a_turn_goes_back_to_before_its_first_change(world):
    world.write("a.txt", b"0")
    for answer, content in (("t1", b"1"), ("t2", b"2"), ("t2", b"3")):
        checkpoint = world.take(answer)
        world.write("a.txt", content)
        world.finish(checkpoint)
    run(world.checkpoints.restore_turn("t2"))
    assert (world.root / "a.txt").read_bytes() == b"1"
    run(world.checkpoints.restore_turn("t1"))
    assert (world.root / "a.txt").read_bytes() == b"0"
    with pytest.raises(CheckpointTrouble):
        run(world.checkpoints.restore_turn("t3"))


def test_what_the_user_changed_meanwhile_is_not_overwritten(world):
    for name in ("agent.txt", "both.txt", "user.txt"):
        world.write(name, b"old")
    checkpoint = world.take()
    world.write("agent.txt", b"agent")
    world.write("both.txt", b"agent")
    world.finish(checkpoint)
    world.write("both.txt", b"user")
    world.write("user.txt", b"user")
    world.write("users_new.txt", b"user")
    before = world.contents()

    report = world.restore(checkpoint.id)
    assert not report.is_done
    assert world.names(report.conflicts) == ["both.txt"]
    assert world.names(report.kept) == ["user.txt", "users_new.txt"]
    assert world.contents() == before

    report = world.restore(checkpoint.id, force=True)
    assert world.names(report.restored) == ["agent.txt", "both.txt"]
    assert (world.root / "both.txt").read_bytes() == b"old"
    assert (world.root / "user.txt").read_bytes() == b"user"
    assert (world.root / "users_new.txt").exists()

    world.restore(report.undo_id)
    assert world.contents() == before
    world.restore(checkpoint.id, force=True, also=[world.root / "user.txt"])
    assert (world.root / "user.txt").read_bytes() == b"old"


def test_a_change_of_the_users_between_two_calls_is_a_conflict(world):
    world.write("a.txt", b"0")
    first = world.take()
    world.write("a.txt", b"agent 1")
    world.finish(first)
    world.write("a.txt", b"user's")
    second = world.take()
    world.write("a.txt", b"agent 2")
    world.finish(second)
    assert world.names(world.restore(first.id).conflicts) == ["a.txt"]
    assert world.restore(second.id).is_done
    assert (world.root / "a.txt").read_bytes() == b"user's"


def test_a_call_cut_off_by_a_crash_can_be_undone(world):
    world.write("a.txt", b"old")
    world.take()
    world.write("a.txt", b"half")
    world.write("left.txt")
    world.restart()
    run(world.checkpoints.recover())
    world.write("mine.txt", b"user")
    (newest,) = run(world.checkpoints.list(world.root))
    assert newest.is_finished
    report = world.restore(newest.id)
    assert world.names(report.kept) == ["mine.txt"]
    assert world.contents() == {"a.txt": b"old", "mine.txt": b"user"} | {
        name: value for name, value in world.contents().items() if name.startswith("mode ")
    }


def test_ignored_and_huge_files_are_left_out_and_said(tmp_path):
    world = World(tmp_path, CheckpointLimits(file_bytes=1000, named_bytes=10_000))
    world.write(".gitignore", b"*.log\n/build/\n")
    for name in (
        "a.log",
        "build/out.bin",
        "node_modules/m/i.js",
        ".venv/pyvenv.cfg",
        "env/pyvenv.cfg",
    ):
        world.write(name)
    world.write("Cargo.toml")
    world.write("target/debug/app")
    world.write("target/sub/target/notes.txt")
    world.write("docs/target/notes.txt")
    world.write("huge.bin", b"0" * 2000)
    checkpoint = world.take()
    found = {
        skipped.path.relative_to(world.root).as_posix(): skipped.reason
        for skipped in checkpoint.skipped
    }
    ignored = SkipReason.IGNORED
    assert found == {
        "a.log": ignored,
        "build": ignored,
        "node_modules": ignored,
        ".venv": ignored,
        "env": ignored,
        "target": ignored,
        "huge.bin": SkipReason.TOO_BIG,
    }
    world.write("a.log", b"changed")
    world.write("build/new.bin")
    world.write("huge.bin", b"1" * 2001)
    world.write("docs/target/notes.txt", b"changed")
    world.finish(checkpoint)
    report = world.restore(checkpoint.id)
    assert world.names(report.restored) == ["docs/target/notes.txt"]
    assert world.names(report.not_saved) == ["huge.bin"]
    assert (world.root / "a.log").read_bytes() == b"changed"
    assert (world.root / "build" / "new.bin").exists()


def test_files_that_a_call_names_are_always_saved(tmp_path):
    world = World(tmp_path, CheckpointLimits(file_bytes=1000, named_bytes=10_000))
    world.write(".gitignore", b"*.log\n")
    log, huge = world.write("a.log", b"log"), world.write("huge.bin", b"0" * 2000)
    new, grown = world.root / "new.log", world.write("small.txt", b"small")
    outside = tmp_path / "outside.txt"
    checkpoint = world.take(paths=[log, huge, new, grown, outside])
    assert [(s.path, s.reason) for s in checkpoint.skipped] == [(outside, SkipReason.OUTSIDE)]
    world.write("a.log", b"changed")
    world.write("huge.bin", b"1" * 3000)
    world.write("new.log", b"2" * 3000)
    world.write("small.txt", b"3" * 3000)
    world.finish(checkpoint)
    after = world.contents()
    report = world.restore(checkpoint.id)
    assert log.read_bytes() == b"log"
    assert huge.read_bytes() == b"0" * 2000
    assert grown.read_bytes() == b"small"
    assert not new.exists()
    world.restore(report.undo_id)
    assert world.contents() == after


def test_ignoring_a_folder_later_removes_nothing_from_it(world):
    world.write("out/result.txt", b"old")
    world.write(".gitignore", b"/cache/\n")
    world.write("cache/big.txt")
    checkpoint = world.take()
    world.write(".gitignore", b"/out/\n")
    world.write("out/result.txt", b"changed")
    world.finish(checkpoint)
    report = world.restore(checkpoint.id)
    assert world.names(report.restored) == [".gitignore", "out/result.txt"]
    assert (world.root / "cache" / "big.txt").exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="git")
def test_the_users_repository_is_untouched(world):
    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=u", "-c", "user.email=u@x", *words],
            cwd=world.root,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    git("init", "-q")
    world.write("tracked.txt", b"1\n")
    git("add", ".")
    git("commit", "-qm", "one")
    world.write("staged.txt")
    git("add", "staged.txt")
    hook = world.write(".git/hooks/pre-commit", b"#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    world.write("vendored/.git/HEAD", b"ref: x\n")
    world.write("vendored/code.txt", b"old")
    repository = contents_of(world.root / ".git")
    checkpoint = world.take()
    world.write("tracked.txt", b"2\n")
    world.write("vendored/code.txt", b"new")
    world.write("vendored/.git/HEAD", b"ref: y\n")
    world.finish(checkpoint)
    report = world.restore(checkpoint.id)
    assert world.names(report.restored) == ["tracked.txt", "vendored/code.txt"]
    assert contents_of(world.root / ".git") == repository
    assert (world.root / "vendored/.git/HEAD").read_bytes() == b"ref: y\n"
    assert not (world.root / "ran").exists()
    assert git("status", "--porcelain") == "A  staged.txt\n?? vendored/\n"


@pytest.mark.skipif(shutil.which("git") is None, reason="git")
def test_the_store_is_a_repository_that_git_can_read(world):
    for name, content in AWKWARD.items():
        world.write(name, content)
    world.finish(world.take())
    (store,) = (world.data / "checkpoints").iterdir()
    done = subprocess.run(
        ["git", f"--git-dir={store}", "fsck", "--full"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_list_and_the_diff(world):
    world.write("a.txt", b"old\n")
    first = world.take("t1")
    world.write("a.txt", b"new\n")
    world.write("b.txt", b"made\n")
    shown = {
        change.path.name: (change.before, change.after)
        for change in run(world.checkpoints.diff(first.id))
    }
    assert shown == {"a.txt": (b"old\n", b"new\n"), "b.txt": (None, b"made\n")}
    world.finish(first)
    report = world.restore(first.id)
    listed = run(world.checkpoints.list(world.root))
    assert [item.id for item in listed] == [report.undo_id, first.id]
    assert [item.kind for item in listed] == [CheckpointKind.RESTORE, CheckpointKind.CALL]
    assert listed[1].answer_id == "t1"
    assert {change.path.name for change in run(world.checkpoints.diff(first.id))} == {
        "a.txt",
        "b.txt",
    }


def test_a_look_that_saves_nothing_leaves_nothing_to_miss(world):
    """What a diff or a refused restore read is in the store when the next checkpoint refers to it."""
    world.clock = SystemClock()
    world.restart()
    path = world.write("a.txt", b"old")
    first = world.take()
    world.write("a.txt", b"agent")
    os.utime(path, (1, 1))
    run(world.checkpoints.diff(first.id))
    world.finish(first)
    second = world.take()
    world.write("a.txt", b"again")
    world.finish(second)
    world.restore(second.id)
    assert path.read_bytes() == b"agent"


def test_checkpoints_of_another_run_are_found(world):
    world.write("a.txt", b"old")
    checkpoint = world.take()
    world.write("a.txt", b"new")
    world.finish(checkpoint)
    world.restart()
    assert world.restore(checkpoint.id).is_done
    assert (world.root / "a.txt").read_bytes() == b"old"
    with pytest.raises(CheckpointTrouble):
        world.restore("nothing-1")
    with pytest.raises(CheckpointTrouble):
        world.restore(f"{checkpoint.id}9")


def test_the_number_of_checkpoints_is_bounded(tmp_path):
    world = World(tmp_path, CheckpointLimits(kept=5))
    for number in range(45):
        checkpoint = world.take()
        world.write("a.txt", b"%d" % number + os.urandom(3000))
        world.finish(checkpoint)
    listed = run(world.checkpoints.list(world.root))
    assert len(listed) < 5 + 20
    report = world.restore(listed[-1].id)
    assert report.is_done
    size = sum(path.stat().st_size for path in world.data.rglob("*") if path.is_file())
    assert size < 45 * 3000


def test_old_checkpoints_go_and_the_newest_stays(tmp_path):
    world = World(tmp_path)
    world.write("a.txt", b"kept")
    world.finish(world.take())
    world.clock.advance(40 * 86_400)
    world.restart()
    world.write("b.txt")
    newest = world.take()
    assert [item.id for item in run(world.checkpoints.list(world.root))] == [newest.id]
    (world.root / "a.txt").unlink()
    world.finish(newest)
    world.restore(newest.id)
    assert (world.root / "a.txt").read_bytes() == b"kept"


def test_the_bytes_of_a_store_are_bounded(tmp_path):
    world = World(tmp_path, CheckpointLimits(store_bytes=60_000))
    for _ in range(45):
        checkpoint = world.take()
        world.write("a.bin", os.urandom(4000))
        world.finish(checkpoint)
    size = sum(path.stat().st_size for path in world.data.rglob("*") if path.is_file())
    assert size < 60_000 + 20 * 6000
    assert world.restore(run(world.checkpoints.list(world.root))[-1].id).is_done


def test_too_many_files_are_said_and_unknown_ones_are_never_removed(tmp_path):
    world = World(tmp_path, CheckpointLimits(files=3))
    for number in range(6):
        world.write(f"{number}.txt", b"old")
    checkpoint = world.take()
    assert SkipReason.TOO_MANY in {skipped.reason for skipped in checkpoint.skipped}
    for number in range(6):
        world.write(f"{number}.txt", b"new")
    world.finish(checkpoint)
    world.restore(checkpoint.id)
    assert [(world.root / f"{n}.txt").read_bytes() for n in range(6)] == [b"old"] * 3 + [b"new"] * 3


def test_a_damaged_store_is_set_aside_and_work_goes_on(world):
    world.write("a.txt", b"old")
    world.finish(world.take())
    (store,) = (world.data / "checkpoints").iterdir()
    for path in store.glob("objects/??/*"):
        path.chmod(0o600)
        path.write_bytes(b"damaged")
    world.restart()
    with pytest.raises(CheckpointTrouble):
        run(world.checkpoints.list(world.root))
    checkpoint = world.take()
    world.write("a.txt", b"new")
    world.finish(checkpoint)
    assert world.restore(checkpoint.id).is_done
    assert (world.root / "a.txt").read_bytes() == b"old"
    assert len(list((world.data / "checkpoints").glob("*.broken-*"))) == 1


def test_an_unwritable_data_folder_is_said(tmp_path):
    world = World(tmp_path)
    world.data.write_bytes(b"a file where the folder should be")
    with pytest.raises(CheckpointTrouble):
        world.take()


def test_the_data_folder_inside_a_project_is_left_out(tmp_path):
    root = tmp_path / "home"
    (root / "notes").mkdir(parents=True)
    (root / "notes" / "a.txt").write_bytes(b"old")
    checkpoints = Checkpoints(root / "growbox", FakeClock())
    (root / "growbox").mkdir()
    checkpoint = run(checkpoints.take(root, "x", "a"))
    assert [(s.path, s.reason) for s in checkpoint.skipped] == [
        (root / "growbox", SkipReason.IGNORED)
    ]


def test_the_store_is_private(world):
    world.write("a.txt")
    world.take()
    (store,) = (world.data / "checkpoints").iterdir()
    assert sys.platform == "win32" or store.stat().st_mode & 0o077 == 0
