"""The one table that turns errors into problems with a sentence."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from growbox_app.api import Problem, ProblemCode, ProblemError
from growbox_app.engine.client import EngineDied
from growbox_app.engine.protocol import EngineFault
from growbox_app.text import Translator
from memory.errors import (
    BudgetExceeded,
    CorruptStore,
    DataFolderLocked,
    DataTooNew,
    MemoryEngineError,
    StorageError,
)

T = TypeVar("T")

_STORAGE = {
    "full": ProblemCode.DISK_FULL,
    "readonly": ProblemCode.DATA_UNWRITABLE,
    "io": ProblemCode.DATA_UNWRITABLE,
}


def problem_of(error: BaseException) -> Problem:
    """The problem behind an error; an unknown one is ours and says so."""
    match error:
        case ProblemError():
            return error.problem
        case EngineFault():
            return _engine_problem(error)
        case EngineDied():
            return Problem(code=ProblemCode.ENGINE_DIED, detail=str(error))
        case BudgetExceeded():
            fields = {"tokens": str(error.needed), "window": str(error.available)}
            return Problem(code=ProblemCode.PROMPT_TOO_LONG, fields=fields)
        case DataFolderLocked():
            fields = {"owner": error.owner, "path": str(error.path)}
            return Problem(code=ProblemCode.DATA_LOCKED, fields=fields)
        case DataTooNew():
            fields = {"found": str(error.found), "known": str(error.known)}
            return Problem(code=ProblemCode.DATA_TOO_NEW, fields=fields)
        case CorruptStore():
            fields = {"path": str(error.path)}
            return Problem(code=ProblemCode.DATA_CORRUPT, fields=fields, detail=error.detail)
        case StorageError():
            fields = {"path": str(error.path)}
            return Problem(code=_STORAGE[error.reason], fields=fields, detail=error.detail)
        case _:
            detail = f"{type(error).__name__}: {error}"
            return Problem(code=ProblemCode.INTERNAL, fields={"detail": detail}, detail=detail)


def _engine_problem(fault: EngineFault) -> Problem:
    known = fault.code in {code.value for code in ProblemCode}
    code = ProblemCode(fault.code) if known else ProblemCode.ENGINE_ERROR
    fields = {"reason": fault.detail or fault.code, **fault.fields}
    return Problem(code=code, fields=fields, detail=fault.detail)


async def guarded(work: Awaitable[T]) -> T:
    """Work of the memory's for a face: trouble there is a `ProblemError`."""
    try:
        return await work
    except MemoryEngineError as error:
        raise ProblemError(problem_of(error)) from error


def sentence(problem: Problem, translate: Translator) -> str:
    """What the user reads: what happened, what it means, what to do."""
    key = f"problem.{problem.code.value}"
    if problem.code is ProblemCode.DISK_FULL and not problem.fields.get("need"):
        key += "_plain"
    return translate(key).format_map(_Fields(problem.fields))


class _Fields(dict[str, str]):
    """A field that trouble did not supply shows as an ellipsis, never as a crash."""

    def __missing__(self, key: str) -> str:
        return "…"
