"""Tool memory: what fails, cannot work or works in a situation, learned from calls and asked before the next one.

A situation is a tool, in a project, for calls of one shape: the program and subcommand of a command line, or a foreign tool. The
advice is one probability – that the next call fails – from the endings seen so far: they fade, a success outweighs what was before
it, and the tool's own record elsewhere is the prior. Only what says something teaches: no outage, no stop, no denial, no wrong
argument. Pure but for the `Experience` it reads. Source: design 5.3.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from growbox_app.audit_log import redacted
from growbox_app.executors.base import ExecutorResult, Plan
from growbox_app.routing.experience import HOUR_MS, WORDS_MAX, Experience, Record
from memory.ports import Clock
from memory.text import content_terms, terms

VETO_FROM, WARN_FROM = 0.75, 0.5
"""Probabilities that the next call fails."""
PRIOR_STRENGTH = 2.0
"""Calls that the prior counts for."""
PRIOR_FAILING = 0.2
"""How often a call fails of which nothing at all is known."""
INFEASIBLE_WEIGHT = 3.0
"""What cannot work here is as good as several mere failures."""
HALF_LIFE_H = 6.0
"""Failures fade, so that what was repaired is tried again."""
SUCCESS_HALF_LIFE_H = 24.0 * 30
WHY_CHARACTERS_MAX = 160
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:-]*")
_OPERATORS = re.compile(r"[;&|\n]")
_WRAPPERS = frozenset({"sudo", "time", "nohup", "nice", "env", "timeout", "command", "exec"})
_FAMILIES = frozenset(
    {"git", "npm", "pnpm", "yarn", "npx", "pip", "pip3", "uv", "cargo", "go", "make", "docker", "dotnet", "gradle", "mvn", "poetry"}
)  # fmt: skip
_NO_PROGRAM = re.compile(r"\Aexit code 12[67]\b|is not recognized as")
_NO_MODULE = re.compile(r"No module named '?([\w.]+)")
_NO_ACCESS = re.compile(
    r"\b(unknown tool|unauthorized|unauthenticated|not authenticated|invalid api key|forbidden|not supported)\b",
    re.IGNORECASE,
)
_HEAD_CHARACTERS = 4000


class Counsel(StrEnum):
    """What tool memory says of a call."""

    NONE = "none"
    WORKS = "works"
    WARN = "warn"
    VETO = "veto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The counsel before a call. `failing` is the probability that it fails; the counts are of all that is remembered."""

    counsel: Counsel
    failing: float
    failed: int = 0
    worked: int = 0
    why: str = ""

    def warning(self, shape: str) -> str:
        """What the model is told."""
        reason = f": {self.why}" if self.why else ""
        return f"{shape} failed {self.failed} of {self.failed + self.worked} times here{reason}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Where and for what a call is made."""

    tool: str
    shape: str
    project: str = ""
    conversation: str = ""
    question: str = ""


def shape_of(tool: str, plan: Plan) -> str:
    """What is alike in calls of one kind; empty for calls that succeed or fail by their arguments alone."""
    if plan.command:
        return _program(plan.command)
    return tool if "__" in tool else ""


def _program(command: str) -> str:
    """The first program of a command line, with its subcommand where it is a family of programs."""
    first = _OPERATORS.split(command.strip(), maxsplit=1)[0]
    try:
        words = shlex.split(first)
    except ValueError:
        words = first.split()
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _WRAPPERS):
        words.pop(0)
    if not words:
        return ""
    program = re.split(r"[/\\]", words[0])[-1]
    if program in _FAMILIES:
        rest = [word for word in words[1:] if _SUBCOMMAND.fullmatch(word)]
        return " ".join([program, *rest[:1]])
    if program.startswith("python") and words[1:2] == ["-m"] and len(words) > 2:
        return f"{program} -m {words[2]}"
    return program


