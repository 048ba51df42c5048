"""A project folder for executors, and one call in it: plan, then run."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

import psutil

from growbox_app.executors.base import CallContext, Executor, ExecutorResult, Plan, Workspace
from memory.values import ConversationId

T = TypeVar("T")


def context_of(root: Path | None, *readable: Path, conversation: str = "c") -> CallContext:
    return CallContext(
        conversation_id=ConversationId(conversation),
        project_id=None,
        exclude=frozenset(),
        resident=frozenset(),
        workspace=Workspace(root=root, readable=readable),
    )


def wait(work: Awaitable[T]) -> T:
    async def run() -> T:
        return await work

    return asyncio.run(run())


async def called(executor: Executor, context: CallContext, /, **arguments: str) -> ExecutorResult:
    plan = await executor.plan(arguments, context)
    return plan if isinstance(plan, ExecutorResult) else await executor.run(plan, context)


def call(executor: Executor, root: Path | None, /, **arguments: str) -> ExecutorResult:
    return wait(called(executor, context_of(root), **arguments))


def planned(executor: Executor, root: Path, /, **arguments: str) -> Plan:
    plan = wait(executor.plan(arguments, context_of(root)))
    assert isinstance(plan, Plan), plan
    return plan


def failed(executor: Executor, root: Path | None, /, **arguments: str) -> str:
    """The text of a call that must fail."""
    result = call(executor, root, **arguments)
    assert not result.ok, result
    assert result.summary
    return result.text


def working_in(folder: Path) -> list[int]:
    """Processes that still work in a folder, or below it."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            alive = process.status() != psutil.STATUS_ZOMBIE
            if alive and Path(process.cwd()).is_relative_to(folder):
                found.append(process.pid)
    return found


def all_gone(folder: Path) -> bool:
    """Whether no process works there any more; one that was just killed may need a moment to vanish."""
    for _ in range(500):
        if not working_in(folder):
            return True
        threading.Event().wait(0.02)
    return False
