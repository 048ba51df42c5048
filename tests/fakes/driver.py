"""Drives a memory generator: the smallest host there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from memory.requests import (
    Judgement,
    NeedEmbeddings,
    NeedText,
    NeedVerdicts,
    Operation,
    Written,
    Yield,
)
from tests.fakes.embedder import HashEmbedder

T = TypeVar("T")


def drive(
    operation: Operation[T],
    embedder: HashEmbedder,
    judge: Callable[[NeedVerdicts], Judgement | None] | None = None,
    writer: Callable[[NeedText], Written | None] | None = None,
) -> T:
    """Runs an operation to its end, answering each request at once; without a judge, or a writer, it is out."""
    reply = None
    while True:
        try:
            request = operation.send(reply)
        except StopIteration as stop:
            return stop.value
        match request:
            case NeedEmbeddings():
                reply = embedder.embed(request.texts, request.kind)
            case NeedVerdicts():
                reply = None if judge is None else judge(request)
            case NeedText():
                reply = None if writer is None else writer(request)
            case Yield():
                reply = None
