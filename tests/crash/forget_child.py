"""A process that forgets a conversation that was slept over, step by step until it is killed; prints a line after each step.

Run as `python -m tests.crash.forget_child FOLDER`. Lines: `asked`, then `step NUMBER`, then `done`.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from memory.rest_values import Experience, ExperienceSource
from tests.fakes.memory_world import MemoryWorld

SECRET = "the Aldermoor vault opens with twelve Elstern"
SAYINGS = 24


def main(folder: str) -> None:
    world = MemoryWorld(Path(folder))
    forgetting = world.engine.forgetting
    if not forgetting.pending():
        conversation, other = world.conversation(), world.conversation()
        for number in range(SAYINGS):
            question = world.say(
                f"{SECRET}, said for the {number}th time {'so ' * number}", conversation
            )
            world.answer(question, f"Noted: Aldermoor, {number}.")
            world.say(f"The shed of row {number} is green.", other)
            world.recall(question.content)
            world.engine.learn_used(
                query=question.content, question_id=question.id, used=world.recall("shed").pages
            )
            world.engine.record_experience(
                Experience(
                    source=ExperienceSource.EXECUTOR,
                    operation="shell",
                    context=question.content,
                    outcome=f"Elstern {number}",
                    success=True,
                    node_ids=(question.id,),
                )
            )
        world.digest()
        world.judge.yes = {"Aldermoor"}
        world.rest(world.engine.sleep())
        for _ in range(6):
            world.rest(world.engine.flywheel())
        assert world.engine.proposals()
        assert [e for e in world.engine.journal().entries if "Aldermoor" in e.record]
        world.digest()
        forgetting.ask(conversation)
    print("asked", flush=True)
    pause = threading.Event()
    for conversation in forgetting.pending():
        run = forgetting.run(conversation, lambda *_words: None)
        for number, _ in enumerate(run):
            print("step", number, flush=True)
            pause.wait(0.002)
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
