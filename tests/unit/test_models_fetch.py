"""Downloads against a loopback hub that behaves and misbehaves like the real one."""

from __future__ import annotations

import errno
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from growbox_app.api import ProblemCode, ProblemError
from growbox_app.models.fetch import obtain
from growbox_app.models.transfer import Job, PartFile, TransferCancelled
from growbox_app.models.verify import FileState, file_state, have_bytes
from growbox_app.text import LANGUAGES, Translator
from tests.unit.models_world import CONTENT, Hub, Recorder, fetch_into, model, running


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with running(Hub()) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url + "/")
        yield hub


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "模型 🌱 folder"


def trouble(folder: Path, **options: object) -> ProblemError:
    with pytest.raises(ProblemError) as caught:
        fetch_into(folder, model(), **options)
    problem = caught.value.problem
    for language in LANGUAGES:
        sentence = Translator(language)(f"problem.{problem.code}", **problem.fields)
        assert not {"{", "}"} & set(sentence)
        assert not sentence.startswith("problem.")
    return caught.value


def test_downloads_through_a_redirect_and_verifies(hub: Hub, folder: Path) -> None:
    recorder = Recorder()
    path = fetch_into(folder, model(), recorder)
    assert path.read_bytes() == CONTENT
    assert hub.requests == ["/owner/name/resolve/main/tiny.gguf", "/blob"]
    assert recorder.steps() == ["model_download", "model_verify"]
    assert recorder.seen[-1].done == recorder.seen[-1].total == len(CONTENT)
    assert file_state(model(), folder) is FileState.READY
    assert [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")] == [
        "tiny.gguf"
    ]


def test_a_ready_file_is_not_fetched_again(hub: Hub, folder: Path) -> None:
    fetch_into(folder, model())
    hub.requests.clear()
    fetch_into(folder, model())
    assert hub.requests == []


def test_an_unverified_right_file_is_verified_not_fetched(hub: Hub, folder: Path) -> None:
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(CONTENT)
    assert file_state(model(), folder) is FileState.UNVERIFIED
    fetch_into(folder, model())
    assert hub.requests == []
    assert file_state(model(), folder) is FileState.READY


def test_a_wrong_file_of_the_right_size_is_replaced(hub: Hub, folder: Path) -> None:
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(CONTENT[:-1] + b"x")
    assert fetch_into(folder, model()).read_bytes() == CONTENT
    assert file_state(model(), folder) is FileState.READY


def test_resumes_where_a_cut_connection_left_off(hub: Hub, folder: Path) -> None:
    hub.cut_after = 400_000
    path = fetch_into(folder, model())
    assert path.read_bytes() == CONTENT
    assert hub.requests[1::2] == ["/blob", "/blob bytes=400000-", "/blob bytes=800000-"]


def test_a_hub_that_sends_nothing_more_is_given_up(hub: Hub, folder: Path) -> None:
    hub.cut_after = 0
    assert trouble(folder).problem.code is ProblemCode.DOWNLOAD_FAILED
    assert len(hub.requests) == 2


def test_cancel_keeps_what_came_and_the_next_attempt_continues(hub: Hub, folder: Path) -> None:
    recorder = Recorder(cancel_when=lambda progress: progress.done >= 0)
    with pytest.raises(TransferCancelled):
        fetch_into(folder, model(), recorder)
    hub.cut_after = 500_000
    with pytest.raises(TransferCancelled):
        fetch_into(folder, model(), Recorder(cancel_when=lambda progress: progress.done >= 500_000))
    have = have_bytes(model(), folder)
    assert 0 < have < len(CONTENT)
    assert file_state(model(), folder) is FileState.PARTIAL
    hub.cut_after = None
    hub.requests.clear()
    assert fetch_into(folder, model()).read_bytes() == CONTENT
    assert hub.requests[-1] == f"/blob bytes={have}-"


