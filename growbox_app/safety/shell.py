"""Judges a command of a POSIX shell: each simple command in it by the table of `programs.py`, the rest as unknown.

Folders are followed loosely: after a `cd` every later path is judged from the old folder and from the new one, because a `cd` can
fail. A command that rearranges files (`mv`, `cp -r`) must stand alone, and one that changes anything may not use patterns: what the
disk says now would not be true when the later part runs.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from growbox_app.executors.base import Risk
from growbox_app.safety.git_commands import judge_git
from growbox_app.safety.network import host_problem
from growbox_app.safety.places import Places, denied
from growbox_app.safety.programs import (
    AWK_PRINT,
    PACKAGE_RUNNERS,
    PRIVILEGE,
    PROGRAMS,
    RUNS_CODE,
    SAYS_VERSION,
    SHELLS,
    SPEAKING_TASKS,
    SPEAKS,
    SYSTEM,
    TASK_FIRST,
    WRAPPERS,
    Arguments,
    Program,
    Use,
    find_places,
    parse_arguments,
    plain_sed,
)
from growbox_app.safety.sensitive import sensitive
from growbox_app.safety.shell_words import SimpleCommand, Word, read_script
from growbox_app.safety.values import Finding, Grant, GrantKind, Rules

FOLDERS_MAX = 16
FOLDERS_MAX_INSIDE = 4
WILD_PARTS_MAX = 3
WORDS_MAX = 500
NESTING_MAX = 3
UNSURE_PATTERN = re.compile(r"(^|/)\.[^/]*[*?]|[*?].*/\.\.(/|$)")
"""Patterns that may match `..`, or go back from where a link led."""
PROGRAM = re.compile(r"/(usr/)?(local/)?bin/[\w+\-]+")
PROGRAM_FOLDERS = re.compile(r"(/usr)?(/local)?/s?bin/|/opt/homebrew/bin/")


def judge_command(
    command: str, cwd: str | None, rules: Rules, nesting: int = 0
) -> Iterator[Finding]:
    """What speaks against running a command."""
    script = read_script(command)
    for oddity in script.oddities:
        yield unknown("not_understood", construct=oddity)
    if not script.commands:
        yield unknown("not_understood", construct="empty")
    if cwd is None:
        yield denied("no_project")
        return
    judge = _Judge(cwd, rules, nesting)
    yield from Places(rules).looks(cwd)
    for simple in script.commands:
        yield from judge.command(simple)
    if len(script.commands) > 1 and judge.rearranges:
        yield unknown("rearranges")
    if judge.changes and judge.patterns:
        yield unknown("pattern_after_change")


def judge_parts(command: str, cwd: str, rules: Rules) -> Iterator[tuple[str, tuple[Finding, ...]]]:
    """Each simple command of a command line as it is written, and what speaks against it alone; for a reader, not for the verdict."""
    judge = _Judge(cwd, rules, 0)
    for simple in read_script(command).commands:
        yield simple.text, tuple(judge.command(simple))


def unknown(reason: str, **details: str) -> Finding:
    """A finding that only the user, and only once, can settle."""
    return Finding(reason=reason, risk=Risk.UNKNOWN, details=details)


class _Judge:
    """One command line being judged: the folders it may be in by now, and what it has done so far."""

    def __init__(self, cwd: str, rules: Rules, nesting: int) -> None:
        self._rules = rules
        self._nesting = nesting
        self._places = Places(rules)
        self._folders = [cwd]
        self.rearranges = self.changes = self.patterns = False
        self._forms: Mapping[str, Callable[[list[str]], Iterator[Finding]]] = {
            "cd": self._change_folder,
            "find": self._find,
            "awk": self._awk,
            "git": self._git,
            "eval": self._eval,
        }

    def command(self, command: SimpleCommand) -> Iterator[Finding]:
        """Judges one simple command with its redirections."""
        for redirect in command.redirects:
            paths = self._expand((redirect.target,))
            if paths is None:
                yield unknown("dynamic")
            for path in paths or []:
                yield from self._write(path, ">") if redirect.writes else self._read(path)
        if command.words:
            words = self._expand(command.words)
            if words is None:
                yield unknown("dynamic")
                words = [word.text or "" for word in command.words]
                yield from self._loose_arguments(words[1:])
                if command.words[0].text is None:
                    return
            if len(words) > WORDS_MAX:
                yield unknown("not_understood", construct="length")
            yield from self._program(words[: WORDS_MAX + 1])

    def _expand(self, words: Sequence[Word]) -> list[str] | None:
        """The arguments as the program gets them; None when they depend on something that runs."""
        result: list[str] = []
        for word in words:
            if word.text is None:
                return None
            if word.pattern is not None:
                matches = self._match(word)
                if matches is None:
                    return None
                result += matches
            elif word.home:
                result.append(self._places.home + word.text[1:])
            else:
                result.append(word.text)
        return result

    def _match(self, word: Word) -> list[str] | None:
        if word.home or word.pattern is None or word.text is None:
            return None
        wild = sum("*" in part or "?" in part for part in word.text.split("/"))
        if UNSURE_PATTERN.search(word.text) or wild > WILD_PARTS_MAX:
            return None
        self.patterns = True
        found = [word.text]
        fixed = word.text[: min(word.text.find(c) for c in "*?" if c in word.text)]
        for folder in self._folders:
            start = self._places.absolute(fixed.rpartition("/")[0] or ".", folder)
            if any(self._places.looks(start)):
                continue
            matches = self._rules.disk.matches(folder, word.pattern)
            if matches is None:
                return None
            found += [match for match in matches if match != word.pattern]
        return found if len(found) == 1 else found[1:]

    # -- programs -------------------------------------------------------------------------------

    def _program(self, words: list[str]) -> Iterator[Finding]:
        name, arguments = words[0], words[1:]
        match = PROGRAM_FOLDERS.match(name)
        if match:
            name = name[match.end() :]
        if name in PRIVILEGE or name in SYSTEM or name.startswith("mkfs."):
            yield Finding(
                reason="privilege" if name in PRIVILEGE else "system",
                risk=Risk.IRREVERSIBLE,
                denied=True,
                details={"program": name},
            )
        elif name in self._forms:
            yield from self._forms[name](arguments)
        elif name in PROGRAMS:
            yield from self._known(name, PROGRAMS[name], arguments)
        elif name in WRAPPERS:
            yield from self._wrapped(name, arguments)
        elif name in SHELLS:
            yield from self._shell(name, arguments)
        elif name in SPEAKS:
            yield from self._speaks(name, arguments)
        elif name in RUNS_CODE or name.startswith("./"):
            yield from self._code(name, arguments)
        else:
            yield unknown("unlisted_program", program=name)
            yield from self._loose_arguments(words)

    def _known(self, name: str, program: Program, words: list[str]) -> Iterator[Finding]:
        arguments = parse_arguments(program, words)
        if arguments is None or (
            name == "date" and any(not text.startswith("+") for text in arguments.operands)
        ):
            yield unknown("unlisted_option", program=name)
            yield from self._loose_arguments(words)
            return
        for option, value in arguments.values:
            if option in program.file_options:
                yield from self._read(value)
        yield from self._operands(name, program, arguments)

    def _operands(self, name: str, program: Program, arguments: Arguments) -> Iterator[Finding]:
        operands, use = list(arguments.operands), program.use
        recursive = program.always_recurses or bool(program.recurses & arguments.flags)
        if use in (Use.PATTERN, Use.SCRIPT):
            yield from self._expression(name, program, arguments, operands)
        if use is Use.NAMES:
            for path in operands or ["."]:
                yield from self._each(path, self._places.looks)
        elif use in (Use.READ, Use.PATTERN, Use.SCRIPT):
            for path in operands or (["."] if recursive else []):
                below = self._places.reads_below if recursive else self._places.reads
                yield from self._each(path, below)
                if name == "diff" and any(map(self._is_folder, self._absolutes(path))):
                    yield unknown("unlisted_option", program="diff")  # it follows links inside
        elif use is not Use.TEXT:
            yield from self._changing(name, use, arguments)

    def _expression(
        self, name: str, program: Program, arguments: Arguments, operands: list[str]
    ) -> Iterator[Finding]:
        """Takes the expression out of the operands; a sed script must be plain, and edits in place if it is told to."""
        given = {option for option, _ in arguments.values} | arguments.flags
        scripts = [value for option, value in arguments.values if option in program.expressions]
        if not given & program.expressions and operands:
            scripts.append(operands.pop(0))
        if program.use is not Use.SCRIPT:
            return
        if not scripts or not all(map(plain_sed, scripts)):
            yield unknown("unlisted_option", program=name)
        if arguments.flags & {"i", "in-place"}:
            if self._rules.platform != "linux":  # elsewhere -i takes the next word as a suffix
                yield unknown("unlisted_option", program=name)
            for path in operands:
                yield from self._write(path, name)

    def _changing(self, name: str, use: Use, arguments: Arguments) -> Iterator[Finding]:
        operands = list(arguments.operands)
        folders = bool(arguments.flags & {"r", "R", "a", "recursive", "archive"})
        if not operands and name != "tee":
            yield unknown("unlisted_option", program=name)
        if folders:  # a copy follows the links that are in its target already
            yield Finding(
                reason="removes_folder" if use is Use.REMOVE else "copies_folder",
                risk=Risk.IRREVERSIBLE,
                details={"path": " ".join(operands)},
            )
        if use in (Use.WRITE, Use.REMOVE):
            for path in operands:
                yield from self._write(path, name)
            return
        self.rearranges = self.rearranges or use is Use.MOVE or folders
        *sources, target = operands or [""]
        for source in sources:
            read = self._places.reads_below if folders else self._places.reads
            yield from self._each(source, read)
            if use is Use.MOVE:
                yield from self._write(source, name)
            yield from self._write(f"{target}/{source.rstrip('/').rpartition('/')[2]}", name)
        yield from self._write(target, name)

    def _change_folder(self, words: list[str]) -> Iterator[Finding]:
        if len(words) != 1 or words[0].startswith("-"):
            yield unknown("unlisted_option", program="cd")
            return
        yield from self._each(words[0], self._places.looks)
        there = [self._places.absolute(words[0], folder) for folder in self._folders]
        seen = [*map(posixpath.normpath, there), *map(self._places.resolved, there)]
        self._folders = list(dict.fromkeys([*self._folders, *seen]))
        if len(self._folders) > FOLDERS_MAX:
            self._folders = self._folders[:FOLDERS_MAX]
            yield unknown("not_understood", construct="cd")

    def _find(self, words: list[str]) -> Iterator[Finding]:
        places = find_places(words)
        if places is None:
            yield unknown("runs_text", program="find")
            yield from self._loose_arguments(words)
        for place in places or ():
            yield from self._each(place, self._places.looks)

    def _awk(self, words: list[str]) -> Iterator[Finding]:
        rest = list(words)
        if rest and rest[0].startswith("-F"):
            rest = rest[1:] if len(rest[0]) > 2 else rest[2:]
        if not rest or not AWK_PRINT.fullmatch(rest[0].strip()):
            yield unknown("runs_text", program="awk")
            yield from self._loose_arguments(words)
            return
        for path in rest[1:]:
            if path.startswith("-") or "=" in path:
                yield unknown("unlisted_option", program="awk")
            yield from self._read(path)

    def _git(self, words: list[str]) -> Iterator[Finding]:
        yield from judge_git(words, tuple(self._folders), self._places, self._rules)
        yield from self._loose_arguments(words)

    # -- programs that run others ---------------------------------------------------------------

    def _wrapped(self, name: str, words: list[str]) -> Iterator[Finding]:
        rest = list(words)
        if rest and WRAPPERS[name](rest[0]):
            rest.pop(0)
        if not rest or rest[0].startswith("-") or (name == "timeout" and rest == words):
            yield unknown("unlisted_option", program=name)
            yield from self._loose_arguments(words)
        else:
            yield from self._program(rest)

    def _shell(self, name: str, words: list[str]) -> Iterator[Finding]:
        yield unknown("runs_text", program=name)
        yield from self._loose_arguments(words)
        if len(words) >= 2 and re.fullmatch(r"-\w*c", words[0]):
            yield from self._inner(words[1])

    def _eval(self, words: list[str]) -> Iterator[Finding]:
        yield unknown("runs_text", program="eval")
        yield from self._inner(" ".join(words))

    def _inner(self, text: str) -> Iterator[Finding]:
        """What a text would do if it runs: it stays unknown, but may hold something worth a denial."""
        if self._nesting < NESTING_MAX:
            for folder in self._folders[:FOLDERS_MAX_INSIDE]:
                yield from judge_command(text, folder, self._rules, self._nesting + 1)

    def _code(self, name: str, words: list[str]) -> Iterator[Finding]:
        """A program that runs the project's code, and so can do anything the sandbox does not keep it from."""
        if name in SAYS_VERSION and words == ["--version"]:
            return
        yield from self._loose_arguments([name, *words])
        shape = _shape(name, words)
        if name != "make" and SPEAKING_TASKS & set(words[:3]) and shape is not None:
            yield from self._speaks(name, words)
        elif shape is None:
            yield unknown("runs_text", program=name)
        else:
            yield Finding(
                reason="runs_code",
                risk=Risk.REVERSIBLE if self._rules.confined else Risk.IRREVERSIBLE,
                covers=(Grant(kind=GrantKind.COMMAND, value=shape),),
                details={"command": shape},
            )

    def _speaks(self, name: str, words: list[str]) -> Iterator[Finding]:
        offline = self._rules.offline
        yield Finding(
            reason="command_offline" if offline else "command_network",
            risk=Risk.IRREVERSIBLE,
            denied=offline,
            details={"program": name},
        )
        yield from self._loose_arguments(words)

    # -- paths ----------------------------------------------------------------------------------

    def _absolutes(self, path: str) -> list[str]:
        return [self._places.absolute(path, folder) for folder in self._folders]

    def _is_folder(self, path: str) -> bool:
        return self._rules.disk.is_folder(path)

    def _each(self, path: str, judge: Callable[[str], Iterator[Finding]]) -> Iterator[Finding]:
        for folder in self._folders:
            yield from judge(self._places.absolute(path, folder))

    def _read(self, path: str) -> Iterator[Finding]:
        yield from self._each(path, self._places.reads)

    def _write(self, path: str, program: str) -> Iterator[Finding]:
        grant = Grant(kind=GrantKind.COMMAND, value=program)
        for finding in self._each(path, lambda place: self._places.writes(place, grant)):
            self.changes = True
            yield finding

    def _loose_arguments(self, words: Sequence[str]) -> Iterator[Finding]:
        """Paths and hosts that stand anywhere in words which are not understood: sensitive ones are denied all the same."""
        for word in words[:WORDS_MAX]:
            if "://" in word:
                url = word[re.search(r"\w*://", word).start() :]  # type: ignore[union-attr]
                if host_problem(url) in {"local", "credentials"}:
                    yield Finding(
                        reason=f"host_{host_problem(url)}",
                        risk=Risk.IRREVERSIBLE,
                        denied=True,
                        details={"host": url},
                    )
                continue
            parts = [word, *re.split(r"[=@,:<>\s'\"();]|^-\w", word)]
            for part in dict.fromkeys(parts[:WORDS_MAX]):
                yield from self._loose_path(part)

    def _loose_path(self, part: str) -> Iterator[Finding]:
        if not part or PROGRAM.fullmatch(part):
            return
        home = self._places.home
        path = home + part[1:] if part == "~" or part.startswith("~/") else part
        for folder in self._folders:
            absolute = self._places.absolute(path, folder)
            for finding in self._places.reads(absolute):
                if finding.denied and finding.reason == "sensitive":
                    yield finding
                elif "/" in path or path == ".." or finding.denied:
                    yield unknown("reads_outside", path=part)


