"""What the application keeps beside the memory, and how it forgets it: audit lines, checkpoints."""

from __future__ import annotations

import asyncio
import zlib
from pathlib import Path

from growbox_app.audit_log import AuditLog, Decided
from growbox_app.checkpoints import Checkpoints
from tests.fakes.clock import FakeClock


def decided(conversation: str, command: str) -> Decided:
    return Decided(
        executor="shell",
        targets=(f"/p/{command}",),
        command=command,
        verdict="ask",
        reason="command",
        by="user",
        allowed=True,
        conversation=conversation,
    )


def test_decisions_of_a_forgotten_conversation_tell_no_more_what_they_were_about(tmp_path):
    log = AuditLog(tmp_path, FakeClock(), bytes_max=600)
    for number in range(4):
        log.append(decided("c-1", f"secret-{number}"))
        log.append(decided("c-2", f"plain-{number}"))
    with (tmp_path / "logs" / "audit.jsonl").open("ab") as stream:
        stream.write(b'{"torn": "c-1')
    before = len(log.recent(50))
    log.forget("c-1")
    assert len(log.recent(50)) == before
    assert not any("secret" in found.command for found in log.recent(50))
    assert any("plain" in found.command for found in log.recent(50))
    written = b"".join(path.read_bytes() for path in (tmp_path / "logs").iterdir())
    assert b"secret" not in written
    assert b"c-1" not in written
    log.append(decided("c-2", "afterwards"))
    assert log.recent(1)[0].command == "afterwards"


def test_checkpoints_of_forgotten_answers_go_with_what_only_they_held(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("one", encoding="utf-8")
    checkpoints = Checkpoints(tmp_path / "data", FakeClock())

    async def body() -> None:
        for answer, text in (("n-kept", "two"), ("n-gone", "Elstern"), ("n-kept", "four")):
            taken = await checkpoints.take(project, f"file_write {text}", answer)
            (project / "a.txt").write_text(text, encoding="utf-8")
            await checkpoints.finish(taken.id)
        aside = next((tmp_path / "data").glob("*/*/")).with_suffix(".broken-1")
        aside.mkdir()
        (aside / "label").write_text("Elstern", encoding="utf-8")
        await checkpoints.forget({"n-gone"})
        assert [found.answer_id for found in await checkpoints.list(project)] == ["n-kept"] * 2
        assert not aside.exists()
        newest = (await checkpoints.list(project))[0]
        assert (await checkpoints.restore(newest.id, force=True)).is_done

    asyncio.run(body())
    assert (project / "a.txt").read_text(encoding="utf-8") == "Elstern", "a file of the user's"
    assert not any(b"file_write Elstern" in said for said in unpacked(tmp_path / "data"))


def test_forgetting_without_checkpoints_makes_none(tmp_path):
    asyncio.run(Checkpoints(tmp_path / "data", FakeClock()).forget({"n"}))
    assert not (tmp_path / "data").exists()


def unpacked(folder: Path) -> list[bytes]:
    """Everything that git's objects say."""
    found = []
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        data = path.read_bytes()
        for at in range(len(data)):
            if data[at : at + 1] == b"\x78":
                try:
                    found.append(zlib.decompressobj().decompress(data[at:]))
                except zlib.error:
                    continue
    return found
