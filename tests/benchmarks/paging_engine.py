"""The engine half of the paging benchmark: recorded turns through both layouts with the light model, prefill in seconds.

The pager runs as in the accounting half and notes every prompt; the engine then decodes them in that order. An answer is the
recorded one: it is decoded as if it had been sampled, and not timed. What a pause had time for is decoded ahead, not timed
either, and counted.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec

from growbox_app.agent import prompts
from growbox_app.agent.context import render
from growbox_app.engine import entry
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineClient
from memory.config import PagingConfig
from memory.values import Block, BlockKind, Layout, NodeId
from tests.benchmarks.paging_replay import PREFILL_PER_S, Replay
from tests.benchmarks.paging_sessions import RecordedTurn, Session, load, rendered
from tests.real_models import LIGHT, real_load

TURNS = 12
WINDOW = 4096
DATE = "2026-11-30"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A prompt that the engine is to hold: `asked` is timed, `answered` is the answer behind it, `idle` a pause's work."""

    what: str
    blocks: tuple[Block, ...]


@dataclass(slots=True)
class Figures:
    """Of one layout: seconds that the user waited, tokens by where they came from."""

    prefill_s: float = 0.0
    foreground: int = 0
    reused: int = 0
    idle: int = 0


class Recorder(Replay):
    """A replay that notes what the engine would be given, with the real texts."""

    def __init__(self, session: Session, layout: Layout) -> None:
        super().__init__(session, layout=layout, config=PagingConfig(), window=WINDOW, idle=True)
        self.steps: list[Step] = []
        self._texts = _texts(session)

    def _note(self, what: str) -> None:
        self.steps.append(Step(what=what, blocks=tuple(self.region.prompt)))

    def _ask(self, number: int, turn: RecordedTurn) -> None:
        super()._ask(number, turn)
        self._note("asked")

    def _answer(self, number: int, turn: RecordedTurn) -> None:
        super()._answer(number, turn)
        self._note("answered")

    def _pause(self, seconds: float) -> None:
        idle = self.costs.idle
        super()._pause(seconds)
        enough = self.costs.idle - idle < int(seconds * PREFILL_PER_S)
        if enough and self.costs.idle > idle:
            self._note("idle")

    def text(self, block: Block) -> str:
        """The rendered text of a replayed block."""
        return self._texts[block.kind, block.node_id]


def _texts(session: Session) -> dict[tuple[BlockKind, NodeId | None], str]:
    blocks = iter(rendered(session))
    found: dict[tuple[BlockKind, NodeId | None], str] = {}
    for number in range(len(session.turns)):
        found[BlockKind.USER, NodeId(f"q{number}")] = next(blocks)
        found[BlockKind.ASSISTANT, NodeId(f"a{number}")] = next(blocks)
        found[BlockKind.MEMORY, NodeId(f"a{number}")] = next(blocks)
    for number, text in enumerate(blocks):
        found[BlockKind.MEMORY, NodeId(f"a{-1 - number}")] = text
    return found


async def measure(client: EngineClient, layout: Layout, language: str = "en") -> Figures:
    """One session's first turns through the engine, from cold."""
    session = load(language)
    recorder = Recorder(_shortened(session), layout)
    recorder.run()
    system = prompts.system_prompt(language, tools="", instructions="")
    figures = Figures()
    for step in recorder.steps:
        texts = [_with_text(block, recorder.text(block)) for block in step.blocks]
        messages = render(system, texts)
        if step.what == "asked":
            done = await client.request(_chat(client, messages), p.DoneChat)
            figures.prefill_s += done.prefill_s
            figures.reused += done.reused_tokens
            figures.foreground += done.prompt_tokens - done.reused_tokens
        else:
            warm = p.Warm(id=client.next_id(), messages=messages, date=DATE)
            ahead = await client.request(warm, p.DoneWarm)
            figures.idle += ahead.prefilled if step.what == "idle" else 0
    return figures


def _shortened(session: Session) -> Session:
    return dataclasses.replace(session, turns=session.turns[:TURNS])


def _with_text(block: Block, text: str) -> Block:
    return dataclasses.replace(block, text=text)


def _chat(client: EngineClient, messages: tuple[p.Message, ...]) -> p.Chat:
    return p.Chat(
        id=client.next_id(),
        messages=messages,
        date=DATE,
        max_tokens=1,
        temperature=0.0,
        top_p=1.0,
        seed=1,
    )


@contextlib.asynccontextmanager
async def loaded_engine() -> AsyncIterator[EngineClient]:
    """The light model with the benchmark's window, in a process of its own."""
    client = EngineClient(entry.run, on_death=lambda _code: None)
    try:
        load_request = real_load(client.next_id(), LIGHT.parent / ".cpu_variant.json")
        wanted = msgspec.structs.replace(load_request, context_tokens=WINDOW)
        await client.request(wanted, p.DoneLoad)
        yield client
    finally:
        await client.close()


async def both_layouts() -> dict[Layout, Figures]:
    """Each layout in a fresh engine, so that neither is warm from the other."""
    found = {}
    for layout in Layout:
        async with loaded_engine() as client:
            found[layout] = await measure(client, layout)
        print(f"# engine {layout}: {found[layout]}", flush=True)
    return found
