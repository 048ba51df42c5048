"""Lock, schema, errors, vectors: what protects truth."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memory.config import MemoryConfig, StorageConfig, VectorConfig
from memory.errors import (
    CorruptStore,
    DataFolderLocked,
    DataTooNew,
    InvariantError,
    StorageError,
    require,
)
from memory.recall.standing import Standing
from memory.storage.database import Database, translated, translated_os
from memory.storage.process_lock import ProcessLock
from memory.storage.schema import MIGRATIONS, migrate
from memory.storage.vector_index import collection_name
from memory.storage.vectors import LinearScan, calibrated
from tests.fakes.embedder import EPOCH, vector_of
from tests.fakes.memory_world import NO_HOST, MemoryWorld

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def world(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    yield world
    world.engine.close()


# --- lock


def test_a_second_owner_is_told_who_has_the_folder(tmp_path):
    lock = ProcessLock(tmp_path / "lock")
    with pytest.raises(DataFolderLocked) as caught:
        ProcessLock(tmp_path / "lock")
    assert caught.value.owner == f"pid {os.getpid()}"
    lock.release()
    lock.release()
    ProcessLock(tmp_path / "lock").release()


def test_a_failed_open_releases_the_lock(tmp_path):
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "timeline.db").write_bytes(b"this is no database, not at all" * 100)
    for _ in range(2):
        with pytest.raises(CorruptStore):
            MemoryWorld(folder)


# --- schema


def test_migrations_back_up_first_and_keep_the_data(tmp_path):
    path = tmp_path / "timeline.db"
    database = Database(path, StorageConfig())
    migrate(database, backups_max=2)
    database.set_meta("k", "v")
    known = len(MIGRATIONS)
    for more in (1, 2, 3):
        steps = [*MIGRATIONS, *(f"CREATE TABLE t{v}(x)" for v in range(more))]
        migrate(database, migrations=steps, backups_max=2)
    assert database.meta("k") == "v"
    assert database.number("PRAGMA user_version") == known + 3
    database.close()
    backups = sorted(p.name for p in tmp_path.glob("*.before-*"))
    assert backups == [f"timeline.db.before-v{known + more}" for more in (2, 3)]
    copy = sqlite3.connect(tmp_path / f"timeline.db.before-v{known + 3}")
    assert copy.execute("PRAGMA user_version").fetchone() == (known + 2,)
    copy.close()


def test_a_failing_migration_changes_nothing(tmp_path):
    database = Database(tmp_path / "timeline.db", StorageConfig())
    migrate(database, backups_max=1)
    steps = [*MIGRATIONS, "CREATE TABLE good(x); CREATE TABLE meta(x)"]
    with pytest.raises(StorageError):
        migrate(database, migrations=steps, backups_max=1)
    assert database.number("PRAGMA user_version") == len(MIGRATIONS)
    assert not database.rows("SELECT 1 FROM sqlite_master WHERE name = 'good'")
    database.close()


def test_newer_data_is_refused_untouched(world):
    world.say("x")
    world.engine.close()
    path = world.path / "timeline.db"
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA user_version = 99")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(DataTooNew) as caught:
        MemoryWorld(world.path)
    assert (caught.value.found, caught.value.known) == (99, len(MIGRATIONS))
    assert path.read_bytes() == before


def test_newer_data_is_refused_before_sqlite_opens_it(tmp_path):
    folder = tmp_path / "m"
    folder.mkdir()
    raw = sqlite3.connect(folder / "timeline.db")
    raw.execute("PRAGMA journal_mode = DELETE")  # opening it as ours would change that, in the file
    raw.execute("CREATE TABLE from_the_future(x)")
    raw.execute("PRAGMA user_version = 7")
    raw.commit()
    raw.close()
    (folder / "settings.json").write_text('{"new.key": 1}')
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(DataTooNew) as caught:
        MemoryWorld(folder)
    assert (caught.value.found, caught.value.known) == (7, len(MIGRATIONS))
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}
    assert after == before


def test_a_backup_that_the_user_copied_stays_and_stops_nothing(tmp_path):
    database = Database(tmp_path / "timeline.db", StorageConfig())
    migrate(database, backups_max=1)
    known = len(MIGRATIONS)
    theirs = tmp_path / f"timeline.db.before-v{known + 1} (copy)"
    theirs.write_text("mine")
    for more in (1, 2):
        steps = [*MIGRATIONS, *(f"CREATE TABLE t{v}(x)" for v in range(more))]
        migrate(database, migrations=steps, backups_max=1)
    database.close()
    backups = sorted(p.name for p in tmp_path.glob("*.before-*"))
    assert backups == [theirs.name, f"timeline.db.before-v{known + 2}"]
    assert theirs.read_text() == "mine"


# --- errors


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (sqlite3.SQLITE_FULL, StorageError, "full"),
        (sqlite3.SQLITE_READONLY, StorageError, "readonly"),
        (sqlite3.SQLITE_READONLY_DIRECTORY, StorageError, "readonly"),
        (sqlite3.SQLITE_IOERR_FSYNC, StorageError, "io"),
        (sqlite3.SQLITE_BUSY, StorageError, "io"),
        (sqlite3.SQLITE_CORRUPT, CorruptStore, None),
        (sqlite3.SQLITE_NOTADB, CorruptStore, None),
        (sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY, InvariantError, None),
    ],
)
def test_sqlite_errors_are_translated_by_code(code, kind, reason):
    error = sqlite3.OperationalError("x")
    error.sqlite_errorcode = code
    found = translated(error, Path("p"))
    assert type(found) is kind
    assert getattr(found, "reason", None) == reason


@pytest.mark.parametrize(
    ("number", "reason"),
    [(errno.ENOSPC, "full"), (errno.EROFS, "readonly"), (errno.EACCES, "readonly"), (5, "io")],
)
def test_os_errors_are_translated(number, reason):
    assert translated_os(OSError(number, "x"), Path("p")).reason == reason


def test_a_disk_that_fills_up_is_said_and_loses_nothing(world):
    kept = world.say("kept")
    database = world.engine._stores.database
    pages = database.number("PRAGMA page_count")
    database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageError) as caught:
        world.say("x" * 500_000)
    assert caught.value.reason == "full"
    database.execute("PRAGMA max_page_count = 1000000")
    assert world.engine.node(kept.id) == kept
    assert world.say("again").seq == kept.seq + 1
    assert world.engine.audit(fix=False, full=True).findings == ()


_OPEN_READONLY = """
import os, sys
from pathlib import Path
from memory.errors import StorageError
from tests.fakes.memory_world import MemoryWorld
if os.getuid() == 0:  # root may write anywhere
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    assert list(Path(sys.argv[1]).iterdir())
    MemoryWorld(Path(sys.argv[1]))
