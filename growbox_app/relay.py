"""Wishes of a second instance, served by the running one: raise the window, ask a question, add files to the memory, export."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from growbox_app.api import (
    AskRequest,
    Assistant,
    Attachment,
    Notice,
    Problem,
    ProblemCode,
    ProblemError,
    Progress,
    TextDelta,
    TurnEvent,
    TurnFinished,
)
from growbox_app.approval_face import (
    Approval,
    ApprovalAnswer,
    ApprovalAsked,
)
from growbox_app.export import file_name
from growbox_app.ingest.words import fields_of
from growbox_app.instance import Frame, Send
from growbox_app.report import TurnReport, problem_fields
from growbox_app.slots import LoopKind, Slots, SlotsFull
from memory.values import ConversationId

ASK_S_MAX = 3600.0
QUESTION_CHARACTERS_MAX = 8192
"""A longer question becomes an attachment, as a long paste does in the window."""
QUESTION_HEAD_CHARACTERS = 300
ATTACHMENT_NAME = "question.txt"

UNATTENDED = "Nobody is there to be asked; only what needs no permission can be done."


class AskRelay:
    """Handles frames on connection threads; the work runs on the event loop."""

    def __init__(
        self,
        assistant: Assistant,
        loop: asyncio.AbstractEventLoop,
        raise_window: Callable[[], None],
    ) -> None:
        self._assistant = assistant
        self._loop = loop
        self._raise = raise_window
        self._slots = Slots()

    def handle(self, frame: Frame, send: Send) -> None:
        """Serves one wish; runs on the connection's thread and returns when it is done."""
        if frame.get("wish") == "raise":
            self._loop.call_soon_threadsafe(self._raise)
            send({"done": True})
        elif frame.get("wish") == "ask":
            frames: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
            asyncio.run_coroutine_threadsafe(self._ask(frame, frames.put), self._loop)
            self._forward(frames, send, gone=self._stop)
        elif frame.get("wish") == "ingest":
            frames = queue.SimpleQueue()
            work = asyncio.run_coroutine_threadsafe(self._ingest(frame, frames.put), self._loop)
            self._forward(frames, send, gone=work.cancel)
        elif frame.get("wish") == "export":
            frames = queue.SimpleQueue()
            work = asyncio.run_coroutine_threadsafe(self._export(frame, frames.put), self._loop)
            self._forward(frames, send, gone=work.cancel)

    def _stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._assistant.stop(), self._loop)

    def _forward(
        self, frames: queue.SimpleQueue[Frame | None], send: Send, *, gone: Callable[[], object]
    ) -> None:
        """Sends on the connection's thread, so that a stopped asker never holds the turn; `gone` is for when it stopped."""
        while True:
            try:
                reply = frames.get(timeout=ASK_S_MAX)
                if reply is None:
                    return
                send(reply)
            except queue.Empty:
                return
            except OSError:  # the asker is gone
                gone()
                return

    async def _ingest(self, frame: Frame, put: Callable[[Frame | None], None]) -> None:
        def show(progress: Progress) -> None:
            put({"progress": asdict(progress)})

        try:
            folder, paths = frame.get("project"), frame.get("paths")
            project = (
                await self._assistant.library.open_project(Path(str(folder))) if folder else None
            )
            report = await self._assistant.ingest(
                [Path(str(path)) for path in paths] if isinstance(paths, list) else [],
                show,
                project_id=project.id if project else None,
            )
            put({"done": True, "ingest": fields_of(report)})
        except ProblemError as error:
            put({"done": True, "problem": problem_fields(error.problem)})
        finally:
            put(None)

    async def _export(self, frame: Frame, put: Callable[[Frame | None], None]) -> None:
        try:
            put({"done": True, "exported": list(await export_of(self._assistant, frame))})
        except ProblemError as error:
            put({"done": True, "problem": problem_fields(error.problem)})
        finally:
            put(None)

    async def _ask(self, frame: Frame, put: Callable[[Frame | None], None]) -> None:
        try:
            async with self._slots.queued(LoopKind.ANSWER):
                request = replace(await request_of(self._assistant, frame), waits=True)
                async for event in self._assistant.ask(request):
                    if isinstance(event, ApprovalAsked):
                        self._assistant.answer_approval(unattended(event.approval))
                    for reply in _frames(event):
                        put(reply)
        except SlotsFull:
            put({"done": True, "problem": problem_fields(Problem(code=ProblemCode.BUSY))})
        except ProblemError as error:
            put({"done": True, "problem": problem_fields(error.problem)})
        finally:
            put(None)


async def export_of(assistant: Assistant, frame: Frame) -> tuple[str, ...]:
    """Writes the conversations that a frame means; returns the files.

    Raises:
        ProblemError: the project's folder or the target cannot be opened.
    """
    folder, words = frame.get("project"), str(frame.get("title") or "").casefold()
    project = await assistant.library.open_project(Path(str(folder))) if folder else None
    meant = [
        conversation
        for conversation in await assistant.library.conversations()
        if (project is None or conversation.project_id == project.id)
        and words in conversation.title.casefold()
    ]
    target = Path(str(frame.get("folder")))
    if len(meant) == 1:  # one conversation alone would take the target for its file
        target /= file_name(meant[0])
    paths = await assistant.library.export([c.id for c in meant], target) if meant else ()
    return tuple(str(path) for path in paths)


async def request_of(assistant: Assistant, frame: Frame) -> AskRequest:
    """The question that a frame or a command line describes.

    Raises:
        ProblemError: the project folder does not exist.
    """
    folder = frame.get("project")
    project = await assistant.library.open_project(Path(str(folder))) if folder else None
    conversation_id: ConversationId | None = None
    if frame.get("continue"):
        project_id = project.id if project else None
        candidates = [
            c for c in await assistant.library.conversations() if c.project_id == project_id
        ]
        conversation_id = candidates[0].id if candidates else None
    text = str(frame.get("text", ""))
    attachments: tuple[Attachment, ...] = ()
    if len(text) > QUESTION_CHARACTERS_MAX:
        attachments = (await assistant.attach(name=ATTACHMENT_NAME, text=text),)
        text = text[:QUESTION_HEAD_CHARACTERS] + "…"
    return AskRequest(
        text=text,
        conversation_id=conversation_id,
        project_id=project.id if project else None,
        attachments=attachments,
    )


def unattended(approval: Approval) -> ApprovalAnswer:
    """The answer where nobody can be asked."""
    return ApprovalAnswer(id=approval.id, allowed=False, word=UNATTENDED)


def _frames(event: TurnEvent) -> list[Frame]:
    match event:
        case TextDelta():
            return [{"delta": event.text}]
        case Notice():
            return [{"notice": problem_fields(event.problem)}]
        case TurnFinished():
            return [{"done": True, "report": TurnReport.of(event).as_json()}]
        case _:
            return []
