"""What servers say when they cannot answer, as problems with a sentence.

Pure. A server's own words are bounded and shown as a quotation, never obeyed; secrets are taken out by who tells the user.
"""

from __future__ import annotations

import json
import re
from typing import Any

from growbox_app.api import Problem, ProblemCode, ProblemError

WORDS_MAX = 300
_TAGS = re.compile(r"<[^>]{0,400}>")
_CONTEXT = re.compile(
    r"context[ _-]?(length|size|window)|exceed\w* (the )?(available )?context|maximum context|prompt is too long"
    r"|input is too long|too many (input )?tokens|exceeds? the (model'?s )?max\w* (input |context )?(length|tokens)",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"(?:context (?:length|window|size) (?:is|of)(?: only)?|max_model_len\W{0,3}|n_ctx\W{0,3}) ?\(?(\d{3,8})",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"(?:requested(?: about)?|has|contains(?: at least)?|tokens \() ?\(?(\d{3,8})", re.IGNORECASE
)


class ContextTooLong(Exception):
    """The prompt does not fit into the server's context. What it says of its size and the prompt's, 0 where it says nothing."""

    def __init__(self, limit: int, asked: int) -> None:
        super().__init__(f"{asked} tokens, {limit} fit")
        self.limit = limit
        self.asked = asked


class NothingCame(Exception):
    """A stream ended before its first word, and without a reason: llama-cpp-python's server tells one only where nothing is streamed."""


class FieldRefused(Exception):
    """The server does not know a field of the request, or does not want it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def words_of(text: str) -> tuple[str, dict[str, Any]]:
    """The message in an error's body, and the error as an object where it is one."""
    try:
        value = json.loads(text)
    except ValueError:
        plain = " ".join(_TAGS.sub(" ", text).split())
        return plain[:WORDS_MAX], {}
    return words_in(value)


def words_in(value: Any) -> tuple[str, dict[str, Any]]:
    """The same of a parsed body: `error` as object or text, FastAPI's `detail`, a bare message."""
    if isinstance(value, list) and value:
        return words_in(value[0])
    if not isinstance(value, dict):
        return str(value)[:WORDS_MAX], {}
    inner = value.get("error", value)
    if isinstance(inner, str):
        return inner[:WORDS_MAX], value
    if not isinstance(inner, dict):
        inner = value
    said = inner.get("message") or inner.get("detail") or inner.get("msg") or inner.get("error")
    words = said if isinstance(said, str) else json.dumps(said or inner, ensure_ascii=False)
    return " ".join(words.split())[:WORDS_MAX], inner


def context_error(words: str, error: dict[str, Any]) -> ContextTooLong | None:
    """Whether an error says that the prompt was too long."""
    kind = f"{error.get('code', '')} {error.get('type', '')}"
    if not _CONTEXT.search(words) and "context" not in kind:
        return None
    limit, asked = _LIMIT.search(words), _ASKED.search(words)
    return ContextTooLong(
        _number(error.get("n_ctx")) or (int(limit.group(1)) if limit else 0),
        _number(error.get("n_prompt_tokens")) or (int(asked.group(1)) if asked else 0),
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


_BY_STATUS = {
    401: ProblemCode.ENDPOINT_KEY,
    403: ProblemCode.ENDPOINT_KEY,
    404: ProblemCode.ENDPOINT_MODEL,
    408: ProblemCode.ENDPOINT_TIMEOUT,
    429: ProblemCode.ENDPOINT_BUSY,
    502: ProblemCode.ENDPOINT_BUSY,
    503: ProblemCode.ENDPOINT_BUSY,
    504: ProblemCode.ENDPOINT_TIMEOUT,
}
_REFUSALS = frozenset({400, 413, 422, 500, 501})


def refusal(status: int, said: tuple[str, dict[str, Any]], fields: dict[str, str]) -> Exception:
    """The error behind an answer that is not 200, by what `words_of` found in it: `ContextTooLong`, `FieldRefused` or a `ProblemError`."""
    words, error = said
    if status in _REFUSALS:
        too_long = context_error(words, error)
        if too_long is not None:
            return too_long
        if status != 413 and words:
            return FieldRefused(words)
    code = _BY_STATUS.get(status, ProblemCode.ENDPOINT_ERROR)
    reason = words or f"HTTP {status}"
    return problem(code, fields | {"reason": reason, "status": str(status)}, words)


def problem(code: ProblemCode, fields: dict[str, str], detail: str = "") -> ProblemError:
    """A problem to raise."""
    return ProblemError(Problem(code=code, fields=fields, detail=detail))
