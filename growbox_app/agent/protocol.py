"""Tool calls in a model's text: parsed tolerantly, and held back from the reader while they stream."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from growbox_app.executors.registry import CLOSER, TRIGGER

_FENCE = re.compile(r"^```(?:json)?\s*(\{.*\})\s*```$", re.DOTALL)
ARGUMENT_CHARACTERS_MAX = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call the model asked for."""

    name: str
    arguments: Mapping[str, str]

    @property
    def fingerprint(self) -> str:
        """Equal for equal calls, whatever the spacing and case of their arguments."""
        folded = {key: " ".join(value.lower().split()) for key, value in self.arguments.items()}
        return json.dumps([self.name, folded], sort_keys=True, ensure_ascii=False)


def parse_tool_call(text: str, known: Collection[str]) -> ToolCall | None:
    """The first tool call in `text`, or None: prose without a call is an answer.

    Understands the tagged form, and an answer that is nothing but one JSON object, fenced or not. Only `known` tools are
    called: the user may have asked for just such an object, and a made-up tool would only cost rounds.
    """
    stripped = text.strip()
    if TRIGGER in stripped:
        body = stripped.split(TRIGGER, 1)[1].split(CLOSER, 1)[0]
        return _known(_from_json(body.strip()), known)
    fenced = _FENCE.match(stripped)
    body = fenced.group(1) if fenced else stripped
    whole = body.startswith("{") and body.endswith("}")
    return _known(_from_json(body) if whole else None, known)


def _known(call: ToolCall | None, known: Collection[str]) -> ToolCall | None:
    return call if call is not None and call.name in known else None


def _from_json(body: str) -> ToolCall | None:
    try:
        value = json.loads(body)
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments")
    if not isinstance(arguments, dict):
        return None
    bounded = {str(k): str(v)[:ARGUMENT_CHARACTERS_MAX] for k, v in arguments.items()}
    return ToolCall(name=value["name"], arguments=bounded)


class CallFilter:
    """Passes streamed text on, but nothing that may become a tool call."""

    def __init__(self) -> None:
        self._held = ""
        self._calling = False

    def feed(self, text: str) -> str:
        """What may be shown now."""
        if self._calling:
            return ""
        self._held += text
        start = self._held.find(TRIGGER)
        if start >= 0:
            self._calling = True
            shown, self._held = self._held[:start], ""
            return shown
        keep = _prefix_at_end(self._held)
        shown = self._held[: len(self._held) - keep]
        self._held = self._held[len(self._held) - keep :]
        return shown

    def finish(self) -> str:
        """What was held back and turned out to be no call."""
        held, self._held = self._held, ""
        return "" if self._calling else held


def _prefix_at_end(text: str) -> int:
    """Length of the longest end of `text` that begins the trigger."""
    for length in range(min(len(text), len(TRIGGER) - 1), 0, -1):
        if TRIGGER.startswith(text[-length:]):
            return length
    return 0
