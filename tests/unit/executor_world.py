"""A project folder for executors, and one call in it: plan, then run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

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