def test_a_server_without_ranges_starts_over(hub: Hub, folder: Path) -> None:
    folder.mkdir()
    (folder / "tiny.gguf.part").write_bytes(CONTENT[:1000])
    hub.ranges = False
    assert fetch_into(folder, model()).read_bytes() == CONTENT


def test_a_server_that_sends_another_range_is_refused(hub: Hub, folder: Path) -> None:
    folder.mkdir()
    (folder / "tiny.gguf.part").write_bytes(CONTENT[:1000])
    hub.wrong_range = True
    assert trouble(folder).problem.code is ProblemCode.CHECKSUM


def test_a_complete_part_is_not_fetched_again(hub: Hub, folder: Path) -> None:
    folder.mkdir()
    (folder / "tiny.gguf.part").write_bytes(CONTENT)
    assert fetch_into(folder, model()).read_bytes() == CONTENT
    assert hub.requests == []


def test_a_complete_wrong_part_is_fetched_anew(hub: Hub, folder: Path) -> None:
    folder.mkdir()
    (folder / "tiny.gguf.part").write_bytes(CONTENT[:-1] + b"x")
    assert fetch_into(folder, model()).read_bytes() == CONTENT


def test_wrong_bytes_are_refused_and_leave_nothing(hub: Hub, folder: Path) -> None:
    hub.content = CONTENT[:-1] + b"x"
    error = trouble(folder)
    assert error.problem.code is ProblemCode.CHECKSUM
    assert "sha256" in error.problem.detail
    assert not list(folder.glob("*.part"))
    assert not (folder / "tiny.gguf").exists()


@pytest.mark.parametrize(
    ("misbehaviour", "code", "word", "reason"),
    [
        ({"status": 404}, ProblemCode.DOWNLOAD_FAILED, "HTTP 404", "answered 404"),
        ({"status": 503}, ProblemCode.DOWNLOAD_FAILED, "HTTP 503", "answered 503"),
        (
            {"content_type": "text/html; charset=utf-8"},
            ProblemCode.CHECKSUM,
            "web page",
            "web page",
        ),
        ({"content": b"<html>login</html>"}, ProblemCode.CHECKSUM, "18 bytes", "right size"),
        (
            {"content": CONTENT + b"more"},
            ProblemCode.CHECKSUM,
            f"{len(CONTENT) + 4} b",
            "right size",
        ),
        ({"content": b"<htm" + CONTENT[4:]}, ProblemCode.CHECKSUM, "GGUF", "web page"),
        ({"content": b"ELF!" + CONTENT[4:]}, ProblemCode.CHECKSUM, "GGUF", "not a model file"),
        ({"content": CONTENT[:-1] + b"x"}, ProblemCode.CHECKSUM, "sha256", "SHA-256) differs"),
    ],
)
def test_replies_that_cannot_be_the_file(
    hub: Hub,
    folder: Path,
    misbehaviour: dict[str, object],
    code: ProblemCode,
    word: str,
    reason: str,
) -> None:
    for name, value in misbehaviour.items():
        setattr(hub, name, value)
    error = trouble(folder)
    assert error.problem.code is code
    assert word in error.problem.detail
    assert error.problem.fields["model"] == "Tiny"
    assert error.problem.fields["file"] == "tiny.gguf"
    assert reason in error.problem.fields["reason"]
    assert not list(folder.glob("tiny*"))


def test_no_network_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free.getsockname()[1]}")
        error = trouble(folder)
    assert error.problem.code is ProblemCode.NO_NETWORK
    assert "127.0.0.1" in error.problem.fields["host"]


