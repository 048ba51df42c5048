"""A shell command as words: every simple command in it, wherever it hides, and everything that was not understood.

tree-sitter-bash finds the structure. It is a second-hand grammar, not a shell, so nothing of it is taken on trust: every byte must
belong to a word that reads one way only or to a known operator, the gaps between words must be blanks, and whatever else is found
becomes an *oddity*, which makes the command unknown. Commands inside oddities are still listed: they may be worth a denial.

Pure; any thread.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from growbox_app.safety.paths import strange_characters

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Tree

DEPTH_MAX = 40
LENGTH_MAX = 100_000
CHAINS = frozenset({"list", "pipeline"})
STRUCTURE = frozenset({"program", "list", "pipeline", "subshell", "redirected_statement"})
CONNECTORS = frozenset({"&&", "||", ";", "|", "(", ")", "!", "\n"})
OPERATORS = frozenset({">", ">>", ">|", "<", ">&", "<&", "&>", "&>>", ">&-", "<&-"})
REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
HARMLESS_VARIABLES = frozenset(
    ["LANG", "LC_ALL", "LC_CTYPE", "TZ", "NO_COLOR", "CI", "COLUMNS", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"]
)  # fmt: skip
BETWEEN_WORDS = re.compile(r"[ \t](?:[ \t]|(?<=[ \t])\\\n)*")
BETWEEN_COMMANDS = re.compile(r"(?:[ \t\n]|(?<=[ \t])\\\n)*")
PLAIN = re.compile(r"(?:[^\s;&|<>()$`\"'\\{}\[\]]|\\[^\n])+")
QUOTED = re.compile(r'"(?:[^"\\$`]|\\[^\n])*"')
LITERAL = re.compile(r"'[^']*'")
HERE_END = re.compile(r"'[A-Za-z_]\w*'|\"[A-Za-z_]\w*\"|[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One argument after quotes are gone. `text` None: it depends on something that runs. `pattern`: it is a glob, escaped."""

    text: str | None
    pattern: str | None = None
    home: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """One redirection to or from a file."""

    writes: bool
    target: Word


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleCommand:
    """A program with its arguments, and what its own redirections touch. `text` is how it is written."""

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()
    text: str = ""


@dataclass(slots=True)
class Script:
    """All commands of a script, in the order in which they stand."""

    commands: list[SimpleCommand] = field(default_factory=list)
    oddities: list[str] = field(default_factory=list)


def _parsed(source: bytes) -> Tree:
    """The parser is loaded with the first command: the window need not wait for it."""
    from tree_sitter import Parser

    return Parser(_bash()).parse(source)


@cache
def _bash() -> Language:
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def read_script(text: str) -> Script:
    """Takes a command apart. Never fails: what cannot be read is an oddity."""
    script = Script()
    if len(text) > LENGTH_MAX or strange_characters(re.sub(r"[\n\t]", " ", text)):
        script.oddities.append("characters")
    if len(text) > LENGTH_MAX or re.search(r"[\0\ud800-\udfff]", text):
        return script
    source = text.encode("utf-8")
    root = _parsed(source).root_node
    if root.has_error or source[: root.start_byte].strip() or source[root.end_byte :].strip():
        script.oddities.append("syntax")
    _Reader(source, script).structure(root, 0)
    return script


