"""What the stage machine reads out of texts: failures, definitions, the one match of a search, and how new text begins. Pure.

Rules for the languages that people mostly write; a text that no rule knows says nothing, and nothing depends on it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath

from memory.text import content_terms

FAILURE_CHARACTERS_MAX = 200
DEFINED = r"(?:\b(?:def|class|function|func|fn|struct|interface|enum|type|const|let|var)\s+{name}\b|^\s*{name}\s*(?::[^=]+)?=)"
"""A definition."""
_NUMBER = re.compile(r"^\d+[:|-] ?")
_ERROR = re.compile(
    r"\w*(?:Error|Exception)\b.*[:：]|\berror\b *(?:\[\w+\])?:|\bpanic|\bfatal|^FAILED \S+ - |错误|异常",
    re.IGNORECASE,
)
_FAILING = re.compile(r"\b(?:failures|errors)=(\d+)|\b(\d+) (?:failed|errors?)\b")
_RAN, _PASSED = re.compile(r"\bRan (\d+) tests?\b"), re.compile(r"\b(\d+) passed\b")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
_TRACED = re.compile(r'^(?:\s+File "[^"\n]+", line \d+.*\n\s+|>\s+)(\S.*)$', re.MULTILINE)
_PLACE = re.compile(r'File "([^"\n]+)", line (\d+)|([\w./\\-]+\.\w{1,5}):(\d+)')
_WORD = re.compile(r"\w+|[^\w\s]")
_FUNCTION = re.compile(r"\s*(?:async\s+)?def (\w+)\(.*:\s*$")
_DOCUMENTED = re.compile(r'''"""[^"]*"""|\'\'\'[^\']*\'\'\'|"[^"]*"|\'[^\']*\'''')
_ASSERTS = re.compile(r"assert|expect", re.IGNORECASE)
_ARROW = " → "
_VALUE = re.compile(r"(?<![\w.])\d[\w.:%]*\w|(?<![\w.])\d")
_LATIN = re.compile(r"[A-Za-z0-9][\w.:%+-]*\w|[0-9]", re.ASCII)
_QUOTED = re.compile(r"""`([^`\n]+)`|"([^"\n]+)"|“([^”\n]+)”|「([^」\n]+)」""")
_JOINED = re.compile(r"\b(?:and|also|both)\b|[、和并]|以及|同时|还有|[,，;；]\s*\S", re.IGNORECASE)
_COMMENT = ("#", "//", "/*", "*", ";", "--", '"""', "'''")
_SETTING = re.compile(r"""^\s*(?:[-*]\s+)?["']?([^\s"'=:：#;][^"'=:：]*?)["']?\s*[:=：]\s*\S""")
_LOADED = {
    ".csv": ("csv", ', newline=""', "rows = list(csv.DictReader(file))"),
    ".json": ("json", "", "data = json.load(file)"),
    ".txt": ("", "", "lines = file.read().splitlines()"),
    ".log": ("", "", "lines = file.read().splitlines()"),
}
"""For a kind of data the module that reads it, what `open` needs besides, and the line that loads it."""


def decisive(text: str) -> str:
    """The last line that names an error; small models find it only when it stands at the end."""
    lines = [_NUMBER.sub("", line).strip() for line in text.split("\n")]
    found = (line for line in reversed(lines) if _ERROR.search(line))
    return next(found, "")[:FAILURE_CHARACTERS_MAX]


def failed_at(text: str) -> str:
    """The line of code at which a run failed, and with what: what a model has to compare."""
    lines = [line.strip() for line in _TRACED.findall(text)]
    told = f"{lines[-1]}{_ARROW}{decisive(text)}" if lines and decisive(text) else decisive(text)
    return told[:FAILURE_CHARACTERS_MAX]


def printed(text: str) -> str:
    """What a command that went well has printed, if it is one line."""
    lines = [line.strip() for line in text.split("\n")[1:] if line.strip()]
    return lines[0][:FAILURE_CHARACTERS_MAX] if len(lines) == 1 else ""


def own_beginning(text: str, line: str, *, words: int) -> str:
    """How a text that a line was changed into begins, as far as its first words or signs that the line has not."""
    pairs = enumerate(zip(text, line, strict=False))
    common = next((at for at, (ours, its) in pairs if ours != its), min(len(text), len(line)))
    while common and text[common - 1].isalnum() and text[common : common + 1].isalnum():
        common -= 1  # half a word is none in common
    own = list(_WORD.finditer(text, common))[:words]
    return text[: own[-1].end()] if own else text


def asserted(failure: str) -> str:
    """What a test wants, in what `failed_at` tells; empty where it does not tell that."""
    code, arrow, _ = failure.partition(_ARROW)
    return code if arrow and _ASSERTS.search(code) else ""


def tally(text: str) -> tuple[int, int]:
    """How many tests failed and how many passed, of a failed run; what says nothing is one failure."""
    failing = sum(int(a or b) for a, b in _FAILING.findall(text)) or 1
    ran, passed = _RAN.search(text), _PASSED.search(text)
    if passed:
        return failing, int(passed.group(1))
    return failing, int(ran.group(1)) - failing if ran else 0


def is_better(now: tuple[int, int], before: tuple[int, int]) -> bool:
    """Whether fewer fail, and none of those that passed is lost."""
    return now[0] < before[0] and now[1] >= before[1]


