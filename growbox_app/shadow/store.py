"""One shadow repository: a bare git repository in the data folder that holds what a project's files were. Blocking.

Each checkpoint is one commit without parents and one reference, `refs/checkpoints/<number>`; its tree holds `before`, `after` (once
the call ended) and what was left out. Contents are written first and the reference last, so a crash at any point leaves every
older checkpoint whole and the newest whole or not there; what a crash leaves over is swept when the repository is next opened.
Nothing of git runs: no process, no hook, no filter, no configuration of the user's.

The only module that imports dulwich.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar, cast

import msgspec
from dulwich.errors import NotGitRepository, ObjectFormatException
from dulwich.index import commit_tree
from dulwich.object_store import DiskObjectStore
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tree
from dulwich.pack import ObjectContainer
from dulwich.refs import DiskRefsContainer, Ref
from msgspec import structs

from growbox_app.shadow.values import (
    FOLDER_MODE,
    STAMP_MODE,
    CheckpointKind,
    CheckpointTrouble,
    Entry,
    SkipReason,
    Snapshot,
)

_AUTHOR = b"GrowBox <growbox@localhost>"
_PREFIX = b"refs/checkpoints/"
_PACK_FROM = 32  # more new objects than this become one pack: one fsync instead of one for each
_BATCH_BYTES = 32_000_000
_EMPTY_TREE = Tree().id
_FLATTENED_MAX = 200_000  # paths
_BROKEN = (
    KeyError,
    ValueError,
    AssertionError,
    zlib.error,
    NotGitRepository,
    ObjectFormatException,
)
_Object = TypeVar("_Object", bound=ShaFile)


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint says about itself."""

    number: int
    root: str
    created_at_ms: int
    label: str
    answer_id: str
    kind: CheckpointKind
    named: list[str] = []
    """Paths that were looked at and were not there. Hexadecimal, because a path need not be text."""
    is_finished: bool = False
    restores: int | None = None
    """Which checkpoint was brought back behind this one; set once that was carried out."""


class _Skipped(msgspec.Struct, frozen=True):
    path: str
    reason: SkipReason


