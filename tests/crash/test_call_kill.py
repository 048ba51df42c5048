"""SIGKILL while an allowed call runs: the answer has the call, says that a part of it may have been done, and undoes it byte for byte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from growbox_app.api import ToolCalled
from growbox_app.approval_face import ApprovalEnded
from growbox_app.assistant import GrowBox
from memory.values import NodeStatus
from tests.crash.call_child import COMMAND, HERE
from tests.crash.killing import appears, kill_all
from tests.fakes.application import run_application, scripted

ROOT = Path(__file__).resolve().parents[2]
FILES = {"notes.txt": "eins\r\n二\n".encode(), "data.bin": bytes(range(256)), "run.sh": b"true"}

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL, and a POSIX shell"),
]
Tree = dict[str, tuple[int, bytes]]


def tree(project: Path) -> Tree:
    """Every file with its mode and its bytes."""
    return {
        str(path.relative_to(project)): (path.stat().st_mode, path.read_bytes())
        for path in project.rglob("*")
        if path.is_file()
    }


def made(folder: Path) -> Path:
    project = folder / "project"
    project.mkdir()
    for name, data in FILES.items():
        (project / name).write_bytes(data)
    (project / "run.sh").chmod(0o755)
    return project


def killed(folder: Path, moment: str) -> None:
    """Kills the child, with all that it started, at its moment."""
    words = [sys.executable, "-m", "tests.crash.call_child", str(folder), moment]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if moment == "half":
        assert appears(folder / "project" / HERE)
    else:
        assert process.stdout.readline() == "there\n"
    kill_all(process)


@pytest.mark.parametrize(
    ("moment", "changed"),
    [
        ("begun", set[str]()),
        ("written", {"notes.txt"}),
        ("half", {"notes.txt", "data.bin", "run.sh", "sub/new.txt", HERE}),
    ],
)
def test_a_call_that_a_kill_cut_off_is_there_and_is_undone(
    tmp_path: Path, moment: str, changed: set[str]
) -> None:
    project = made(tmp_path)
    before = tree(project)
    killed(tmp_path, moment)
    after = tree(project)
    found = {name for name in before | after if before.get(name) != after.get(name)}
    assert found == changed

    async def body(app: GrowBox) -> None:
        (conversation,) = await app.library.conversations()
        answer = (await app.library.messages(conversation.id))[-1]
        assert answer.status is NodeStatus.CANCELLED
        call, said = app.calls_of(answer)
        assert isinstance(call, ToolCalled)
        assert call.name == ("shell" if moment == "half" else "file_write")
        assert (call.cut_off, call.ok) == ("exit", False)
        assert call.arguments == (COMMAND if moment == "half" else "notes.txt, new")
        assert isinstance(said, ApprovalEnded)
        assert (said.by, said.allowed, said.call_id) == ("user", True, call.call_id)
        assert await app.undone({call.checkpoint}) == frozenset()
        report = await app.restore(call.checkpoint)
        assert report.is_done
        assert len({*report.restored, *report.removed}) == len(changed)
        assert tree(project) == before
        assert await app.undone({call.checkpoint}) == {call.checkpoint}
        assert report.undo_id is not None
        assert (await app.restore(report.undo_id)).is_done
        assert tree(project) == after

    run_application(lambda: scripted(tmp_path), body)
