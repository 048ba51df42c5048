"""What every executor that changes one file does with its plan. Stateless; the disk is touched on worker threads."""

from __future__ import annotations

import asyncio

from growbox_app.executors.base import CallContext, FileChange, Plan
from growbox_app.executors.syntax import complaint, mended
from growbox_app.executors.text_files import write_change


def planned(change: FileChange, context: CallContext) -> Plan:
    """A plan of one change, its obvious mistake mended. Blocking."""
    return Plan(changes=(mended(change, context.cancelled.is_set),))


async def written(plan: Plan, context: CallContext) -> tuple[FileChange, str]:
    """Writes the one change of a plan, if the file is still what it was; returns it, and what is wrong with the file now ("" for nothing).

    Raises:
        CallFailed: the file has changed meanwhile, or cannot be written.
    """
    change = plan.changes[0]
    await asyncio.to_thread(write_change, change)
    return change, await asyncio.to_thread(complaint, change, context.cancelled.is_set)
