"""Do checkpoints work, and is a command understood? For `doctor`, and through it for the smoke test of a build. Blocking."""

from __future__ import annotations

from pathlib import Path

from growbox_app.clock import SystemClock
from growbox_app.executors.base import Plan, Risk, Workspace
from growbox_app.safety.policy import decide
from growbox_app.safety.values import Mode, PlannedCall, Rules, Verdict
from growbox_app.shadow.archive import Archive
from growbox_app.shadow.values import CheckpointLimits

_OLD, _NEW = "before\n", "after\n"
_JUDGED = {"ls | wc -l": Verdict.ALLOW, "ls; rm -rf /": Verdict.DENY}
_TRIED_ON = "linux"
"""The shell parser is tried everywhere, though Windows has other commands."""


def check_checkpoints(folder: Path) -> bool:
    """Takes a checkpoint of a project in an empty folder, changes it and puts it back; whether every byte is as before."""
    root = folder / "project"
    root.mkdir()
    file, more = root / "file.txt", root / "more.txt"
    file.write_text(_OLD, encoding="utf-8")
    archive = Archive(folder / "checkpoints", SystemClock(), CheckpointLimits(), excluded=folder)
    taken = archive.take(root, "check", "", ())
    file.write_text(_NEW, encoding="utf-8")
    more.write_text(_NEW, encoding="utf-8")
    archive.finish(taken.id)
    done = archive.restore(taken.id, force=False, also=frozenset())
    return done.is_done and file.read_text(encoding="utf-8") == _OLD and not more.exists()


def check_commands(root: Path) -> bool:
    """Whether a harmless and a harmful command are told apart."""
    rules = Rules(workspace=Workspace(root=root), mode=Mode.MANUAL, platform=_TRIED_ON)
    return all(
        decide(
            PlannedCall(executor="shell", risk=Risk.UNKNOWN, plan=Plan(command=text, cwd=root)),
            rules,
        ).verdict
        is verdict
        for text, verdict in _JUDGED.items()
    )
