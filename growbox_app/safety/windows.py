"""Commands of Windows: unknown unless plainly safe.

The shell there is PowerShell, and there is no parser for it here. Plain are only its own words for listing and reading, which no file
in the current folder can stand in for, with plain paths: anything else – `git`, `findstr`, a pipe, a variable – is unknown. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from growbox_app.executors.base import Risk
from growbox_app.safety.places import Places
from growbox_app.safety.sensitive import sensitive
from growbox_app.safety.values import Finding, Rules

PLAIN = re.compile(r"[\w .:\\/\-]+")
LISTS = frozenset({"dir", "ls", "gci", "get-childitem"})
READS = frozenset({"type", "cat", "gc", "get-content"})
SAYS = frozenset({"echo", "pwd", "get-location"})
SWITCHES = frozenset({"/b", "/s", "/a", "/od", "/on", "-recurse", "-force", "-name"})


def judge_windows_command(command: str, cwd: str | None, rules: Rules) -> Iterator[Finding]:
    """What speaks against running a command on Windows."""
    places = Places(rules)
    words = command.split()
    yield from _named_secrets(command, cwd, places)
    program = words[0].casefold() if words else ""
    if cwd is None or places.root is None or not PLAIN.fullmatch(command):
        yield _unknown(command)
    elif program in LISTS or program in READS:
        operands = [word for word in words[1:] if word.casefold() not in SWITCHES]
        if any(operand.startswith(("/", "-")) for operand in operands) or (
            program in READS and not operands
        ):
            yield _unknown(command)
        for operand in [*operands, cwd]:
            path = places.absolute(operand, cwd)
            yield from places.looks(path) if program in LISTS else places.reads(path)
    elif program not in SAYS:
        yield _unknown(command)


def _named_secrets(command: str, cwd: str | None, places: Places) -> Iterator[Finding]:
    """Whatever a command does, it does not do it with a secret named in it."""
    for word in re.split(r"[\s\"'=,;|&<>()@`]+", command):
        path = places.absolute(word, cwd or places.home)
        if word and sensitive(path, platform="win32") is not None:
            yield Finding(
                reason="sensitive", risk=Risk.IRREVERSIBLE, denied=True, details={"path": word}
            )


def _unknown(command: str) -> Finding:
    return Finding(
        reason="windows_command", risk=Risk.UNKNOWN, details={"command": " ".join(command.split())}
    )
