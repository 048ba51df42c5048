"""The grammar (GBNF) of one tool call, and how the moment narrows it. Pure.

Whatever a grammar allows, the registry can read: there are no invalid calls. A `Narrowing` says what makes sense now – which tools,
which files, which lines can be replaced, whether there must be a call at all – so that a small model chooses among what exists instead of spelling
it from memory. It never shows in the prompt, whose prefix stays the same.

Source: design 5.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, repeat

from growbox_app.executors import gbnf
from growbox_app.executors.base import Executor, Parameter

TRIGGER = "<tool_call>"
CLOSER = "</tool_call>"
FEW_LINES = 4
"""Lines behind the first of a short text in a block."""
OTHER_CHARACTERS_MAX = 3_000
"""Text of lines of which a grammar can say "something else than this"; it takes a rule for each character."""
LITERAL_CHARACTERS_MAX = 60_000
"""Text of files that a grammar may hold; beyond it the model spells lines itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """What a call may be now.

    `tools`: only these (None: all). `paths`: for a tool the only files it may name. `passages`: for a file the lines that file_edit may take
    for `old`, with the numbers (from 0) of lines where it may begin. `tried`: for a tool and a parameter of it the texts that are not
    written again, with or without blanks behind them; `begins`: for a tool and a parameter how its text begins. `optional`: the only optional
    parameters that are offered (None: all); `fixed`: parameters whose value is settled, as JSON. `few_lines`: a text that begins in a block is a short one. `must_call`: the grammar begins with the
    answer, after a thought of at most `thought` characters that begins with `opening`; otherwise it waits for the trigger.
    """

    tools: frozenset[str] | None = None
    paths: Mapping[str, Sequence[str]] = field(default_factory=dict)
    passages: Mapping[str, Passages] = field(default_factory=dict)
    tried: Mapping[str, Mapping[str, Collection[str]]] = field(default_factory=dict)
    begins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    optional: frozenset[str] | None = None
    fixed: Mapping[str, str] = field(default_factory=dict)
    must_call: bool = False
    few_lines: bool = False
    thought: int = 120
    opening: str = ""

    @property
    def begins_in_block(self) -> bool:
        """Whether a text begins with code inside a block, of which each whole line makes sense."""
        openings = (text for texts in self.begins.values() for text in texts.values())
        return any(map(in_block, openings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Passages:
    """The lines of a file, and where a passage may begin.

    With `keeps_keys` a line `key = value` is replaced by one of the same key. `tried`: for a line without its indentation what it has been
    before or was to become, which is not written again; `dead_ends`: how that does not even begin; `becomes`: what any of them becomes, where that is settled. `in_block`: what an indented
    line becomes is indented, too.
    """

    lines: Sequence[str]
    starts: Sequence[int]
    keeps_keys: bool = False
    tried: Mapping[str, Collection[str]] = field(default_factory=dict)
    dead_ends: Mapping[str, Collection[str]] = field(default_factory=dict)
    becomes: str = ""
    in_block: bool = False


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


def _thought(narrowed: Narrowing) -> str:
    if not narrowed.must_call:
        return ""
    opening = f"{gbnf.opening(narrowed.opening)} " if narrowed.opening else ""
    return f"{opening}[^<{{}}\\n\\[\\]] [^<{{}}\\n]{{0,{narrowed.thought}}} [\\n]{{0,2}} "


def _call(executor: Executor, narrowed: Narrowing) -> list[str]:
    name, rule = executor.name, _rule(executor.name)
    head = gbnf.literal(f'{{"name": "{name}", "arguments": {{')
    parameters = _offered(executor.parameters, narrowed)
    paths = narrowed.paths.get(name)
    values, rules = _written(executor, narrowed)
    if paths is None or "path" not in parameters:
        arguments = _arguments(parameters, narrowed.fixed, values)
        return [f'call-{rule} ::= {head} {arguments} "}}}}"', *rules]
    rest = {n: p for n, p in parameters.items() if n != "path"}
    if name == "file_edit" and _fits(paths, narrowed.passages):
        rest = {n: p for n, p in rest.items() if n not in ("old", "new")}
        places, rules = _places(paths, narrowed.passages)
    else:
        places = " | ".join(gbnf.literal(json.dumps(p, ensure_ascii=False)) for p in paths)
    tail = _arguments(rest, narrowed.fixed, values, behind=True)
    return [
        f'call-{rule} ::= {head} "\\"path\\": " {rule}-place {tail} "}}}}"',
        f"{rule}-place ::= {places}",
        *rules,
    ]


def in_block(opening: str) -> bool:
    """Whether code that begins so goes on inside a block."""
    return opening.rpartition("\n")[2][:1].isspace()


def _written(executor: Executor, narrowed: Narrowing) -> tuple[Mapping[str, str], list[str]]:
    """For parameters whose text begins in a certain way or is none of some: what spells it, and its rules."""
    tried, begins = narrowed.tried.get(executor.name, {}), narrowed.begins.get(executor.name, {})
    values: dict[str, str] = {}
    rules: list[str] = []
    for name in (name for name in executor.parameters if name in {*tried, *begins}):
        rule, opening = f"{_rule(executor.name)}-{_rule(name)}", begins.get(name, "")
        texts = [t[len(opening) :] for t in tried.get(name, ()) if t.startswith(opening)]
        if sum(map(len, texts)) > OTHER_CHARACTERS_MAX:
            texts = []
        values[name] = f"{_inner_quoted(opening)} {rule}"
        firsts = [line.group() for text in texts if (line := _FIRST_LINE.match(text))]
        # What follows a given opening is the text's own: it goes another way at once, instead of only in its last word.
        rest = ("few" if narrowed.few_lines else "block") if in_block(opening) else "code"
        own = _none_of(rule, (), beginnings=firsts, rest=rest)
        rules += own if opening else _none_of(rule, texts)
    return values, rules


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
    rules: list[str] = []
    size = sum(len(passages[path].lines[at]) for path in paths for at in passages[path].starts)
    for number, path in enumerate(paths):
        found = passages[path]
        head = gbnf.literal(json.dumps(path, ensure_ascii=False) + ', "old": "')
        places.append(f"{head} old-{number}")
        begins = []
        for at in found.starts:
            rule = f"other-{number}-{at}" if size <= OTHER_CHARACTERS_MAX else ""
            spelled, more = _replaced(found, at, rule)
            begins.append(spelled)
            rules += more
        rules.append(f"old-{number} ::= " + " | ".join(begins))
    return " | ".join(places), rules


def _replaced(found: Passages, at: int, rule: str) -> tuple[str, list[str]]:
    """A line with or without its indentation, and what it becomes; without a rule for that, it may be anything."""
    line = found.lines[at]
    bare = line.lstrip()
    indent = line[: len(line) - len(bare)]
    texts = found.tried.get(bare.rstrip(), ())
    tried = ["", *texts, *(indent + text.lstrip() for text in texts)]
    key = _key(line) if found.keeps_keys else ""
    if found.becomes:
        return (
            f"{_inner(line)} {_NEW} {gbnf.literal(json.dumps(found.becomes, ensure_ascii=False))}",
            [],
        )
    if key:
        rule = rule or f"other-{at}"
        values = [text[len(key) :] for text in (line, *tried) if text.startswith(key)]
        rules = _none_of(f"{rule}-value", [*values, ""])
        return f"{_inner(line)} {_NEW} {_inner_quoted(key)} {rule}-value", rules
    rest = "inside" if found.in_block and indent else "rest"
    if not rule:
        before = f"{_inner(indent)}? " if indent else ""
        return f'{before}{_inner(bare)} {_NEW} "\\"" {rest}', []
    spelled = f'{_inner(line)} {_NEW} "\\"" {rule}'
    dead = found.dead_ends.get(bare.rstrip(), ())
    deep = [indent + text.lstrip() for text in dead]
    rules = _none_of(rule, [line, *tried], beginnings=[*dead, *deep], rest=rest)
    if indent:
        spelled += f' | {_inner(bare)} {_NEW} "\\"" {rule}-bare'
        texts, dead = [bare, *(text.lstrip() for text in tried)], [text.lstrip() for text in dead]
        rules += _none_of(f"{rule}-bare", texts, beginnings=dead, indented=False, rest=rest)
    return spelled, rules


def _none_of(
    rule: str,
    texts: Collection[str],
    *,
    beginnings: Collection[str] = (),
    indented: bool = True,
    rest: str = "rest",
) -> list[str]:
    """The rest of a JSON string that is none of these, nor one of them with blanks behind it: a tree of their characters.

    At each branch it goes elsewhere, ends where none of them ends, or goes on as one of them does. Of `beginnings` it begins with none, either; not
    `indented`: it begins with no space. `rest`: the rule of what follows once it has gone elsewhere.
    """
    spelled = {_units(text) for text in texts}
    spelled |= {(*_units(text), _ENDED) for text in beginnings if text.strip()}
    waiting, numbers, rules = [(rule, spelled, rest)], count(1), []
    while waiting:
        name, tails, rest = waiting.pop()
        branches: dict[str, set[tuple[str, ...]]] = {}
        for tail in tails:
            if tail:
                branches.setdefault(tail[0], set()).add(tail[1:])
        ends = () in tails
        parts = [] if ends else ['"\\""']
        away = _away(branches, rest, indented=indented)
        blanks = "ends" if rest in ("rest", "code") else "ends-inside"
        parts.append(f"{blanks} solid {rest}" if ends and not branches else away)
        for unit, left in sorted(branches.items()):
            if (_ENDED,) in left:
                continue
            after = _HALF.get(rest, rest) if unit[-1] in _OPENERS else rest
            waiting.append((f"{rule}-{next(numbers)}", left, after))
            parts.append(f"{gbnf.literal(unit)} {waiting[-1][0]}")
        rules.append(f"{name} ::= " + " | ".join(parts))
        indented = True
    return rules


def _units(text: str) -> tuple[str, ...]:
    """A text, blanks behind it left out, as the characters and escapes of a JSON string."""
    return tuple(_UNIT.findall(json.dumps(text.rstrip(), ensure_ascii=False)[1:-1]))


def _away(units: Collection[str], rest: str, *, indented: bool) -> str:
    """Anything but these units of a JSON string; then what may follow."""
    but = "" if indented else " "
    plain = "".join(gbnf.in_class(unit) for unit in sorted(units) if not unit.startswith("\\"))
    if rest in _HALF:
        return _away_in_code(units, rest, plain)
    barred = {unit[-1] for unit in units if unit.startswith("\\") or unit == "/"}
    barred |= set() if rest == "rest" else {"n"}  # a block goes on where it begins
    escapes = "".join(e for e in _ESCAPES if e not in barred).replace("\\", "\\\\")
    tag = "" if "<" in units else f" | tag {rest}"
    return f'[^{but}{plain}"\\\\\\x00-\\x1f<] {rest} | "\\\\" [{escapes}] {rest}{tag}'


def _away_in_code(units: Collection[str], rest: str, plain: str) -> str:
    """The same in code, of which a string or what stands in brackets is one piece."""
    begun = {unit[-1] for unit in units}
    pieces = [name for name, opening in _PIECES.items() if begun.isdisjoint(opening)]
    parts = [f"[^{plain}{_SPECIAL}\\x00-\\x1f] {rest}"]
    parts += [
        f'{name} "\\\\" "n" {rest}' if name == "comment" else f"{name} {rest}" for name in pieces
    ]
    return " | ".join(parts)


def _key(line: str) -> str:
    """What stands before the value in a line `key = value`; empty for another line."""
    found = _KEY.match(line)
    return "" if found is None or not line[found.end() :].strip() else found.group()


def _arguments(
    parameters: Mapping[str, Parameter],
    fixed: Mapping[str, str],
    values: Mapping[str, str],
    *,
    behind: bool = False,
) -> str:
    """Required parameters first, in their order, then each optional one or none: one spelling for each call.

    Args:
        parameters: those to spell.
        fixed: parameters with a settled value.
        values: what spells the value of a parameter, where it is not of its kind.
        behind: there is one before them already.
    """
    required = [(n, p) for n, p in parameters.items() if p.required or n in fixed]
    optional = [(n, p) for n, p in parameters.items() if not p.required and n not in fixed]
    if optional and not required and not behind:
        required = [optional.pop(0)]  # else the comma between two optional ones had no place
    parts = []
    commas = chain((", " if behind else "",), repeat(", "))
    for name, parameter in required:
        value = gbnf.literal(fixed[name]) if name in fixed else values.get(name, _value(parameter))
        parts.append(f"{gbnf.literal(f'{next(commas)}{json.dumps(name)}: ')} {value}")
    for name, parameter in optional:
        comma = ", " if required or behind else ""
        value = values.get(name, _value(parameter))
        parts.append(f"({gbnf.literal(f'{comma}{json.dumps(name)}: ')} {value})?")
    return " ".join(parts)


def _value(parameter: Parameter) -> str:
    if parameter.choices:
        return "(" + " | ".join(gbnf.literal(json.dumps(c)) for c in parameter.choices) + ")"
    return parameter.kind.value


def _rule(name: str) -> str:
    return name.replace("_", "-")


def _inner(text: str) -> str:
    """A GBNF terminal of text as it stands inside a JSON string."""
    return gbnf.literal(json.dumps(text, ensure_ascii=False)[1:-1])


def _inner_quoted(text: str) -> str:
    """The same behind the opening quotation mark."""
    return gbnf.literal('"' + json.dumps(text, ensure_ascii=False)[1:-1])


_UNIT = re.compile(r"\\u[0-9a-f]{4}|\\.|[^\\]", re.DOTALL)
_ENDED = ""
"""Behind the units of a beginning."""
_ESCAPES = '"\\/nrt'
_NEW = gbnf.literal('", "new": ')
_KEY = re.compile(r"""^(\s*)((?:[-*]\s+)?["']?[\w.\-]+["']?\s*[:=：]\s*)""")
_FIRST_LINE = re.compile(r"\s*[^\s][^\n]*")
_STRAY = (*"tool", "_\\x2dC")
"""How, character by character, no tag in a text of a call begins: a model that forgot the quotation mark goes on with tags until it is stopped."""


def _tags() -> list[str]:
    """`tag` is a "<" and what may follow: anything but the rest of such a tag. "<" before the end of a text is not in it."""
    states = ["tag-0", *(f"tag-{number}" for number in range(1, len(_STRAY)))]
    rules = ['tag ::= "<" tag-0']
    for at, state in enumerate(states):
        slash = "/" if at == 0 else ""
        parts = [f'[^{_STRAY[at]}{slash}"\\\\\\x00-\\x1f<]', "escape", "tag"]
        parts += [f'"{_STRAY[at]}" {states[at + 1]}'] if at + 1 < len(states) else []
        parts += [f'"/" {state}'] if slash else []
        rules.append(f"{state} ::= " + " | ".join(parts))
    return rules


_SPECIAL = r"""\"'#()\[\]{}\\<"""
"""In a class: what is more than itself in code."""
_PIECES = {"quoted": "\"'", "group": "([{", "comment": "#"}
_OPENERS = frozenset("".join(_PIECES.values()) + ")]}")
_HALF = {"code": "rest", "block": "inside", "few": "inside"}
"""What is left of these rules inside a string or bracket that was opened before them."""


def _code() -> tuple[str, ...]:
    """Python inside a JSON string with every string and bracket closed: `code`, `block`, which stays indented and does not end open, and `few` lines, none of which goes on."""
    return (
        r'code ::= held comment? "\""',
        r'block ::= (indent | piece)* (last | quoted | group) comment? lines "\""',
        rf'few ::= bit* comment? ("\\" "n" "    " bit+ comment?){{0,{FEW_LINES}}} lines "\""',
        rf'bit ::= [^{_SPECIAL}\x00-\x1f] | "\\" [/t] | word | row | "<" [ =]',
        'row ::= "(" bit* ")" | "[" bit* "]" | "{" bit* "}"',
        """word ::= "'" single* "'" | quote double* quote""",
        r'indent ::= comment? ("\\" "n"){1,4} "    "',
        rf"last ::= [^ ,:={_SPECIAL}\x00-\x1f]",
        rf'piece ::= [^{_SPECIAL}\x00-\x1f] | "\\" [/t] | quoted | group | "<" less-0',
        *(
            rf'less-{at} ::= [^{barred}{_SPECIAL}\x00-\x1f] | quoted | group | "<" less-0{more}'
            for at, (barred, more) in enumerate(
                (
                    ("t/", ' | "t" less-1?'),
                    ("o", ' | "o" less-2?'),
                    ("o", ' | "o" less-3?'),
                    ("l", ""),
                )
            )
        ),
        'group ::= "(" held ")" | "[" held "]" | "{" held "}"',
        r'held ::= lines ((piece | comment "\\" "n") lines)*',
        r'comment ::= "#" ([^"\\\x00-\x1f] | "\\" ["\\/t])*',
        r'quote ::= "\\" "\""',
        """quoted ::= "'" single* "'" | quote double* quote | quote quote quote long* quote quote quote""",
        r"""single ::= [^'"\\\x00-\x1f] | "\\" ["/t] | meant""",
        r'double ::= [^"\\\x00-\x1f] | "\\" [/t] | meant',
        r'long ::= double | "\\" "n" | quote double',
        r'meant ::= "\\\\" ([^"\\\x00-\x1f] | "\\" ["\\/])',
    )


_VALUES = (
    'string ::= "\\"" char{1,240} "\\""',
    'text ::= "\\"" rest',
    'rest ::= lines (char lines)* "<"? "\\""',
    'lines ::= ("\\\\" "n"){0,4}',
    'inner ::= char | ("\\\\" "n"){1,4} "    "',
    'inside ::= inner* lines "\\""',
    *_code(),
    "integer ::= [0-9]{1,7}",
    'number ::= "-"? [0-9]{1,15} ("." [0-9]{1,15})?',
    'boolean ::= "true" | "false"',
    'escape ::= "\\\\" ["\\\\/nrt]',
    'char ::= [^"\\\\\\x00-\\x1f<] | "\\\\" ["\\\\/rt] | tag',
    'ends ::= " "{0,4} lines',
    'ends-inside ::= " "{0,4} (("\\\\" "n"){1,4} " "{4,40})?',
    'solid ::= [^ }"\\\\\\x00-\\x1f<] | "\\\\" ["\\\\/] | tag',
    *_tags(),
)
"""Rules named by `ParameterKind`, and what they are made of. Empty lines come to an end: `lines` are a few.

What has begun inside a block stays in it (`inside`). A tried text with a brace behind it is the same text, whose quotation mark was
forgotten: `solid` has none.
"""
