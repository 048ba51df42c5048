"""What a server's chunks add up to: text, a tool call in our own form, and what it cost.

Pure; one object an answer. Thoughts (`<think>`, `reasoning_content`) are dropped: they are neither shown nor kept. Of several
calls the first counts, because the loop makes one at a time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from growbox_app.executors.registry import CLOSER, TRIGGER

THINK, THINK_END = "<think>", "</think>"
ARGUMENT_CHARACTERS_MAX = 400_000


@dataclass(slots=True)
class Cost:
    """Figures of an answer as the server tells them; None where it does not."""

    prompt: int | None = None
    cached: int | None = None
    written: int | None = None
    prefill_s: float | None = None
    decode_s: float | None = None

    def take(self, chunk: dict[str, Any]) -> None:
        """Reads `usage` (OpenAI, vLLM, DeepSeek) and `timings` (llama.cpp)."""
        usage, timings = chunk.get("usage"), chunk.get("timings")
        if isinstance(usage, dict):
            details = usage.get("prompt_tokens_details")
            cached = details.get("cached_tokens") if isinstance(details, dict) else None
            self.prompt = _count(usage.get("prompt_tokens"), self.prompt)
            self.written = _count(usage.get("completion_tokens"), self.written)
            self.cached = _count(cached, self.cached)
            self.cached = _count(usage.get("prompt_cache_hit_tokens"), self.cached)
        if isinstance(timings, dict):
            new, cached = _count(timings.get("prompt_n")), _count(timings.get("cache_n"))
            if new is not None and cached is not None:
                self.prompt, self.cached = new + cached, cached
            self.written = _count(timings.get("predicted_n"), self.written)
            self.prefill_s = _seconds(timings.get("prompt_ms"), self.prefill_s)
            self.decode_s = _seconds(timings.get("predicted_ms"), self.decode_s)


def _count(value: object, before: int | None = None) -> int | None:
    good = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if good and isinstance(value, int) else before


def _seconds(value: object, before: float | None) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(value) / 1000 if good and isinstance(value, int | float) else before


class ThoughtFilter:
    """Drops thoughts from streamed text. A closing tag without an opening one ends a thought that the template began."""

    def __init__(self) -> None:
        self._held = ""
        self.thinking = False

    def feed(self, text: str) -> str:
        """What is no thought, as far as it is certain."""
        self._held += text
        shown = ""
        while True:
            tag = THINK_END if self.thinking else THINK
            before, found, after = self._held.partition(tag)
            if not found:
                keep = _begun(self._held, tag)
                if not self.thinking:
                    shown += self._held[: len(self._held) - keep]
                self._held = self._held[len(self._held) - keep :]
                return shown
            if not self.thinking:
                shown += before
            else:
                after = after.lstrip("\n")
            self.thinking = not self.thinking
            self._held = after

    def finish(self) -> str:
        """What was held back and is no tag."""
        held, self._held = self._held, ""
        return "" if self.thinking else held


def _begun(text: str, tag: str) -> int:
    """Length of the longest end of `text` that begins `tag`."""
    most = min(len(text), len(tag) - 1)
    return next((n for n in range(most, 0, -1) if tag.startswith(text[-n:])), 0)


@dataclass(slots=True)
class _Call:
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class Reply:
    """One answer as it comes."""

    may_call: bool = True
    cost: Cost = field(default_factory=Cost)
    reason: str = ""
    thought: bool = False
    """The server thought, at least once."""
    written: int = 0
    """Characters of text so far, thoughts included."""
    _filter: ThoughtFilter = field(default_factory=ThoughtFilter)
    _call: _Call | None = None
    _surrogate: str = ""
    _started: bool = False

    def take(self, chunk: dict[str, Any]) -> str:
        """Adds a chunk (or a whole answer, from a server that does not stream); returns the text that can be shown."""
        self.cost.take(chunk)
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return ""
        delta = choice.get("delta") or choice.get("message") or {}
        if not isinstance(delta, dict):
            return ""
        text = self._text(delta.get("content"))
        self._think(delta)
        self._take_calls(delta.get("tool_calls"))
        if isinstance(choice.get("finish_reason"), str):
            self.reason = choice["finish_reason"]
        return self._shown(self._filter.feed(text) if text else "")

    @property
    def thinking(self) -> bool:
        """Whether the last that came was a thought."""
        return self._filter.thinking or (self.thought and not self._started)

    def finish(self) -> str:
        """The rest of the text, and the call in our own form."""
        rest = self._shown(self._filter.finish())
        if self._call is None or not self.may_call:
            return rest
        return rest + call_text(self._call.name, self._call.arguments)

    def _shown(self, text: str) -> str:
        if not self._started:
            text = text.lstrip()  # servers begin with blanks, above all after a thought
        self._started = self._started or bool(text)
        return text

    def _text(self, content: object) -> str:
        """Text of a piece: a string, or parts of which each has one. Halves of a character wait for each other."""
        if isinstance(content, list):
            parts = [part.get("text") for part in content if isinstance(part, dict)]
            content = "".join(part for part in parts if isinstance(part, str))
        if not isinstance(content, str) or not content:
            return ""
        self.written += len(content)
        text = self._surrogate + content
        self._surrogate = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        if self._surrogate:
            text = text[:-1]
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _think(self, delta: dict[str, Any]) -> None:
        for name in ("reasoning_content", "reasoning"):
            thought = delta.get(name)
            if isinstance(thought, str) and thought:
                self.thought = True
                self.written += len(thought)
        self.thought = self.thought or self._filter.thinking

    def _take_calls(self, calls: object) -> None:
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict) and call.get("index", 0) in (0, None):
                self._take_call(function)

    def _take_call(self, function: dict[str, Any]) -> None:
        name, arguments = function.get("name"), function.get("arguments")
        if self._call is None:
            self._call = _Call()
        elif isinstance(name, str) and name and self._call.name and name != self._call.name:
            return  # a second call, of a server that does not number them
        if isinstance(name, str) and name:
            self._call.name = name
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if isinstance(arguments, str):
            room = ARGUMENT_CHARACTERS_MAX - len(self._call.arguments)
            self._call.arguments += arguments[:room]


def call_text(name: str, arguments: str) -> str:
    """A call as our own protocol writes it; arguments that are no object stay as they are, and count as broken off."""
    try:
        parsed = json.loads(arguments or "{}")
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        return f"{TRIGGER}{json.dumps({'name': name}, ensure_ascii=False)[:-1]}, {arguments}"
    call = json.dumps({"name": name, "arguments": parsed}, ensure_ascii=False)
    return f"{TRIGGER}{call.replace('<', chr(92) + 'u003c')}{CLOSER}"