def places_in(text: str, files: Collection[str]) -> list[tuple[str, str]]:
    """The files of these that a trace names, each with the number of a line, in the order of the trace."""
    found: list[tuple[str, str]] = []
    for match in _PLACE.finditer(text):
        name = (match.group(1) or match.group(3)).replace("\\", "/")
        line = match.group(2) or match.group(4)
        found += [(file, line) for file in files if _is_named(file, name)]
    return found


def _is_named(file: str, name: str) -> bool:
    return name in (file, PurePosixPath(file).name) or name.endswith("/" + file)


def called_in(failure: str) -> frozenset[str]:
    """Names that are called where a test failed."""
    return frozenset(name for line in _TRACED.findall(failure) for name in _CALLED.findall(line))


def body_of(names: Collection[str], lines: Sequence[str]) -> frozenset[int]:
    """Numbers of the lines that define one of these names: from the definition to the next line that is not deeper."""
    found: set[int] = set()
    for name in names:
        defined = re.compile(DEFINED.format(name=re.escape(name)))
        for start in (at for at, line in enumerate(lines) if defined.search(line)):
            found |= {start, *_deeper(lines, start)}
    return frozenset(found)


def whole_of(names: Collection[str], lines: Sequence[str]) -> tuple[int, int] | None:
    """First line, and the one behind the last, of the one Python function among these names; None where there are several, or none."""
    starts = [
        at
        for at, line in enumerate(lines)
        if (found := _FUNCTION.match(line)) is not None and found.group(1) in names
    ]
    if len(starts) != 1:
        return None
    inside = [at for at in _deeper(lines, starts[0]) if lines[at].strip()]
    return (starts[0], inside[-1] + 1) if inside else None


def head_of(lines: Sequence[str]) -> str:
    """What of a function stands before its first statement: its name, a line that documents it, and the indentation of what follows."""
    documented = len(lines) > 2 and _DOCUMENTED.fullmatch(lines[1].strip()) is not None
    head, first = lines[: 1 + documented], lines[1 + documented]
    return "\n".join([*head, first[: _depth(first)]])


def checks_of(names: Collection[str], text: str) -> list[str]:
    """The lines of a test that say what is to come of a call of one of these names."""
    wanted = {name for name in names if not _ASSERTS.search(name)}
    lines = (line.strip() for line in text.split("\n"))
    found = [s for s in lines if _ASSERTS.search(s) and not wanted.isdisjoint(_CALLED.findall(s))]
    return [line.removeprefix("self.") for line in found]


def _deeper(lines: Sequence[str], start: int) -> Iterator[int]:
    depth = _depth(lines[start])
    for at in range(start + 1, len(lines)):
        if lines[at].strip() and _depth(lines[at]) <= depth:
            return
        yield at


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def is_comment(line: str) -> bool:
    """Whether a line is a comment, or begins a text that documents."""
    return line.strip().startswith(_COMMENT)


def meant(wish: str, lines: Sequence[str], left: Collection[int]) -> frozenset[int]:
    """Of these lines the settings that share most words with a wish, by key and the comment right above; none where none shares any."""
    wanted = frozenset(content_terms(wish))
    shared: dict[int, int] = {}
    for at in left:
        line = lines[at]
        setting = None if is_comment(line) else _SETTING.match(line)
        if setting is not None:
            above = lines[at - 1] if at and is_comment(lines[at - 1]) else ""
            shared[at] = len(wanted.intersection(content_terms(f"{setting.group(1)}\n{above}")))
    most = max(shared.values(), default=0)
    return frozenset(at for at, count in shared.items() if most and count == most)


def values_in(wish: str) -> frozenset[str]:
    """What a wish spells out: numbers, what is quoted, and in Chinese the words of another alphabet; small letters."""
    found = [next(filter(None, groups), "") for groups in _QUOTED.findall(wish)]
    found += _VALUE.findall(wish) if wish.isascii() else _LATIN.findall(wish)
    return frozenset(value.lower() for value in found)


def wants_several(wish: str) -> bool:
    """Whether a wish joins one thing with another."""
    return _JOINED.search(wish) is not None


def only_match(text: str, files: Collection[str]) -> tuple[str, str, str] | None:
    """File, number and text of the line that a search has found, if it is one."""
    lines = text.rstrip().split("\n")
    if len(lines) != 3 or lines[1] not in files:
        return None
    number, colon, said = lines[2].partition(": ")
    return (lines[1], number, said.strip()) if colon and number.isdigit() else None


def script_begins(data: Sequence[str]) -> str:
    """How a Python script begins that works on the first of these files that is data; empty where none is."""
    path = next((path for path in data if PurePosixPath(path).suffix in _LOADED), "")
    if not path:
        return ""
    module, besides, load = _LOADED[PurePosixPath(path).suffix]
    head = f"import {module}\n\n" if module else ""
    opened = f'with open({json.dumps(path, ensure_ascii=False)}, encoding="utf-8"{besides})'
    return f"{head}{opened} as file:\n    {load}\n\n"


def case_begins(module: str, name: str, *, unittest: bool, is_new: bool) -> str:
    """How a Python test of a function begins, in a file of its own or at the end of another."""
    imported = f"from {module} import {name}\n\n\n"
    if not unittest:
        return f"{'' if is_new else chr(10) * 2}{imported}def test_{name}():\n    assert {name}("
    head = "import unittest\n\n" if is_new else "\n\n"
    case = f"class Test{name.title().replace('_', '')}(unittest.TestCase):\n"
    return f"{head}{imported}{case}    def test_{name}(self):\n        self.assert"
