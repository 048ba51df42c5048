"""The shipped catalogue, the choice of a model, and the checks of files on disk."""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path

import pytest

from growbox_app.api import ProblemCode, ProblemError
from growbox_app.models import __main__ as command
from growbox_app.models.catalogue import (
    HubFile,
    Model,
    Purpose,
    Tier,
    WheelParts,
    catalogue,
    embedder,
    find,
    read_catalogue,
)
from growbox_app.models.choose import chat_to_fetch, choose_chat, free_ram_bytes
from growbox_app.models.gguf_header import NotGguf, TruncatedGguf, read_header
from growbox_app.models.transfer import Job
from growbox_app.models.verify import (
    FileState,
    file_state,
    remember,
    require_ready,
    verify_fully,
    why_broken,
)
from growbox_app.paths import data_path, models_path
from growbox_app.settings.store import SettingsStore
from growbox_app.text import tr
from tests.unit.models_world import CONTENT, Recorder, model

GB = 1_000_000_000


def gguf(tensors: int = 2, tail: int = 64) -> bytes:
    """A small, whole GGUF: a string, a number, an array of strings, and tensors of 32 bytes."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    content = b"GGUF" + struct.pack("<IQQ", 3, tensors, 3)
    content += text("general.architecture") + struct.pack("<I", 8) + text("qwen2")
    content += text("qwen2.context_length") + struct.pack("<II", 4, 32768)
    content += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("树")
    for number in range(tensors):
        content += text(f"blk.{number}") + struct.pack("<IQIQ", 1, 8, 0, 32 * number)
    content += b"\0" * (-len(content) % 32)
    return content + b"\1" * tail


def test_the_catalogue_has_a_light_a_standard_and_one_embedder() -> None:
    tiers = [entry.tier for entry in catalogue() if entry.purpose is Purpose.CHAT]
    assert sorted(tiers) == [Tier.LARGE, Tier.LIGHT, Tier.STANDARD]
    assert [entry for entry in catalogue() if entry.purpose is Purpose.EMBEDDING] == [embedder()]


def test_parts_add_up_to_the_file() -> None:
    for entry in catalogue():
        for source in entry.sources:
            if isinstance(source, WheelParts):
                parts = len(source.part_sha256)
                assert (parts - 1) * source.part_bytes < entry.size <= parts * source.part_bytes
                assert len(set(source.part_sha256)) == parts


def test_hub_files_have_the_name_of_the_model_file() -> None:
    for entry in catalogue():
        assert len(entry.sha256) == 64
        hub = [source for source in entry.sources if isinstance(source, HubFile)]
        assert all(source.file == entry.file and source.repo == entry.origin for source in hub)
        assert hub or entry.purpose is Purpose.EMBEDDING


@pytest.mark.parametrize(
    "text",
    [
        "schema = 2",
        "schema = 1",
        'schema = 1\n[[model]]\nid = "x"',
        'schema = 1\n[[model]]\nid = "x"\npurpose = "song"\ntier = "light"\nsource = []',
    ],
)
def test_a_wrong_catalogue_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "models.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"models\.toml|song"):
        read_catalogue(path)


def test_an_unknown_id_is_known_trouble() -> None:
    with pytest.raises(ProblemError) as caught:
        find("gpt-17")
    assert caught.value.problem.code is ProblemCode.MODEL_MISSING


def place(folder: Path, tier: Tier, purpose: Purpose = Purpose.CHAT) -> Model:
    """A sparse file of the right size with the right first bytes: what the cheap check accepts."""
    folder.mkdir(exist_ok=True)
    entry = next(entry for entry in catalogue() if entry.tier is tier and entry.purpose is purpose)
    with entry.path(folder).open("wb") as stream:
        stream.write(b"GGUF")
        stream.truncate(entry.size)
    return entry


@pytest.mark.parametrize(
    ("free", "present", "chosen"),
    [
        (8 * GB, (), Tier.STANDARD),
        (6 * GB, (), Tier.STANDARD),
        (6 * GB - 1, (), Tier.LIGHT),
        (8 * GB, (Tier.LIGHT,), Tier.LIGHT),
        (8 * GB, (Tier.LIGHT, Tier.STANDARD, Tier.LARGE), Tier.STANDARD),
        (3 * GB, (Tier.LIGHT, Tier.STANDARD), Tier.LIGHT),
        (3 * GB, (Tier.STANDARD,), Tier.STANDARD),
        (1 * GB, (Tier.STANDARD,), Tier.LIGHT),
        (64 * GB, (Tier.LARGE,), Tier.STANDARD),
    ],
)
def test_the_automatic_choice(
    tmp_path: Path, free: int, present: tuple[Tier, ...], chosen: Tier
) -> None:
    for tier in present:
        place(tmp_path / "m", tier)
    assert choose_chat("auto", models_path=tmp_path / "m", free_bytes=free).tier is chosen


def test_set_up_brings_the_standard_model_although_a_light_one_is_here(tmp_path: Path) -> None:
    place(tmp_path / "m", Tier.LIGHT)
    assert (
        chat_to_fetch("auto", models_path=tmp_path / "m", free_bytes=8 * GB).tier is Tier.STANDARD
    )
    assert chat_to_fetch("auto", models_path=tmp_path / "m", free_bytes=2 * GB).tier is Tier.LIGHT


def test_the_users_choice_wins(tmp_path: Path) -> None:
    assert choose_chat("qwen2.5-coder-7b", models_path=tmp_path, free_bytes=GB).tier is Tier.LARGE


@pytest.mark.parametrize("wanted", ["gpt-17", "multilingual-e5-small", ""])
def test_a_choice_of_another_version_counts_as_auto(tmp_path: Path, wanted: str) -> None:
    folder = tmp_path / "m"
    assert choose_chat(wanted, models_path=folder, free_bytes=8 * GB).tier is Tier.STANDARD
    assert chat_to_fetch(wanted, models_path=folder, free_bytes=8 * GB).tier is Tier.STANDARD
    place(folder, Tier.LIGHT)
    assert choose_chat(wanted, models_path=folder, free_bytes=8 * GB).tier is Tier.LIGHT


def test_free_memory_knows_a_containers_limit(tmp_path: Path) -> None:
    host = free_ram_bytes(tmp_path)
    (tmp_path / "memory.current").write_text("700\n", encoding="ascii")
    (tmp_path / "memory.max").write_text("1000\n", encoding="ascii")
    assert free_ram_bytes(tmp_path) == 300
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    assert abs(free_ram_bytes(tmp_path) - host) < GB


@pytest.mark.parametrize(
    ("content", "state"),
    [
        (None, FileState.MISSING),
        (CONTENT, FileState.UNVERIFIED),
        (CONTENT[:-1], FileState.BROKEN),
        (b"<htm" + CONTENT[4:], FileState.BROKEN),
        (b"", FileState.BROKEN),
    ],
)
def test_the_cheap_check(tmp_path: Path, content: bytes | None, state: FileState) -> None:
    if content is not None:
        (tmp_path / "tiny.gguf").write_bytes(content)
    assert file_state(model(), tmp_path) is state
    if state is FileState.UNVERIFIED:
        assert require_ready(model(), tmp_path) == tmp_path / "tiny.gguf"
        return
    with pytest.raises(ProblemError) as caught:
        require_ready(model(), tmp_path)
    expected = ProblemCode.MODEL_MISSING if state is FileState.MISSING else ProblemCode.MODEL_BROKEN
    assert caught.value.problem.code is expected


def test_the_hash_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(CONTENT)
    recorder = Recorder()
    job = Job(model=model(), models_path=tmp_path, progress=recorder, cancelled=recorder.cancelled)
    verify_fully(job)
    assert file_state(model(), tmp_path) is FileState.READY
    os.utime(path, ns=(1, 1))
    assert file_state(model(), tmp_path) is FileState.UNVERIFIED
    path.write_bytes(CONTENT[:-1] + b"x")
    with pytest.raises(ProblemError) as caught:
        verify_fully(job)
    assert caught.value.problem.code is ProblemCode.MODEL_BROKEN
    assert caught.value.problem.fields["reason"] == tr("models.reason.checksum")


def test_a_wrong_hash_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(CONTENT[:-1] + b"x")
    recorder = Recorder()
    job = Job(model=model(), models_path=tmp_path, progress=recorder, cancelled=recorder.cancelled)
    assert file_state(model(), tmp_path) is FileState.UNVERIFIED
    with pytest.raises(ProblemError) as hashed:
        verify_fully(job)
    # What the window goes by: a broken file has the buttons that get another.
    assert file_state(model(), tmp_path) is FileState.BROKEN
    with pytest.raises(ProblemError) as noted:
        require_ready(model(), tmp_path)
    assert noted.value.problem == hashed.value.problem
    path.write_bytes(CONTENT)
    os.utime(path, ns=(1, 1))
    assert file_state(model(), tmp_path) is FileState.UNVERIFIED
    verify_fully(job)
    assert file_state(model(), tmp_path) is FileState.READY


def test_hashing_by_hand_trusts_no_note(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(CONTENT[:-1] + b"x")
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    recorder = Recorder()
    job = Job(model=model(), models_path=tmp_path, progress=recorder, cancelled=recorder.cancelled)
    with pytest.raises(ProblemError):
        verify_fully(job)
    # A restored backup may keep the time of the file that it replaces.
    path.write_bytes(CONTENT)
    os.utime(path, ns=times)
    verify_fully(job)
    assert file_state(model(), tmp_path) is FileState.READY


@pytest.mark.parametrize("stamp", [b"", b"[]", b"{", b'{"sha256": "x"}', b"\xff"])
def test_a_damaged_note_costs_one_hashing(tmp_path: Path, stamp: bytes) -> None:
    (tmp_path / "tiny.gguf").write_bytes(CONTENT)
    (tmp_path / ".tiny.gguf.verified").write_bytes(stamp)
    assert file_state(model(), tmp_path) is FileState.UNVERIFIED


def test_a_whole_header_is_read(tmp_path: Path) -> None:
    path = tmp_path / "whole.gguf"
    path.write_bytes(gguf())
    header = read_header(path)
    assert header.architecture == "qwen2"
    assert header.values["qwen2.context_length"] == 32768
    assert header.array_lengths == {"tokenizer.ggml.tokens": 2}
    assert header.chat_template == ""
    assert why_broken(path) is None


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    whole = gguf(tail=64)
    # Up to the first byte of the last tensor: what follows cannot be told from the header alone.
    for size in range(4, len(whole) - 32 + 1):
        path.write_bytes(whole[:size])
        with pytest.raises(TruncatedGguf):
            read_header(path)


@pytest.mark.parametrize(
    "content", [b"", b"GGU", b"<html>", b"GGUF" + struct.pack("<IQQ", 9, 0, 0), b"PK\3\4" * 99]
)
def test_other_files_are_not_gguf(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.gguf"
    path.write_bytes(content)
    with pytest.raises(NotGguf):
        read_header(path)
    reason = "html" if content.startswith(b"<") else "not_gguf"
    assert (why_broken(path) or ("", ""))[0] == reason


@pytest.mark.parametrize("length", [1 << 62, 1 << 40])
def test_a_header_with_absurd_lengths_costs_no_memory(tmp_path: Path, length: int) -> None:
    path = tmp_path / "absurd.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", length))
    with pytest.raises(NotGguf):
        read_header(path)


def test_the_command_lists_every_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["list"]) == 0
    printed = capsys.readouterr().out
    assert all(entry.id in printed for entry in catalogue())


def test_the_command_says_what_is_broken(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = Path(os.environ["GROWBOX_MODELS_DIR"])
    folder.mkdir()
    embedder().path(folder).write_bytes(b"GGUF and no more")
    assert command.main(["verify"]) == 1
    assert "cut short" in capsys.readouterr().err


def test_the_command_knows_words_for_models() -> None:
    assert command.resolve("light").tier is Tier.LIGHT
    assert command.resolve("embedding") == embedder()
    assert command.resolve("qwen2.5-coder-7b").tier is Tier.LARGE


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No hub, no pip, 8 GB of free memory."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free.getsockname()[1]}")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(command, "free_ram_bytes", lambda: 8 * GB)


def start_fetch() -> int:
    """What `dev.py run` and `dev.py ask` ask for."""
    return command.main(["fetch", "--quiet", "--or-go-on", "embedding", "chosen"])


@pytest.mark.usefixtures("offline")
class TestStart:
    """What a start fetches."""

    def test_nothing_while_a_light_model_is_here(self, capfd: pytest.CaptureFixture[str]) -> None:
        for purpose, tier in ((Purpose.CHAT, Tier.LIGHT), (Purpose.EMBEDDING, Tier.STANDARD)):
            remember(place(models_path(), tier, purpose), models_path())
        assert start_fetch() == 0
        assert capfd.readouterr() == ("", "")

    def test_what_the_user_chose_and_goes_on_without_it(
        self, capfd: pytest.CaptureFixture[str]
    ) -> None:
        for purpose, tier in ((Purpose.CHAT, Tier.LIGHT), (Purpose.EMBEDDING, Tier.STANDARD)):
            remember(place(models_path(), tier, purpose), models_path())
        SettingsStore(data_path()).set("models.chat", "qwen2.5-coder-7b")
        assert start_fetch() == 0
        printed = capfd.readouterr()
        assert "7B: downloading" in printed.out
        assert tr("models.go_on") in printed.err
        assert command.main(["fetch", "qwen2.5-coder-7b"]) == 1

    @pytest.mark.parametrize(
        ("purpose", "tier"), [(Purpose.CHAT, Tier.LIGHT), (Purpose.EMBEDDING, Tier.STANDARD)]
    )
    def test_it_cannot_go_on_without_a_chat_model_or_an_embedder(
        self, capfd: pytest.CaptureFixture[str], purpose: Purpose, tier: Tier
    ) -> None:
        remember(place(models_path(), tier, purpose), models_path())
        assert start_fetch() == 1
        assert tr("models.go_on") not in capfd.readouterr().err

    def test_the_standard_model_on_a_fresh_machine(self, capfd: pytest.CaptureFixture[str]) -> None:
        remember(place(models_path(), Tier.STANDARD, Purpose.EMBEDDING), models_path())
        assert start_fetch() == 1
        assert "1.5B: downloading" in capfd.readouterr().out
