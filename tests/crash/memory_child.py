"""A process that writes memories until it is killed; prints an acknowledgement after each durable step.

Run as `python -m tests.crash.memory_child FOLDER SEED HOST`. Lines: `node ID LENGTH`, `check ID LENGTH`, `event COUNT`, `block ID`.
"""

from __future__ import annotations

import random
import sys
import threading
from pathlib import Path

from memory.config import MemoryConfig, VectorConfig
from memory.errors import BudgetExceeded
from memory.values import BlockKind, NodeStatus
from tests.fakes.driver import drive
from tests.fakes.memory_world import MemoryWorld


def acknowledge(*words: object) -> None:
    print(*words, flush=True)


def main(folder: str, seed: str, host: str) -> None:
    chance = random.Random(int(seed))
    config = MemoryConfig(vectors=VectorConfig(host=host == "1", restart_backoff_s=(0.0,) * 4))
    world = MemoryWorld(Path(folder), config)
    engine = world.engine
    acknowledge("open")
    conversation = world.conversation()
    engine.open_region(
        conversation, window_tokens=1500, system_tokens=50, reserve_tokens=50, tokenizer="t"
    )
    pause = threading.Event()
    while True:
        turn = engine.next_turn(conversation)
        question = world.say(
            f"question {chance.random()} about 数据 {chance.random()}", conversation
        )
        acknowledge("node", question.id, len(question.content))
        try:
            engine.make_room(conversation, 100)
        except BudgetExceeded:
            continue
        block = engine.page_in(
            conversation,
            turn=turn,
            kind=BlockKind.USER,
            node_id=question.id,
            text=question.content,
            tokens=100,
        )
        acknowledge("block", block.id)
        pages = world.recall(question.content, exclude=frozenset({question.id})).pages
        answer = engine.begin_answer(question=question)
        text = ""
        for _ in range(chance.randrange(1, 6)):
            text += f"word{chance.randrange(1000)} "
            engine.checkpoint_answer(answer.id, text)
            acknowledge("check", answer.id, len(text))
        engine.finish_answer(answer.id, content=text, status=NodeStatus.COMPLETE)
        acknowledge("node", answer.id, len(text))
        engine.learn_used(query=question.content, question_id=question.id, used=pages)
        acknowledge("event", engine.statistics().learning_events)
        if chance.random() < 0.2:
            document = engine.attach(name="d", text=f"fact {chance.random()}. " * 400)
            acknowledge("node", document.id, len(document.content))
        drive(engine.digest(), world.embedder)
        pause.wait(0.002)


if __name__ == "__main__":
    main(*sys.argv[1:])