class _Reader:
    """Walks the tree of one script."""

    def __init__(self, source: bytes, script: Script) -> None:
        self._source = source
        self._script = script

    def structure(self, node: Node, depth: int) -> None:
        """Visits a node that may hold commands, in their order; a stack, because a list nests as deep as it is long."""
        waiting = [(node, depth)]
        while waiting:
            here, depth = waiting.pop()
            deeper = depth if here.type in CHAINS else depth + 1
            waiting += [(child, deeper) for child in reversed(self._visit(here, depth))]

    def _visit(self, node: Node, depth: int) -> list[Node]:
        """Reads one node; what in it is still to be visited."""
        if depth > DEPTH_MAX:
            self._odd("depth")
        elif node.type == "command":
            self._command(node, depth)
        elif node.type in REDIRECTS:
            self._redirect_alone(node, depth)
        elif node.type in STRUCTURE or node.type == "negated_command":
            self._check_connections(node)
            return node.named_children
        elif node.type != "comment":
            if node.is_named:
                self._odd(node.type)
            return node.named_children
        return []

    def _odd(self, kind: str) -> None:
        if kind not in self._script.oddities:
            self._script.oddities.append(kind)

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _gap(self, left: Node, right: Node) -> str:
        return self._source[left.end_byte : right.start_byte].decode("utf-8", "replace")

    def _check_connections(self, node: Node) -> None:
        """Two commands need an operator or a new line between them, and nothing else may be there."""
        children = node.children
        self._check_edges(node)
        for child in children:
            if not child.is_named and child.type not in CONNECTORS:
                self._odd(child.type)
        for left, right in pairwise(children):
            gap = self._gap(left, right)
            if not BETWEEN_COMMANDS.fullmatch(gap) or not _apart(left, right, gap):
                self._odd("connection")

    def _check_edges(self, node: Node) -> None:
        r"""The grammar skips `\ ` as if it were a blank, even at the end: nothing may be left over around the children."""
        children = node.children
        before = children[0].start_byte if children else node.end_byte
        after = children[-1].end_byte if children else node.end_byte
        edges = self._source[node.start_byte : before] + self._source[after : node.end_byte]
        if edges.strip():
            self._odd("connection")

    def _command(self, node: Node, depth: int) -> None:
        self._check_edges(node)
        words: list[Word] = []
        redirects: list[Redirect] = []
        for child in node.children:
            if child.type == "variable_assignment":
                self._assignment(child)
            elif child.type in REDIRECTS:
                redirects += self._redirect(child)
            else:
                words.append(self._word(child))
        for left, right in pairwise(node.children):
            blanks = r"[ \t]*" if right.type in REDIRECTS else BETWEEN_WORDS
            if not re.fullmatch(blanks, self._gap(left, right)):
                self._odd("connection")
        self._script.commands.append(
            SimpleCommand(words=tuple(words), redirects=tuple(redirects), text=self._text(node))
        )
        self._hidden(node, depth)

    def _redirect_alone(self, node: Node, depth: int) -> None:
        redirects = tuple(self._redirect(node))
        self._script.commands.append(
            SimpleCommand(words=(), redirects=redirects, text=self._text(node))
        )
        self._hidden(node, depth)

    def _hidden(self, node: Node, depth: int) -> None:
        """Commands inside the words of a command: substitutions, and what a here-document would run."""
        if depth > DEPTH_MAX:
            self._odd("depth")
            return
        for child in node.named_children:
            if child.type in {"command_substitution", "process_substitution"}:
                self._odd(child.type)
                for inner in child.named_children:
                    self.structure(inner, depth + 2)
            elif child.type == "pipeline" or child.type == "command":
                self._odd("here_document")
                self.structure(child, depth + 1)
            else:
                self._hidden(child, depth + 1)

    def _assignment(self, node: Node) -> None:
        name, _, value = self._text(node).partition("=")
        if name not in HARMLESS_VARIABLES or not re.fullmatch(r"[\w.\-/]*", value):
            self._odd("assignment")

    def _redirect(self, node: Node) -> Iterator[Redirect]:
        if node.type == "herestring_redirect":
            if any(self._word(child).text is None for child in node.named_children):
                self._odd("here_document")
            return
        if node.type == "heredoc_redirect":
            yield from self._here_document(node)
            return
        operators = [child.type for child in node.children if not child.is_named]
        targets = [child for child in node.named_children if child.type != "file_descriptor"]
        if len(operators) != 1 or operators[0] not in OPERATORS or len(targets) > 1:
            self._odd("redirection")
        for target in targets:
            word = self._word(target)
            copies = operators[-1:] in ([">&"], ["<&"]) and re.fullmatch(r"\d|-", word.text or "")
            if not copies:
                yield Redirect(writes=not (operators and operators[0].startswith("<")), target=word)

    def _here_document(self, node: Node) -> Iterator[Redirect]:
        start = next((child for child in node.children if child.type == "heredoc_start"), None)
        mark = self._text(start) if start else ""
        rest = self._source[start.end_byte if start else 0 :].decode("utf-8", "replace")
        _, _, lines = rest.partition("\n")
        end = mark.strip("'\"")
        ends = [child for child in node.children if child.type == "heredoc_end"]
        body = re.match(rf"(?s)(?:.*?\n)?{re.escape(end)}(?=\n|\Z)", lines) if end else None
        real = len(self._source) - len(lines.encode()) + len(body.group().encode()) if body else -1
        if not HERE_END.fullmatch(mark) or len(ends) != 1 or ends[0].end_byte != real:
            self._odd("here_document")
        if body and mark == end and re.search(r"[$`\\]", body.group()):
            self._odd("here_document")
        for child in node.named_children:
            if child.type in REDIRECTS:
                yield from self._redirect(child)
            elif child.type not in {"heredoc_start", "heredoc_body", "heredoc_end"}:
                self._odd("here_document")

    def _word(self, node: Node) -> Word:
        node = node.children[0] if node.type == "command_name" and node.children else node
        if node.type != "concatenation":
            return _single(self._text(node), node.type)
        if self._text(node) == "{}":  # what `find` and `xargs` put a name in place of
            return Word(text="{}")
        parts = [_single(self._text(child), child.type) for child in node.children]
        joined = b"".join(self._source[c.start_byte : c.end_byte] for c in node.children)
        if joined != self._source[node.start_byte : node.end_byte] or any(
            part.text is None for part in parts
        ):
            return Word(text=None)
        pattern = None
        if any(part.pattern for part in parts):
            pattern = "".join(part.pattern or glob.escape(part.text or "") for part in parts)
        if any(part.home for part in parts[1:]) or (parts[0].home and parts[0].text == "~"):
            return Word(text=None)
        text = "".join(part.text or "" for part in parts)
        return Word(text=text, pattern=pattern, home=parts[0].home)


