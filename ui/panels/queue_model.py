"""The index queue as an item model: a new snapshot arrives as removals, moves and insertions, so that a selected row stays itself."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from typing_extensions import override

from memory.values import ConversationId, QueueEntry, QueueSnapshot
from ui.view_models.block_words import describe_entry, name_of

AnyIndex = QModelIndex | QPersistentModelIndex
TITLE_CHARACTERS = 120


def longest_ascent(values: Sequence[int]) -> frozenset[int]:
    """Values of a longest strictly ascending subsequence: what may stay where it is while the rest moves."""
    tails: list[int] = []
    chains: list[tuple[int, object]] = []
    for value in values:
        at = bisect_left(tails, value)
        chain = (value, chains[at - 1] if at else None)
        tails[at : at + 1] = [value]
        chains[at : at + 1] = [chain]
    kept: set[int] = set()
    link: object = chains[-1] if chains else None
    while isinstance(link, tuple):
        kept.add(link[0])
        link = link[1]
    return frozenset(kept)


class QueueModel(QAbstractListModel):
    """The entries of a snapshot, hottest first."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries: list[QueueEntry] = []
        self._conversation_id: ConversationId | None = None
        self.now_ms = 0
        self.hottest = 0.0

    @property
    def entries(self) -> tuple[QueueEntry, ...]:
        """What is shown, in order."""
        return tuple(self._entries)

    def show_snapshot(self, snapshot: QueueSnapshot, now_ms: int) -> bool:
        """Takes another snapshot.

        Returns:
            Whether it is the same queue in another state; block ids of another conversation mean other blocks.
        """
        self.now_ms = now_ms
        self.hottest = max((entry.heat for entry in snapshot.entries), default=0.0)
        same = snapshot.conversation_id == self._conversation_id and bool(self._entries)
        if same:
            self._remove_gone({entry.block_id for entry in snapshot.entries})
            self._arrange(snapshot.entries)
            self._entries = list(snapshot.entries)
            if self._entries:
                self.dataChanged.emit(self.index(0), self.index(len(self._entries) - 1))
        else:
            self.beginResetModel()
            self._entries = list(snapshot.entries)
            self._conversation_id = snapshot.conversation_id
            self.endResetModel()
        return same

    def _remove_gone(self, wanted: set[int]) -> None:
        for row in range(len(self._entries) - 1, -1, -1):
            if self._entries[row].block_id not in wanted:
                self.beginRemoveRows(QModelIndex(), row, row)
                del self._entries[row]
                self.endRemoveRows()

    def _arrange(self, wanted: Sequence[QueueEntry]) -> None:
        """Each entry that is new or must move goes right behind the one that it follows."""
        old = {entry.block_id: row for row, entry in enumerate(self._entries)}
        staying = longest_ascent([old[e.block_id] for e in wanted if e.block_id in old])
        ids = [entry.block_id for entry in self._entries]
        place = 0
        for entry in wanted:
            row = old.get(entry.block_id)
            if row is None:
                self._insert(entry, ids, place)
            elif row not in staying:
                self._move(ids, ids.index(entry.block_id), place)
            place = ids.index(entry.block_id) + 1

    def _insert(self, entry: QueueEntry, ids: list[int], at: int) -> None:
        self.beginInsertRows(QModelIndex(), at, at)
        self._entries.insert(at, entry)
        ids.insert(at, entry.block_id)
        self.endInsertRows()

    def _move(self, ids: list[int], source: int, at: int) -> None:
        """Moves a row before the row `at`."""
        if at in (source, source + 1):
            return
        self.beginMoveRows(QModelIndex(), source, source, QModelIndex(), at)
        target = at - 1 if at > source else at
        self._entries.insert(target, self._entries.pop(source))
        ids.insert(target, ids.pop(source))
        self.endMoveRows()

    @override
    def rowCount(self, parent: AnyIndex | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._entries)

    @override
    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid() or index.row() >= len(self._entries):
            return None
        entry = self._entries[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return name_of(entry.title, entry.kind, TITLE_CHARACTERS)
            case Qt.ItemDataRole.ToolTipRole:
                title = name_of(entry.title, entry.kind, TITLE_CHARACTERS)
                return f"{title}\n{describe_entry(entry, self.now_ms)}"
            case Qt.ItemDataRole.AccessibleDescriptionRole:
                return describe_entry(entry, self.now_ms)
            case Qt.ItemDataRole.AccessibleTextRole:
                title = name_of(entry.title, entry.kind, TITLE_CHARACTERS)
                return f"{title}, {describe_entry(entry, self.now_ms)}"
            case Qt.ItemDataRole.UserRole:
                return entry
            case _:
                return None
