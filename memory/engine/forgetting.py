"""Forgetting a conversation: first out of sight, then out of every file, and in the end a search that proves it.

`ask` hides it at once and can be taken back; `run` deletes. `run` is a chain of steps that may each be repeated, so a process that is
killed anywhere goes on at its next start (`pending`), from the top. Order: what was learned from it, who else names it, its rows,
then the derived stores that hold copies (pointers and vector index are begun anew and refilled by `digest`), then the files
themselves (lexical index merged, the database written anew, write-ahead log emptied, copies from before migrations deleted). The host deletes what it keeps
itself before it calls `run`, and lets no turn run meanwhile.

Source: design 4.9.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import msgspec

from memory.engine.regions import Regions
from memory.errors import StorageError
from memory.events import RegionChanged
from memory.recall.recaller import Recaller
from memory.requests import Operation, Reply, Yield
from memory.storage.forgetting import ForgettingStore
from memory.storage.learning_log import LearningEvent, LearningKind, Reading
from memory.storage.schema import drop_backups
from memory.storage.stores import Stores
from memory.values import ConversationId, ForgetPreview, ForgetReport, NodeId

T = TypeVar("T")

Note = Callable[[str, int, int], None]
"""Told how far it came: step, done, total."""

_NODES_PER_SLICE = 16
_ROWS_PER_SLICE = 400
_NEEDLES_MAX = 48
_NEEDLE_BYTES = (12, 40)
"""Shorter phrases prove nothing; longer ones may be cut by a page of a file."""
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gone:
    """What goes."""

    seqs: tuple[int, ...]
    ids: frozenset[NodeId]
    wordings: frozenset[int]


class Forgetting:
    """Forgets conversations of open stores."""

    def __init__(self, stores: Stores, recaller: Recaller, regions: Regions) -> None:
        self._stores = stores
        self._recaller = recaller
        self._regions = regions
        limit = stores.config.rest.knowledge_characters_max
        self._store = ForgettingStore(stores.database, stores.experiences, stores.log, limit)
        self._forgotten = 0

    # --- the wish

    def preview(self, conversation_id: ConversationId) -> Operation[ForgetPreview]:
        """What would go."""
        seqs = self._store.members(conversation_id)
        kinds = self._store.kinds(seqs)
        ids = frozenset(self._store.ids(seqs).values())
        elsewhere, at = 0, 0
        while True:
            found, at = self._store.mentions(ids, at, _ROWS_PER_SLICE)
            elsewhere += len(found)
            if not at:
                break
            yield Yield()
        return ForgetPreview(
            messages=kinds.count("message"),
            notes=sum(kind not in ("message", "chunk", "document") for kind in kinds),
            documents=kinds.count("document"),
            elsewhere=elsewhere,
        )

    def ask(self, conversation_id: ConversationId) -> None:
        """Out of sight: in no list, no search and no recall any more. Durable."""
        if self._store.is_wished(conversation_id):
            return
        with self._stores.database.transaction():
            seqs = self._store.members(conversation_id)
            self._store.hide(conversation_id, seqs, self._stores.clock.now_ms())
        self._forgotten += 1

    def unless_forgotten(self, operation: Operation[T], ended: T) -> Operation[T]:
        """Runs a piece of rest. Where something is forgotten meanwhile it ends: it has texts in its hands, and would write them down again."""
        begun = self._forgotten
        reply: Reply = None
        try:
            while True:
                request = operation.send(reply)
                reply = yield request
                if self._forgotten != begun:
                    return ended
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            operation.close()

    def undo(self, conversation_id: ConversationId) -> None:
        """Takes the wish back; what `run` has not deleted yet is there again."""
        with self._stores.database.transaction():
            seqs = self._store.show_again(conversation_id)
            for node in self._stores.timeline.recallable(seqs).values():
                if not self._stores.lexical.contains(node.seq):
                    self._stores.lexical.index(node)
        self._stores.vectors.repair_queue()

    def pending(self) -> tuple[ConversationId, ...]:
        """Wishes that are not fulfilled."""
        return self._store.wishes()

    def members(self, conversation_id: ConversationId) -> frozenset[NodeId]:
        """Ids of everything that goes, for what the host keeps under them."""
        return frozenset(self._store.ids(self._store.members(conversation_id)).values())

    def touched(self, conversation_id: ConversationId) -> Operation[tuple[ConversationId, ...]]:
        """Other conversations in whose window, or saved state of the model, something of it can stand."""
        ids = self.members(conversation_id)
        found = self._store.residents(ids)
        at = 0
        while True:
            mentions, at = self._store.mentions(ids, at, _ROWS_PER_SLICE)
            found |= {m.conversation_id for m in mentions if m.conversation_id is not None}
            if not at:
                return tuple(sorted(found - {conversation_id}))
            yield Yield()

    # --- the deed

    def run(
        self, conversation_id: ConversationId, note: Note, *, beside: Sequence[Path] = ()
    ) -> Operation[ForgetReport]:
        """Deletes what `ask` has hidden, and searches the files of the data folder for what may be left.

        Args:
            conversation_id: an asked one; anything else changes nothing.
            note: told how far it came.
            beside: files and folders of the data folder that hold no text (models, images of the model's state).
        """
        report = ForgetReport(conversation_id=conversation_id)
        if not self._store.is_wished(conversation_id):
            return report
        with self._stores.database.transaction():
            seqs, wordings = self._store.plan(conversation_id)
        gone = _Gone(
            seqs=tuple(seqs), ids=frozenset(self._store.ids(seqs).values()), wordings=wordings
        )
        needles = _needles(self._store.texts(seqs))
        yield from self._unlearn(gone)
        yield from self._unmention(gone)
        yield from self._delete(conversation_id, gone, note)
        yield from self._clean(note)
        report = replace(report, nodes=len(seqs), searched=bool(needles))
        if needles:
            report = yield from self._prove(report, needles, note, beside)
        with self._stores.database.transaction():
            self._store.end(conversation_id)
        self._store.truncate_log()
        return report

    def _unlearn(self, gone: _Gone) -> Operation[None]:
        """Takes it out of the learning log, in slices; the questions themselves go last, because they say what is to be changed."""
        heirs = self._store.heirs(gone.wordings)
        log, at = self._stores.log, 0
        while events := log.after(at, _ROWS_PER_SLICE):
            at = events[-1].id
            with self._stores.database.transaction():
                changed = [(event, _unlearnt(event, gone, heirs)) for event in events]
                log.remove([event.id for event, left in changed if left is None])
                for event, left in changed:
                    if left is not None and left != event:
                        log.replace(left)
            yield Yield()
        with self._stores.database.transaction():
            log.remove_idle_undos()
            self._store.forget_experiences(gone.seqs)
            self._store.delete_wordings(gone.wordings, heirs)

    def _unmention(self, gone: _Gone) -> Operation[None]:
        """Takes it out of what other answers were made from; their windows are filled anew, the text of the answers stays."""
        touched = self._store.residents(gone.ids)
        at = 0
        while True:
            mentions, at = self._store.mentions(gone.ids, at, _ROWS_PER_SLICE)
            touched |= {m.conversation_id for m in mentions if m.conversation_id is not None}
            with self._stores.database.transaction():
                for mention in mentions:
                    self._store.unmention(mention, gone.ids)
                for conversation_id in touched:
                    self._store.drop_region(conversation_id)
            self._regions.forget_loaded()
            for conversation_id in touched:
                self._stores.sink.emit(RegionChanged(conversation_id=conversation_id))
            touched = set()
            if not at:
                return
            yield Yield()

    def _delete(self, conversation_id: ConversationId, gone: _Gone, note: Note) -> Operation[None]:
        left = list(gone.seqs)
        while left:  # once more for what was added meanwhile
            for start in range(0, len(left), _NODES_PER_SLICE):
                self._delete_nodes(left[start : start + _NODES_PER_SLICE])
                note("delete", start, len(left))
                yield Yield()
            left = self._store.members(conversation_id)
        with self._store.unchecked():
            self._store.delete_conversation(conversation_id)
        self._regions.forget_loaded()
        self._recaller.forget()
        self._forgotten += 1

    def _delete_nodes(self, seqs: Sequence[int]) -> None:
        with self._store.unchecked():
            for seq in seqs:
                self._stores.lexical.remove(seq)
            self._store.delete_nodes(seqs)
        self._stores.scan.forget(seqs)

    def _clean(self, note: Note) -> Operation[None]:
        """Copies go."""
        note("copies", 0, 0)
        self._stores.pointers.start_anew()
        yield Yield()
        while self._stores.pointers.catch_up()[0]:
            yield Yield()
        self._recaller.cache.clear()
        self._stores.index.discard()
        yield Yield()
        drop_backups(self._stores.database)
        more = self._store.merge_lexical()
        while more:
            yield Yield()
            more = self._store.merge_lexical_further()
        note("rewrite", 0, 0)
        yield Yield()
        self._rewrite()

    def _rewrite(self) -> None:
        """Writes the timeline's file anew.

        What SQLite deletes it overwrites with zeros, but for bytes in the gaps of pages whose rows it has moved about: of ten
        thousand words a dozen were still there. A disk too full for a second copy leaves it at the zeros, and at what the search finds.
        """
        try:
            self._store.vacuum()
        except StorageError as error:
            if error.reason != "full":
                raise
        self._store.truncate_log()

    # --- the proof

    def _prove(
        self,
        report: ForgetReport,
        needles: Sequence[str],
        note: Note,
        beside: Sequence[Path],
    ) -> Operation[ForgetReport]:
        """Searches for phrases of it, and tells those apart that what stays says too."""
        files, found = yield from self._search(needles, note, beside)
        shared: list[str] = []
        for needle in found:
            if self._store.said_elsewhere(needle):
                shared.append(needle)
            yield Yield()
        names = {name for needle in found if needle not in shared for name in found[needle]}
        return replace(report, files=files, left=tuple(sorted(names)), shared=len(shared))

    def _search(
        self, needles: Sequence[str], note: Note, beside: Sequence[Path]
    ) -> Operation[tuple[int, dict[str, set[str]]]]:
        """How many files were read, and in which of them each phrase that was found stands."""
        folders = {self._stores.path, self._stores.index.folder.parent}
        files = [
            path
            for folder in sorted(folders)
            for path in sorted(folder.rglob("*"))
            if not any(path.is_relative_to(other) for other in beside) and path.is_file()
        ]
        sought = [(needle, needle.encode()) for needle in needles]
        found: dict[str, set[str]] = {}
        for at, path in enumerate(files):
            note("prove", at, len(files))
            for part in _parts(path):
                for needle, data in sought:
                    if data in part:
                        found.setdefault(needle, set()).add(str(path))
                yield Yield()
        return len(files), found


def _unlearnt(event: LearningEvent, gone: _Gone, heirs: dict[int, int]) -> LearningEvent | None:
    """What is left of an event; None: it was taught by what goes, or about nothing else."""
    query = event.query if event.query not in gone.wordings else heirs.get(event.query)
    first = () if event.kind is LearningKind.REHEARSED else event.sources[:1]
    if query is None or not gone.ids.isdisjoint(first):
        return None
    reading = event.reading
    if reading is not None and not gone.wordings.isdisjoint((reading.asked, reading.cluster)):
        return None
    targets = tuple(target for target in event.targets if target not in gone.ids)
    sources = tuple(source for source in event.sources if source not in gone.ids)
    if event.targets and not targets and event.kind is not LearningKind.READ:
        return None
    return replace(
        event,
        query=query,
        sources=sources,
        targets=targets,
        reading=None if reading is None else _unread(reading, gone),
    )


def _unread(reading: Reading, gone: _Gone) -> Reading:
    seqs = frozenset(gone.seqs)
    if reading.debt is not None and not seqs.isdisjoint(reading.debt):
        judge = "" if reading.unclear else reading.judge  # it said nothing else with this
        reading = msgspec.structs.replace(
            reading, judge=judge, debt=None, passed=(), paid=False, unclear=(), reopened=False
        )
    return msgspec.structs.replace(
        reading,
        yes=_others(reading.yes, seqs),
        light=_others(reading.light, seqs),
        fragments=tuple(pair for pair in reading.fragments if seqs.isdisjoint(pair)),
        anchors=tuple(anchor for anchor in reading.anchors if anchor.target not in gone.ids),
        refuted=tuple(pair for pair in reading.refuted if gone.ids.isdisjoint(pair)),
    )


def _others(seqs: Sequence[int], gone: Collection[int]) -> tuple[int, ...]:
    return tuple(seq for seq in seqs if seq not in gone)


def _needles(texts: Iterator[tuple[str, str]]) -> list[str]:
    """Phrases to search for: from messages and documents spread over all of them, the longest words' neighbourhoods first."""
    low, high = _NEEDLE_BYTES
    phrases: dict[str, None] = {}
    for _, text in texts:
        for line in (text[: len(text) // 2], text[len(text) // 2 :]):
            phrase = _phrase(line.strip(), high)
            if len(phrase.encode()) >= low:
                phrases[phrase] = None
    every = max(1, len(phrases) // _NEEDLES_MAX)
    return list(phrases)[::every][:_NEEDLES_MAX]


def _phrase(text: str, bytes_max: int) -> str:
    """The first line of a text, up to so many bytes, whole characters only."""
    line = text.split("\n", 1)[0].strip()
    return line.encode()[:bytes_max].decode(errors="ignore")


def _parts(path: Path) -> Iterator[bytes]:
    """A file in parts that overlap; one that is gone meanwhile, or that the system locks, has none."""
    try:
        with path.open("rb") as stream:
            kept = b""
            while part := stream.read(_READ_BYTES):
                yield kept + part
                kept = part[-_NEEDLE_BYTES[1] :]
    except OSError:
        return
