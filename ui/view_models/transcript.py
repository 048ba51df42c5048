"""What a conversation shows: its messages, the answer being written, and the marks under each answer.

Plain state on the event-loop thread. The stored nodes are truth; this is only what the reader sees of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

from growbox_app.api import (
    Attachment,
    DeepSearch,
    DeepSearchState,
    MemoriesFound,
    Notice,
    Phase,
    PhaseChanged,
    Problem,
    TextDelta,
    ToolCalled,
    ToolStarted,
    TurnEvent,
    TurnFinished,
    TurnStats,
    UsedMemory,
)
from growbox_app.approval_face import (
    Approval,
    ApprovalAsked,
    ApprovalEnded,
)
from growbox_app.shadow.values import RestoreReport
from memory.values import Conversation, ConversationId, Node, NodeId, NodeStatus, Role
from ui.view_models.display import head
from ui.view_models.markdown import Block, Paragraph, Span, StreamingMarkdown, parse


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A checkpoint was restored, or not, for conflicts. `again`: it undid an undoing, so the change is there again."""

    checkpoint: str
    report: RestoreReport
    again: bool = False


Note: TypeAlias = Problem | ToolStarted | ToolCalled | Approval | ApprovalEnded | Restored
"""What stands under an answer, in order. A running call and an open approval are replaced, in their place, by how they ended."""


@dataclass(slots=True, kw_only=True, eq=False)
class Message:
    """One message as it is shown. `stream` is set while it is being written.

    `search` is the search of the past for an answer; `search_told` says whether it stands under the answer or in its trace only.
    `undone` are the checkpoints of its notes that are undone now, as the assistant knows. `offers_again`: its question can be asked
    again, where a note of how it ended says so.
    """

    node_id: NodeId
    role: Role
    created_at_ms: int
    text: str = ""
    status: NodeStatus = NodeStatus.COMPLETE
    memories: tuple[UsedMemory, ...] = ()
    stats: TurnStats = field(default_factory=TurnStats)
    notes: list[Note] = field(default_factory=list)
    attachments: tuple[Attachment, ...] = ()
    stream: StreamingMarkdown | None = None
    search: DeepSearch | None = None
    search_told: bool = False
    undone: frozenset[str] = frozenset()
    offers_again: bool = False

    @property
    def live(self) -> bool:
        """Whether it is still being written."""
        return self.stream is not None

    @property
    def search_line(self) -> bool:
        """Whether the search has something to say under the answer; what was found before it is in the trace only."""
        search = self.search
        return search is not None and self.search_told and search.state is not DeepSearchState.USED

    def blocks(self) -> tuple[tuple[Block, ...], bool]:
        """The whole text as blocks, and whether it was too long to show in full.

        What the user wrote is shown as written; only answers are read as Markdown.
        """
        shown, cut = head(self.text)
        if self.role is Role.USER:
            return ((Paragraph(spans=(Span(text=shown),)),) if shown else ()), cut
        return parse(shown), cut


# How a stored question names its attachments, one line each before the text.
_ATTACHMENT_LINE = re.compile(r"\[(?P<name>.+) · (?P<size>\d+) B · (?P<node>\S+)\]")


def split_attachments(node: Node) -> tuple[str, tuple[Attachment, ...]]:
    """The question's own words and its attachments; a line that only looks like an attachment stays text."""
    lines = node.content.split("\n")
    found: list[Attachment] = []
    while lines and (match := _ATTACHMENT_LINE.fullmatch(lines[0])):
        node_id = NodeId(match["node"])
        if node_id not in node.derived_from:
            break
        found.append(Attachment(node_id=node_id, name=match["name"], size_bytes=int(match["size"])))
        lines.pop(0)
    return "\n".join(lines), tuple(found)


def message_of(
    node: Node,
    memories: tuple[UsedMemory, ...] = (),
    stats: TurnStats | None = None,
    *,
    calls: tuple[ToolCalled | ApprovalEnded | Problem, ...] = (),
) -> Message:
    """A stored message as it is shown."""
    text, attachments = split_attachments(node)
    return Message(
        node_id=node.id,
        role=node.role,
        created_at_ms=node.created_at_ms,
        text=text,
        status=node.status,
        memories=memories,
        stats=stats or TurnStats(),
        attachments=attachments,
        notes=list(calls),
    )


def checkpoints_of(notes: list[Note]) -> frozenset[str]:
    """What can be restored from these notes."""
    found = {note.checkpoint for note in notes if isinstance(note, ToolCalled)}
    found |= {note.report.undo_id or "" for note in notes if isinstance(note, Restored)}
    return frozenset(found - {""})


def brings_back(notes: list[Note], checkpoint: str) -> bool:
    """Whether restoring it makes a change anew: it was taken before one was undone."""
    undoings = (note for note in notes if isinstance(note, Restored))
    return any(not note.again for note in undoings if note.report.undo_id == checkpoint)


def first_checkpoint(notes: list[Note]) -> str:
    """What brings the project back to before an answer; empty when it changed nothing."""
    found = (note.checkpoint for note in notes if isinstance(note, ToolCalled) and note.checkpoint)
    return next(found, "")


def _put(notes: list[Note], note: Note, *, place: int | None) -> None:
    if place is None:
        notes.append(note)
    else:
        notes[place] = note


