"""The state of one turn, and what is stored with its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from growbox_app.agent.protocol import first_round
from growbox_app.agent.works.work import Move
from growbox_app.api import (
    DeepSearch,
    Problem,
    ProblemCode,
    ToolCalled,
    TurnEvent,
    TurnStats,
    UsedMemory,
)
from growbox_app.approval_face import ApprovalAsked, ApprovalEnded
from growbox_app.engine import protocol as p
from memory.text import content_terms, storable, title
from memory.values import Conversation, Node, Page

if TYPE_CHECKING:
    from growbox_app.agent.guide import Guide

EXCERPT_CHARACTERS = 280
OUTPUT_HEAD, OUTPUT_TAIL = 5_000, 3_000
"""Characters of a call's output that are kept with the answer; the memory has the whole of what was long."""
ASKED_CHARACTERS = 500
"""Characters that are kept of what the user was asked about."""
DETAIL_CHARACTERS = 1_000
"""Characters that are kept of the detail of trouble."""


@dataclass(slots=True)
class Turn:
    """One running turn. Mutable: owned by the loop that runs it.

    `text` and `ids` are what the model wrote in the running round; `visible` is what the reader saw, over all rounds, without
    tool calls. Only `visible` is ever stored as the answer. `newest_block` is the newest resident block before the turn's own
    (0: none), None until the region is open. `calls` are fingerprints of calls since the last change, `barred` executors that may
    not be called any more, `performed` counts calls, `cut_calls` those that broke off; `checked` is set once the work was looked
    over before its end, `repeats` counts calls that were made again; `silent` is set when a round brought neither a word nor a call;
    `guide` knows the stage of the work, `move` is what the model may do in the running round. `deeds` are the calls that
    have ended or run, `approvals` how the user's consent to calls ended: what is open as it will have ended if GrowBox does. `notices` is
    the trouble that the reader was told of. `gate_failed`: recall found nothing, or what it found may not be it; `deep` is then the search
    of the past that was made before the answer, if one was.
    """

    conversation: Conversation
    question: Node
    answer: Node
    cancelled: asyncio.Event
    pages: list[Page] = field(default_factory=list)
    text: str = ""
    visible: str = ""
    deeds: list[ToolCalled] = field(default_factory=list)
    approvals: dict[int, ApprovalEnded] = field(default_factory=dict)
    notices: list[Told] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    stats: TurnStats = field(default_factory=TurnStats)
    calls: set[str] = field(default_factory=set)
    barred: set[str] = field(default_factory=set)
    performed: int = 0
    cut_calls: int = 0
    checked: bool = False
    repeats: int = 0
    silent: bool = False
    guide: Guide | None = None
    move: Move = field(default_factory=Move)
    restarted: bool = False
    newest_block: int | None = None
    gate_failed: bool = False
    deep: DeepSearch | None = None

    def take(self, delta: p.Delta) -> str:
        """Adds what was just written; returns its text."""
        self.text += delta.text
        self.ids += delta.ids
        return delta.text

    def add_cost(self, done: p.DoneChat) -> None:
        """Adds the figures of one generation; the first one's reuse and first token are the turn's, and the last one's end."""
        before = self.stats
        first = before.prompt_tokens == 0
        self.stats = replace(
            before,
            prompt_tokens=done.prompt_tokens,
            reused_tokens=done.reused_tokens if first else before.reused_tokens,
            answer_tokens=before.answer_tokens + done.answer_tokens,
            prefill_s=before.prefill_s + done.prefill_s,
            decode_s=before.decode_s + done.decode_s,
            first_token_s=before.first_token_s or done.first_token_s,
            reuse_known=before.reuse_known and done.reuse_known,
            answered_by=done.answered_by,
            rounds=before.rounds + 1,
            read_tokens=before.read_tokens + done.prompt_tokens - done.reused_tokens,
            kept_tokens=before.kept_tokens + done.reused_tokens,
            degenerate=done.reason == "loop",
        )

    def unwind(self) -> None:
        """Of an answer that ran in a circle only the first round stays; the others would only invite more of them."""
        if self.stats.degenerate and (first := first_round(self.text)) != self.text:
            self.visible = self.visible.removesuffix(self.text) + first
            self.text, self.ids = first, []

    def keep(self, event: TurnEvent) -> bool:
        """Takes what is kept of a call at once, if the event is such; returns whether it was."""
        match event:
            case ToolCalled():
                self._keep_call(event)
            case ApprovalAsked():
                self._keep_approval(event.approval.ended("exit"))
            case ApprovalEnded():
                self._keep_approval(event)
            case _:
                return False
        return True

    def _keep_approval(self, ended: ApprovalEnded) -> None:
        what = storable(ended.what[:ASKED_CHARACTERS])
        self.approvals[ended.id] = replace(ended, what=what)

    def tell(self, problem: Problem) -> None:
        """Keeps trouble, behind what there was when the reader was told of it."""
        told = Told(
            code=problem.code.value,
            fields={name: storable(value) for name, value in problem.fields.items()},
            detail=storable(problem.detail[:DETAIL_CHARACTERS]),
            after=len(self.deeds) + len(self.approvals),
        )
        self.notices.append(told)

    def close(self) -> None:
        """Nothing is open behind the end of a turn."""
        for ended in self.approvals.values():
            if ended.by == "exit":
                self._keep_approval(replace(ended, by="stop"))
        self.deeds = [replace(d, cut_off="stop") if d.cut_off else d for d in self.deeds]

    def cut_off(self) -> tuple[ToolCalled, ...]:
        """The calls that did not come to their end, though the turn did: the reader has seen them begin only."""
        return tuple(deed for deed in self.deeds if deed.cut_off)

    def _keep_call(self, call: ToolCalled) -> None:
        """As much of its output as is kept; its end in the place of its beginning."""
        if self.deeds and self.deeds[-1].cut_off and self.deeds[-1].call_id == call.call_id:
            self.deeds.pop()
        from_memory = call.name.startswith(
            "memory_"
        )  # it has the text, and must be able to forget it
        self.deeds.append(
            replace(
                call,
                arguments=storable(call.arguments),
                result=storable(call.result),
                output="" if from_memory else storable(_head_and_tail(call.output)),
                paths=tuple(map(storable, call.paths)),  # a file's name need not be text
            )
        )

    def trace(self) -> Trace:
        """What is stored with the answer, as it stands now."""
        return Trace(
            memories=self.memories(),
            stats=self.stats,
            notices=tuple(self.notices),
            gate_failed=self.gate_failed,
            deep=self.deep,
            calls=tuple(self.deeds),
            approvals=tuple(self.approvals.values()),
        )

    def memories(self) -> tuple[UsedMemory, ...]:
        """What recall put before the model in this turn, with marks on what the answer repeats."""
        asked = content_terms(self.question.content)
        words = frozenset(content_terms(self.visible)) - frozenset(asked)
        return tuple(used_memory(page, words, asked) for page in self.pages)

    def cited(self) -> tuple[Page, ...]:
        """The pages whose own words the answer repeats."""
        used = self.memories()
        return tuple(page for page, memory in zip(self.pages, used, strict=True) if memory.cited)


