"""The request as it goes over the wire: messages, tools, and what may be left out for a server that refuses it.

Pure. A message becomes the same bytes in every request, whatever follows it: a server that keeps a prefix cache reads only what
is new. Tool calls stand in our own text inside the region; a server that takes `tools` gets them as calls and results.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from growbox_app.agent import prompts
from growbox_app.agent.chat_model import Ask
from growbox_app.agent.protocol import parse_tool_call
from growbox_app.engine import protocol as p
from growbox_app.executors.base import Parameter
from growbox_app.executors.registry import CLOSER, TRIGGER, Registry

_RESULT_HEAD = prompts.tool_result_block("{}", "").split("{}", maxsplit=1)
OPTIONAL = ("stream_options", "tool_choice", "tools", "seed", "top_p", "temperature", "stop")
"""Fields that an answer can do without, in the order in which they are looked for in a refusal."""
NEWER = {"max_tokens": "max_completion_tokens"}


@dataclass(slots=True)
class Manners:
    """What a server was found not to take; kept while the application runs."""

    left_out: set[str] = field(default_factory=set)
    renamed: set[str] = field(default_factory=set)

    def adapt(self, message: str, sent: Sequence[str]) -> bool:
        """Gives up what a refusal names; False when it names nothing that could be given up."""
        folded = message.casefold()
        if "max_completion_tokens" in folded and "max_tokens" not in self.renamed:
            self.renamed.add("max_tokens")
            return True
        for name in OPTIONAL:
            if name in sent and (name in folded or (name == "tools" and "tool" in folded)):
                self.left_out.add(name)
                if name == "tools":
                    self.left_out.add("tool_choice")
                return True
        return False

    @property
    def native_tools(self) -> bool:
        """Whether tools go as `tools`."""
        return "tools" not in self.left_out


def body_of(ask: Ask, model: str, manners: Manners, *, streamed: bool = True) -> dict[str, Any]:
    """The JSON of a request."""
    schemas = schemas_of(ask.tools)
    native = bool(schemas) and manners.native_tools
    request = ask.request
    messages = wire_messages(request.messages, native=native)
    if schemas and not native and messages:
        messages[0]["content"] += "\n\n" + tools_text(ask.tools, ask.language)
    body: dict[str, Any] = {
        "model": model,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "seed": request.seed & 0x7FFFFFFF,
    }
    if native:
        body["tools"] = schemas
        body["tool_choice"] = "auto" if ask.may_call else "none"
    elif schemas and not ask.may_call:
        body["stop"] = [TRIGGER]
    if not streamed:
        body["stream"] = False
        del body["stream_options"]
    for name in manners.renamed:
        body[NEWER[name]] = body.pop(name)
    return {name: value for name, value in body.items() if name not in manners.left_out}


def tools_text(tools: Registry, language: str) -> str:
    """The tools as the system prompt of the local model says them."""
    return prompts.prompt(language, "tools") + "\n" + tools.tool_list()


def schemas_of(tools: Registry) -> list[dict[str, Any]]:
    """Executors as functions with JSON schemas: sorted by name, those that were loaded later behind the others."""
    found = []
    later = {executor.name for executor in tools.deferred}
    for name in sorted(tools.names, key=lambda name: (name in later, name)):
        executor = tools.get(name)
        if executor is None:
            continue
        parameters = executor.parameters
        schema = {
            "type": "object",
            "properties": {key: _property(value) for key, value in parameters.items()},
            "required": [key for key, value in parameters.items() if value.required],
            "additionalProperties": False,
        }
        function = {"name": name, "description": executor.description, "parameters": schema}
        found.append({"type": "function", "function": function})
    return found


def _property(parameter: Parameter) -> dict[str, Any]:
    kind = parameter.kind.value
    schema: dict[str, Any] = {
        "type": kind if kind in {"integer", "number", "boolean"} else "string",
        "description": parameter.description,
    }
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    return schema


def wire_messages(messages: Sequence[p.Message], *, native: bool) -> list[dict[str, Any]]:
    """Messages of the protocol. `native`: a call with its result goes as such."""
    wired: list[dict[str, Any]] = []
    calls = 0
    called = ""
    for at, message in enumerate(messages):
        text = "".join(message.parts)
        if called:
            result, rest = _split_result(message, called)
            wired.append({"role": "tool", "tool_call_id": _call_id(calls), "content": result})
            called = ""
            if rest:
                wired.append({"role": "user", "content": rest})
            continue
        following = messages[at + 1] if at + 1 < len(messages) else None
        call = _call_before(text, following) if native and message.role == "assistant" else None
        if call is None:
            wired.append({"role": message.role, "content": text})
            continue
        calls += 1
        called = call["name"]
        wired.append(
            {
                "role": "assistant",
                "content": text.split(TRIGGER, 1)[0].strip(),
                "tool_calls": [{"id": _call_id(calls), "type": "function", "function": call}],
            }
        )
    return wired


def _call_before(text: str, following: p.Message | None) -> dict[str, str] | None:
    """The call that a text ends with, when the next message brings its result."""
    if TRIGGER not in text or following is None or following.role != "user":
        return None
    name = next((name for part in following.parts if (name := _result_name(part))), "")
    if parse_tool_call(text, {name}) is None:
        return None
    try:
        arguments = json.loads(text.split(TRIGGER, 1)[1].split(CLOSER, 1)[0])["arguments"]
    except (ValueError, KeyError):
        return None
    return {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}


def _result_name(part: str) -> str:
    """The tool that a block is the result of; empty for any other block."""
    head, tail = _RESULT_HEAD
    first = part.split("\n", 1)[0]
    end = tail.split("\n", 1)[0]
    return first[len(head) : len(first) - len(end)] if first.startswith(head) else ""


def _split_result(message: p.Message, name: str) -> tuple[str, str]:
    """What belongs to the result (memories found with it stand before it), and what was said after it."""
    at = next(at for at, part in enumerate(message.parts) if _result_name(part) == name)
    return "".join(message.parts[: at + 1]), "".join(message.parts[at + 1 :])


def _call_id(number: int) -> str:
    """Nine letters and digits, which every server takes."""
    return f"call{number:05d}"


def shrunk(
    messages: Sequence[p.Message], tokens_max: int, count: Callable[[str], int]
) -> tuple[p.Message, ...]:
    """The newest of a conversation that fits: older messages go first, then memories, then the middle of the last block.

    The system prompt always stays, and the last message's last block, which is the question or a result.
    """
    system, *rest = messages
    room = tokens_max - _size(system, count)
    kept = list(rest)
    while len(kept) > 1 and sum(_size(message, count) for message in kept) > room:
        del kept[0]
        while len(kept) > 1 and kept[0].role != "user":
            del kept[0]
    last = kept[-1]
    parts = list(last.parts)
    while len(parts) > 1 and sum(map(count, parts)) > room:
        del parts[0]
    while count(parts[-1]) > room and len(parts[-1]) > CUT_CHARACTERS_MIN:
        half = len(parts[-1]) // 3
        parts[-1] = f"{parts[-1][:half]}\n[…]\n{parts[-1][-half:]}"
    kept[-1] = p.Message(role=last.role, parts=tuple(parts))
    return (system, *kept)


CUT_CHARACTERS_MIN = 200


def _size(message: p.Message, count: Callable[[str], int]) -> int:
    return sum(map(count, message.parts)) + 8
