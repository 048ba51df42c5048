"""The recorded sessions of the paging benchmark: sixty turns in English and in Chinese, `tests/data/sessions/`.

`topics.toml` holds the words; `python -m tests.benchmarks.paging_sessions` composes the sessions from it and counts every block
with the light model's tokenizer. Twelve topics are worked on in stints of one to three turns and come back later, as work
does; a turn pages in what was said about its topic before. The composition is seeded: the same words give the same files,
and a test compares them.
"""

from __future__ import annotations

import asyncio
import json
import random
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from growbox_app.agent import prompts
from growbox_app.engine import protocol as p
from memory.values import Node, NodeId, NodeKind, Page, Role, Way

FOLDER = Path(__file__).parent.parent / "data" / "sessions"
LANGUAGES = ("en", "zh")
SEED = 20_261_130
STARTED_MS = 1_795_000_000_000
PAGES_MAX = 4
STINT_MAX = 3
OTHER_TOPIC_SHARE = 0.3
"""So often a question also finds something about another topic."""
MORE_SHARE = 0.6
QUICK_SHARE = 0.15
"""So often the next question comes at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """One turn. `pages` are what recall found, best first; the first `cited` of them were used. A page from 0 on is the answer
    of that turn; -1, -2, … are the session's notes.

    `pause_s` passes between the answer before and this question. Tokens are those of the rendered blocks.
    """

    question: str
    answer: str
    pages: tuple[int, ...]
    cited: int
    pause_s: int
    question_tokens: int = 0
    answer_tokens: int = 0
    memory_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that an earlier conversation left in memory."""

    text: str
    memory_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation of one language, and what memory held before it began."""

    language: str
    system_tokens: int
    turns: tuple[RecordedTurn, ...]
    notes: tuple[Note, ...]

    def memory_tokens(self, page: int) -> int:
        """Size of a page as a memory block."""
        return (self.notes[-1 - page] if page < 0 else self.turns[page]).memory_tokens


def path(language: str) -> Path:
    """Where a session is kept."""
    return FOLDER / f"{language}.json"


def load(language: str) -> Session:
    """A recorded session."""
    table = json.loads(path(language).read_text(encoding="utf-8"))
    turns = tuple(RecordedTurn(**row | {"pages": tuple(row["pages"])}) for row in table["turns"])
    notes = tuple(Note(**row) for row in table["notes"])
    system_tokens = table["system_tokens"]
    return Session(language=language, system_tokens=system_tokens, turns=turns, notes=notes)


def compose(language: str) -> Session:
    """A session, not counted yet."""
    table = tomllib.loads((FOLDER / "topics.toml").read_text(encoding="utf-8"))
    topics, ways = table[language], table[f"way_{language}"]
    dice = random.Random(f"{SEED} {language}")
    kinds = table[f"note_{language}"]
    notes = [Note(text=_fill(kind["text"].strip(), topic)) for topic in topics for kind in kinds]
    known = [
        [-1 - number * len(kinds) - k for k in range(len(kinds))] for number in range(len(topics))
    ]
    said: list[list[int]] = [[] for _ in topics]
    turns: list[RecordedTurn] = []
    for topic in _order(dice, [len(ways)] * len(topics)):
        way = ways[len(said[topic])]
        pages = _pages(dice, [a + b for a, b in zip(known, said, strict=True)], topic)
        turns.append(
            RecordedTurn(
                question=_fill(way["question"], topics[topic]),
                answer=_answer(dice, way, topics[topic]),
                pages=pages,
                cited=min(len(pages), dice.randint(0, 2)),
                pause_s=_pause(dice),
            )
        )
        said[topic].append(len(turns) - 1)
    return Session(language=language, system_tokens=0, turns=tuple(turns), notes=tuple(notes))


def _order(dice: random.Random, left: list[int]) -> list[int]:
    """Which topic each turn is about: stints, with two or three topics open at a time."""
    order: list[int] = []
    while any(left):
        started = [t for t, count in enumerate(left) if 0 < count < max(left)]
        fresh = [t for t, count in enumerate(left) if count]
        topic = dice.choice(started if started and dice.random() < 0.6 else fresh)
        stint = min(left[topic], dice.randint(1, STINT_MAX))
        order += [topic] * stint
        left[topic] -= stint
    return order


def _pages(dice: random.Random, known: Sequence[Sequence[int]], topic: int) -> tuple[int, ...]:
    """Newest first what is known about the topic, and now and then something about another."""
    found = list(known[topic][::-1][: PAGES_MAX - 1])
    if dice.random() < OTHER_TOPIC_SHARE:
        found.append(
            dice.choice([page for pages in known if pages is not known[topic] for page in pages])
        )
    return tuple(found)


def _pause(dice: random.Random) -> int:
    if dice.random() < QUICK_SHARE:
        return dice.randint(2, 8)
    return max(9, min(900, round(dice.lognormvariate(3.9, 0.8))))


def _answer(dice: random.Random, way: dict[str, str], topic: dict[str, str]) -> str:
    text = way["answer"].strip()
    if dice.random() < MORE_SHARE:
        text += "\n\n" + way["more"]
    return _fill(text, topic)


def _fill(text: str, topic: dict[str, str]) -> str:
    capitals = {f"{key}_cap": value[:1].upper() + value[1:] for key, value in topic.items()}
    return text.format(**topic, **capitals)


def rendered(session: Session) -> tuple[str, ...]:
    """The blocks of a session as the application renders them: question, answer, answer as a memory; then the notes."""
    texts: list[str] = []
    for number, turn in enumerate(session.turns):
        texts += [
            prompts.question_block(_remembered(turn.answer, number), turn.question),
            turn.answer,
            _memory(turn.answer, number),
        ]
    return (*texts, *(_memory(note.text, 0) for note in session.notes))


def _remembered(text: str, number: int) -> Node:
    return Node(
        id=NodeId(f"a{number}"),
        seq=number,
        kind=NodeKind.MESSAGE,
        role=Role.ASSISTANT,
        content=text,
        created_at_ms=STARTED_MS + number * 60_000,
    )


def _memory(text: str, number: int) -> str:
    page = Page(node=_remembered(text, number), way=Way.RAG, score=1.0)
    return prompts.memory_block(page, text)


def counted(session: Session, counts: Sequence[int], loaded: p.DoneLoad) -> Session:
    """A session with the token counts of its system prompt and of `rendered`."""
    ours = iter(counts)
    system_tokens = next(ours) + loaded.base_overhead
    turns = [
        replace(
            turn,
            question_tokens=next(ours) + loaded.user_overhead,
            answer_tokens=next(ours) + loaded.assistant_overhead,
            memory_tokens=next(ours),
        )
        for turn in session.turns
    ]
    notes = [replace(note, memory_tokens=next(ours)) for note in session.notes]
    return replace(session, system_tokens=system_tokens, turns=tuple(turns), notes=tuple(notes))


async def record() -> None:
    """Counts and writes all sessions."""
    from growbox_app.executors.memory_search import MemorySearch
    from growbox_app.executors.registry import Registry
    from tests.benchmarks.engine_ratio import loaded_engine
    from tests.real_models import LIGHT, real_load

    cpu_file = LIGHT.parent / ".cpu_variant.json"
    tools = Registry([MemorySearch(None, paused=lambda: False, now_ms=int)]).tool_list()  # type: ignore[arg-type]
    async with loaded_engine(cpu_file) as (client, _variant):
        loaded = await client.request(real_load(client.next_id(), cpu_file), p.DoneLoad)
        for language in LANGUAGES:
            session = compose(language)
            system = prompts.system_prompt(language, tools=tools, instructions="")
            texts = (system, *rendered(session))
            request = p.Count(id=client.next_id(), texts=texts)
            counts = (await client.request(request, p.DoneCount)).counts
            text = json.dumps(
                asdict(counted(session, counts, loaded)), ensure_ascii=False, indent=1
            )
            path(language).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(record())
