"""The schema of `timeline.db`: an append-only list of migrations.

A migration is never edited once released; a new one is appended. Before a database with content is migrated it is copied to
`timeline.db.before-v<N>`; each migration is one transaction, so a crash leaves the old or the new schema. A database from
a newer GrowBox is refused untouched.

This version is the data folder's; no file beside it says another. What is derived is rebuilt when it does not fit (`vectors` carries its
format, `pointers` the place in the log up to which it is folded), and `settings.json` and `window.ini` are read key by key, keep keys they do
not know, and fall back to defaults. A change to any of them that an older GrowBox could not stand comes with a migration here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from memory.errors import DataTooNew
from memory.storage.database import Database, translated, translated_os

_V1 = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE projects(
  id TEXT PRIMARY KEY, name TEXT NOT NULL, path TEXT NOT NULL UNIQUE, created_at_ms INTEGER NOT NULL);
CREATE TABLE conversations(
  id TEXT PRIMARY KEY, title TEXT NOT NULL, project_id TEXT REFERENCES projects(id),
  created_at_ms INTEGER NOT NULL, updated_at_ms INTEGER NOT NULL);
CREATE TABLE nodes(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, role TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL, conversation_id TEXT REFERENCES conversations(id),
  project_id TEXT REFERENCES projects(id), reply_to TEXT, branch_active INTEGER NOT NULL DEFAULT 1,
  status TEXT NOT NULL, derived_from TEXT NOT NULL DEFAULT '[]', source_uri TEXT, parent_id TEXT,
  byte_start INTEGER, byte_end INTEGER, hits INTEGER NOT NULL DEFAULT 0, tokenizer TEXT,
  chunking INTEGER NOT NULL DEFAULT 0, deleted_at_ms INTEGER, content TEXT NOT NULL, token_ids BLOB, trace TEXT);
CREATE INDEX nodes_recallable ON nodes(seq) WHERE branch_active = 1 AND deleted_at_ms IS NULL AND chunking <> 2
  AND status IN ('complete', 'cancelled') AND content <> '';
CREATE INDEX nodes_conversation ON nodes(conversation_id, seq);
CREATE INDEX nodes_reply ON nodes(reply_to) WHERE reply_to IS NOT NULL;
CREATE INDEX nodes_parent ON nodes(parent_id, seq) WHERE parent_id IS NOT NULL;
CREATE INDEX nodes_partial ON nodes(seq) WHERE status = 'partial';
CREATE INDEX nodes_unchunked ON nodes(seq) WHERE chunking = 1;
CREATE TABLE lexical_text(seq INTEGER PRIMARY KEY, own TEXT NOT NULL, near TEXT NOT NULL);
CREATE VIRTUAL TABLE lexical USING fts5(
  own, near, content='lexical_text', content_rowid='seq',
  tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co'");
CREATE VIRTUAL TABLE lexical_terms USING fts5vocab(lexical, 'row');
CREATE TABLE epochs(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL, high_water INTEGER NOT NULL DEFAULT 0);
CREATE TABLE vectors(
  id INTEGER PRIMARY KEY AUTOINCREMENT, epoch INTEGER NOT NULL REFERENCES epochs(id),
  seq INTEGER NOT NULL REFERENCES nodes(seq), vector BLOB NOT NULL, UNIQUE(epoch, seq));
CREATE TABLE background(
  epoch INTEGER NOT NULL REFERENCES epochs(id), version TEXT NOT NULL, place INTEGER NOT NULL, vector BLOB NOT NULL,
  PRIMARY KEY(epoch, place)) WITHOUT ROWID;
CREATE TABLE embed_queue(seq INTEGER PRIMARY KEY REFERENCES nodes(seq));
CREATE TABLE queries(
  id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL UNIQUE, cluster INTEGER NOT NULL, epoch INTEGER, vector BLOB);
CREATE TABLE learning_log(
  id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, created_at_ms INTEGER NOT NULL, payload TEXT NOT NULL);
CREATE TABLE regions(
  conversation_id TEXT PRIMARY KEY REFERENCES conversations(id), state TEXT NOT NULL);
CREATE TABLE blocks(
  conversation_id TEXT NOT NULL REFERENCES conversations(id), id INTEGER NOT NULL, turn INTEGER NOT NULL,
  kind TEXT NOT NULL, node_id TEXT NOT NULL, text TEXT NOT NULL, tokens INTEGER NOT NULL, loaded_at_ms INTEGER NOT NULL,
  reason TEXT NOT NULL, pointer TEXT NOT NULL, token_ids BLOB, heat REAL NOT NULL, heat_turn INTEGER NOT NULL,
  pinned INTEGER NOT NULL, PRIMARY KEY(conversation_id, id)) WITHOUT ROWID;
"""

# Documents with versions: what was read from which file, where it is to be cut, and what stands above each passage.
_V2 = """
ALTER TABLE nodes ADD COLUMN context TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN passage_hash TEXT;
CREATE INDEX nodes_source ON nodes(source_uri, passage_hash, seq) WHERE source_uri IS NOT NULL AND branch_active = 1;
CREATE TABLE documents(
  uri TEXT PRIMARY KEY, node_id TEXT NOT NULL REFERENCES nodes(id), stamp TEXT NOT NULL, content_hash TEXT NOT NULL)
  WITHOUT ROWID;
CREATE TABLE cut_plans(node_id TEXT PRIMARY KEY REFERENCES nodes(id), cuts TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE stray_vectors(seq INTEGER PRIMARY KEY);
"""