except StorageError as error:
    print(error.reason)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_read_only_folder_is_said(world):
    world.engine.close()
    world.path.chmod(0o555)
    for file in world.path.iterdir():
        file.chmod(0o555 if file.is_dir() else 0o444)
    for parent in world.path.parents:
        if parent.is_relative_to(Path(tempfile.gettempdir()).resolve() / "pytest-of-root"):
            parent.chmod(0o755)  # or nobody could not even look
    arguments = [sys.executable, "-c", _OPEN_READONLY, str(world.path)]
    done = subprocess.run(
        arguments, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    world.path.chmod(0o700)
    assert done.stdout.strip() == "readonly", done.stderr


def test_require_stays_on():
    require(True, "fine")
    with pytest.raises(InvariantError):
        require(False, "broken")


def test_an_unknown_conversation_is_our_bug(world):
    with pytest.raises(InvariantError):
        world.say("x", conversation="c-unknown")


# --- pragmas


def test_truth_is_durable_and_private(world):
    database = world.engine._stores.database
    assert database.number("PRAGMA synchronous") == 2
    assert database.number("PRAGMA secure_delete") == 1
    assert database.number("PRAGMA foreign_keys") == 1
    assert str(database.row("PRAGMA journal_mode")[0]) == "wal"


# --- vectors


def test_calibration_clamps():
    assert calibrated(EPOCH.floor - 1, EPOCH) == 0.0
    assert calibrated(EPOCH.ceiling + 1, EPOCH) == 1.0
    assert calibrated((EPOCH.floor + EPOCH.ceiling) / 2, EPOCH) == pytest.approx(0.5)


def fill(world: MemoryWorld, count: int) -> None:
    conversation = world.conversation()
    for i in range(count):
        world.say(f"word{i} and word{i * 7 % count}", conversation)
    world.digest()


@pytest.mark.parametrize("resident", [0, 7, 1000])
def test_the_linear_scan_is_exact_resident_or_not(world, resident):
    fill(world, 30)
    store = world.engine._stores.vectors
    config = VectorConfig(resident_rows_max=resident, slice_rows=4)
    timeline = world.engine._stores.timeline
    scan, question = LinearScan(store, timeline, config), vector_of("word3")
    for _ in range(2):
        found: list[tuple[int, float]] = []
        for _ in scan.search(question, 5, found):
            pass
        blobs = store.of(sorted(store.seqs()))
        exact = sorted(((-float(v @ question), -seq) for seq, v in blobs.items()))[:5]
        assert [seq for seq, _ in found] == [-seq for _, seq in exact]


def test_the_linear_scan_sees_what_came_later(world):
    fill(world, 5)
    scan = world.engine._stores.scan
    list(scan.load())
    node = world.say("a brand new quokka")
    world.digest()
    found: list[tuple[int, float]] = []
    list(scan.search(vector_of("quokka"), 1, found))
    assert found[0][0] == node.seq


def test_an_outage_of_the_embedder_ends_the_run_and_changes_nothing(world):
    world.say("x")
    world.embedder.out = True
    world.digest()
    assert world.engine.statistics().pending_embeddings == 1
    assert world.embedder.requests
    world.embedder.out = False
    world.digest()
    assert world.engine.statistics().pending_embeddings == 0


def test_a_wrong_vector_is_our_bug_and_is_not_stored(world):
    world.say("x")
    world.embedder.embed = lambda texts, kind: np.zeros((len(texts), 3), dtype=np.float32)
    with pytest.raises(InvariantError):
        world.digest()
    assert world.engine.statistics().embedded == 0


def test_collection_names_are_what_chroma_takes():
    for epoch in ("多语言-e5", "a/b c", "", "x" * 500):
        name = collection_name(epoch)
        assert 3 <= len(name) <= 512
        assert name[0].isalnum()
        assert name[-1].isalnum()
        assert all(c.isascii() and (c.isalnum() or c in "._-") for c in name)
    assert collection_name("a/b") != collection_name("a b")


def test_standing_is_relative_to_the_question_and_rises_with_the_store():
    rng = np.random.default_rng(1)
    background = rng.standard_normal((64, EPOCH.dimension)).astype(np.float32)
    background /= np.linalg.norm(background, axis=1, keepdims=True)
    config = MemoryConfig().recall

    def read(nodes: int, cosine: float) -> float:
        standing = Standing(background, background[0], nodes=nodes, epoch=EPOCH, config=config)
        return standing.similarity(cosine, "plain words")

    assert read(10, 0.0) < 0.1
    assert read(10, 0.9) > 0.5
    assert read(100_000, 0.7) < read(100, 0.7)
    plain = Standing(None, background[0], nodes=1, epoch=EPOCH, config=config)
    assert plain.similarity(EPOCH.ceiling, "x") == 1.0


# --- audit


def test_a_fresh_and_a_full_folder_are_clean(world):
    assert world.engine.audit(fix=False, full=True).findings == ()
    fill(world, 20)
    assert world.engine.audit(fix=False, full=True).findings == ()


DAMAGE = {
    "lexical": "DELETE FROM lexical_text WHERE seq = 3",
    "vectors": "DELETE FROM vectors WHERE seq = 3",
    "vectors ": "UPDATE vectors SET vector = x'0011' WHERE seq = 3",
    "lexical ": "INSERT INTO lexical_text(seq, own, near) VALUES(999, 'a', 'b')",
    "regions": "INSERT INTO blocks VALUES('{c}', 1, 1, 'user', 'n-gone', 't', 1, 1, '', 'real', NULL, 1.0, 1, 0)",
}


@pytest.mark.parametrize("store", DAMAGE)
def test_the_audit_finds_and_repairs(world, store):
    fill(world, 5)
    conversation = world.conversation()
    database = world.engine._stores.database
    database.execute(DAMAGE[store].format(c=conversation))
    seen = world.engine.audit(fix=False, full=False)
    assert {f.store for f in seen.findings} == {store.strip()}
    assert not seen.clean
    assert world.engine.audit(fix=True, full=True).clean
    world.digest()
    assert world.engine.audit(fix=False, full=True).findings == ()
    assert world.found("word3")


def test_a_damaged_timeline_is_said_not_repaired(world):
    fill(world, 200)
    world.engine.close()
    path = world.path / "timeline.db"
    data = bytearray(path.read_bytes())
    data[4096 * 3 : 4096 * 12] = os.urandom(4096 * 9)
    path.write_bytes(data)
    with pytest.raises(CorruptStore):
        MemoryWorld(world.path).engine.audit(fix=True, full=True)


def test_rebuild_gives_everything_back(world):
    fill(world, 60)
    before = world.recall("word3").pages
    database = world.engine._stores.database
    database.execute("INSERT INTO lexical(lexical) VALUES('delete-all')")
    from tests.fakes.driver import drive

    report = drive(world.engine.rebuild(), world.embedder)
    assert report.clean
    assert world.engine.audit(fix=False, full=True).findings == ()
    assert world.recall("word3").pages == before


def test_a_changed_term_algorithm_reindexes_in_the_background(world):
    fill(world, 120)
    world.engine._stores.database.set_meta("lexical_version", "0")
    world.reopen()
    assert not next(s for s in world.engine.statistics().stores if s.name == "lexical").ok
    world.digest()
    assert next(s for s in world.engine.statistics().stores if s.name == "lexical").ok
    assert world.found("word3")


def test_statistics_are_true(world):
    fill(world, 5)
    seen = world.engine.statistics()
    assert (seen.nodes, seen.conversations, seen.embedded, seen.pending_embeddings) == (5, 1, 5, 0)
    stores = {store.name: store for store in seen.stores}
    assert stores["timeline"].items == stores["lexical"].items == 5
    assert stores["vectors"].lag == 5  # the host is off in this test
    assert json.dumps([store.detail for store in seen.stores])
    assert replace(seen, nodes=6) != seen


def test_the_configuration_of_tests_has_no_host():
    assert not NO_HOST.vectors.host
