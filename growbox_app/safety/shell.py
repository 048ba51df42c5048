"""Judges a command of a POSIX shell: each simple command in it by the table of `programs.py`, the rest as unknown.

Folders are followed loosely: after a `cd` every later path is judged from the old folder and from the new one, because a `cd` can
fail. A command that rearranges files (`mv`, `cp -r`) must stand alone, and one that changes anything may not use patterns: what the
disk says now would not be true when the later part runs.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from growbox_app.executors.base import Risk
from growbox_app.safety.git_commands import judge_git
from growbox_app.safety.network import host_problem
from growbox_app.safety.places import Places, denied
from growbox_app.safety.programs import (
    AWK_LENGTH_MAX,
    AWK_PRINT,
    LOCAL_PIP,
    PACKAGE_RUNNERS,
    PRIVILEGE,
    PROGRAMS,
    RUNNERS,
    RUNS_CODE,
    SAYS_VERSION,
    SHELLS,
    SPEAKING_TASKS,
    SPEAKS,
    SYSTEM,
    TASK_FIRST,
    WRAPPERS,
    Arguments,
    FindActions,
    Program,
    Use,
    find_actions,
    find_places,
    parse_arguments,
    plain_sed,
    speaking_task,
)
from growbox_app.safety.sensitive import is_repository_inside, sensitive
from growbox_app.safety.shell_words import SimpleCommand, Word, read_script
from growbox_app.safety.values import Finding, Grant, GrantKind, Rules

FOLDERS_MAX = 16
FOLDERS_MAX_INSIDE = 4
PATHS_MAX = 4_000
PEELS_MAX = 16
PIECES_MAX = 200
MISREAD = frozenset({"syntax", "connection"})
SCHEME_MAX = 20
FORMS = frozenset({"cd", "pushd", "find", "awk", "git", "eval"})
WILD_PARTS_MAX = 3
WORDS_MAX = 500
NESTING_MAX = 3
UNSURE_PATTERN = re.compile(r"(^|/)\.[^/]*[*?]|[*?].*/\.\.(/|$)")
"""Patterns that may match `..`, or go back from where a link led."""
PROGRAM = re.compile(r"/(usr/)?(local/)?bin/[\w+\-]+")
PROGRAM_FOLDERS = re.compile(r"(/usr)?(/local)?/s?bin/|/opt/homebrew/bin/")


def judge_command(command: str, cwd: str | None, rules: Rules) -> Iterator[Finding]:
    """What speaks against running a command."""
    if cwd is None:
        yield denied("no_project")
        return
    yield from Places(rules).looks(cwd)
    judge = _Judge([cwd], rules)
    yield from judge.text(command)
    if judge.effort.spent:
        yield denied("not_understood", construct="length")


def judge_parts(command: str, cwd: str, rules: Rules) -> Iterator[tuple[str, tuple[Finding, ...]]]:
    """Each simple command of a command line as it is written, and what speaks against it alone; for a reader, not for the verdict."""
    judge = _Judge([cwd], rules)
    for simple in read_script(command).commands:
        yield simple.text, tuple(judge.command(simple))


def unknown(reason: str, **details: str) -> Finding:
    """A finding that only the user, and only once, can settle."""
    return Finding(reason=reason, risk=Risk.UNKNOWN, details=details)


class _Effort:
    """How much is looked at for one command line. One that needs more is made to wear out its judge, and is denied."""

    def __init__(self) -> None:
        self._left = PATHS_MAX

    def take(self) -> bool:
        """Whether one more may be looked at."""
        self._left -= 1
        return self._left >= 0

    def give_up(self) -> None:
        """Nothing more is looked at."""
        self._left = -1

    @property
    def spent(self) -> bool:
        """Whether something was not looked at."""
        return self._left < 0


class _Judge:
    """One command line being judged: the folders it may be in by now, and what it has done so far."""

    def __init__(
        self, folders: Sequence[str], rules: Rules, nesting: int = 0, effort: _Effort | None = None
    ) -> None:
        self._rules = rules
        self._nesting = nesting
        self._places = Places(rules)
        self._folders = list(folders)
        self.effort = effort or _Effort()
        self._rearranges = self._changes = self._patterns = False
        self._forms: Mapping[str, Callable[[list[str]], Iterator[Finding]]] = {
            "cd": self._change_folder,
            "pushd": self._push_folder,
            "find": self._find,
            "awk": self._awk,
            "git": self._git,
            "eval": self._eval,
        }

    def text(self, text: str) -> Iterator[Finding]:
        """Judges all of a command line."""
        script = read_script(text)
        for oddity in script.oddities:
            yield unknown("not_understood", construct=oddity)
        if not script.commands:
            yield unknown("not_understood", construct="empty")
        commands = list(script.commands)
        if MISREAD & set(script.oddities):  # what stands behind it may have been swallowed
            pieces = re.split(r"[;&|\n()`]+", text)[:PIECES_MAX]
            commands += [simple for piece in pieces for simple in read_script(piece).commands]
        for simple in commands:
            yield from self.command(simple)
        if len(script.commands) > 1 and self._rearranges:
            yield unknown("rearranges")
        if self._changes and self._patterns:
            yield unknown("pattern_after_change")

    def command(self, command: SimpleCommand) -> Iterator[Finding]:
        """Judges one simple command with its redirections."""
        for redirect in command.redirects:
            paths, is_all = self._expand((redirect.target,))
            if not is_all:
                yield unknown("dynamic")
            for path in filter(None, paths):
                yield from self._write(path, ">") if redirect.writes else self._read(path)
        if command.words:
            words, is_all = self._expand(command.words)
            if not is_all:
                yield unknown("dynamic")
                yield from self._loose_arguments(words[1:])
                if not words[0]:
                    return
            if len(words) > WORDS_MAX:
                yield unknown("not_understood", construct="length")
            yield from self._program(words)

    def _expand(self, words: Sequence[Word]) -> tuple[list[str], bool]:
        """The arguments as the program gets them, and whether these are all: empty are those that depend on something that runs."""
        result: list[str] = []
        is_all = True
        for word in words:
            if word.text is None:
                found = None
            elif word.pattern is not None:
                found = self._match(word) if len(result) <= WORDS_MAX else None
            else:
                found = [self._places.home + word.text[1:] if word.home else word.text]
            is_all = is_all and found is not None
            result += found if found is not None else [word.text or ""]
        return result, is_all

    def _match(self, word: Word) -> list[str] | None:
        if word.home or word.pattern is None or word.text is None:
            return None
        wild = sum("*" in part or "?" in part for part in word.text.split("/"))
        if UNSURE_PATTERN.search(word.text) or wild > WILD_PARTS_MAX:
            return None
        self._patterns = True
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
        """Programs that run others are peeled off one by one."""
        rest: list[str] | None = words
        peels = 0
        while rest:
            peels += 1
            if peels > PEELS_MAX:
                self.effort.give_up()
                return
            name, arguments = rest[0], rest[1:]
            match = PROGRAM_FOLDERS.match(name)
            name = name[match.end() :] if match else name
            if name in WRAPPERS or name in RUNNERS:
                findings, rest = self._peeled(name, arguments)
            elif "/" in name and not name.startswith("./"):
                findings = [unknown("unlisted_program", program=name)]
                findings += self._loose_arguments(rest)
                base = name.rpartition("/")[2]
                rest = [base, *arguments] if _is_known(base) else None
            else:
                yield from self._named(name, arguments)
                return
            yield from findings

    def _named(self, name: str, arguments: list[str]) -> Iterator[Finding]:
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
        elif name in SHELLS:
            yield from self._shell(name, arguments)
        elif name in SPEAKS:
            yield from self._speaks(name, arguments)
        elif name in RUNS_CODE or name.startswith("./"):
            yield from self._code(name, arguments)
        else:
            yield unknown("unlisted_program", program=name)
            yield from self._loose_arguments([name, *arguments])

    def _known(self, name: str, program: Program, words: list[str]) -> Iterator[Finding]:
        if words in (["--help"], ["--version"]):
            return
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
            suffixes = ["", *(value for option, value in arguments.values if option == "i")]
            if any(set("*/") & set(suffix) for suffix in suffixes):
                yield unknown("unlisted_option", program=name)
            for path in operands:
                for suffix in suffixes:
                    yield from self._write(path + suffix, name)

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
        self._rearranges = self._rearranges or use is Use.MOVE or folders
        *sources, target = operands or [""]
        for source in sources:
            read = self._places.reads_below if folders else self._places.reads
            yield from self._each(source, read)
            if use is Use.MOVE:
                yield from self._write(source, name)
            yield from self._write(f"{target}/{source.rstrip('/').rpartition('/')[2]}", name)
        yield from self._write(target, name)

    def _change_folder(self, words: list[str]) -> Iterator[Finding]:
        if words and words[0] in {"-P", "-L", "--"}:
            words = words[1:]
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

    def _push_folder(self, words: list[str]) -> Iterator[Finding]:
        yield unknown("unlisted_program", program="pushd")
        yield from self._change_folder(words)

    def _find(self, words: list[str]) -> Iterator[Finding]:
        places = find_places(words)
        if places is None:
            yield unknown("runs_text", program="find")
            yield from self._loose_arguments(words)
            yield from self._find_actions(find_actions(words))
        for place in places or ():
            yield from self._each(place, self._places.looks)

    def _find_actions(self, actions: FindActions) -> Iterator[Finding]:
        """What it runs may get every place that it looks into."""
        for path in (*actions.files, *(actions.places if actions.deletes else ())):
            yield from self._write(path, "find")
        for command in actions.commands[:NESTING_MAX]:
            for place in actions.places:
                words = [word.replace("{}", place) for word in command]
                if words and self.effort.take():
                    yield from self._inner_words(words)

    def _awk(self, words: list[str]) -> Iterator[Finding]:
        rest = list(words)
        if rest and rest[0].startswith("-F"):
            rest = rest[1:] if len(rest[0]) > 2 else rest[2:]
        program = rest[0].strip() if rest and len(rest[0]) < AWK_LENGTH_MAX else ""
        if not AWK_PRINT.fullmatch(program):
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

    def _peeled(self, name: str, words: list[str]) -> tuple[list[Finding], list[str] | None]:
        """What speaks against a program that runs the rest of its words, and that rest; None: it runs nothing that is known."""
        rest = list(words)
        if name in WRAPPERS:
            if name == "command" and rest[:1] in (["-v"], ["-V"]):
                return [], None
            if rest and WRAPPERS[name](rest[0]):
                rest.pop(0)
            if rest and not rest[0].startswith("-") and not (name == "timeout" and rest == words):
                return [], rest
        reason = "unlisted_option" if name in WRAPPERS else "unlisted_program"
        findings = [unknown(reason, program=name), *self._loose_arguments(words)]
        for word in words:
            if re.search(r"\s", word):  # a command line in one word
                findings += self._inner(word.partition("=")[2] if name == "alias" else word)
        first = next((i for i, word in enumerate(words) if _is_known(_base(word))), None)
        return findings, None if first is None else words[first:]

    def _shell(self, name: str, words: list[str]) -> Iterator[Finding]:
        yield unknown("runs_text", program=name)
        yield from self._loose_arguments(words)
        for before, word in pairwise(["", *words]):
            if re.search(r"\s", word) or re.fullmatch(r"-\w*c\w*", before):
                yield from self._inner(word)

    def _eval(self, words: list[str]) -> Iterator[Finding]:
        yield unknown("runs_text", program="eval")
        yield from self._inner(" ".join(words))

    def _inner(self, text: str) -> Iterator[Finding]:
        """What a text would do if it runs: it stays unknown, but may hold something worth a denial."""
        inner = self._deeper()
        if inner is not None:
            yield from inner.text(text)

    def _inner_words(self, words: list[str]) -> Iterator[Finding]:
        inner = self._deeper()
        if inner is not None:
            yield from inner._program(words)

    def _deeper(self) -> _Judge | None:
        """A judge for what runs within; it changes no folder out here."""
        if self._nesting >= NESTING_MAX:
            return None
        folders = self._folders[:FOLDERS_MAX_INSIDE]
        return _Judge(folders, self._rules, self._nesting + 1, self.effort)

    def _code(self, name: str, words: list[str]) -> Iterator[Finding]:
        """A program that runs the project's code, and so can do anything the sandbox does not keep it from."""
        if name in SAYS_VERSION and words in (["--version"], ["-V"]):
            return
        yield from self._loose_arguments([name, *words])
        yield from self._into_repository(words)
        shape = _shape(name, words)
        if speaking_task(name, words):
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

    def _into_repository(self, words: list[str]) -> Iterator[Finding]:
        """A file to write into may stand in any option; `.git` itself may be named to be left out."""
        for part in _parts(words):
            for path in self._absolutes(part):
                above = posixpath.dirname(posixpath.normpath(path))
                if "/" in part and is_repository_inside(above):
                    yield denied("repository", part)

    def _speaks(self, name: str, words: list[str]) -> Iterator[Finding]:
        if name in {"pip", "pip3"} and words[:1] == ["--version"]:
            return
        offline = self._rules.offline
        if name in {"pip", "pip3"} and words and words[0] in LOCAL_PIP:
            yield Finding(
                reason="runs_code",
                risk=Risk.IRREVERSIBLE,
                covers=(Grant(kind=GrantKind.COMMAND, value=f"{name} {words[0]}"),),
                details={"command": f"{name} {words[0]}"},
            )
            yield from self._loose_arguments(words)
            return
        yield Finding(
            reason="command_offline" if offline else "command_network",
            risk=Risk.IRREVERSIBLE,
            denied=offline,
            details={"program": name},
        )
        yield from self._loose_arguments(words)

    # -- paths ----------------------------------------------------------------------------------

    def _absolutes(self, path: str) -> list[str]:
        """The places that a path may mean, while there is effort left."""
        return [
            self._places.absolute(path, folder) for folder in self._folders if self.effort.take()
        ]

    def _is_folder(self, path: str) -> bool:
        return self._rules.disk.is_folder(path)

    def _each(self, path: str, judge: Callable[[str], Iterator[Finding]]) -> Iterator[Finding]:
        for place in self._absolutes(path):
            yield from judge(place)

    def _read(self, path: str) -> Iterator[Finding]:
        yield from self._each(path, self._places.reads)

    def _write(self, path: str, program: str) -> Iterator[Finding]:
        grant = Grant(kind=GrantKind.COMMAND, value=program)
        for finding in self._each(path, lambda place: self._places.writes(place, grant)):
            self._changes = True
            yield finding

    def _loose_arguments(self, words: Sequence[str]) -> Iterator[Finding]:
        """Paths and hosts that stand anywhere in words which are not understood: sensitive ones are denied all the same."""
        for word in words:
            before, separator, after = word.partition("://")
            if separator:
                scheme = re.search(r"\w*\Z", before[-SCHEME_MAX:])
                url = f"{scheme[0] if scheme else ''}://{after}"
                if url.startswith("file://"):
                    yield from self._loose_path(after)
                if host_problem(url) in {"local", "credentials"}:
                    yield Finding(
                        reason=f"host_{host_problem(url)}",
                        risk=Risk.IRREVERSIBLE,
                        denied=True,
                        details={"host": url},
                    )
                continue
            for part in _parts([word]):
                yield from self._loose_path(part)

    def _loose_path(self, part: str) -> Iterator[Finding]:
        if not part or PROGRAM.fullmatch(part):
            return
        home = self._places.home
        path = home + part[1:] if part == "~" or part.startswith("~/") else part
        for absolute in self._absolutes(path):
            for finding in self._places.reads(absolute):
                if finding.denied and finding.reason == "sensitive":
                    yield finding
                elif "/" in path or path == ".." or finding.denied:
                    yield unknown("reads_outside", path=part)


def _parts(words: Sequence[str]) -> list[str]:
    """Everything in words that may be a path."""
    found = (
        part
        for word in words
        if "://" not in word
        for part in (word, *re.split(r"[=@,:<>\s'\"();]|^-\w", word))
    )
    return list(dict.fromkeys(filter(None, found)))


def _base(word: str) -> str:
    return word.rpartition("/")[2]


def _is_known(name: str) -> bool:
    """Whether a name would be judged as a program of its own kind."""
    known = (PRIVILEGE, SYSTEM, PROGRAMS, SHELLS, SPEAKS, RUNS_CODE, WRAPPERS, RUNNERS, FORMS)
    return any(name in names for names in known)


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
        if words and words[0] in {"test", "start"}:
            return f"{name} {words[0]}"
        return _speaking(name, words)
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
