"""Known trouble with models, with every field that a sentence may want.

`reason` is worded here, in the language in force; `detail` stays as the machine said it. Any thread.
"""

from __future__ import annotations

from growbox_app.api import Problem, ProblemCode, ProblemError
from growbox_app.models.catalogue import Model
from growbox_app.text import tr


def trouble(
    code: ProblemCode, model: Model, *, reason: str = "", detail: str = "", **fields: str
) -> ProblemError:
    """The error to raise.

    Args:
        code: what kind of trouble.
        model: the model it is about.
        reason: a key of `models.reason` in the translations; empty when the code says it all.
        detail: what the machine said, to be copied.
        fields: more fields: path, file, host, need, free.
    """
    known = {"model": model.name, "file": model.file, "path": "", "host": "", **fields}
    known["reason"] = tr(f"models.reason.{reason}", **known) if reason else detail
    return ProblemError(Problem(code=code, fields=known, detail=detail))


def why_not_gguf(head: bytes) -> str:
    """The reason for a file that starts with `head`, which is not how a model starts: often it is a log-in page."""
    return "html" if head.lstrip().startswith(b"<") else "not_gguf"