def _apart(left: Node, right: Node, gap: str) -> bool:
    """Whether something ends one command before the next begins."""
    if not (left.is_named and right.is_named) or "\n" in gap:
        return True
    if right.type in REDIRECTS or right.type == "comment":
        return True
    return any(part.type == "heredoc_redirect" for part in _family(left))


def _family(node: Node) -> Iterator[Node]:
    """A node and the commands and redirections it is made of; a stack, because lists nest as deep as they are long."""
    waiting = [node]
    while waiting:
        here = waiting.pop()
        yield here
        waiting += [
            child
            for child in here.named_children
            if child.type in STRUCTURE | REDIRECTS | {"command"}
        ]


def _single(raw: str, kind: str) -> Word:
    """One piece of a word; a piece that does not read one way only has no text."""
    if kind == "raw_string" and LITERAL.fullmatch(raw):
        return Word(text=raw[1:-1])
    if kind == "string" and QUOTED.fullmatch(raw):
        return Word(text=re.sub(r'\\([\\"$`])', r"\1", raw[1:-1]))
    if kind in {"word", "number"} and PLAIN.fullmatch(raw):
        return _plain(raw)
    return Word(text=None)


def _plain(raw: str) -> Word:
    text, pattern, special = "", "", False
    for piece in re.findall(r"\\?.", raw, flags=re.DOTALL):
        if piece in {"*", "?"}:
            special = True
            pattern += piece
        else:
            pattern += glob.escape(piece[-1])
        text += piece[-1]
    home = raw == "~" or raw.startswith("~/")
    if not home and (raw.startswith(("~", "#")) or re.search(r"[=:,]~", raw)):
        return Word(text=None)
    return Word(text=text, pattern=pattern if special else None, home=home)
