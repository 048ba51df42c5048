"""The scripted engine, writing down each prompt it is asked to continue: one JSON line per call, in the file `PROMPTS` names."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from growbox_app.engine import protocol as p
from growbox_app.engine.worker import Worker, prepare_child
from tests.fakes.scripted_engine import ScriptedBackend, rendered

PROMPTS = "GROWBOX_TEST_PROMPTS"


class RecordingBackend(ScriptedBackend):
    """Implements `worker.Backend`."""

    def work(
        self,
        request: p.Request,
        send: Callable[[p.Answer], None],
        breathe: Callable[[], None],
    ) -> p.Answer:
        answer = super().work(request, send, breathe)
        if isinstance(request, p.Chat) and isinstance(answer, p.DoneChat):
            line = {
                "tokens": rendered(request.messages, generate=False),
                "system": "".join(request.messages[0].parts),
                "text": "".join("".join(message.parts) for message in request.messages),
                "reused": answer.reused_tokens,
                "grammar": request.grammar,
                "size": answer.prompt_tokens + request.max_tokens,
            }
            with Path(os.environ[PROMPTS]).open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        return answer


def run(pipe: Connection) -> None:
    """Spawn target."""
    prepare_child()
    Worker(pipe, RecordingBackend()).run()
    os._exit(0)