@pytest.mark.parametrize(
    "address", ["mirror:port:what", "http://127.0.0.1:port", "ftp://127.0.0.1"]
)
def test_a_senseless_mirror_is_known_trouble(
    folder: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    assert trouble(folder).problem.code is ProblemCode.DOWNLOAD_FAILED


def test_a_full_disk_is_noticed_before_the_first_byte(
    hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(Path.cwd())._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    error = trouble(folder)
    assert error.problem.code is ProblemCode.DISK_FULL
    assert {"need", "free", "path"} <= set(error.problem.fields)
    assert hub.requests == []


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, ProblemCode.DISK_FULL),
        (errno.EDQUOT, ProblemCode.DISK_FULL),
        (errno.EROFS, ProblemCode.DATA_UNWRITABLE),
        (errno.EIO, ProblemCode.DATA_UNWRITABLE),
    ],
)
def test_what_the_system_refuses_while_writing_is_known_trouble(
    folder: Path, number: int, code: ProblemCode
) -> None:
    def fails(_job: Job, _part: PartFile) -> None:
        raise OSError(number, os.strerror(number))

    recorder = Recorder()
    with pytest.raises(ProblemError) as caught:
        obtain(
            model(),
            models_path=folder,
            sources=[fails],
            progress=recorder,
            cancelled=recorder.cancelled,
        )
    assert caught.value.problem.code is code
    assert os.strerror(number) in caught.value.problem.detail or code is ProblemCode.DISK_FULL


def test_an_unwritable_folder_is_known_trouble(hub: Hub, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    error = trouble(blocked / "models")
    assert error.problem.code is ProblemCode.DATA_UNWRITABLE


@pytest.mark.skipif(os.name == "nt", reason="locks with fcntl here")
def test_two_processes_never_write_one_part(hub: Hub, folder: Path) -> None:
    import fcntl

    folder.mkdir()
    part = folder / "tiny.gguf.part"
    with part.open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        error = trouble(folder)
    assert error.problem.code is ProblemCode.DOWNLOAD_FAILED
    assert "another GrowBox" in error.problem.fields["reason"]
    assert hub.requests == []


def test_a_file_of_the_user_is_copied(hub: Hub, folder: Path, tmp_path: Path) -> None:
    mine = tmp_path / "my model.gguf"
    mine.write_bytes(CONTENT)
    recorder = Recorder()
    assert fetch_into(folder, model(), recorder, file=mine).read_bytes() == CONTENT
    assert recorder.steps() == ["model_verify", "model_copy"]
    assert hub.requests == []


@pytest.mark.parametrize(
    ("content", "code", "reason"),
    [
        (None, ProblemCode.MODEL_MISSING, "No such file"),
        (b"GGUF\3\0\0\0", ProblemCode.CHECKSUM, "cut short"),
        (b"<html>", ProblemCode.CHECKSUM, "web page"),
        (b"\x7fELF", ProblemCode.CHECKSUM, "not a model file"),
        (CONTENT[:-1] + b"x", ProblemCode.CHECKSUM, "SHA-256) differs"),
    ],
)
def test_a_wrong_file_of_the_user_spoils_no_download(
    hub: Hub, folder: Path, tmp_path: Path, content: bytes | None, code: ProblemCode, reason: str
) -> None:
    folder.mkdir()
    (folder / "tiny.gguf.part").write_bytes(CONTENT[:4096])
    mine = tmp_path / "mine.gguf"
    if content is not None:
        mine.write_bytes(content)
    error = trouble(folder, file=mine)
    assert error.problem.code is code
    assert str(mine) in error.problem.fields["path"]
    assert reason in error.problem.fields["reason"]
    if code is ProblemCode.CHECKSUM:
        assert error.problem.fields["file"] == mine.name
    assert have_bytes(model(), folder) == 4096


def test_a_model_without_a_download_says_where_it_comes_from(folder: Path) -> None:
    with pytest.raises(ProblemError) as caught:
        fetch_into(folder, model(sources=()))
    problem = caught.value.problem
    assert problem.code is ProblemCode.NO_DOWNLOAD
    for language in LANGUAGES:
        sentence = Translator(language)(f"problem.{problem.code}", **problem.fields)
        assert "tiny.gguf" in sentence
        assert "Resume" not in sentence
        assert "继续" not in sentence
