"""Tool calls in a model's text: parsed tolerantly, and held back from the reader while they stream."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from growbox_app.engine.textual import LIST_NUMBER
from growbox_app.executors.call_grammar import CLOSER, TRIGGER

_FENCE = re.compile(r"^```(?:json|tool_call)?\s*([\[{].*[\]}])\s*```$", re.DOTALL)
_FUNCTION = re.compile(r"<function=([\w.-]+)>(.*?)(?:</function>|$)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([\w.-]+)>(.*?)</parameter>", re.DOTALL)
_TAGS = ("<tool", "</tool ", "</tool>", "</tool-call", "</toolCall")
"""How tags begin; small models misspell the one that they forgot a quotation mark before."""
RUN_ON = tuple("}}" + between + tag for between in ("", " ", "\n") for tag in _TAGS)
"""Behind a call that was not closed, its end or another one: nothing of what follows can be meant."""
_RUN_ON = re.compile(rf"(?:\\?\")?\s*\}}\}}\s*(?:{'|'.join(map(re.escape, _TAGS))})")
_END_INSIDE = re.compile(rf"\}}\}}\s*(?:{re.escape(TRIGGER)}|{re.escape(CLOSER)})")
_THOUGHT = re.compile(r"^\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)\s*", re.DOTALL)
_THINK = "<think"
_DECODER = json.JSONDecoder(strict=False)
_NAMES, _ARGUMENTS = ("name", "tool", "function"), ("arguments", "parameters", "args", "input")
_TEXTS = frozenset({"old", "new", "content", "text"})
_LINE_END = "\\n"
"""As JSON spells it."""
ROUNDS_MIN = 3
ARGUMENT_CHARACTERS_MAX = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call the model asked for."""

    name: str
    arguments: Mapping[str, str]

    @property
    def fingerprint(self) -> str:
        """Equal for equal calls, whatever the spacing and case of their arguments; in a text that is written both count."""
        folded = {
            key: value.rstrip() if key in _TEXTS else " ".join(value.lower().split())
            for key, value in self.arguments.items()
        }
        return json.dumps([self.name, folded], sort_keys=True, ensure_ascii=False)


def parse_tool_call(text: str, known: Collection[str]) -> ToolCall | None:
    """The first tool call in `text`, or None: prose without a call is an answer.

    Understands the tagged form, the form with `<function=name>` tags, and an answer that is nothing but one JSON object (or a
    list that begins with one), fenced or not; inside them the spellings that models were trained on. Only `known` tools are
    called: the user may have asked for just such an object, and a made-up tool would only cost rounds.
    """
    stripped = without_thoughts(text).strip()
    if TRIGGER in stripped:
        rest = stripped.split(TRIGGER, 1)[1].strip()
        body = rest.split(CLOSER, 1)[0].strip()
        call = _from_tags(body) or _from_json(body, whole=False) or _from_json(rest, whole=False)
        return _known(call or _from_json(_closed(rest), whole=False), known)
    tagged = _from_tags(stripped)
    if tagged is not None:
        return _known(tagged, known)
    fenced = _FENCE.match(stripped)
    body = fenced.group(1) if fenced else stripped
    whole = body.startswith(("{", "[")) and body.endswith(("}", "]"))
    return _known(_from_json(body, whole=True) if whole else None, known)


def unwound(text: str) -> str:
    """A call whose last text ran in a circle, ended with the whole lines of its first round; empty where it did not."""
    end = _first_round_ends(text)
    if not end or TRIGGER not in text:
        return ""
    first, line_end, _ = text[: end + len(_LINE_END)].rpartition(_LINE_END)
    return f'{first}{line_end}"}}}}{CLOSER}' if TRIGGER in first else ""


def ended_at_line(text: str) -> str:
    """A call that broke off in its last text, ended with the last whole line of that; empty where it has none."""
    whole, _, _ = text.rpartition(_LINE_END)
    return f'{whole}"}}}}{CLOSER}' if TRIGGER in whole else ""


def first_round(text: str) -> str:
    """An answer that ran in a circle, with the first round of it only; also a list whose items are all the same from one on."""
    end = _first_round_ends(text)
    lines = text[: end or None].rstrip().split("\n")
    last = len(lines) - 1
    while last > 0 and _again(
        lines[last], next(filter(None, map(str.strip, lines[:last][::-1])), "")
    ):
        last -= 1
    return "\n".join(lines[: last + 1]).rstrip()


