"""The grammar (GBNF) of one tool call, and how the moment narrows it. Pure.

Whatever a grammar allows, the registry can read: there are no invalid calls. A `Narrowing` says what makes sense now – which tools,
which files, which lines can be replaced, whether there must be a call at all – so that a small model chooses among what exists instead of spelling
it from memory. It never shows in the prompt, whose prefix stays the same.

Source: design 5.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat

from growbox_app.executors.base import Executor, Parameter

TRIGGER = "<tool_call>"
CLOSER = "</tool_call>"
OTHER_CHARACTERS_MAX = 3_000
"""Text of lines of which a grammar can say "something else than this"; it takes a rule for each character."""
LITERAL_CHARACTERS_MAX = 60_000
"""Text of files that a grammar may hold; beyond it the model spells lines itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """What a call may be now.

    `tools`: only these (None: all). `paths`: for a tool the only files it may name. `passages`: for a file the lines that file_edit may take
    for `old`, with the numbers (from 0) of lines where it may begin. `optional`: the only optional parameters that are offered (None: all);
    `fixed`: parameters whose value is settled, as JSON. `must_call`: the grammar begins with the answer, after a thought of at most
    `thought` characters that begins with `opening`; otherwise it waits for the trigger.
    """

    tools: frozenset[str] | None = None
    paths: Mapping[str, Sequence[str]] = field(default_factory=dict)
    passages: Mapping[str, Passages] = field(default_factory=dict)
    optional: frozenset[str] | None = None
    fixed: Mapping[str, str] = field(default_factory=dict)
    must_call: bool = False
    thought: int = 120
    opening: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passages:
    """The lines of a file, and where a passage may begin. With `keeps_keys` a line `key = value` is replaced by one of the same key."""

    lines: Sequence[str]
    starts: Sequence[int]
    keeps_keys: bool = False


def call_grammar(executors: Mapping[str, Executor], narrowed: Narrowing) -> str:
    """GBNF of one call of one of these executors; empty where none is left."""
    kept = narrowed.tools
    allowed = {n: e for n, e in executors.items() if kept is None or n in kept}
    allowed = {n: e for n, e in allowed.items() if narrowed.paths.get(n) != ()}
    if not allowed:
        return ""
    call = f'"{TRIGGER}" [ \\n]? call [ \\n]? "{CLOSER}"'
    lines = [f"root ::= {_thought(narrowed)}{call}"]
    lines.append("call ::= " + " | ".join(f"call-{_rule(name)}" for name in allowed))
    for executor in allowed.values():
        lines += _call(executor, narrowed)
    lines += _VALUES
    return "\n".join(lines)


def answer_grammar(lead: str) -> str:
    """GBNF of an answer that begins with these words; without any, of one that is not blank."""
    opening = _opening(lead) if lead else r"[^\x00 \t\n<{}]"
    return f"root ::= {opening} [^\\x00]{'+' if lead else '*'}"


def _opening(words: str) -> str:
    """The words, and behind a letter no other one: a token that begins like their last would change them."""
    ends_in_letter = words[-1:].isascii() and words[-1:].isalnum()
    return _literal(words) + (" [^A-Za-z0-9\\x00\\n<{}]" if ends_in_letter else "")


def _thought(narrowed: Narrowing) -> str:
    if not narrowed.must_call:
        return ""
    opening = f"{_opening(narrowed.opening)} " if narrowed.opening else ""
    return f"{opening}[^<{{}}\\n\\[\\]] [^<{{}}\\n]{{0,{narrowed.thought}}} [\\n]{{0,2}} "


def _call(executor: Executor, narrowed: Narrowing) -> list[str]:
    name, rule = executor.name, _rule(executor.name)
    head = _literal(f'{{"name": "{name}", "arguments": {{')
    parameters = _offered(executor.parameters, narrowed)
    paths = narrowed.paths.get(name)
    if paths is None or "path" not in parameters:
        return [f'call-{rule} ::= {head} {_arguments(parameters, narrowed.fixed)} "}}}}"']
    rest = {n: p for n, p in parameters.items() if n != "path"}
    if name == "file_edit" and _fits(paths, narrowed.passages):
        rest = {n: p for n, p in rest.items() if n not in ("old", "new")}
        places, rules = _places(paths, narrowed.passages)
    else:
        places, rules = " | ".join(_literal(json.dumps(p, ensure_ascii=False)) for p in paths), []
    tail = _arguments(rest, narrowed.fixed, behind=True)
    return [
        f'call-{rule} ::= {head} "\\"path\\": " {rule}-place {tail} "}}}}"',
        f"{rule}-place ::= {places}",
        *rules,
    ]


def _offered(parameters: Mapping[str, Parameter], narrowed: Narrowing) -> Mapping[str, Parameter]:
    kept = narrowed.optional
    return {
        name: parameter
        for name, parameter in parameters.items()
        if parameter.required or kept is None or name in kept or name in narrowed.fixed
    }


def _fits(paths: Sequence[str], passages: Mapping[str, Passages]) -> bool:
    known = all(path in passages and passages[path].starts for path in paths)
    size = sum(len(line) for path in paths if path in passages for line in passages[path].lines)
    return known and size <= LITERAL_CHARACTERS_MAX


