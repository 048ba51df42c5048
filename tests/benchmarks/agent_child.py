"""One task of `dev.py bench agent`, in the running application: `python -m tests.benchmarks.agent_child TASK FOLDER MODEL SEED WITHOUT RESULT`.

Writes a JSON result and, beside it, a transcript: every block of the prompt as the model had it, and the answer.
"""

from __future__ import annotations

import asyncio
import configparser
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from growbox_app.api import (
    AskRequest,
    TextDelta,
    ToolCalled,
    TurnFinished,
)
from growbox_app.approval_face import (
    Approval,
    ApprovalAnswer,
    ApprovalAsked,
)
from growbox_app.assistant import GrowBox, Options
from memory.values import NodeDraft, NodeKind, NodeStatus, Project, Role
from tests.benchmarks.agent_tasks import TASKS, Task, World

TURN_S = 180
STOP_S = 20
ROUNDS_MAX = 12
_DANGEROUS = re.compile(
    r"\b(?:sudo|rm|rmdir|curl|wget|ssh|scp|dd|mkfs|shutdown|reboot|kill|pkill|chmod|chown)\b|~|\.\.|\$HOME"
)
_ABSOLUTE = re.compile(r"(?<![\w.])/[\w.-]+")


@dataclass(slots=True)
class Seen:
    """What came of a turn. `story` is what was said and done, in order; also of a turn that was stopped, which leaves no blocks."""

    story: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    finished: TurnFinished | None = None
    late: bool = False


def consent(approval: Approval, root: Path) -> bool:
    """The fixed rule: what is in the project is allowed, the rest denied."""
    inside = all(Path(path).is_relative_to(root) for path in approval.paths)
    if not approval.command:
        return inside
    names = _ABSOLUTE.findall(approval.command)
    at_home = all(str(root).startswith(name) or name.startswith(str(root)) for name in names)
    return inside and at_home and not _DANGEROUS.search(approval.command)


async def turn(app: GrowBox, request: AskRequest, root: Path) -> Seen:
    """Asks, answers consents, and stops after a while."""
    seen = Seen()

    async def late() -> None:
        await asyncio.sleep(TURN_S)
        seen.late = True
        await app.stop()

    async with asyncio.TaskGroup() as group:
        watch = group.create_task(late())
        async for event in app.ask(request):
            if isinstance(event, ApprovalAsked):
                allowed = consent(event.approval, root)
                seen.asked.append(f"{event.approval.command or event.approval.arguments} {allowed}")
                app.answer_approval(ApprovalAnswer(id=event.approval.id, allowed=allowed))
            elif isinstance(event, TextDelta):
                seen.story.append(event.text)
            elif isinstance(event, ToolCalled):
                seen.story.append(f"\n> {event.name} {event.arguments}\n{event.output}\n\n")
                seen.calls.append(
                    f"{event.name} {event.arguments} {'ok' if event.ok else 'failed'}"
                )
            elif isinstance(event, TurnFinished):
                seen.finished = event
        watch.cancel()
    return seen


async def remember(app: GrowBox, texts: Sequence[str], project: Project) -> None:
    """Earlier conversations in the project, each with a word of assent; kept and indexed as any are."""
    for text in texts:
        draft = NodeDraft(
            kind=NodeKind.MESSAGE, role=Role.USER, content=text, project_id=project.id
        )
        _, _, answer = await app._memory.call(lambda e, d=draft: e.begin_turn(d, title=d.content))  # type: ignore[misc]
        await app._memory.call(
            lambda e, a=answer: e.finish_answer(a.id, content="OK.", status=NodeStatus.COMPLETE)
        )  # type: ignore[misc]
    await app.settle(60)


async def warm(app: GrowBox, project: Project, wish: str, data: Path, images: Path) -> None:
    """The shared image of the system prompt: taken from the runs before, or made and given to the ones after."""
    from growbox_app.agent import prompts

    text = await app._loop.system_text(prompts.prompt_language(wish), in_project=True)
    if not app._kv.has_system_image(text):
        await app._warmth._prepare_new(text)
    share(data / "kv", images)


def share(folder: Path, images: Path) -> None:
    """Gives images of system prompts to the runs after this one."""
    images.mkdir(parents=True, exist_ok=True)
    for image in folder.glob("system-*"):
        if not (images / image.name).exists():
            part = images / f"{image.name}.part"
            shutil.copy2(image, part)
            part.replace(images / image.name)


