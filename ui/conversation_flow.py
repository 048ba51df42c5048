"""Runs conversations: questions, follow-ups that wait, attachments, citations, drafts, opening and finding.

Joins the `Assistant` and the conversation panel on the event-loop thread. One turn runs at a time; what is sent meanwhile waits in order. A
turn goes on when another conversation is shown. The stored conversation is truth: what a failed turn leaves on the screen is what the
store has, plus one honest line. What was sent and not accepted is never dropped: it waits, or returns to the input or to its draft.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from growbox_app.api import (
    AskRequest,
    Assistant,
    Attachment,
    DeepSearchChanged,
    PhaseChanged,
    Problem,
    ProblemCode,
    ProblemError,
    TextDelta,
    TurnAccepted,
    TurnEvent,
    TurnFinished,
)
from growbox_app.approval_face import ApprovalAsked, ApprovalEnded
from growbox_app.tasks import TaskGroup
from growbox_app.text import tr
from memory.ports import Clock
from memory.values import Conversation, NodeId, ProjectId, Role
from ui.ingest_flow import belongs_in_memory, is_book
from ui.panels.conversation import ConversationPanel
from ui.past_searches import PastSearches
from ui.view_models.enclosures import Enclosure, attachments_of, cited_of
from ui.view_models.transcript import Message, Transcript, message_of
from ui.window_state import NEW_CONVERSATION, WindowState

DRAFT_DELAY_MS = 800
FILE_BYTES_MAX = 20_000_000
MESSAGES_PER_SLICE = 40
# Another face may be asking; nothing tells when it is done.
RETRY_MS = 1_000


@dataclass(slots=True, kw_only=True, eq=False)
class Waiting:
    """A question that was sent and has not been accepted yet. `coming` are attachments that it still waits for.

    `again` names an answer whose question is to be answered once more; such a question was never typed and returns to no draft.
    """

    transcript: Transcript
    text: str
    enclosures: tuple[Enclosure, ...] = ()
    project_id: ProjectId | None = None
    again: NodeId | None = None
    coming: list[asyncio.Task[Attachment | None]] = field(default_factory=list)
    was_queued: bool = False


def read_text_file(path: Path) -> str | None:
    """A text file's content; None when it cannot be read, is not text or too large."""
    try:
        if not path.is_file() or path.stat().st_size > FILE_BYTES_MAX:
            return None
        content = path.read_bytes()
        return None if b"\0" in content[:4096] else content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None


def joined(*texts: str) -> str:
    """Texts one below the other, a blank line between them."""
    return "\n\n".join(text for text in texts if text)


def askable(text: str) -> bool:
    """Whether there is a word in it, as the agent loop asks of a question without attachments."""
    return any(character.isalnum() for character in text)


def draft_key(transcript: Transcript) -> str:
    """Under which name a conversation's draft is kept."""
    return transcript.conversation_id or NEW_CONVERSATION


