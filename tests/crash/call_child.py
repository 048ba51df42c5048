"""A process that is killed while an allowed call runs: `python -m tests.crash.call_child FOLDER MOMENT`.

It stays in its moment. `begun`: the call is about to act, and `there` is printed; `written`: it has acted, which is not stored yet, and
`there` is printed; `half`: its command has made the file `HERE`, and would go on.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from growbox_app.api import AskRequest
from growbox_app.approval_face import ApprovalAnswer, ApprovalAsked
from growbox_app.checkpoints import Checkpoints
from growbox_app.executors.file_write import FileWrite
from tests.fakes.application import scripted

HERE = "here"
WRITE = {"path": "notes.txt", "content": "new\n"}
COMMAND = f"rm data.bin; mkdir sub; echo half > sub/new.txt; chmod 600 run.sh; echo on >> notes.txt; touch {HERE}; sleep 60"


async def stay(*_: object) -> None:
    """In the place of a method."""
    print("there", flush=True)
    await asyncio.Event().wait()


async def main(folder: Path, moment: str) -> None:
    if moment == "begun":
        FileWrite.run = stay  # type: ignore[assignment,method-assign]
    elif moment == "written":
        Checkpoints.finish = stay  # type: ignore[assignment,method-assign]
    app = scripted(folder)
    await app.change_setting("models.context_tokens", 16384)
    await app.start(lambda _progress: None)
    project = await app.library.open_project(folder / "project")
    wish: dict[str, object] = {"name": "file_write", "arguments": WRITE}
    if moment == "half":
        wish = {"name": "shell", "arguments": {"command": COMMAND}}
    async for event in app.ask(AskRequest(text=f"call:{json.dumps(wish)}", project_id=project.id)):
        if isinstance(event, ApprovalAsked):
            app.answer_approval(ApprovalAnswer(id=event.approval.id, allowed=True))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
