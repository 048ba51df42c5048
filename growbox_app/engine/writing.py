"""A short text in the background context: the conversation's cache is never touched.

Whoever is more urgent cuts it short; it then begins again, for what is written here is short. The native module is handed in:
only `host.py` imports llama_cpp. Holds no truth.
"""

from __future__ import annotations

from collections.abc import Callable

from growbox_app.engine import protocol as p
from growbox_app.engine.generation import ChatModel, Generation

_DATE = "2000-01-01"


def write(model: ChatModel, request: p.Write, breathe: Callable[[], None]) -> p.DoneWrite:
    """Writes it; `breathe` is called before each attempt.

    Raises:
        EngineFault: cancelled; llama.cpp refused; the messages leave no room.
    """
    done = None
    while done is None:
        breathe()
        done = _attempt(model, request)
    return done


def _attempt(model: ChatModel, request: p.Write) -> p.DoneWrite | None:
    """None: cut short."""
    parts: list[str] = []

    def keep(answer: p.Answer) -> None:
        if isinstance(answer, p.Delta):
            parts.append(answer.text)

    chat = p.Chat(
        id=request.id,
        messages=request.messages,
        date=_DATE,
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        top_p=1.0,
        seed=0,
        grammar=request.grammar,
    )
    reason = Generation(model, chat, keep).run().reason
    if reason == "cancelled":
        return None
    return p.DoneWrite(id=request.id, text="".join(parts), complete=reason == "stop")