def _head_and_tail(text: str) -> str:
    left_out = len(text) - OUTPUT_HEAD - OUTPUT_TAIL
    if left_out <= 0:
        return text
    return f"{text[:OUTPUT_HEAD]}\n[… {left_out} …]\n{text[-OUTPUT_TAIL:]}"


def _excerpt(text: str, terms: Sequence[str]) -> str:
    """The part of a text around the place where most of the question's terms stand together."""
    if len(text) <= EXCERPT_CHARACTERS:
        return text
    folded = text.casefold()
    places = sorted(place for term in set(terms) if (place := folded.find(term)) >= 0)
    near = max(
        places, key=lambda at: sum(at <= p < at + EXCERPT_CHARACTERS for p in places), default=0
    )
    start = min(max(near - EXCERPT_CHARACTERS // 4, 0), len(text) - EXCERPT_CHARACTERS)
    return ("…" if start else "") + text[start : start + EXCERPT_CHARACTERS] + "…"


def used_memory(page: Page, answer_words: frozenset[str], asked: Sequence[str]) -> UsedMemory:
    """A page as a face shows it; cited when the answer repeats words of its own."""
    node = page.node
    return UsedMemory(
        node_id=node.id,
        way=page.way,
        score=page.score,
        similarity=page.similarity,
        lexical=page.lexical,
        reason=page.reason,
        title=title(node.context or node.content),
        excerpt=_excerpt(node.content, asked),
        created_at_ms=node.created_at_ms,
        conversation_id=node.conversation_id,
        cited=bool(answer_words.intersection(content_terms(node.content))),
        kind=node.kind,
    )


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Trouble as it was told; `after` so many calls and approvals."""

    code: str
    fields: dict[str, str] = {}
    detail: str = ""
    after: int = 0

    def problem(self) -> Problem | None:
        """As it is shown; None for a code of another version."""
        if self.code not in set(ProblemCode):
            return None
        return Problem(code=ProblemCode(self.code), fields=self.fields, detail=self.detail)


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored as JSON with an answer. Old traces stay readable: fields are only ever added, with defaults.

    `notices` that are only a code are from before there was more to tell, and stood at the end.
    """

    memories: tuple[UsedMemory, ...] = ()
    stats: TurnStats = TurnStats()
    notices: tuple[Told | str, ...] = ()
    gate_failed: bool = False
    deep: DeepSearch | None = None
    calls: tuple[ToolCalled, ...] = ()
    approvals: tuple[ApprovalEnded, ...] = ()

    def notes(self) -> tuple[ToolCalled | ApprovalEnded | Problem, ...]:
        """Each call before its approvals; behind them those of a call that never began; trouble where it was told."""
        kept: list[ToolCalled | ApprovalEnded | Problem] = []
        for call in self.calls:
            kept += [call, *(ended for ended in self.approvals if ended.call_id == call.call_id)]
        kept += [ended for ended in self.approvals if ended not in kept]
        end = len(kept)
        for notice in reversed(self.notices):  # from the end: the places before it stay as they are
            told = Told(code=notice, after=end) if isinstance(notice, str) else notice
            problem = told.problem()
            if problem is not None:
                kept.insert(told.after, problem)
        return tuple(kept)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Trace)


def encode_trace(trace: Trace) -> str:
    """JSON of a trace."""
    return _encoder.encode(trace).decode()


def decode_trace(text: str | None) -> Trace:
    """A stored trace; an unreadable one is an empty one."""
    if not text:
        return Trace()
    try:
        return _decoder.decode(text)
    except msgspec.MsgspecError:
        return Trace()
