"""What the background asks a model to write, and how its words are taken: bound by a grammar, parsed tolerantly, and bounded.

The passages are data: each reaches the prompt as one line without the prompt's own labels. What cannot be read is no text at all.
Pure but for reading resources (`resources/prompts/<language>/write.toml`). Source: design 5.4, "memory is data".
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from growbox_app.engine import protocol as p
from growbox_app.judging import as_data
from growbox_app.paths import resources_path
from memory.requests import NeedText, TextField, TextPurpose

PASSAGE_CHARACTERS_MAX = 600
PASSAGES_MAX = 6
FIELD_CHARACTERS_MAX = 400
"""A longer field would only be filled by a model that has lost its thread."""
TOKENS_PER_FIELD = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingPrompt:
    """One language's prompt. `version` names it, byte for byte; `purposes` are the instructions."""

    version: str
    head: str
    passage: str
    after: str
    purposes: dict[TextPurpose, str]


@cache
def writing_prompt(language: str) -> WritingPrompt:
    """The prompt of a language."""
    data = (resources_path() / "prompts" / language / "write.toml").read_bytes()
    table = tomllib.loads(data.decode("utf-8"))
    return WritingPrompt(
        version=hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()[:8],
        head=table["head"],
        passage=table["passage"],
        after=table["after"],
        purposes={purpose: table[purpose.value] for purpose in TextPurpose},
    )


def request(request_id: int, language: str, wanted: NeedText) -> p.Write:
    """What the engine is asked."""
    prompt = writing_prompt(language)
    parts = [prompt.purposes[wanted.purpose]]
    for passage in wanted.passages[:PASSAGES_MAX]:
        parts += [prompt.passage, as_data(passage, "")[:PASSAGE_CHARACTERS_MAX]]
    return p.Write(
        id=request_id,
        messages=(
            p.Message(role="system", parts=(prompt.head,)),
            p.Message(role="user", parts=(*parts, prompt.after)),
        ),
        max_tokens=TOKENS_PER_FIELD * len(wanted.fields),
        grammar=grammar(wanted.fields),
    )


def grammar(fields: Sequence[TextField]) -> str:
    """GBNF of a JSON object with these strings, in this order."""
    members = [
        f'"\\"{field.name}\\": \\"" char{{0,{min(field.characters_max, FIELD_CHARACTERS_MAX)}}} "\\""'
        for field in fields
    ]
    body = ' ", " '.join(members)
    return f'root ::= "{{" {body} "}}"\nchar ::= [^"\\\\\\x00-\\x1f] | "\\\\" ["\\\\/n]\n'


def values_of(text: str, fields: Sequence[TextField]) -> tuple[str, ...] | None:
    """The fields of an answer; None where there is no such object in it."""
    start, end = text.find("{"), text.rfind("}")
    try:
        found = json.loads(text[start : end + 1], strict=False)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    values = tuple(found.get(field.name) for field in fields)
    if not all(isinstance(value, str) for value in values):
        return None
    return tuple(
        " ".join(str(value).split())[: field.characters_max]
        for value, field in zip(values, fields, strict=True)
    )
