"""SIGKILL while an approval is open, and while what was allowed runs: the answer says which of both it was, and what was asked about."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from growbox_app.api import ToolCalled
from growbox_app.approval_face import ApprovalEnded
from growbox_app.assistant import GrowBox
from memory.values import NodeStatus
from tests.crash.approval_child import COMMAND
from tests.crash.killing import WAIT_TICKS, appears, kill_all
from tests.fakes.application import run_application, scripted

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL, and a POSIX shell"),
]


def killed(folder: Path, say: str) -> None:
    """Kills the child once it has asked (`wait`), or once what was allowed runs (`yes`)."""
    project = folder / "project"
    project.mkdir()
    words = [sys.executable, "-m", "tests.crash.approval_child", str(folder), say]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    made = project / "made.txt"
    appears(made, WAIT_TICKS if say == "yes" else 5)
    kill_all(process)
    assert made.exists() == (say == "yes")


@pytest.mark.parametrize(("say", "by"), [("wait", "exit"), ("yes", "user")])
def test_an_answer_says_whether_the_kill_came_before_or_after_the_users_word(
    tmp_path: Path, say: str, by: str
) -> None:
    killed(tmp_path, say)

    async def body(app: GrowBox) -> None:
        (conversation,) = await app.library.conversations()
        answer = (await app.library.messages(conversation.id))[-1]
        assert answer.status is NodeStatus.CANCELLED
        *begun, kept = app.calls_of(answer)
        assert [isinstance(call, ToolCalled) for call in begun] == [True] * (say == "yes")
        assert isinstance(kept, ApprovalEnded)
        assert (kept.by, kept.allowed) == (by, say == "yes")
        assert (kept.executor, kept.what) == ("shell", COMMAND)

    run_application(lambda: scripted(tmp_path), body)