# Rest: who learned it, and what was taken back; how a question was worded; the meter's curve; the flywheel.
_V3 = """
ALTER TABLE learning_log ADD COLUMN cause TEXT NOT NULL DEFAULT 'search';
UPDATE learning_log SET cause = 'user' WHERE kind <> 'read';
CREATE INDEX learning_cause ON learning_log(cause, id);
CREATE INDEX learning_undo ON learning_log(id) WHERE kind = 'undo';
ALTER TABLE queries ADD COLUMN said TEXT;
CREATE TABLE fatigue_history(at_ms INTEGER PRIMARY KEY, total REAL NOT NULL);
CREATE TABLE experiences(
  id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, source TEXT NOT NULL, operation TEXT NOT NULL,
  context TEXT NOT NULL, outcome TEXT NOT NULL, success INTEGER NOT NULL, node_ids TEXT NOT NULL, knowledge_id TEXT);
CREATE TABLE proposals(
  id INTEGER PRIMARY KEY AUTOINCREMENT, created_at_ms INTEGER NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL,
  experiences TEXT NOT NULL, state TEXT NOT NULL);
CREATE TABLE goals(
  id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, text TEXT NOT NULL, enabled INTEGER NOT NULL DEFAULT 1,
  visited_at_ms INTEGER NOT NULL DEFAULT 0);
INSERT INTO goals(kind, text) VALUES('improve', ''), ('test', ''), ('automate', '');
CREATE INDEX nodes_project ON nodes(project_id, kind, created_at_ms) WHERE project_id IS NOT NULL AND branch_active = 1
  AND deleted_at_ms IS NULL AND chunking <> 2 AND status IN ('complete', 'cancelled') AND content <> '';
"""

MIGRATIONS: tuple[str, ...] = (_V1, _V2, _V3)
_MAGIC = b"SQLite format 3\0"
_VERSION_AT = (
    60  # Source: SQLite, "Database File Format", 1.3 "The Database Header": the user version
)


def refuse_newer(path: Path) -> None:
    """Looks at the version in the file's header, before SQLite opens it: opening alone may write (journal mode, write-ahead log).

    A write-ahead log that was never merged can hold a newer version than the header; `migrate` looks again.

    Raises:
        DataTooNew: the file is from a newer program.
    """
    try:
        with path.open("rb") as stream:
            header = stream.read(_VERSION_AT + 4)
    except OSError:
        return  # opening it says what is wrong
    if len(header) < _VERSION_AT + 4 or not header.startswith(_MAGIC):
        return
    found = int.from_bytes(header[_VERSION_AT:], "big")
    if found > len(MIGRATIONS):
        raise DataTooNew(path, found, len(MIGRATIONS))


def migrate(
    database: Database, *, migrations: Sequence[str] = MIGRATIONS, backups_max: int
) -> None:
    """Brings the schema up to date.

    Args:
        database: just opened.
        migrations: script N makes version N + 1.
        backups_max: copies kept.

    Raises:
        DataTooNew: the file is from a newer program; nothing was written.
        StorageError: no space, read-only.
    """
    found = database.number("PRAGMA user_version")
    known = len(migrations)
    if found > known:
        raise DataTooNew(database.path, found, known)
    if found == known:
        return
    if found:
        _back_up(database, known, backups_max)
    for version in range(found, known):
        _apply(database, migrations[version], version + 1)


def _apply(database: Database, script: str, version: int) -> None:
    """Python's `executescript` commits first, so the script carries its own transaction."""
    body = f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {version}; COMMIT;"
    try:
        database.connection.executescript(body)
    except sqlite3.Error as error:
        if database.connection.in_transaction:
            database.connection.rollback()
        raise translated(error, database.path) from error


def _back_up(database: Database, version: int, backups_max: int) -> Path:
    folder, name = database.path.parent, database.path.name
    target = folder / f"{name}.before-v{version}"
    try:
        target.unlink(missing_ok=True)
        copy = sqlite3.connect(target)
        try:
            database.connection.backup(copy)
        finally:
            copy.close()
        target.chmod(0o600)
        for old in _backups(folder, name)[:-backups_max]:
            old.unlink()
    except sqlite3.Error as error:
        raise translated(error, target) from error
    except OSError as error:
        raise translated_os(error, target) from error
    return target


def drop_backups(database: Database) -> None:
    """Deletes the copies from before migrations: they hold what is forgotten since.

    Raises:
        StorageError: the system refuses.
    """
    for path in _backups(database.path.parent, database.path.name):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise translated_os(error, path) from error


def _backups(folder: Path, name: str) -> list[Path]:
    """Our own copies, oldest first; a user's copy under another name is theirs, and stays."""
    versions = {
        int(digits): path
        for path in folder.glob(f"{name}.before-v*")
        if (digits := path.name.rpartition("v")[2]).isascii() and digits.isdigit()
    }
    return [versions[version] for version in sorted(versions)]
