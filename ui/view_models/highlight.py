"""Code as coloured pieces: Pygments tokens mapped to the theme's few code colours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType
from pygments.util import ClassNotFound

# Colouring more than this would cost frames even when it is only inserting; longer code stays plain.
HIGHLIGHT_CHARACTERS_MAX = 20_000

_ALIASES = {
    "sh": "bash",
    "shell": "bash",
    "zsh": "bash",
    "py": "python",
    "js": "javascript",
    "ts": "typescript",
}
_EXTENSIONS = {
    "bash": "sh", "python": "py", "javascript": "js", "typescript": "ts", "rust": "rs", "markdown": "md",
    "c++": "cpp", "cpp": "cpp", "c": "c", "go": "go", "java": "java", "json": "json", "yaml": "yaml", "toml": "toml",
    "html": "html", "css": "css", "sql": "sql", "diff": "diff", "ruby": "rb", "kotlin": "kt", "swift": "swift",
}  # fmt: skip
_KINDS: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "code_comment"),
    (String, "code_string"),
    (Number, "code_number"),
    (Keyword, "code_keyword"),
    (Operator.Word, "code_keyword"),
    (Name.Function, "code_name"),
    (Name.Class, "code_name"),
    (Name.Tag, "code_name"),
    (Name.Builtin, "code_builtin"),
    (Name.Decorator, "code_builtin"),
    (Name.Attribute, "code_builtin"),
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of code in one colour; `token` is a theme colour name or empty for plain text."""

    text: str
    token: str = ""


def full_name(language: str) -> str:
    """The usual name of a language (`py` → `python`)."""
    return _ALIASES.get(language.lower(), language.lower())


def file_extension(language: str) -> str:
    """The usual file extension of a language, without the dot."""
    return _EXTENSIONS.get(full_name(language), "txt")


def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(full_name(language), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _kind(token: _TokenType) -> str:
    return next((name for family, name in _KINDS if family in token.split()), "")


def pieces(text: str, language: str) -> Iterator[Piece]:
    """The code in coloured runs; together they are exactly `text`."""
    lexer = _lexer(language) if language and len(text) <= HIGHLIGHT_CHARACTERS_MAX else None
    if lexer is None:
        yield Piece(text)
        return
    pending, colour = "", ""
    for token, value in lexer.get_tokens(text):
        kind = _kind(token)
        if kind != colour and pending:
            yield Piece(pending, colour)
            pending = ""
        pending, colour = pending + value, kind
    if pending:
        yield Piece(pending, colour)