class Lessons:
    """Learns from endings, and advises."""

    def __init__(self, experience: Experience, clock: Clock) -> None:
        self.experience = experience
        self._clock = clock

    def learn(self, situation: Situation, result: ExecutorResult) -> None:
        """Keeps how a call ended that was really made."""
        if not result.teaches:
            return
        hopeless = not result.ok and _cannot_work(situation.shape, result)
        why = (
            ""
            if result.ok
            else redacted(" ".join(result.remembered()[:1000].split()))[:WHY_CHARACTERS_MAX]
        )
        self.experience.add(
            Record(
                at_ms=self._clock.now_ms(),
                tool=situation.tool,
                ok=result.ok,
                shape=situation.shape if result.ok or hopeless or _is_verdict(result) else "",
                project=situation.project,
                conversation=situation.conversation,
                words=tuple(content_terms(situation.question)[:WORDS_MAX]),
                infeasible=hopeless,
                why=why,
            )
        )

    def advise(self, situation: Situation) -> Advice:
        """What the past says of a call. What the user asks for by name is never vetoed."""
        if not situation.shape:
            return Advice(counsel=Counsel.NONE, failing=0.0)
        of_tool = [r for r in self.experience.records if r.tool == situation.tool and r.shape]
        here = [r for r in of_tool if _is_here(r, situation)]
        if not here:
            return Advice(counsel=Counsel.NONE, failing=0.0)
        elsewhere = [r for r in of_tool if not _is_here(r, situation)]
        failing = self._failing(here, elsewhere)
        counsel = _counsel(failing, named=_is_named(situation))
        failures = [r for r in here if not r.ok]
        return Advice(
            counsel=counsel,
            failing=failing,
            failed=len(failures),
            worked=len(here) - len(failures),
            why=failures[-1].why if failures else "",
        )

    def _failing(self, here: Sequence[Record], elsewhere: Sequence[Record]) -> float:
        """The posterior mean of a beta distribution over faded counts."""
        now = self._clock.now_ms()
        worked = sum(_faded(r, now, SUCCESS_HALF_LIFE_H) for r in here if r.ok)
        newest_success = max((at for at, r in enumerate(here) if r.ok), default=-1)
        failed = sum(
            _faded(r, now, HALF_LIFE_H) * (INFEASIBLE_WEIGHT if r.infeasible else 1.0)
            for r in here[newest_success + 1 :]
            if not r.ok
        )
        if newest_success >= 0 and newest_success < len(here) - 1:
            worked = min(worked, PRIOR_STRENGTH)  # it worked once, and does not any more
        prior = PRIOR_STRENGTH * self._base_rate(elsewhere)
        return (failed + prior) / (failed + worked + PRIOR_STRENGTH)

    def _base_rate(self, elsewhere: Sequence[Record]) -> float:
        failed = sum(not r.ok for r in elsewhere)
        return (failed + PRIOR_STRENGTH * PRIOR_FAILING) / (len(elsewhere) + PRIOR_STRENGTH)

    def situations(self) -> Mapping[Situation, Advice]:
        """Everything that is remembered of situations, the most failing first, for the user to see."""
        seen = {
            Situation(tool=r.tool, shape=r.shape, project=r.project): None
            for r in self.experience.records
            if r.shape
        }
        advised = {situation: self.advise(situation) for situation in seen}
        order = sorted(advised, key=lambda s: (-advised[s].failing, s.tool, s.shape, s.project))
        return {situation: advised[situation] for situation in order}

    def forget(self, situation: Situation) -> int:
        """Forgets one situation.

        Raises:
            OSError: it is not forgotten.
        """
        return self.experience.forget(lambda record: _is_here(record, situation))


def _is_here(record: Record, situation: Situation) -> bool:
    return (record.tool, record.shape, record.project) == (
        situation.tool,
        situation.shape,
        situation.project,
    )


def _faded(record: Record, now_ms: int, half_life_h: float) -> float:
    hours = max(now_ms - record.at_ms, 0) / HOUR_MS
    return float(0.5 ** (hours / half_life_h))


def _counsel(failing: float, *, named: bool) -> Counsel:
    if failing >= VETO_FROM and not named:
        return Counsel.VETO
    if failing >= WARN_FROM:
        return Counsel.WARN
    return Counsel.WORKS


def _is_named(situation: Situation) -> bool:
    """Whether the question itself speaks of the program or the tool."""
    asked = frozenset(terms(situation.question))
    return any(asked.issuperset(terms(part)) for part in _parts(situation) if terms(part))


def _parts(situation: Situation) -> Iterable[str]:
    shape = situation.shape
    return shape.split("__", 1) if "__" in shape else (shape.split(" ", 1)[0], shape)


def _cannot_work(shape: str, result: ExecutorResult) -> bool:
    """There is no such program or module, or the foreign tool lets nobody in."""
    head = result.text[:_HEAD_CHARACTERS]
    if "__" in shape and not head.startswith("exit code"):
        return _NO_ACCESS.search(head) is not None
    missing = _NO_MODULE.search(head)
    wanted = shape.partition(" -m ")[2]
    return _NO_PROGRAM.search(head) is not None or (
        missing is not None and bool(wanted) and missing.group(1) == wanted
    )


def _is_verdict(result: ExecutorResult) -> bool:
    """Whether a failure is one of the call: a program that ends with another code than 0 has worked, and said what it found."""
    return not result.text.startswith("exit code")
