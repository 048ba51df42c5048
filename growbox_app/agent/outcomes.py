"""What calls came to, told to memory as experiences: of these the flywheel draws conclusions and proposes skills.

Beside the lessons (`growbox_app.routing`), which only advise for or against a next call. Texts are bounded, and what looks like a
secret is taken out; an experience names question and answer, so that it is forgotten with their conversation. Nothing is kept while
memory is paused, and a memory that cannot write costs the turn nothing. Event-loop thread. Source: design 5.5, seed item G33.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from growbox_app.audit_log import redacted
from growbox_app.executors.base import ExecutorResult
from growbox_app.memory_service import MemoryService
from growbox_app.routing.lessons import Situation
from memory.errors import MemoryEngineError
from memory.rest_values import Experience, ExperienceSource
from memory.text import normalise
from memory.values import NodeId

_LOG = logging.getLogger(__name__)

CHARACTERS_MAX = 600
OPERATION_CHARACTERS_MAX = 80
ARGUMENT_CHARACTERS_MAX = 200
_READ_CHARACTERS = 4_000


class Outcomes:
    """Records them."""

    def __init__(self, memory: MemoryService, *, paused: Callable[[], bool]) -> None:
        self._memory = memory
        self._paused = paused

    async def keep(
        self,
        situation: Situation,
        arguments: Mapping[str, str],
        result: ExecutorResult,
        node_ids: tuple[NodeId, ...],
    ) -> None:
        """One call that was really made: for which question, what was done, and what came of it."""
        context = _kept(situation.question)
        if self._paused() or not context:
            return
        done = ", ".join(
            redacted(value[:_READ_CHARACTERS])[:ARGUMENT_CHARACTERS_MAX]
            for value in arguments.values()
        )
        operation = " ".join(dict.fromkeys((situation.tool, situation.shape)))
        experience = Experience(
            source=ExperienceSource.EXECUTOR,
            operation=_kept(operation, OPERATION_CHARACTERS_MAX),
            context=context,
            outcome=_kept(f"{done}: {result.remembered()}"),
            success=result.ok,
            node_ids=node_ids,
        )
        try:
            await self._memory.call(lambda engine: engine.record_experience(experience))
        except MemoryEngineError:
            _LOG.warning("the outcome of a call could not be kept", exc_info=True)


def _kept(text: str, characters_max: int = CHARACTERS_MAX) -> str:
    """Redacted before it is cut: half a secret is not recognised any more."""
    return normalise(" ".join(redacted(text).split()))[:characters_max].strip()
