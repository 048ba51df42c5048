"""Wishes of a second instance, served by the running one: raise the window, ask a question."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

from growbox_app.api import (
    AskRequest,
    Assistant,
    Problem,
    ProblemError,
    TextDelta,
    TurnEvent,
    TurnFinished,
)
from growbox_app.instance import Frame, Send
from growbox_app.report import TurnReport
from memory.values import ConversationId

ASK_S_MAX = 3600.0


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

    def handle(self, frame: Frame, send: Send) -> None:
        """Serves one wish; runs on the connection's thread and returns when it is done."""
        if frame.get("wish") == "raise":
            self._loop.call_soon_threadsafe(self._raise)
            send({"done": True})
        elif frame.get("wish") == "ask":
            done = threading.Event()
            future = asyncio.run_coroutine_threadsafe(self._ask(frame, send), self._loop)
            future.add_done_callback(lambda _future: done.set())
            done.wait(ASK_S_MAX)

    async def _ask(self, frame: Frame, send: Send) -> None:
        try:
            request = await request_of(self._assistant, frame)
            async for event in self._assistant.ask(request):
                for reply in _frames(event):
                    await asyncio.to_thread(send, reply)
        except ProblemError as error:
            await asyncio.to_thread(send, _problem_frame(error.problem))
        except OSError:
            await self._assistant.stop()  # the asker is gone


async def request_of(assistant: Assistant, frame: Frame) -> AskRequest:
    """The question that a frame or a command line describes.

    Raises:
        ProblemError: the project folder does not exist.
    """
    folder = frame.get("project")
    project = await assistant.open_project(Path(str(folder))) if folder else None
    conversation_id: ConversationId | None = None
    if frame.get("continue"):
        project_id = project.id if project else None
        candidates = [c for c in await assistant.conversations() if c.project_id == project_id]
        conversation_id = candidates[0].id if candidates else None
    return AskRequest(
        text=str(frame.get("text", "")),
        conversation_id=conversation_id,
        project_id=project.id if project else None,
    )


def _frames(event: TurnEvent) -> list[Frame]:
    if isinstance(event, TextDelta):
        return [{"delta": event.text}]
    if isinstance(event, TurnFinished):
        return [{"done": True, "report": TurnReport.of(event).as_json()}]
    return []


def _problem_frame(problem: Problem) -> Frame:
    return {
        "done": True,
        "problem": {
            "code": problem.code.value,
            "fields": dict(problem.fields),
            "detail": problem.detail,
        },
    }