def _again(line: str, before: str) -> bool:
    """Whether a line is blank, or as an item of a list (or the beginning of one) the same as the one before."""
    item, other = (LIST_NUMBER.sub("", text.strip()) for text in (line, before))
    return not item or (other.startswith(item) and item != line.strip())


def _first_round_ends(text: str) -> int:
    """Where the first round of the circle ends in which a text ends; 0: it ends in none."""
    period = next((p for p in range(1, len(text) // ROUNDS_MIN + 1) if _goes_round(text, p)), 0)
    start = len(text) - period
    while period and start and text[start - 1] == text[start - 1 + period]:
        start -= 1
    return start + period if period else 0


def _goes_round(text: str, period: int) -> bool:
    last = text[-period:]
    return text.endswith(last * ROUNDS_MIN)


def without_thoughts(text: str) -> str:
    """The text without what a model thought aloud between its tags; a thought that was not closed is one to its end."""
    return _THOUGHT.sub("", text)


def _known(call: ToolCall | None, known: Collection[str]) -> ToolCall | None:
    return call if call is not None and call.name in known else None


def _from_tags(body: str) -> ToolCall | None:
    """`<function=name><parameter=key>value</parameter></function>`."""
    found = _FUNCTION.search(body)
    if found is None:
        return None
    arguments = {
        match.group(1): match.group(2).removeprefix("\n").removesuffix("\n")
        for match in _PARAMETER.finditer(found.group(2))
    }
    return _bounded(found.group(1), arguments)


def _from_json(body: str, *, whole: bool) -> ToolCall | None:
    """A call in JSON; not `whole`: something may follow it."""
    try:
        value, end = _DECODER.raw_decode(body)
    except ValueError:
        return None
    if whole and body[end:].strip():
        return None
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return None
    return _from_object(value)


def _closed(text: str) -> str:
    """A call whose last text was not closed before the next one began, with its end; empty where it only breaks off."""
    found = _RUN_ON.search(text)
    return "" if found is None else text[: found.start()] + '"}}'


def _from_object(value: Mapping[str, object]) -> ToolCall | None:
    inner = value.get("function")
    if isinstance(inner, dict):
        return _from_object(inner)
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    arguments = next((value[key] for key in _ARGUMENTS if key in value), None)
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return None
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    return _bounded(name, arguments)


def _bounded(name: str, arguments: Mapping[str, object]) -> ToolCall:
    kept = {str(k): _ended(_text(v))[:ARGUMENT_CHARACTERS_MAX] for k, v in arguments.items()}
    return ToolCall(name=name, arguments=kept)


def _ended(text: str) -> str:
    """Where a model forgot the quotation mark at the end, the call's own end stands in the value; what is before it was meant.

    A text that speaks of the mark without the braces before it is left as it is.
    """
    return _END_INSIDE.split(text, maxsplit=1)[0]


def _text(value: object) -> str:
    """A value as executors take it: text as it is, anything else as JSON spells it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class CallFilter:
    """Passes streamed text on, but nothing that may become a tool call, and no thoughts before the answer."""

    def __init__(self) -> None:
        self._held = ""
        self._calling = False
        self._begun = False

    def feed(self, text: str) -> str:
        """What may be shown now."""
        if self._calling:
            return ""
        self._held += text
        if not self._begun:
            self._begun = self._is_begun()
            if not self._begun:
                return ""
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
        held, self._held = without_thoughts(self._held), ""
        return "" if self._calling else held

    def _is_begun(self) -> bool:
        """Whether the answer itself has begun; thoughts that have ended are dropped."""
        begun = self._held.lstrip()
        if not begun or _THINK.startswith(begun[: len(_THINK)]):
            return False
        if begun.startswith(_THINK):
            rest = _THOUGHT.sub("", self._held)
            if not rest:
                return False
            self._held = rest
        return True


def _prefix_at_end(text: str) -> int:
    """Length of the longest end of `text` that begins the trigger."""
    for length in range(min(len(text), len(TRIGGER) - 1), 0, -1):
        if TRIGGER.startswith(text[-length:]):
            return length
    return 0
