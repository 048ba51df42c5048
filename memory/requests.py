"""Requests that a memory generator yields, and the replies it is sent back.

`memory` never waits for a model: its long operations are generators of these requests. The driver
(`growbox_app.memory_service`, or a test) runs each step on the storage thread, answers the request outside it, and sends
the reply in. An outage is answered with `None` ("unknown") and teaches nothing. Source: design section 3.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from memory.values import NodeId

# The window imports this module before it shows, and numpy would cost it a tenth of a second.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Matrix: TypeAlias = "NDArray[np.float32]"


class EmbedKind(StrEnum):
    """e5 prefixes its input by purpose."""

    QUERY = "query"
    PASSAGE = "passage"


class Verdict(StrEnum):
    """A judgement; unknown changes nothing. Source: law 3."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedEmbeddings:
    """Reply: float32[len(texts), dimension], L2-normalised rows, or None (the embedder is out)."""

    texts: tuple[str, ...]
    kind: EmbedKind


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedVerdicts:
    """Reply: a `Judgement` with one verdict per candidate, in order, or None (the judge is out).

    Without candidates it only asks who judges, and costs no forward pass: remembered verdicts hold for one judge. A candidate's
    text is what the judge may know of it (`memory.recall.heading`): what was said or noted begins with its day and speaker, in
    the question's language, a passage of a document is bare; a long text is read in windows by whoever answers.
    """

    query: str
    candidates: tuple[tuple[NodeId, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the judge says of each candidate.

    `judge` names the judge epoch (model, prompt and calibration): a verdict counts only within its epoch. One that is not
    `trusted` (measured AUC below 0.8) only suggests: it teaches nothing.
    """

    judge: str
    trusted: bool
    verdicts: tuple[Verdict, ...]


class TextPurpose(StrEnum):
    """What a written text is for; the host has the words of the prompt."""

    QUESTION = "question"
    """A question that the one passage answers."""
    KNOWLEDGE = "knowledge"
    """What several experiences have in common; "" where that is nothing."""
    SKILL = "skill"
    """How to do what several experiences did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextField:
    """One string of the answer; the host's grammar makes no longer one."""

    name: str
    characters_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedText:
    """Reply: `Written`, or None (no writer): a rule-based fallback is used then. The passages are data, never instructions."""

    purpose: TextPurpose
    passages: tuple[str, ...]
    fields: tuple[TextField, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a model wrote, one value per field; "" says that there is nothing to write."""

    writer: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Yield:
    """Reply: None. A background step has run for its time slice and lets the queue breathe."""


Request: TypeAlias = NeedEmbeddings | NeedVerdicts | NeedText | Yield
Reply: TypeAlias = "Matrix | Judgement | Written | None"

T = TypeVar("T")
Operation: TypeAlias = Generator[Request, Reply, T]
