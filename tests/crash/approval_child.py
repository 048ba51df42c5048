"""A process that asks for consent and is killed: `python -m tests.crash.approval_child FOLDER SAY`.

Prints `asked` once its question is out. `wait` then answers nothing; `yes` allows the command, which prints nothing and takes for ever.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from growbox_app.api import AskRequest
from growbox_app.approval_face import ApprovalAnswer, ApprovalAsked
from tests.fakes.application import scripted

COMMAND = "touch made.txt; sleep 60"


async def main(folder: Path, say: str) -> None:
    app = scripted(folder)
    await app.change_setting("models.context_tokens", 16384)
    await app.start(lambda _progress: None)
    project = await app.library.open_project(folder / "project")
    wish = json.dumps({"name": "shell", "arguments": {"command": COMMAND}})
    async for event in app.ask(AskRequest(text=f"call:{wish}", project_id=project.id)):
        if isinstance(event, ApprovalAsked):
            print("asked", flush=True)
            if say == "yes":
                app.answer_approval(ApprovalAnswer(id=event.approval.id, allowed=True))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
