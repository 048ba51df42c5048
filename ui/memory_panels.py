"""Keeps the panels and the status line true: pulls snapshots when memory changed, at most a few times a second.

What costs more than a count (stain map, pointer graph, the dates of the ledger) is pulled only while its panel is in sight. Also carries
out what the panels offer: pin, evict, open a source, go from memory to memory. Event-loop thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from growbox_app.api import Assistant, Phase, PhaseChanged, ProblemError
from growbox_app.tasks import TaskGroup
from memory.ports import Clock
from memory.values import ConversationId, LedgerSnapshot, Node, NodeId
from ui.panels.context_region import ContextRegionPanel
from ui.panels.dock import PanelDock
from ui.panels.fatigue_meter import FatiguePanel
from ui.panels.fragment_ledger import FragmentLedgerPanel
from ui.panels.index_queue import IndexQueuePanel
from ui.panels.pointer_graph import PointerGraphPanel
from ui.panels.source_dialog import SourceDialog
from ui.panels.stain_map import StainMapPanel
from ui.panels.status_line import StatusLine
from ui.view_models import ledger as ledger_words
from ui.view_models import wording
from ui.view_models.fatigue import mood

PULL_MS = 150
# Ends of fragments whose dates are looked up in one pull; a place of the timeline never changes its date.
DATES_PER_PULL = 64


class MemoryPanels(QObject):
    """The panels of the memory.

    Signals: `trouble(Problem)`, `conversation_wanted(ConversationId, NodeId)`, `mood_changed(str word, float total)`.
    """

    trouble = Signal(object)
    conversation_wanted = Signal(object, object)
    mood_changed = Signal(str, float)

    def __init__(
        self,
        assistant: Assistant,
        status_line: StatusLine,
        *,
        tasks: TaskGroup,
        clock: Clock,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._assistant = assistant
        self._status_line = status_line
        self._tasks = tasks
        self._clock = clock
        self._window = parent
        self._conversation_id: ConversationId | None = None
        self._pulling = False
        self._stale = False
        self._closed = False
        self.region = ContextRegionPanel()
        self.queue = IndexQueuePanel()
        self.ledger = FragmentLedgerPanel()
        self.fatigue = FatiguePanel()
        self.stains = StainMapPanel()
        self.pointers = PointerGraphPanel()
        self.docks: dict[str, PanelDock] = {}
        for key, panel in (
            ("region", self.region),
            ("queue", self.queue),
            ("ledger", self.ledger),
            ("fatigue", self.fatigue),
            ("stains", self.stains),
            ("pointers", self.pointers),
        ):
            self.docks[key] = PanelDock(key, panel)
            panel.summary_changed.connect(self.docks[key].show_summary)
        self._pointer_node: NodeId | None = None
        self._dates: dict[int, int | None] = {}
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PULL_MS)
        self._timer.timeout.connect(self._start_pull)
        self._connect()

    def _connect(self) -> None:
        for key in ("ledger", "stains", "pointers"):
            self.docks[key].visibilityChanged.connect(lambda _shown: self.refresh())
        self.region.source_wanted.connect(self.open_source)
        self.queue.source_wanted.connect(self.open_source)
        self.queue.pin_wanted.connect(self._pin)
        self.queue.evict_wanted.connect(self._evict)
        self.queue.node_chosen.connect(self.pointers.start_at)
        self.ledger.note_chosen.connect(self.open_note)
        self.stains.note_chosen.connect(self.open_note)
        self.pointers.node_wanted.connect(self._put_in_the_middle)
        self.pointers.source_wanted.connect(self.open_source)

    def close(self) -> None:
        """Pulls nothing any more."""
        self._closed = True
        self._timer.stop()

    def show_conversation(self, conversation_id: ConversationId | None) -> None:
        """Shows the memory of another conversation."""
        self._conversation_id = conversation_id
        self.refresh()

    def show_phase(self, phase: PhaseChanged | None) -> None:
        """Shows in the region what the running turn reads; None when no turn runs in the shown conversation."""
        if phase is None or phase.phase is Phase.RECALLING:
            self.region.show_unread(None)
        elif phase.phase is not Phase.TOOL and phase.total:
            self.region.show_unread(phase.total)

    def refresh(self) -> None:
        """Asks for fresh snapshots soon; many calls make one pull."""
        if not self._closed and not self._timer.isActive():
            self._timer.start()

    def _start_pull(self) -> None:
        if self._pulling:
            self._stale = True
            return
        self._tasks.start("snapshots", self.pull())

    async def pull(self) -> None:
        """Pulls all snapshots and shows them."""
        self._pulling = True
        try:
            await self._pull_once()
        except ProblemError as error:
            if not self._closed:  # the memory may be gone before the window is
                self.trouble.emit(error.problem)
        finally:
            self._pulling = False
        if self._stale:
            self._stale = False
            self.refresh()

    async def _pull_once(self) -> None:
        conversation_id = self._conversation_id
        now_ms = self._clock.now_ms()
        self.region.show_snapshot(await self._assistant.mind.region(conversation_id), now_ms)
        self.queue.show_snapshot(await self._assistant.mind.queue(conversation_id), now_ms)
        ledger = await self._assistant.mind.ledger()
        if self._in_sight("ledger"):
            await self._look_up_dates(ledger)
        self.ledger.show_snapshot(ledger, now_ms, self._known_dates())
        self.docks["ledger"].show_figure(wording.number(len(ledger.open)))
        fatigue = await self._assistant.mind.fatigue()
        self.fatigue.show_snapshot(fatigue)
        self.docks["fatigue"].show_figure(f"{fatigue.total:.2f}")
        self.mood_changed.emit(mood(fatigue.total), fatigue.total)
        self._status_line.show_statistics(await self._assistant.mind.statistics())
        if self._in_sight("stains"):
            self.stains.show_snapshot(await self._assistant.mind.stains(), now_ms)
        if self._in_sight("pointers"):
            await self._pull_pointers()

    def _in_sight(self, key: str) -> bool:
        return not self.docks[key].visibleRegion().isEmpty()

    async def _look_up_dates(self, ledger: LedgerSnapshot) -> None:
        unknown = [seq for seq in ledger_words.ends(ledger) if seq not in self._dates]
        for seq in unknown[:DATES_PER_PULL]:
            node = await self._assistant.mind.node_at(seq)
            self._dates[seq] = node.created_at_ms if node is not None else None
        self._stale = self._stale or len(unknown) > DATES_PER_PULL

    def _known_dates(self) -> dict[int, int]:
        return {seq: moment for seq, moment in self._dates.items() if moment is not None}

    def show_panel(self, key: str) -> None:
        """Brings a panel to the front."""
        self.docks[key].show()
        self.docks[key].raise_()
        self.docks[key].widget().setFocus()

    # -- the pointer graph --------------------------------------------------------------------
    def show_pointers(self, node_id: NodeId) -> None:
        """Shows the pointer graph around a memory."""
        dock = self.docks["pointers"]
        dock.show()
        dock.raise_()
        self.pointers.start_at(node_id)

    def _put_in_the_middle(self, node_id: NodeId) -> None:
        self._pointer_node = node_id
        self._tasks.start("pointers", self._guarded(self._pull_pointers))

    async def _pull_pointers(self) -> None:
        node_id = self._pointer_node
        if node_id is None:
            self.pointers.show_snapshot(None, self._clock.now_ms())
            return
        snapshot = await self._assistant.mind.neighbourhood(node_id)
        if node_id == self._pointer_node:
            self.pointers.show_snapshot(snapshot, self._clock.now_ms())

    # -- what the panels offer ----------------------------------------------------------------
    def _pin(self, block_id: int, pinned: bool) -> None:
        conversation_id = self._conversation_id
        if conversation_id is not None:
            self._act(lambda: self._assistant.mind.pin(conversation_id, block_id, pinned=pinned))

    def _evict(self, block_id: int) -> None:
        conversation_id = self._conversation_id
        if conversation_id is not None:
            self._act(lambda: self._assistant.mind.evict(conversation_id, block_id))

    def _act(self, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks.start("panel action", self._carry_out(work))

    async def _carry_out(self, work: Callable[[], Awaitable[None]]) -> None:
        await self._guarded(work)
        self.refresh()

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except ProblemError as error:
            self.trouble.emit(error.problem)

    def open_source(self, node_id: NodeId) -> None:
        """Shows where a memory came from."""
        self._open(lambda: self._assistant.mind.node(node_id))

    def open_note(self, seq: int) -> None:
        """Shows the memory at a place of the timeline."""
        self._open(lambda: self._assistant.mind.node_at(seq))

    def _open(self, find: Callable[[], Awaitable[Node | None]]) -> None:
        self._tasks.start("open source", self._guarded(lambda: self._show_source(find)))

    async def _show_source(self, find: Callable[[], Awaitable[Node | None]]) -> None:
        node = await find()
        if node is None:
            return
        conversations = {item.id: item for item in await self._assistant.library.conversations()}
        conversation = conversations.get(node.conversation_id) if node.conversation_id else None
        dialog = SourceDialog(node, conversation, self._clock.now_ms(), self._window)
        dialog.conversation_wanted.connect(self.conversation_wanted)
        dialog.show()
