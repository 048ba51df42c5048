"""Joins the dream journal, the proposed skills and the permanent goals with the assistant.

Event-loop thread. Pages are asked for one after the other; an answer to what is no longer asked is dropped. What changes memory (undo, a
decision, a goal) runs in the writers and is finished before the assistant shuts down.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QStackedWidget

from growbox_app.api import Assistant, ProblemError
from growbox_app.tasks import TaskGroup
from growbox_app.text import tr
from memory.ports import Clock
from memory.rest_values import Experience, ProposalState
from memory.values import NodeId
from ui.panels.journal_page import JournalPage
from ui.panels.sidebar import Sidebar
from ui.view_models import journal, wording
from ui.view_models.display import title_line
from ui.view_models.journal import Part

EXPERIENCES_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalTasks:
    """`readers` are cancelled before the assistant shuts down, `writers` are not."""

    readers: TaskGroup
    writers: TaskGroup


class JournalFlow(QObject):
    """The journal in the window.

    Signals: `trouble(Problem)`, `left()`, `changed()` when memory was changed here, `note_wanted(NodeId)`.
    """

    trouble = Signal(object)
    left = Signal()
    changed = Signal()
    note_wanted = Signal(object)

    def __init__(
        self,
        assistant: Assistant,
        sidebar: Sidebar,
        pages: QStackedWidget,
        *,
        tasks: JournalTasks,
        clock: Clock,
    ) -> None:
        super().__init__(pages)
        self._assistant = assistant
        self._sidebar = sidebar
        self._pages = pages
        self._tasks = tasks
        self._clock = clock
        self._asked = 0
        self._loading_older = False
        self._adding = False
        self._more_news = False
        self.page = JournalPage()
        pages.addWidget(self.page)
        self._connect()

    def _connect(self) -> None:
        page = self.page
        self._sidebar.journal_wanted.connect(self.open)
        page.left.connect(self.left)
        page.changes.filter_changed.connect(self._fill)
        page.changes.older_wanted.connect(self._load_older)
        page.changes.undo_wanted.connect(self._undo)
        page.changes.note_wanted.connect(self.note_wanted)
        page.skills.note_wanted.connect(self.note_wanted)
        page.skills.why_wanted.connect(lambda at: self._read(lambda: self._show_why(at)))
        page.skills.decided.connect(self._decide)
        rest = self._assistant.rest
        page.goals.added.connect(lambda text: self._write(lambda: self._add_goal(text)))
        page.goals.enabled.connect(
            lambda at, on: self._change_goals(lambda: rest.enable_goal(at, enabled=on))
        )
        page.goals.reworded.connect(
            lambda at, text: self._change_goals(lambda: rest.reword_goal(at, text))
        )
        page.goals.removed.connect(lambda at: self._change_goals(lambda: rest.remove_goal(at)))

    def _read(self, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks.readers.start("journal", self._guarded(work))

    def _write(self, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks.writers.start("journal change", self._guarded(work))

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except ProblemError as error:
            self.trouble.emit(error.problem)

    # -- the page -----------------------------------------------------------------------------------
    def open(self) -> None:
        """Shows the journal; what is new in it is seen by that."""
        self._pages.setCurrentWidget(self.page)
        self.page.changes.list.setFocus()
        self._fill()

    def _is_shown(self) -> bool:
        return self._pages.currentWidget() is self.page

    def show_news(self, count: int) -> None:
        """Something new was written, or the new was seen."""
        self._sidebar.journal_button.show_news(count)
        if count and self._is_shown():
            self._more_news = True
            if not self._adding:
                self._adding = True
                self._read(self._add_news)

    def refresh(self) -> None:
        """The language has changed: what was made of words is made again."""
        if self._is_shown():
            self._fill()

    def _fill(self) -> None:
        self._asked += 1
        asked = self._asked
        self._read(lambda: self._load(asked))

    async def _load(self, asked: int) -> None:
        changes, rest = self.page.changes, self._assistant.rest
        found = await rest.journal(journal.wanted(changes.choice, changes.text))
        if asked != self._asked:
            return
        changes.show_page(found, self._clock.now_ms())
        await self._load_flywheel()
        await self._see(found.unseen)

    async def _add_news(self) -> None:
        """One look after the other, however fast the news come."""
        try:
            while self._more_news:
                self._more_news = False
                await self._add_newer()
        finally:
            self._adding = False

    async def _add_newer(self) -> None:
        changes, asked = self.page.changes, self._asked
        found = await self._assistant.rest.journal(journal.wanted(changes.choice, changes.text))
        if asked == self._asked:
            changes.add_newer(found, self._clock.now_ms())
            await self._load_flywheel()
            await self._see(found.unseen)

    async def _see(self, unseen: int) -> None:
        """Only what lies before the user's eyes is seen."""
        if unseen and self._is_shown() and self.page.isVisible():
            await self._assistant.rest.mark_journal_seen()

    def _load_older(self) -> None:
        if not self._loading_older:
            self._loading_older = True
            self._read(self._add_older)

    async def _add_older(self) -> None:
        changes, asked = self.page.changes, self._asked
        listed = changes.list.journal.entries
        last = listed[-1].id if listed else None
        try:
            found = await self._assistant.rest.journal(
                journal.wanted(changes.choice, changes.text, last)
            )
        finally:
            self._loading_older = False
        if asked == self._asked:
            changes.add_older(found)

    # -- undo ---------------------------------------------------------------------------------------
    def _undo(self, entry_id: int) -> None:
        self._write(lambda: self._take_back(entry_id))

    async def _take_back(self, entry_id: int) -> None:
        changes = self.page.changes
        try:
            done = await self._assistant.rest.undo(entry_id)
        except ProblemError as error:
            changes.detail.say(wording.problem(error.problem))
            return
        changes.mark_undone(entry_id)
        if not done:
            changes.detail.say(tr("journal.undo_gone"))
        self.changed.emit()

    # -- skills and goals -----------------------------------------------------------------------
    async def _load_flywheel(self) -> None:
        rest, now_ms = self._assistant.rest, self._clock.now_ms()
        proposals = await rest.proposals()
        self.page.skills.show_proposals(proposals, now_ms)
        waiting = sum(item.state is ProposalState.OPEN for item in proposals)
        self.page.show_open_proposals(waiting)
        self.page.goals.show_goals(await rest.goals(), now_ms)

    def _decide(self, proposal_id: int, accepted: bool) -> None:
        async def work() -> None:
            await self._assistant.rest.decide_proposal(proposal_id, accepted=accepted)
            await self._load_flywheel()
            self.changed.emit()

        self._write(work)

    async def _show_why(self, proposal_id: int) -> None:
        proposal = self.page.skills.proposal(proposal_id)
        if proposal is None:
            return
        wanted = set(proposal.experiences)
        known = [item for item in await self._assistant.rest.experiences() if item.id in wanted]
        parts = [await self._part_of(item) for item in known[:EXPERIENCES_SHOWN]]
        more = len(known) - len(parts)
        if more > 0:
            parts.append(Part(heading="", text=wording.counted("journal.more", more)))
        gone = Part(heading=tr("skills.why"), text=tr("skills.gone"))
        self.page.skills.show_why(proposal_id, tuple(parts) or (gone,))

    async def _part_of(self, experience: Experience) -> Part:
        ended = tr("skills.experience_ok" if experience.success else "skills.experience_failed")
        heading = f"{title_line(experience.operation)} · {ended}"
        said = (title_line(experience.context, 300), title_line(experience.outcome, 300))
        notes = [await self._link(node_id) for node_id in experience.node_ids[:EXPERIENCES_SHOWN]]
        text = "\n".join(dict.fromkeys(part for part in said if part))
        return Part(heading=heading, text=text, notes=tuple(notes))

    async def _link(self, node_id: NodeId) -> tuple[str, NodeId | None]:
        node = await self._assistant.mind.node(node_id)
        if node is None:
            return tr("skills.note_gone"), None
        return title_line(node.content), node_id

    async def _add_goal(self, text: str) -> None:
        goal = await self._assistant.rest.add_goal(text)
        self.page.goals.take(added=goal is not None)
        await self._load_flywheel()

    def _change_goals(self, work: Callable[[], Awaitable[None]]) -> None:
        async def whole() -> None:
            await work()
            await self._load_flywheel()

        self._write(whole)
