"""What the reader does about answers that missed: judges their memories, calls them wrong, and watches the past being read for them.

The line under an answer is driven by `DeepSearchChanged` alone; a button only asks. What is asked for while an answer is written waits
until it is, for a turn and a search do not run together. Event-loop thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from PySide6.QtCore import QObject

from growbox_app.api import Assistant, DeepSearch, ProblemError
from growbox_app.tasks import TaskGroup
from memory.values import NodeId
from ui.panels.conversation import ConversationPanel
from ui.view_models.transcript import Transcript


class PastSearches(QObject):
    """Joins the searches of an assistant and the messages of the conversation panel."""

    def __init__(
        self,
        assistant: Assistant,
        panel: ConversationPanel,
        *,
        tasks: TaskGroup,
        busy: Callable[[], bool],
    ) -> None:
        super().__init__(panel)
        self._busy = busy
        self._later: list[Callable[[], None]] = []
        self._assistant = assistant
        self._panel = panel
        self._tasks = tasks
        view = panel.view
        view.rejected.connect(self._reject)
        view.called_wrong.connect(self._call_wrong)
        view.search_stop_wanted.connect(self._stop)
        view.search_further_wanted.connect(self._go_on)

    def take(self, transcript: Transcript, search: DeepSearch) -> None:
        """Shows how a search stands."""
        place = transcript.take_search(search)
        if place is not None and transcript is self._panel.view.transcript:
            self._panel.view.search_changed(place)

    def tell(self, transcript: Transcript, answer_id: NodeId, *, told: bool) -> None:
        """Shows or hides the line under an answer."""
        place = transcript.place_of(answer_id)
        if place is not None:
            transcript.messages[place].search_told = told
            if transcript is self._panel.view.transcript:
                self._panel.view.search_changed(place)

    def _reject(self, answer_id: NodeId, memory_id: NodeId) -> None:
        self._act("not relevant", lambda: self._assistant.mind.not_relevant(answer_id, memory_id))

    def _call_wrong(self, answer_id: NodeId) -> None:
        self._after_turn("wrong answer", lambda: self._assistant.wrong_answer(answer_id))

    def _go_on(self, answer_id: NodeId) -> None:
        self._after_turn("search further", lambda: self._assistant.search_further(answer_id))

    def turn_ended(self) -> None:
        """Does what waited for the turn."""
        waiting, self._later = self._later, []
        for act in waiting:
            act()

    def _after_turn(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        if self._busy():
            self._later.append(lambda: self._act(name, work))
        else:
            self._act(name, work)

    def _stop(self) -> None:
        self._act("stop search", self._assistant.stop_search)

    def _act(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks.start(name, self._carry_out(work))

    async def _carry_out(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except ProblemError as error:
            self._panel.problem_bar.say(error.problem)
        for place in self._panel.view.visible_views():  # what was pressed may be pressed again
            self._panel.view.search_changed(place)