class ConversationFlow(QObject):
    """The running conversations.

    Signals: `opened(ConversationId | None)`, `busy_changed(ConversationId | None)`, `waiting_changed(ConversationId | None)` (an
    approval is open there), `asked(Approval)`, `memory_touched()`, `ingest_wanted(list[Path])`.
    """

    opened = Signal(object)
    busy_changed = Signal(object)
    waiting_changed = Signal(object)
    asked = Signal(object)
    memory_touched = Signal()
    ingest_wanted = Signal(object)

    def __init__(
        self,
        assistant: Assistant,
        panel: ConversationPanel,
        *,
        tasks: TaskGroup,
        clock: Clock,
        state: WindowState,
    ) -> None:
        super().__init__(panel)
        self._assistant = assistant
        self._panel = panel
        self._tasks = tasks
        self._clock = clock
        self._state = state
        self._searches = PastSearches(
            assistant, panel, tasks=tasks, busy=lambda: self._live is not None
        )
        self.project_id: ProjectId | None = None
        self._live: Transcript | None = None
        self._waiting: list[Waiting] = []
        self._attaching: dict[asyncio.Task[Attachment | None], Transcript] = {}
        self._opened = False
        self._closing = False
        self._openings = 0
        self._found = -1
        self._writing = False
        self._draft_timer = QTimer(self)
        self._draft_timer.setSingleShot(True)
        self._draft_timer.setInterval(DRAFT_DELAY_MS)
        self._draft_timer.timeout.connect(self.keep_draft)
        self._retry = QTimer(self)
        self._retry.setSingleShot(True)
        self._retry.setInterval(RETRY_MS)
        self._retry.timeout.connect(self._next)
        self._connect()

    def _connect(self) -> None:
        panel = self._panel
        panel.composer.submitted.connect(self.submit)
        panel.composer.recall_wanted.connect(self._recall_last)
        panel.composer.large_text.connect(self._attach_paste)
        panel.composer.files_dropped.connect(self.take_files)
        panel.composer.changed.connect(self._typed)
        panel.stop_wanted.connect(self.stop)
        panel.queue_row.withdrawn.connect(self._withdraw)
        panel.queue_row.dropped.connect(self._drop)
        panel.empty_state.chosen.connect(self._try_suggestion)
        panel.find_bar.moved.connect(self._find)
        panel.find_bar.closed.connect(self._close_find)
        panel.view.cite_wanted.connect(panel.composer.cite)
        panel.view.again_wanted.connect(self._answer_again)
        panel.view.approval_answered.connect(self._assistant.answer_approval)
        panel.view.restore_wanted.connect(self._restore)

    @property
    def shown(self) -> Transcript:
        """The conversation on the screen."""
        return self._panel.view.transcript

    @property
    def busy(self) -> bool:
        """Whether an answer is being made."""
        return self._live is not None

    @property
    def opened_once(self) -> bool:
        """Whether a conversation was shown, or begun by a question; before that, the input belongs to none."""
        return self._opened

    # -- asking -------------------------------------------------------------------------------
    def submit(self) -> None:
        """Sends what is in the input; while an answer is made it waits its turn."""
        composer = self._panel.composer
        coming = [task for task, at in self._attaching.items() if self._is_shown(at)]
        text = composer.text().strip()
        with_files = bool(attachments_of(composer.enclosures) or coming)
        if not text or not (with_files or askable(text)):
            composer.hint("composer.ask_with_file" if with_files else "composer.empty")
            return
        item = Waiting(
            transcript=self.shown,
            text=text,
            enclosures=tuple(composer.enclosures),
            project_id=self.project_id,
            coming=coming,
            was_queued=self.busy,
        )
        self._opened = True
        self._waiting.append(item)
        composer.show_text("")
        composer.show_enclosures([])
        self._panel.problem_bar.say(None)
        self.keep_draft()
        if coming:
            for task in coming:
                del self._attaching[task]
            self._tasks.start("question with attachments", self._gather(item))
        self._next()

    async def _gather(self, item: Waiting) -> None:
        """Waits for a question's attachments; when one failed, the question returns."""
        results = await asyncio.gather(*item.coming, return_exceptions=True)
        if item not in self._waiting:  # it was taken back, and its attachments with it
            return
        item.coming = []
        found = [result for result in results if isinstance(result, Attachment)]
        item.enclosures += tuple(found)
        if len(found) < len(results):
            self._waiting.remove(item)
            self._return(item)
        self._next()

    def _next(self) -> None:
        """Starts the first waiting question when none runs."""
        may_start = self._live is None and not self._closing
        if may_start and self._waiting and not self._waiting[0].coming:
            first = self._waiting.pop(0)
            self._live = first.transcript
            self._tasks.start("turn", self._ask(first))
        self._show_queue()

    def _show_queue(self) -> None:
        self._panel.queue_row.show_queue(tuple(item.text for item in self._waiting))

    async def _ask(self, item: Waiting) -> None:
        transcript = item.transcript
        trouble: Problem | None = None
        accepted = False
        try:
            async for event in self._events_of(item):
                accepted = accepted or isinstance(event, TurnAccepted)
                self._take(transcript, event, item)
        except ProblemError as error:
            trouble = error.problem
        finally:
            self._end(transcript, trouble)
            if not accepted:
                self._give_back(item, trouble)
        if accepted:
            self._next()

    def _events_of(self, item: Waiting) -> AsyncIterator[TurnEvent]:
        if item.again is not None:
            return self._assistant.answer_again(item.again)
        conversation = item.transcript.conversation
        request = AskRequest(
            text=item.text,
            conversation_id=item.transcript.conversation_id,
            project_id=item.project_id if conversation is None else conversation.project_id,
            attachments=attachments_of(item.enclosures),
            cited=cited_of(item.enclosures),
        )
        return self._assistant.ask(request)

    def _take(self, transcript: Transcript, event: TurnEvent, item: Waiting) -> None:
        if isinstance(event, TurnAccepted):
            self._accept(transcript, event, item)
            return
        transcript.take(event)
        self._say_waiting(transcript, event)
        if transcript is not self.shown:
            return
        if isinstance(event, PhaseChanged):
            self._panel.show_phase(event)
        elif isinstance(event, TurnFinished):
            self._panel.view.finish_stream()
        else:
            self._panel.view.stream_changed()
        if not isinstance(event, TextDelta | PhaseChanged):
            self.memory_touched.emit()

    def _say_waiting(self, transcript: Transcript, event: TurnEvent) -> None:
        """Calls the user to an approval, wherever he looks; the focus stays where it is."""
        if isinstance(event, ApprovalAsked):
            self.waiting_changed.emit(transcript.conversation_id)
            self.asked.emit(event.approval)
        elif isinstance(event, ApprovalEnded):
            self.waiting_changed.emit(None)
        else:
            return
        if transcript is self.shown:
            self._panel.show_phase(transcript.phase)

    def _restore(self, checkpoint: str, force: bool) -> None:
        self._tasks.start("restore", self._restore_in(self.shown, checkpoint, force=force))

    async def _restore_in(self, transcript: Transcript, checkpoint: str, *, force: bool) -> None:
        """Undoes a call; when that fails, it can be wished again."""
        try:
            report = await self._assistant.restore(checkpoint, force=force)
        except ProblemError as error:
            self._panel.problem_bar.say(error.problem)
        else:
            transcript.take_restored(checkpoint, report)
        await self._look_what_stands(transcript)

    async def _look_what_stands(self, transcript: Transcript) -> None:
        """Takes which changes are undone now, whoever has undone them, and when."""
        checkpoints = transcript.checkpoints()
        if checkpoints:
            transcript.take_undone(await self._assistant.undone(checkpoints))
        self._notes_changed(transcript)

    def _notes_changed(self, transcript: Transcript) -> None:
        if transcript is self.shown:
            self._panel.view.notes_changed()

    def _accept(self, transcript: Transcript, event: TurnAccepted, item: Waiting) -> None:
        is_new = transcript.conversation is None
        if is_new and transcript is self.shown:
            self.keep_draft()
            self._move_draft(NEW_CONVERSATION, event.conversation.id)
        transcript.conversation = event.conversation
        transcript.show_question(event.question, event.answer_id, attachments_of(item.enclosures))
        if item.again is not None:
            self._searches.tell(transcript, item.again, told=False)
        for waiting in self._waiting:
            if waiting.transcript is transcript:
                waiting.project_id = event.conversation.project_id
        if transcript is self.shown:
            self._panel.view.now_ms = self._clock.now_ms()
            self._panel.view.messages_added(follow=not item.was_queued)
            self._panel.view.notes_changed()
            self._panel.show_phase(transcript.phase)
            self._panel.refresh_page()
            if is_new:
                self._state.keep_last_conversation(event.conversation.id)
                self.opened.emit(event.conversation.id)
        self.busy_changed.emit(event.conversation.id)
        self.memory_touched.emit()

    def _end(self, transcript: Transcript, trouble: Problem | None) -> None:
        """The turn is over, however it ended."""
        self._live = None
        if transcript.running:
            transcript.abandon(trouble or Problem(code=ProblemCode.INTERNAL))
        if transcript is self.shown:
            self._panel.view.finish_stream()
            self._panel.show_phase(None)
        self.busy_changed.emit(None)
        self.waiting_changed.emit(None)
        self.memory_touched.emit()
        self._searches.turn_ended()

    def _give_back(self, item: Waiting, trouble: Problem | None) -> None:
        """A question that was not accepted waits on or returns to the input, so that nothing typed is lost."""
        code = trouble.code if trouble is not None else None
        busy, empty = code is ProblemCode.BUSY, code is ProblemCode.EMPTY_QUESTION
        input_is_free = self._is_shown(item.transcript) and not self._panel.composer.text()
        if self._closing or empty or (input_is_free and not busy):
            self._return(item)
        else:
            item.was_queued = True
            self._waiting.insert(0, item)
        if busy:
            self._retry.start()
        elif trouble is not None:
            self._panel.problem_bar.say(trouble)
        if empty:
            self._next()
        self._show_queue()

    def _withdraw(self, place: int) -> None:
        self._return(self._waiting.pop(place))
        self._show_queue()

    def _drop(self, place: int) -> None:
        """Forgets a question that waits; the user has said so."""
        item = self._waiting.pop(place)
        if item.again is not None:
            self._return(item)  # the offer under its answer
        self._show_queue()

    def _return(self, item: Waiting) -> None:
        for task in item.coming:
            self._attaching[task] = item.transcript
            if task.done():
                self._attached(task)
        if item.again is not None:
            self._searches.tell(item.transcript, item.again, told=True)
            item.transcript.offer_again(item.again, offered=True)
            self._notes_changed(item.transcript)
            return
        self._hand_in(item.transcript, item.text, item.enclosures)

    def _hand_in(
        self, transcript: Transcript, text: str, enclosures: tuple[Enclosure, ...]
    ) -> None:
        """Adds text and enclosures to what is unsent in a conversation: in the input, or in its draft."""
        if self._is_shown(transcript) and not self._closing:
            composer = self._panel.composer
            hint = composer.hint_key
            if text:
                composer.show_text(joined(composer.text(), text))
            composer.hint(hint)
            composer.show_enclosures([*composer.enclosures, *enclosures])
            self._draft_timer.start()
            return
        key = draft_key(transcript)
        kept_text, kept = self._state.draft(key)
        self._state.keep_draft(key, joined(text, kept_text), [*enclosures, *kept])
        self._state.save()

    def engine_ready(self) -> None:
        """Sends what still waits after an outage."""
        self._next()

    def stop(self) -> None:
        """Stops the running answer."""
        if self._live is not None:
            self._panel.show_stopping()
            self._tasks.start("stop", self._assistant.stop())

    # -- attaching ----------------------------------------------------------------------------
    def _attach_paste(self, text: str) -> None:
        self._start_attaching(self._store(tr("composer.pasted_name"), text))

    def take_files(self, paths: list[Path]) -> None:
        """Attaches a few small texts; anything else that was dropped is for the memory."""
        if belongs_in_memory(paths):
            self.ingest_wanted.emit(paths)
        else:
            self.attach_files(paths)

    def attach_files(self, paths: list[Path]) -> None:
        """Attaches text files; a book among them is for the memory."""
        books = [path for path in paths if is_book(path)]
        if books:
            self.ingest_wanted.emit(books)
        for path in (path for path in paths if path not in books):
            self._start_attaching(self._store_file(path))

    def _start_attaching(self, work: Coroutine[object, object, Attachment | None]) -> None:
        """Stores something for the conversation shown now, whichever is shown when it is done."""
        task = self._tasks.start("attach", work)
        self._attaching[task] = self.shown
        task.add_done_callback(self._attached)

    def _attached(self, task: asyncio.Task[Attachment | None]) -> None:
        # A question that was sent meanwhile has taken the task, and with it what comes of it.
        transcript = self._attaching.pop(task, None)
        if transcript is None or task.cancelled() or task.exception() is not None:
            return
        attachment = task.result()
        if attachment is not None:
            self._hand_in(transcript, "", (attachment,))

    async def _store_file(self, path: Path) -> Attachment | None:
        text = await asyncio.get_running_loop().run_in_executor(None, read_text_file, path)
        if text is None:
            self._panel.composer.hint("composer.not_text")
            return None
        return await self._store(path.name, text)

    async def _store(self, name: str, text: str) -> Attachment | None:
        try:
            return await self._assistant.attach(name=name, text=text)
        except ProblemError as error:
            self._panel.problem_bar.say(error.problem)
            return None

    # -- drafts and small comforts ----------------------------------------------------------------
    def _is_shown(self, transcript: Transcript) -> bool:
        """Whether the input holds this conversation's draft."""
        return draft_key(transcript) == draft_key(self.shown)

    def _typed(self) -> None:
        """With the first letter of a question the model begins to read what stands before it."""
        self._draft_timer.start()
        writing = bool(self._panel.composer.text())
        if writing and not self._writing:
            self._prepare()
        self._writing = writing

    def choose_project(self, project_id: ProjectId | None) -> None:
        """Takes the project in which new conversations begin: their prompt is another."""
        changed, self.project_id = project_id != self.project_id, project_id
        if changed and self._opened and self.shown.conversation_id is None:
            self._prepare()

    def _prepare(self) -> None:
        self._assistant.prepare(self.shown.conversation_id, project_id=self.project_id)

    def keep_draft(self) -> None:
        """Keeps what is in the input for the shown conversation."""
        self._draft_timer.stop()
        if self._opened and not self._closing:
            composer = self._panel.composer
            self._state.keep_draft(draft_key(self.shown), composer.text(), composer.enclosures)

    def _move_draft(self, old: str, new: str) -> None:
        self._state.keep_draft(new, *self._state.draft(old))
        self._state.keep_draft(old, "", [])

    def close(self) -> None:
        """Sends nothing more; what still waits goes into the drafts, before what is typed there."""
        self.keep_draft()
        self._closing = True
        for item in reversed(self._waiting):
            self._return(item)
        self._waiting.clear()

    def _restore_draft(self) -> None:
        text, enclosures = self._state.draft(draft_key(self.shown))
        self._panel.composer.show_text(text)
        self._panel.composer.show_enclosures(enclosures)
        self._draft_timer.stop()

    def _recall_last(self) -> None:
        asked = [message.text for message in self.shown.messages if message.role is Role.USER]
        if asked:
            self._panel.composer.show_text(asked[-1])

    def _try_suggestion(self, text: str) -> None:
        self._panel.composer.insert_text(text)
        self._panel.input.setFocus()

    # -- the past -----------------------------------------------------------------------------
    def _answer_again(self, answer_id: NodeId) -> None:
        """Asks the question of an answer again; it waits its turn like any other."""
        transcript = self.shown
        place = transcript.place_of(answer_id)
        asked = [message for message in transcript.messages[:place] if message.role is Role.USER]
        text = asked[-1].text if asked else ""
        self._waiting.append(
            Waiting(transcript=transcript, text=text, again=answer_id, was_queued=self.busy)
        )
        transcript.offer_again(answer_id, offered=False)
        self._notes_changed(transcript)
        self._next()

    def search_changed(self, change: DeepSearchChanged) -> None:
        """Takes news of the search of the past for an answer, wherever its conversation is at work."""
        known = {id(at): at for at in (self.shown, *self._at_work())}
        for transcript in known.values():
            if transcript.conversation_id == change.conversation_id:
                self._searches.take(transcript, change.search)

    def _at_work(self) -> tuple[Transcript, ...]:
        """The conversations that a turn runs or waits in."""
        waiting = tuple(item.transcript for item in self._waiting)
        return (*waiting, self._live) if self._live is not None else waiting

    # -- opening ------------------------------------------------------------------------------
    def new_conversation(self) -> None:
        """Shows an empty conversation; it is stored with its first question."""
        self.keep_draft()
        self._openings += 1
        self._show(Transcript())
        self._panel.input.setFocus()

    def _show(self, transcript: Transcript) -> None:
        self._panel.find_bar.hide()
        self._panel.problem_bar.say(None)
        # What was typed while the window was still being filled belongs to the first conversation it shows.
        typed = "" if self._opened else self._panel.composer.text()
        self._opened = True
        self._panel.show_transcript(transcript, self._clock.now_ms())
        self._restore_draft()
        if typed:
            self._hand_in(transcript, typed, ())
        self._state.keep_last_conversation(transcript.conversation_id or "")
        self._prepare()
        self.opened.emit(transcript.conversation_id)

    async def open(self, conversation: Conversation, node_id: NodeId | None = None) -> None:
        """Shows a stored conversation, at a message when one is named."""
        self._openings += 1
        opening = self._openings
        first = not self._opened
        transcript = await self._transcript_of(conversation)
        if opening != self._openings or (first and self._opened):
            return  # another was chosen, or the first question asked, meanwhile
        self.keep_draft()
        self._show(transcript)
        self._tasks.start("what stands", self._look_what_stands(transcript))
        if node_id is not None:
            places = [
                at for at, message in enumerate(transcript.messages) if message.node_id == node_id
            ]
            if places:
                self._panel.view.scroll_to(places[0])

    async def _transcript_of(self, conversation: Conversation) -> Transcript:
        """What a turn runs or waits in is shown as it is; anything else is read anew."""
        for transcript in self._at_work():
            if transcript.conversation_id == conversation.id:
                return transcript
        transcript = Transcript(conversation)
        messages: list[Message] = []
        for at, node in enumerate(await self._assistant.library.messages(conversation.id)):
            if at % MESSAGES_PER_SLICE == MESSAGES_PER_SLICE - 1:
                await asyncio.sleep(0)
            if node.role is Role.ASSISTANT:
                memories, stats = self._assistant.trace_of(node)
                calls = self._assistant.calls_of(node)
                messages.append(message_of(node, memories, stats, calls=calls))
                messages[-1].search = self._assistant.deep_search_of(node)
            else:
                messages.append(message_of(node))
        if messages:
            messages[-1].search_told = messages[-1].search is not None
            messages[-1].offers_again = True
        transcript.messages = messages
        return transcript

    def title_changed(self, conversation: Conversation) -> None:
        """Takes a new title of a conversation that is open."""
        if self.shown.conversation_id == conversation.id:
            self.shown.conversation = conversation
            self._panel.refresh_page()

    # -- finding ------------------------------------------------------------------------------
    def _find(self, words: str, step: int) -> None:
        places = self.shown.find(words)
        if not places:
            self._panel.find_bar.say_count(0, 0)
            return
        self._found = 0 if step == 0 else (self._found + step) % len(places)
        self._found = min(self._found, len(places) - 1)
        self._panel.find_bar.say_count(self._found + 1, len(places))
        self._panel.view.show_match(places[self._found], words)

    def _close_find(self) -> None:
        self._panel.find_bar.hide()
        self._panel.input.setFocus()