def _started(notes: list[Note], call_id: int) -> int | None:
    """Where a running call stands."""
    places = (
        at
        for at, note in enumerate(notes)
        if isinstance(note, ToolStarted) and note.call_id == call_id
    )
    return next(places, None)


def _end_approval(notes: list[Note], event: ApprovalEnded) -> None:
    for at, note in enumerate(notes):
        if isinstance(note, Approval) and note.id == event.id:
            notes[at] = event


def _end_all(notes: list[Note]) -> None:
    """Nothing runs or waits behind the end of a turn, however it ended."""
    for at, note in enumerate(notes):
        if isinstance(note, Approval):
            notes[at] = note.ended("stop")
        elif isinstance(note, ToolStarted):
            notes[at] = ToolCalled(
                call_id=note.call_id,
                name=note.name,
                arguments=note.arguments,
                result="",
                ok=False,
            )


class Transcript:
    """The messages of one conversation (`conversation` is None until the first question is stored)."""

    def __init__(self, conversation: Conversation | None = None) -> None:
        self.conversation = conversation
        self.messages: list[Message] = []
        self.phase: PhaseChanged | None = None

    @property
    def conversation_id(self) -> ConversationId | None:
        """Which conversation this is."""
        return self.conversation.id if self.conversation else None

    @property
    def running(self) -> bool:
        """Whether an answer is being made."""
        return bool(self.messages) and self.messages[-1].live

    @property
    def waits(self) -> bool:
        """Whether the turn waits for the user's consent."""
        return self.running and any(isinstance(note, Approval) for note in self.messages[-1].notes)

    def show_question(
        self, question: Node, answer_id: NodeId, attachments: tuple[Attachment, ...]
    ) -> Message:
        """Adds the stored question and an empty answer; returns the answer."""
        for message in self.messages:
            message.offers_again = False
        asked = message_of(question)
        asked.attachments = asked.attachments or attachments
        answer = Message(
            node_id=answer_id,
            role=Role.ASSISTANT,
            created_at_ms=question.created_at_ms,
            status=NodeStatus.PARTIAL,
            stream=StreamingMarkdown(),
        )
        self.messages += [asked, answer]
        self.phase = PhaseChanged(phase=Phase.RECALLING)
        return answer

    def take(self, event: TurnEvent) -> None:
        """Applies an event of the running turn to the last message."""
        answer = self.messages[-1]
        match event:
            case TextDelta():
                answer.text += event.text
                assert answer.stream is not None
                answer.stream.feed(event.text)
            case PhaseChanged():
                self.phase = event
            case MemoriesFound():
                answer.memories = event.memories
            case ToolStarted():
                answer.notes.append(event)
            case ToolCalled():
                _put(answer.notes, event, place=_started(answer.notes, event.call_id))
            case ApprovalAsked():
                answer.notes.append(event.approval)
            case ApprovalEnded():
                _end_approval(answer.notes, event)
            case Notice():
                answer.notes.append(event.problem)
            case TurnFinished():
                self._finish(answer, event)
            case _:
                pass

    def place_of(self, node_id: NodeId) -> int | None:
        """Where a message stands."""
        places = (at for at, message in enumerate(self.messages) if message.node_id == node_id)
        return next(places, None)

    def take_search(self, search: DeepSearch) -> int | None:
        """Applies news of the search of the past for an answer; returns its place."""
        place = self.place_of(search.answer_id)
        if place is not None:
            self.messages[place].search = search
            self.messages[place].search_told = True
        return place

    def checkpoints(self) -> frozenset[str]:
        """What can be restored from it."""
        return frozenset[str]().union(*(checkpoints_of(message.notes) for message in self.messages))

    def take_undone(self, undone: frozenset[str]) -> None:
        """Takes which of its checkpoints are undone now."""
        for message in self.messages:
            message.undone = undone & checkpoints_of(message.notes)

    def offer_again(self, answer_id: NodeId, *, offered: bool) -> None:
        """Says whether the question of an answer can be asked again."""
        place = self.place_of(answer_id)
        if place is not None:
            self.messages[place].offers_again = offered

    def take_restored(self, checkpoint: str, report: RestoreReport) -> None:
        """A call, or the undoing of one, was undone: says so behind the notes of its answer."""
        for message in self.messages:
            if checkpoint in checkpoints_of(message.notes):
                again = brings_back(message.notes, checkpoint)
                message.notes.append(Restored(checkpoint=checkpoint, report=report, again=again))

    def _finish(self, answer: Message, event: TurnFinished) -> None:
        answer.text = event.answer.content
        answer.status = event.status
        answer.memories = event.memories
        answer.stats = event.stats
        answer.stream = None
        _end_all(answer.notes)
        if event.problem is not None:
            answer.notes.append(event.problem)
        self.phase = None

    def abandon(self, problem: Problem) -> None:
        """Ends a turn whose events stopped coming; what was written stays."""
        if self.running:
            answer = self.messages[-1]
            answer.stream = None
            answer.status = NodeStatus.FAILED
            _end_all(answer.notes)
            answer.notes.append(problem)
        self.phase = None

    def find(self, words: str) -> list[int]:
        """Indexes of the messages that contain `words`, ignoring case."""
        wanted = words.casefold()
        return [
            at
            for at, message in enumerate(self.messages)
            if wanted and wanted in message.text.casefold()
        ]