def _shape(name: str, words: Sequence[str]) -> str | None:
    """What a grant for the whole project names: the program and, where it matters, its task; None if it runs text."""
    plain = [word for word in words if not word.startswith("-")]
    if name in {"python", "python3"}:
        if len(words) >= 2 and words[0] == "-m" and re.fullmatch(r"[\w.]+", words[1]):
            return f"{name} -m {words[1]}"
        return f"{name} {words[0]}" if words and _is_script(words[0]) else None
    if name in {"node", "ruby"}:
        return f"{name} {words[0]}" if words and _is_script(words[0]) else None
    if name in PACKAGE_RUNNERS:
        if words[:1] == ["run"] and len(words) >= 2 and not words[1].startswith("-"):
            return f"{name} run {words[1]}"
        return f"{name} {words[0]}" if words and words[0] == "test" else _speaking(name, words)
    if name in TASK_FIRST:
        if words and (words[0].startswith("-") or "=" in words[0]):
            return None
        return f"{name} {plain[0]}" if plain else name
    return name


def _speaking(name: str, words: Sequence[str]) -> str | None:
    return f"{name} {words[0]}" if words and words[0] in SPEAKING_TASKS else None


def _is_script(word: str) -> bool:
    return (
        not word.startswith("-")
        and not word.startswith("/")
        and sensitive(word, platform="linux") is None
    )
