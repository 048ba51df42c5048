"""JSON schemas of foreign tools, as the registry's parameters; and arguments back to what the tool's schema wants. Pure.

A schema is a stranger's: every walk is bounded in depth and breadth, no reference leaves the schema, no pattern of it is ever run.
What the parameters cannot say – nested objects, lists, unions – becomes one text parameter that holds JSON, with the schema as its
description; a schema that is no flat list of properties at all becomes a single such parameter, `arguments`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import TypeAlias

from growbox_app.executors.answers import CallFailed, Reason
from growbox_app.executors.base import Parameter, ParameterKind
from growbox_app.mcp_client.output import one_line

Schema: TypeAlias = Mapping[str, object]

SCHEMA_CHARACTERS_MAX = 20_000
PROPERTIES_MAX = 24
CHOICES_MAX = 40
CHOICE_CHARACTERS_MAX = 80
DESCRIPTION_CHARACTERS_MAX = 160
SHAPE_CHARACTERS_MAX = 300
SHORT_CHARACTERS_MAX = 240
"""What the grammar's one-line string holds."""
DEPTH_MAX = 6
INTEGER_DIGITS_MAX = 18
WHOLE = "arguments"
_PROPERTY = re.compile(r"[A-Za-z_$][\w.$-]{0,63}", re.ASCII)
_SHORT_FORMATS = frozenset({"date", "date-time", "time", "email", "uri", "uuid", "hostname"})
_INTEGER = re.compile(rf"-?\d{{1,{INTEGER_DIGITS_MAX}}}")
_YES, _NO = frozenset({"true", "yes", "1", "on"}), frozenset({"false", "no", "0", "off"})


def schema_of(text: str) -> Schema | None:
    """A schema from its text; None where it is no object, or too large to have been kept."""
    try:
        value = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def parameters_of(schema: Schema | None) -> Mapping[str, Parameter]:
    """The parameters that the model is told of."""
    properties = _properties(schema)
    if schema is None or properties is None:
        return {
            WHOLE: Parameter(
                description="all arguments as one JSON object", kind=ParameterKind.TEXT
            )
        }
    needed = _required(schema)
    return {
        name: _parameter(part, schema, required=name in needed) for name, part in properties.items()
    }


def arguments_of(schema: Schema | None, arguments: Mapping[str, str]) -> dict[str, object]:
    """The arguments as the tool wants them.

    Raises:
        CallFailed: one of them is not what its schema says.
    """
    properties = _properties(schema)
    if schema is None or properties is None:
        whole = _json(WHOLE, arguments.get(WHOLE, "") or "{}")
        if not isinstance(whole, dict):
            raise CallFailed(f"{WHOLE} must be one JSON object", Reason.ARGUMENTS)
        return whole
    strange = [name for name in arguments if name not in properties]
    if strange:
        known = ", ".join(properties) or "none"
        raise CallFailed(
            f"there is no argument {strange[0][:60]!r}; there are: {known}", Reason.ARGUMENTS
        )
    return {
        name: _value(name, text, _simple(properties[name], schema))
        for name, text in arguments.items()
    }


def _properties(schema: Schema | None) -> dict[str, Schema] | None:
    """The flat properties; None when this is no such schema. Optional ones beyond the limit are left out."""
    if schema is None or schema.get("type", "object") != "object":
        return None
    found = schema.get("properties", {})
    if not isinstance(found, Mapping):
        return None
    needed = _required(schema)
    if not needed <= set(found) or len(needed) > PROPERTIES_MAX:
        return None
    if not found and schema.get("additionalProperties") not in (None, False):
        return None
    if any(not isinstance(name, str) or not _PROPERTY.fullmatch(name) for name in found):
        return None
    names = sorted(found, key=lambda name: name not in needed)[:PROPERTIES_MAX]
    return {name: part if isinstance(part := found[name], Mapping) else {} for name in names}


def _required(schema: Schema) -> set[str]:
    needed = schema.get("required", ())
    return {str(name) for name in needed} if isinstance(needed, list) else set()


