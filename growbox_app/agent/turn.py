"""The state of one turn, and what is stored with its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from growbox_app.agent.stages import Move
from growbox_app.api import DeepSearch, ToolCalled, TurnStats, UsedMemory
from growbox_app.engine import protocol as p
from memory.text import content_terms, storable, title
from memory.values import Conversation, Node, Page

if TYPE_CHECKING:
    from growbox_app.agent.guide import Guide

EXCERPT_CHARACTERS = 280
OUTPUT_HEAD, OUTPUT_TAIL = 5_000, 3_000
"""Characters of a call's output that are kept with the answer; the memory has the whole of what was long."""


@dataclass(slots=True)
class Turn:
    """One running turn. Mutable: owned by the loop that runs it.

    `text` and `ids` are what the model wrote in the running round; `visible` is what the reader saw, over all rounds, without
    tool calls. Only `visible` is ever stored as the answer. `newest_block` is the newest resident block before the turn's own
    (0: none), None until the region is open. `calls` are fingerprints of calls since the last change, `barred` executors that may
    not be called any more, `performed` counts calls, `cut_calls` those that broke off; `checked` is set once the work was looked
    over before its end, `repeats` counts calls that were made again; `silent` is set when a round brought neither a word nor a call;
    `guide` knows the stage of the work, `move` is what the model may do in the running round. `deeds` are the calls that have ended. `gate_failed`: recall found nothing, or what it found
    may not be it; `deep` is then the search of the past that was made before the answer, if one was.
    """

    conversation: Conversation
    question: Node
    answer: Node
    cancelled: asyncio.Event
    pages: list[Page] = field(default_factory=list)
    text: str = ""
    visible: str = ""
    deeds: list[ToolCalled] = field(default_factory=list)
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

    def keep(self, call: ToolCalled) -> None:
        """Takes a call that has ended, with as much of its output as is kept."""
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

    def trace(self, notices: tuple[str, ...] = ()) -> Trace:
        """What is stored with the answer, as it stands now."""
        return Trace(
            memories=self.memories(),
            stats=self.stats,
            notices=notices,
            gate_failed=self.gate_failed,
            deep=self.deep,
            calls=tuple(self.deeds),
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


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored as JSON with an answer. Old traces stay readable: fields are only ever added, with defaults."""

    memories: tuple[UsedMemory, ...] = ()
    stats: TurnStats = TurnStats()
    notices: tuple[str, ...] = ()
    gate_failed: bool = False
    deep: DeepSearch | None = None
    calls: tuple[ToolCalled, ...] = ()


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