def _places(paths: Sequence[str], passages: Mapping[str, Passages]) -> tuple[str, list[str]]:
    """A path and one line of that file, with or without its indentation; then what it becomes, which is something else."""
    places: list[str] = []
    rules: list[str] = [_REST]
    size = sum(len(passages[path].lines[at]) for path in paths for at in passages[path].starts)
    for number, path in enumerate(paths):
        found = passages[path]
        head = _literal(json.dumps(path, ensure_ascii=False) + ', "old": "')
        places.append(f"{head} old-{number}")
        begins = []
        for at in found.starts:
            keyed = _keyed(found.lines[at]) if found.keeps_keys else ""
            rule = f"other-{number}-{at}" if size <= OTHER_CHARACTERS_MAX else ""
            begins.append(keyed or _replaced(found.lines[at], rule))
            if rule and not keyed:
                rules += _other(rule, found.lines[at])
        rules.append(f"old-{number} ::= " + " | ".join(begins))
    return " | ".join(places), rules


def _replaced(line: str, rule: str) -> str:
    bare = line.lstrip()
    indent = line[: len(line) - len(bare)]
    if not rule:
        before = f"{_inner(indent)}? " if indent else ""
        return f"{before}{_inner(bare)} {_NEW} text"
    whole = f'{_inner(line)} {_NEW} "\\"" {rule}'
    return f'{whole} | {_inner(bare)} {_NEW} "\\"" {rule}-bare' if indent else whole


def _other(rule: str, line: str) -> list[str]:
    """The rest of a JSON string that is not this line: it leaves it at one place, ends before it, or goes on behind it.

    `<rule>-bare` is the same without the indentation, and has none of its own.
    """
    rules: list[str] = []
    units = _UNIT.findall(json.dumps(line, ensure_ascii=False)[1:-1])
    indent = len(_UNIT.findall(json.dumps(line[: len(line) - len(line.lstrip())])[1:-1]))
    for at, unit in enumerate(units):
        here = rule if at == 0 else f"{rule}-{at}"
        same = f"{_literal(unit)} {rule}-{at + 1}"
        ends = '"\\"" | ' if at else ""
        rules.append(f"{here} ::= {ends}{_away(unit)} | {same}")
        if indent and at == indent:
            rules.append(f"{rule}-bare ::= {_away(unit, ' ')} | {same}")
    return [*rules, f"{rule}-{len(units)} ::= char rest"]


def _away(unit: str, but: str = "") -> str:
    """Anything but this unit of a JSON string, and not these characters; then what may follow."""
    if unit.startswith("\\"):
        escapes = "".join(e for e in _ESCAPES if e != unit[1]).replace("\\", "\\\\")
        return f'[^{but}"\\\\\\x00-\\x1f] rest | "\\\\" [{escapes}] rest'
    return f'[^{but}{_in_class(unit)}"\\\\\\x00-\\x1f] rest | "\\\\" ["\\\\/nrt] rest'


def _in_class(character: str) -> str:
    return f"\\x{ord(character):02x}" if character in "]\\^-[" else character


def _keyed(line: str) -> str:
    """A line `key = value` and what it becomes: the same key with something else; empty for another line."""
    found = _KEY.match(line)
    if found is None or not line[found.end() :].strip():
        return ""
    indent, key = found.groups()
    return f'{_inner(line)} {_NEW} {_inner_quoted(indent + key)} char{{1,200}} "\\""'


def _arguments(
    parameters: Mapping[str, Parameter], fixed: Mapping[str, str], *, behind: bool = False
) -> str:
    """Required parameters first, in their order, then each optional one or none: one spelling for each call.

    Args:
        parameters: those to spell.
        fixed: parameters with a settled value.
        behind: there is one before them already.
    """
    required = [(n, p) for n, p in parameters.items() if p.required or n in fixed]
    optional = [(n, p) for n, p in parameters.items() if not p.required and n not in fixed]
    if optional and not required and not behind:
        required = [optional.pop(0)]  # else the comma between two optional ones had no place
    parts = []
    commas = chain((", " if behind else "",), repeat(", "))
    for name, parameter in required:
        value = _literal(fixed[name]) if name in fixed else _value(parameter)
        parts.append(f"{_literal(f'{next(commas)}{json.dumps(name)}: ')} {value}")
    for name, parameter in optional:
        comma = ", " if required or behind else ""
        parts.append(f"({_literal(f'{comma}{json.dumps(name)}: ')} {_value(parameter)})?")
    return " ".join(parts)


def _value(parameter: Parameter) -> str:
    if parameter.choices:
        return "(" + " | ".join(_literal(json.dumps(c)) for c in parameter.choices) + ")"
    return parameter.kind.value


def _rule(name: str) -> str:
    return name.replace("_", "-")


def _literal(text: str) -> str:
    """A GBNF terminal."""
    return json.dumps(text, ensure_ascii=False)


def _inner(text: str) -> str:
    """A GBNF terminal of text as it stands inside a JSON string."""
    return _literal(json.dumps(text, ensure_ascii=False)[1:-1])


def _inner_quoted(text: str) -> str:
    """The same behind the opening quotation mark."""
    return _literal('"' + json.dumps(text, ensure_ascii=False)[1:-1])


_UNIT = re.compile(r"\\u[0-9a-f]{4}|\\.|[^\\]", re.DOTALL)
_ESCAPES = '"\\/nrt'
_REST = 'rest ::= char* "\\""'
_NEW = _literal('", "new": ')
_KEY = re.compile(r"""^(\s*)((?:[-*]\s+)?["']?[\w.\-]+["']?\s*[:=：]\s*)""")
_VALUES = (
    'string ::= "\\"" char{1,240} "\\""',
    'text ::= "\\"" char* "\\""',
    "integer ::= [0-9]{1,7}",
    'number ::= "-"? [0-9]{1,15} ("." [0-9]{1,15})?',
    'boolean ::= "true" | "false"',
    'char ::= [^"\\\\\\x00-\\x1f] | "\\\\" ["\\\\/nrt]',
)
"""Rules named by `ParameterKind`, and what they are made of."""