# -- one property ---------------------------------------------------------------------------------
def _simple(part: Schema, root: Schema, depth: int = 0) -> Schema:
    """References followed, and `X or null` taken for X."""
    if depth >= DEPTH_MAX:
        return {}
    target = part.get("$ref")
    if isinstance(target, str):
        return _simple(_referenced(target, root), root, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        options = part.get(key)
        if isinstance(options, list):
            real = [
                o
                for o in options[:CHOICES_MAX]
                if isinstance(o, Mapping) and o.get("type") != "null"
            ]
            if len(real) == 1:
                kept = {k: v for k, v in part.items() if k != key}
                return {**_simple(real[0], root, depth + 1), **kept}
            return {k: v for k, v in part.items() if k == "description"} | {key: options}
    kinds = part.get("type")
    if isinstance(kinds, list):
        real_kinds = [kind for kind in kinds if kind != "null"]
        return {**part, "type": real_kinds[0] if len(real_kinds) == 1 else None}
    return part


def _referenced(target: str, root: Schema) -> Schema:
    """A place of the same schema; nothing is ever fetched."""
    if not target.startswith("#/"):
        return {}
    place: object = root
    for step in target[2:].split("/")[:DEPTH_MAX]:
        place = (
            place.get(step.replace("~1", "/").replace("~0", "~"))
            if isinstance(place, Mapping)
            else None
        )
    return place if isinstance(place, Mapping) else {}


def _parameter(part: Schema, root: Schema, *, required: bool) -> Parameter:
    simple = _simple(part, root)
    told = simple.get("description") or simple.get("title") or ""
    description = one_line(str(told), DESCRIPTION_CHARACTERS_MAX)
    choices = _choices(simple)
    if choices:
        return Parameter(description=description, required=required, choices=tuple(choices))
    kind = _kind(simple)
    if kind is None:
        shape = one_line(json.dumps(_shape(simple), ensure_ascii=False), SHAPE_CHARACTERS_MAX)
        told_so = f"{description}; as JSON: {shape}" if description else f"as JSON: {shape}"
        return Parameter(description=told_so, kind=ParameterKind.TEXT, required=required)
    return Parameter(description=description, kind=kind, required=required)


def _shape(simple: Schema, depth: int = 0) -> object:
    """A schema without its prose, to a small depth."""
    if depth >= DEPTH_MAX:
        return {}
    kept: dict[str, object] = {}
    for key, value in list(simple.items())[:PROPERTIES_MAX]:
        if key in ("description", "title", "$schema", "examples", "default", "pattern", "$defs"):
            continue
        if key == "properties" and isinstance(value, Mapping):
            kept[key] = {
                str(n)[:64]: _shape(p, depth + 1) if isinstance(p, Mapping) else {}
                for n, p in list(value.items())[:PROPERTIES_MAX]
            }
        elif isinstance(value, Mapping):
            kept[key] = _shape(value, depth + 1)
        elif isinstance(value, list):
            kept[key] = value[:PROPERTIES_MAX]
        else:
            kept[key] = value
    return kept


def _kind(simple: Schema) -> ParameterKind | None:
    """None: only JSON can say it."""
    match simple.get("type"):
        case "string":
            longest = simple.get("maxLength")
            short = isinstance(longest, int) and longest <= SHORT_CHARACTERS_MAX
            is_line = short or simple.get("format") in _SHORT_FORMATS
            return ParameterKind.STRING if is_line else ParameterKind.TEXT
        case "integer" | "number":
            least = simple.get("minimum", simple.get("exclusiveMinimum"))
            whole = simple["type"] == "integer" and isinstance(least, int | float) and least >= 0
            return ParameterKind.INTEGER if whole else ParameterKind.NUMBER
        case "boolean":
            return ParameterKind.BOOLEAN
        case _:
            return None


def _choices(simple: Schema) -> dict[str, object]:
    """The only values allowed, by how they are written in a call; none when they are too many or no plain values."""
    allowed = [simple["const"]] if "const" in simple else simple.get("enum")
    if not isinstance(allowed, list) or not 0 < len(allowed) <= CHOICES_MAX:
        return {}
    written: dict[str, object] = {}
    for value in allowed:
        if value is None:
            continue
        if not isinstance(value, str | int | float | bool):
            return {}
        word = value if isinstance(value, str) else json.dumps(value)
        if len(word) > CHOICE_CHARACTERS_MAX:
            return {}
        written.setdefault(word, value)
    return written


def _value(name: str, text: str, simple: Schema) -> object:
    choices = _choices(simple)
    if choices:
        if text not in choices:
            raise CallFailed(f"{name} must be one of {', '.join(choices)}", Reason.ARGUMENTS)
        return choices[text]
    match _kind(simple):
        case None:
            return _structure(name, text, simple)
        case ParameterKind.BOOLEAN:
            return _boolean(name, text)
        case ParameterKind.INTEGER | ParameterKind.NUMBER:
            return _number(name, text, whole=simple.get("type") == "integer")
        case _:
            return text


def _boolean(name: str, text: str) -> bool:
    word = text.strip().lower()
    if word not in _YES | _NO:
        raise CallFailed(f"{name} must be true or false", Reason.ARGUMENTS)
    return word in _YES


def _number(name: str, text: str, *, whole: bool) -> int | float:
    word = text.strip()
    if _INTEGER.fullmatch(word):
        return int(word)
    try:
        value = float(word) if len(word) <= 40 else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or (whole and not value.is_integer()):
        raise CallFailed(
            f"{name} must be a {'whole ' if whole else ''}number, not {text[:40]!r}",
            Reason.ARGUMENTS,
        )
    return int(value) if whole else value


def _structure(name: str, text: str, simple: Schema) -> object:
    """JSON; a bare word where a list is wanted is a list of one, and where anything is allowed is itself."""
    try:
        return _json(name, text)
    except CallFailed:
        kind = simple.get("type")
        if kind == "array":
            return [text]
        if kind == "object":
            raise
        return text


def _json(name: str, text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CallFailed(f"{name} must be JSON", Reason.ARGUMENTS) from error
