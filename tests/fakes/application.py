"""The whole application over a scripted engine, for one test body."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from growbox_app.api import AskRequest, TurnFinished
from growbox_app.assistant import GrowBox, Options
from memory.values import ConversationId, ProjectId
from tests.fakes import scripted_engine

Body = Callable[[GrowBox], Awaitable[None]]


def scripted(folder: Path, **options: object) -> GrowBox:
    """An application that is not started. `options` replace fields of `Options`."""
    fields: dict[str, object] = {"engine_target": scripted_engine.run} | options
    return GrowBox(
        data_path=folder / "data",
        models_path=folder / "models",
        options=Options(scripted_engine=True, listen=False, **fields),  # type: ignore[arg-type]
    )


def run_application(
    make: Callable[[], GrowBox], body: Body, settings: Mapping[str, object] | None = None
) -> None:
    """Makes it on a loop of its own, starts it with settings, runs the body, shuts it down."""

    async def main() -> None:
        app = make()
        for key, value in (settings or {}).items():
            await app.change_setting(key, value)
        try:
            await app.start(lambda _progress: None)
            await body(app)
        finally:
            await app.shutdown()

    asyncio.run(main())


async def ask(
    app: GrowBox,
    text: str,
    conversation_id: ConversationId | None = None,
    *,
    project_id: ProjectId | None = None,
) -> TurnFinished:
    """One turn to its end."""
    request = AskRequest(text=text, conversation_id=conversation_id, project_id=project_id)
    events = [event async for event in app.ask(request)]
    assert isinstance(events[-1], TurnFinished)
    return events[-1]