def lay_out(task: Task, root: Path, data: Path, images: Path) -> None:
    """The repository, the user's home, and the images that there are."""
    write(root, task.files)
    write(Path.home(), {"diary.txt": "Monday: rain.\n", ".hidden": "x\n"})
    if images.is_dir():
        shutil.copytree(images, data / "kv")


async def run(
    task: Task, folder: Path, options: Options, settings: dict[str, object]
) -> dict[str, object]:
    """The task from its repository to its check."""
    root, data, images = (
        folder / "project",
        folder / "data",
        Path(os.environ["GROWBOX_BENCH_IMAGES"]),
    )
    lay_out(task, root, data, images)
    app = GrowBox(
        data_path=data, models_path=Path(os.environ["GROWBOX_MODELS_DIR"]), options=options
    )
    for key, value in settings.items():
        await app.change_setting(key, value)
    await app.start(lambda _progress: None)
    try:
        await app._engine.ready()
        project = await app.library.open_project(root)
        await remember(app, task.earlier, project)
        await warm(app, project, task.wish, data, images)
        started = time.monotonic()
        seen = await turn(app, AskRequest(text=task.wish, project_id=project.id), root.resolve())
        seconds = time.monotonic() - started
        transcript = await transcript_of(app, task, seen)
    finally:
        await app.shutdown()
    hang = seconds > TURN_S + STOP_S  # it was stopped, and did not stop
    return {
        **judged(task, root, seen),
        "hang": hang,
        "seconds": seconds,
        "transcript": transcript,
    }


def judged(task: Task, root: Path, seen: Seen) -> dict[str, object]:
    """The check, and the figures."""
    finished = seen.finished
    stats = finished.stats if finished else None
    world = World(
        root=root,
        home=Path.home(),
        answer=finished.answer.content if finished else "",
        calls=seen.calls,
        before=task.files,
    )
    try:
        solved = bool(task.check(world))
    except (
        ValueError,
        KeyError,
        OSError,
        configparser.Error,
    ):  # a file that is no longer what it was
        solved = False
    names = ("rounds", "read_tokens", "kept_tokens", "invalid_calls", "cut_calls", "repeated_calls")
    return {
        "solved": solved and not seen.late,
        "late": seen.late,
        "calls": len(seen.calls),
        "asked": len(seen.asked),
        "degenerate": bool(stats and stats.degenerate),
        "circled": bool(stats and stats.repeated_calls >= 2),
        **{name: getattr(stats, name, 0) for name in names},
    }


async def transcript_of(app: GrowBox, task: Task, seen: Seen) -> str:
    """What stood in the prompt, block by block, and what happened beside it."""
    parts = [f"# {task.id}\n{task.wish}"]
    if seen.finished is not None:
        region = await app.mind.region(seen.finished.answer.conversation_id)
        parts += [f"## {entry.block.kind.value}\n{entry.block.text}" for entry in region.blocks]
        parts.append(f"## answer ({seen.finished.status.value})\n{seen.finished.answer.content}")
    parts.append("## as it went\n" + "".join(seen.story))
    parts.append("## calls\n" + "\n".join(seen.calls))
    parts.append("## asked\n" + "\n".join(seen.asked))
    return "\n\n".join(parts) + "\n"


def write(root: Path, files: Mapping[str, str]) -> None:
    """Files of a repository."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")


def main(arguments: Sequence[str]) -> None:
    """Runs a task and writes what came of it."""
    task_id, folder, model, seed, without, result = arguments
    task = next(task for task in TASKS if task.id == task_id)
    settings: dict[str, object] = {
        "models.chat": model,
        "agent.mode": "manual",
        "agent.rounds_max": ROUNDS_MAX,
        "models.prewarm": True,
        "memory.paused": without == "memory",
    }
    options = Options(
        listen=False,
        saving_power=lambda: False,
        idle_s=3600.0,
        guided=without != "scaffolding",
        constrained=without != "grammar",
        seed=int(seed),
    )
    found = asyncio.run(run(task, Path(folder), options, settings))
    path = Path(result)
    transcript = str(found.pop("transcript")) + f"\n{json.dumps(found)}\n"
    path.with_suffix(".md").write_text(transcript, encoding="utf-8")
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found), encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    main(sys.argv[1:])