class ShadowStore:
    """An open repository. Raises `CheckpointTrouble` when it is damaged, OSError when the disk is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._objects = DiskObjectStore(
            path / "objects",
            fsync_object_files=True,
            loose_compression_level=1,
            pack_compression_level=1,
        )
        self._refs = DiskRefsContainer(path)
        self._waiting: dict[bytes, ShaFile] = {}
        self._waiting_bytes = 0
        self._flattened: dict[bytes, list[tuple[bytes, Entry]]] = {}
        self._flattened_size = 0

    @classmethod
    def create(cls, path: Path) -> None:
        """Makes an empty repository, where there is none or half of one."""
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (path / "HEAD").is_file():
            for leftover in ("config", "description"):
                (path / leftover).unlink(missing_ok=True)
            (path / "objects" / "pack").mkdir(parents=True, exist_ok=True)
            (path / "objects" / "info").mkdir(exist_ok=True)
            (path / "refs").mkdir(exist_ok=True)
            (path / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
            (path / "HEAD").write_text("ref: refs/heads/main\n")

    @staticmethod
    def sweep(path: Path) -> None:
        """Removes what a killed process left over; nobody else may have the repository open."""
        for leftover in [*path.rglob("*.lock"), *path.glob("objects/pack/tmp*")]:
            leftover.unlink(missing_ok=True)
        for pack in path.glob("objects/pack/*.pack"):
            if not pack.with_suffix(".idx").exists():
                pack.unlink(missing_ok=True)

    def close(self) -> None:
        """Releases the files; Windows cannot remove them before."""
        self._objects.close()

    # --- contents

    def keep(self, content: bytes) -> bytes:
        """Stores a content; returns its name. Durable once a checkpoint that holds it is."""
        blob = Blob.from_string(content)
        self._add(blob)
        return bytes(blob.id)

    def content(self, sha: bytes) -> bytes:
        """A content by its name."""
        return bytes(self._get(sha, Blob).data)

    def _add(self, item: ShaFile) -> None:
        if item.id in self._waiting or item.id in self._objects:
            return
        self._waiting[item.id] = item
        self._waiting_bytes += item.raw_length()
        if self._waiting_bytes > _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what was kept."""
        items = list(self._waiting.values())
        if len(items) > _PACK_FROM or self._waiting_bytes > _BATCH_BYTES:
            self._objects.add_objects([(item, None) for item in items])
        else:
            for item in items:
                self._objects.add_object(item)
        self._waiting.clear()
        self._waiting_bytes = 0

    def _get(self, sha: bytes, kind: type[_Object]) -> _Object:
        try:
            found = self._waiting.get(sha) or self._objects[ObjectID(sha)]
        except _BROKEN as error:
            raise CheckpointTrouble(f"object {sha!r} is damaged or missing: {error!r}") from error
        if not isinstance(found, kind):
            raise CheckpointTrouble(f"object {sha!r} is no {kind.__name__}")
        return found

    # --- checkpoints

    def numbers(self) -> list[int]:
        """The checkpoints there are, oldest first."""
        return sorted(int(name) for name in self._refs.subkeys(Ref(_PREFIX)) if name.isdigit())

    def put(self, record: Record, before: Snapshot) -> None:
        """Writes a checkpoint."""
        tree = Tree()
        tree.add(b"before", FOLDER_MODE, self._put_entries(before))
        tree.add(b"before.json", 0o100644, ObjectID(self._put_skipped(before)))
        absent = sorted(before.named - before.entries.keys())
        self._commit_tree(structs.replace(record, named=[path.hex() for path in absent]), tree)

    def put_after(self, number: int, after: Snapshot, *, restores: int | None = None) -> None:
        """Adds what a call, or a restore, left to its checkpoint, in place of what was said of it before."""
        record, found = self._commit(number)
        tree = Tree()
        for item in found.iteritems():
            tree[item.path] = (item.mode, item.sha)
        tree[b"after"] = (FOLDER_MODE, self._put_entries(after))
        tree[b"after.json"] = (0o100644, ObjectID(self._put_skipped(after)))
        self._commit_tree(structs.replace(record, is_finished=True, restores=restores), tree)

    def _commit_tree(self, record: Record, tree: Tree) -> None:
        self._add(tree)
        commit = Commit()
        commit.tree = tree.id
        commit.author = commit.committer = _AUTHOR
        commit.author_time = commit.commit_time = record.created_at_ms // 1000
        commit.author_timezone = commit.commit_timezone = 0
        commit.encoding = b"UTF-8"
        commit.message = msgspec.json.encode(record)
        self._add(commit)
        self.flush()
        self._refs.set_if_equals(_ref(record.number), None, commit.id)

    def record(self, number: int) -> Record:
        """What a checkpoint says about itself."""
        return self._commit(number)[0]

    def skipped(self, number: int) -> dict[bytes, SkipReason]:
        """What a checkpoint does not hold."""
        return self._skipped_of(self._commit(number)[1], b"before.json")

    def snapshots(self, number: int) -> tuple[Snapshot, Snapshot | None]:
        """The states before and after the call."""
        record, tree = self._commit(number)
        named = frozenset(bytes.fromhex(path) for path in record.named)
        before = self._snapshot(tree, "before", named)
        if not record.is_finished:
            return before, None
        return before, self._snapshot(tree, "after", before.watched)

    def _commit(self, number: int) -> tuple[Record, Tree]:
        try:
            sha = self._refs[_ref(number)]
        except KeyError as error:
            raise CheckpointTrouble(f"there is no checkpoint {number}") from error
        commit = self._get(sha, Commit)
        try:
            record = msgspec.json.decode(commit.message, type=Record)
        except msgspec.MsgspecError as error:
            raise CheckpointTrouble(f"checkpoint {number} is damaged: {error}") from error
        return record, self._get(commit.tree, Tree)

    def _put_entries(self, snapshot: Snapshot) -> ObjectID:
        self._add(Tree())
        return commit_tree(
            cast("ObjectContainer", _Collector(self._add)),  # it needs `add_object` only
            [
                (
                    path,
                    _EMPTY_TREE if entry.mode == FOLDER_MODE else ObjectID(entry.sha),
                    entry.mode,
                )
                for path, entry in snapshot.entries.items()
            ],
        )

    def _put_skipped(self, snapshot: Snapshot) -> bytes:
        items = [_Skipped(path.hex(), reason) for path, reason in sorted(snapshot.skipped.items())]
        return self.keep(msgspec.json.encode(items))

    def _snapshot(self, tree: Tree, name: str, named: frozenset[bytes]) -> Snapshot:
        try:
            entries = dict(self._flat(tree[name.encode()][1]))
        except _BROKEN as error:
            raise CheckpointTrouble(f"a tree is damaged or missing: {error!r}") from error
        skipped = self._skipped_of(tree, f"{name}.json".encode())
        return Snapshot(entries=entries, skipped=skipped, named=named)

    def _flat(self, sha: bytes) -> Iterator[tuple[bytes, Entry]]:
        """Everything below a tree. Checkpoints share most of their subtrees, so these are remembered, up to a bound."""
        for item in self._get(sha, Tree).iteritems():
            if item.mode != FOLDER_MODE:
                yield item.path, Entry(item.mode, bytes(item.sha))
            elif item.sha == _EMPTY_TREE:
                yield item.path, Entry(FOLDER_MODE, b"")
            else:
                below = self._flattened.get(item.sha)
                if below is None:
                    below = list(self._flat(item.sha))
                    if self._flattened_size > _FLATTENED_MAX:
                        self._flattened.clear()
                        self._flattened_size = 0
                    self._flattened[item.sha] = below
                    self._flattened_size += len(below)
                for path, entry in below:
                    yield item.path + b"/" + path, entry

    def _skipped_of(self, tree: Tree, name: bytes) -> dict[bytes, SkipReason]:
        try:
            items = msgspec.json.decode(self.content(tree[name][1]), type=list[_Skipped])
        except (KeyError, msgspec.MsgspecError) as error:
            raise CheckpointTrouble(f"a list is damaged or missing: {error!r}") from error
        return {bytes.fromhex(item.path): item.reason for item in items}

    # --- bounds

    def drop(self, numbers: Sequence[int]) -> None:
        """Removes checkpoints; their contents go with `collect`."""
        for number in numbers:
            self._refs.remove_if_equals(_ref(number), None)

    def size_bytes(self) -> int:
        """What the repository takes on disk."""
        total = 0
        for folder, _, names in os.walk(self.path):
            for name in names:
                with contextlib.suppress(OSError):
                    total += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118
        return total

    def collect(self) -> None:
        """Removes contents that no checkpoint holds. What stays is written anew before the old goes."""
        live = set(self._live())
        self._objects.pack_loose_objects()
        gone = []
        for pack in list(self._objects.packs):
            held = [ObjectID(sha) for sha in pack]
            kept = [sha for sha in held if sha in live]
            if len(kept) == len(held):
                continue
            if kept:
                self._objects.add_objects([(self._objects[sha], None) for sha in kept])
            gone.append(pack.name().decode())
        self._objects.close()
        for name in gone:
            for suffix in (".idx", ".pack"):  # without an index a pack is not there
                (self.path / "objects" / "pack" / f"pack-{name}{suffix}").unlink(missing_ok=True)

    def _live(self) -> Iterator[ObjectID]:
        trees: set[ObjectID] = {_EMPTY_TREE}
        for number in self.numbers():
            commit = self._get(self._refs[_ref(number)], Commit)
            yield commit.id
            waiting = [commit.tree]
            while waiting:
                sha = waiting.pop()
                if sha in trees:
                    continue
                trees.add(sha)
                for item in self._get(sha, Tree).iteritems():
                    if item.mode == FOLDER_MODE:
                        waiting.append(item.sha)
                    elif item.mode != STAMP_MODE:
                        yield item.sha
        yield from trees


class _Collector:
    """What `commit_tree` writes trees into."""

    def __init__(self, add: Callable[[ShaFile], None]) -> None:
        self.add_object = add


def _ref(number: int) -> Ref:
    return Ref(_PREFIX + b"%015d" % number)
