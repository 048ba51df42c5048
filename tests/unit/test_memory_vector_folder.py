"""Where the vector index lies, Windows with a Chinese data path included, which is simulated here."""

from __future__ import annotations

import functools
import stat
import sys
import threading
from pathlib import Path

import pytest

from memory.config import MemoryConfig, RagMode, RestConfig, VectorConfig
from memory.storage import stores
from memory.storage.vector_folder import (
    icacls_command,
    make_private,
    prepare,
    vector_folder,
)
from memory.storage.vector_index import HostState
from tests.fakes.driver import drive
from tests.fakes.memory_world import NO_HOST, MemoryWorld

WAIT_S = 60.0
ADA = {"USERNAME": "Ada Lovelace", "USERDOMAIN": "OFFICE"}


def on_windows(tmp_path: Path, user: dict[str, str] = ADA):
    return functools.partial(
        vector_folder,
        platform="win32",
        environment={**user, "ProgramData": str(tmp_path / "ProgramData")},
    )


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_elsewhere_than_on_windows_it_is_in_the_data_folder(platform):
    folder = vector_folder(Path("/家/数据"), platform=platform, environment={})
    assert folder == Path("/家/数据/vectors")


def test_on_windows_an_ascii_path_stays_too(tmp_path):
    assert on_windows(tmp_path)(Path("/home/ada")) == Path("/home/ada/vectors")


def test_a_chinese_path_goes_to_an_ascii_one_of_the_user(tmp_path):
    where = on_windows(tmp_path)
    folder = where(Path("/数据/GrowBox"))
    assert str(folder).isascii()
    assert folder.name == "vectors"
    assert folder.is_relative_to(tmp_path / "ProgramData" / "GrowBox")
    assert "Ada-Lovelace" in folder.parts[-3]
    assert where(Path("/数据/growbox")) == folder  # Windows takes both as one
    assert where(Path("/数据/other")) != folder


def test_users_never_share(tmp_path):
    names = ["ada", "艾达", "爱达", ""]
    users = [{"USERNAME": name, "USERDOMAIN": domain} for name in names for domain in ("A", "B")]
    folders = {on_windows(tmp_path, user)(Path("/数据")) for user in users}
    assert len(folders) == len(users)
    assert all(str(folder).isascii() for folder in folders)


def test_where_no_place_is_ascii_it_stays(tmp_path):
    folder = vector_folder(
        Path("/数据"), platform="win32", environment={"ProgramData": "/程序", **ADA}
    )
    assert folder == Path("/数据/vectors")


def test_access_is_for_the_user_only(tmp_path):
    command = icacls_command(tmp_path, ADA)
    assert command[:2] == ["icacls", str(tmp_path)]
    assert "/inheritance:r" in command
    assert "OFFICE\\Ada Lovelace:(OI)(CI)F" in command
    assert "ada:(OI)(CI)F" in icacls_command(tmp_path, {"USERNAME": "ada"})
    assert make_private(tmp_path)
    if sys.platform != "win32":
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_the_old_place_and_folders_without_an_owner_are_removed(tmp_path):
    data, gone = tmp_path / "数据", tmp_path / "旧数据"
    where = on_windows(tmp_path)
    for path in (data, gone):
        path.mkdir()
        assert prepare(where(path), path)
        where(path).mkdir()
    for name in ("vectors", "vectors.broken-12", "vectors-of-mine"):
        (data / name).mkdir()
    gone.rmdir()
    assert prepare(where(data), data)
    assert sorted(path.name for path in data.iterdir()) == ["vectors-of-mine"]
    assert where(data).is_dir()
    assert not where(gone).parent.exists()


def test_a_place_that_cannot_be_made_means_no_index_and_is_said(tmp_path, monkeypatch):
    (tmp_path / "ProgramData").write_text("a file where a folder should be")
    monkeypatch.setattr(stores, "vector_folder", on_windows(tmp_path))
    config = MemoryConfig(vectors=VectorConfig(host=True), rest=RestConfig(texts_per_run=64))
    world = MemoryWorld(tmp_path / "数据", config)
    try:
        for number in range(40):
            world.say(f"word{number} and word{number * 7 % 40}")
        world.digest()
        assert world.found("word3 word21")[0] == "word3 and word21"
        assert world.engine._stores.index.state is HostState.DOWN
        assert any("private" in getattr(event, "problem", "") for event in world.events.events)
    finally:
        world.engine.close()


def test_nothing_is_written_for_an_ordinary_folder(tmp_path):
    world = MemoryWorld(tmp_path / "m", NO_HOST)
    world.engine.close()
    assert not (tmp_path / "m" / "vectors").exists()
    assert world.engine._stores.index.folder == tmp_path / "m" / "vectors"


@pytest.mark.slow
def test_the_engine_works_with_its_index_under_programdata(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "vector_folder", on_windows(tmp_path))
    data = tmp_path / "数据"
    (data / "vectors").mkdir(parents=True)
    (data / "vectors" / "chroma.sqlite3").write_text("from before the move")
    ann = VectorConfig(rag_mode=RagMode.ANN, query_timeout_s=10.0)
    world = MemoryWorld(data, MemoryConfig(vectors=ann, rest=RestConfig(texts_per_run=64)))
    folder = on_windows(tmp_path)(data)
    index = world.engine._stores.index

    def fill():
        pause = threading.Event()
        for _ in range(int(WAIT_S / 0.02)):
            drive(world.engine.digest(), world.embedder)
            if index.state is HostState.READY and not world.engine._stores.vectors.lag():
                return
            pause.wait(0.02)
        raise AssertionError("the vector host did not get there in time")

    try:
        conversation = world.conversation()
        for number in range(60):
            world.say(f"word{number} and word{number * 7 % 60}", conversation)
        fill()
        assert index.folder == folder
        assert list(folder.glob("*/data_level0.bin")) or list(folder.glob("*.sqlite3"))
        assert world.recall("word3 word21").degraded == ()
        assert world.found("word3 word21")[0] == "word3 and word21"
        assert index.file_bytes() > 0
        assert world.engine.audit(fix=False, full=True).findings == ()
        list(world.engine.rebuild())
        assert not folder.exists()
        fill()
        assert index.count() == 60
        assert not list(data.glob("vectors*"))
    finally:
        world.engine.close()
