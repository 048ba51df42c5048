"""Drives a memory generator: the smallest host there is."""

from __future__ import annotations

from typing import TypeVar

from memory.requests import NeedEmbeddings, NeedVerdicts, Operation, Yield
from tests.fakes.embedder import HashEmbedder

T = TypeVar("T")


def drive(operation: Operation[T], embedder: HashEmbedder) -> T:
    """Runs an operation to its end, answering each request at once."""
    reply = None
    while True:
        try:
            request = operation.send(reply)
        except StopIteration as stop:
            return stop.value
        match request:
            case NeedEmbeddings():
                reply = embedder.embed(request.texts, request.kind)
            case NeedVerdicts() | Yield():
                reply = None
