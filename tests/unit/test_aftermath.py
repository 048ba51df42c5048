"""What outlives a call: background tasks, calls that a crash cut off, and when the way back is closed for the moment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from growbox_app import doctor
from growbox_app.agent.aftermath import Aftermath
from growbox_app.api import (
    AskRequest,
    ProblemCode,
    ProblemError,
    ToolCalled,
)
from growbox_app.approval_face import ApprovalAnswer, ApprovalAsked
from growbox_app.assistant import GrowBox
from growbox_app.checkpoints import Checkpoints
from growbox_app.clock import SystemClock
from growbox_app.executors.processes import shell_words
from growbox_app.executors.task_board import DoneWhen, TaskBoard
from growbox_app.shadow.values import UNFINISHED, Checkpoint
from growbox_app.text import tr
from memory.values import ConversationId
from tests.fakes.application import Body, run_application, scripted

POLLS, PAUSE_S = 500, 0.02
ON_A_SIGN = "until [ -e ../go ]; do sleep 0.02; done"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("old\n")
    return folder


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(POLLS):
        if holds():
            return
        await asyncio.sleep(PAUSE_S)
    raise AssertionError("it never came to hold")


class World:
    """A project with checkpoints and background tasks. Made on the loop."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.root = root
        self.checkpoints = Checkpoints(folder / "data", SystemClock())
        self.board = TaskBoard()
        self.aftermath = Aftermath(self.checkpoints, self.board)

    async def call(
        self, command: str, done_when: DoneWhen = DoneWhen.EXIT, target: str = ""
    ) -> Checkpoint:
        """What the hands do with `task_start`."""
        taken = await self.checkpoints.take(self.root, "a call", "a1")
        newest = self.aftermath.newest()
        self.board.start(
            shell_words(command, self.root),
            self.root,
            shown=command,
            conversation_id=ConversationId("c"),
            sign=(done_when, target),
        )
        await self.checkpoints.finish(taken.id)
        self.aftermath.follow(taken.id, since=newest)
        return taken

    async def changed(self, taken: Checkpoint) -> set[str]:
        return {change.path.name for change in await self.checkpoints.diff(taken.id)}


def run_world(tmp_path: Path, root: Path, body: Callable[[World], object]) -> None:
    async def main() -> None:
        world = World(tmp_path, root)
        try:
            await body(world)  # type: ignore[misc]
        finally:
            world.board.close()
            await world.aftermath.close()

    asyncio.run(main())


def test_what_a_build_writes_after_its_call_is_undone_with_it(tmp_path: Path, root: Path) -> None:
    async def body(world: World) -> None:
        taken = await world.call(f"{ON_A_SIGN}; echo new > a.txt; echo x > late.txt")
        assert await world.changed(taken) == set()
        (tmp_path / "go").touch()
        for _ in range(POLLS):
            if await world.changed(taken):
                break
            await asyncio.sleep(PAUSE_S)
        assert await world.changed(taken) == {"a.txt", "late.txt"}
        report = await world.checkpoints.restore(taken.id)
        assert report.is_done
        assert (root / "a.txt").read_text() == "old\n"
        assert not (root / "late.txt").exists()

    run_world(tmp_path, root, body)


def test_what_the_user_writes_beside_a_ready_server_is_his(tmp_path: Path, root: Path) -> None:
    async def body(world: World) -> None:
        ready = root / "ready"
        command = "echo x > making; mv making ready; sleep 300"  # there means written
        taken = await world.call(command, DoneWhen.FILE, str(ready))
        await until(lambda: not world.aftermath._open)
        assert await world.changed(taken) == {"ready"}
        (root / "a.txt").write_text("the user's\n")
        world.board.close()
        await world.aftermath.close()
        report = await world.checkpoints.restore(taken.id)
        assert not ready.exists()
        assert [path.name for path in report.kept] == ["a.txt"]

    run_world(tmp_path, root, body)


def test_an_orderly_end_keeps_what_a_task_did(tmp_path: Path, root: Path) -> None:
    async def body(world: World) -> None:
        taken = await world.call("echo x > late.txt; sleep 300")
        await until((root / "late.txt").exists)
        world.board.close()
        await world.aftermath.close()
        assert await world.changed(taken) == {"late.txt"}

    run_world(tmp_path, root, body)


# -- in the whole application -------------------------------------------------------------------


def run(tmp_path: Path, body: Body) -> None:
    settings = {"models.context_tokens": 16384, "agent.mode": "auto"}
    run_application(lambda: scripted(tmp_path), body, settings)


async def call(app: GrowBox, root: Path, name: str, arguments: dict[str, str]) -> ToolCalled:
    """A turn with one call, to which the user says yes."""
    project = await app.library.open_project(root)
    wish = json.dumps({"name": name, "arguments": arguments})
    done: ToolCalled | None = None
    async for event in app.ask(AskRequest(text=f"call:{wish}", project_id=project.id)):
        if isinstance(event, ApprovalAsked):
            app.answer_approval(ApprovalAnswer(id=event.approval.id, allowed=True))
        if isinstance(event, ToolCalled):
            done = event
    assert done is not None
    return done


EDIT = {"path": "a.txt", "old": "old", "new": "new"}


def test_nothing_is_put_back_while_a_turn_runs(tmp_path: Path, root: Path) -> None:
    async def body(app: GrowBox) -> None:
        done = await call(app, root, "file_edit", EDIT)
        project = await app.library.open_project(root)
        async for _ in app.ask(AskRequest(text="Go on.", project_id=project.id)):
            with pytest.raises(ProblemError) as caught:
                await app.restore(done.checkpoint)
            assert caught.value.problem.code is ProblemCode.RESTORE_IN_TURN
            break
        assert (root / "a.txt").read_text() == "new\n"
        await until(lambda: app._turn_ended.is_set())
        assert (await app.restore(done.checkpoint)).is_done
        assert (root / "a.txt").read_text() == "old\n"

    run(tmp_path, body)


def test_nothing_is_put_back_while_a_task_runs_in_the_project(tmp_path: Path, root: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("old\n")

    async def body(app: GrowBox) -> None:
        elsewhere = await call(app, other, "file_edit", EDIT)
        command = f"{ON_A_SIGN}; echo x > late.txt; sleep 300"
        done = await call(app, root, "task_start", {"command": command})
        assert done.ok
        (tmp_path / "go").touch()
        await until((root / "late.txt").exists)
        with pytest.raises(ProblemError) as caught:
            await app.restore(done.checkpoint)
        problem = caught.value.problem
        assert problem.code is ProblemCode.RESTORE_BESIDE_TASK
        assert problem.fields == {"command": command}
        assert (root / "late.txt").exists()
        assert (await app.restore(elsewhere.checkpoint)).is_done
        app._board.close()
        report = await app.restore(done.checkpoint)
        assert (report.is_done, report.kept) == (True, ())
        assert not (root / "late.txt").exists()

    run(tmp_path, body)


def test_what_a_task_wrote_that_ends_while_a_restore_begins_is_put_back(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(app: GrowBox) -> None:
        done = await call(app, root, "task_start", {"command": f"{ON_A_SIGN}; echo x > late.txt"})
        root_of = app._checkpoints.root_of

        async def while_it_ends(checkpoint_id: str) -> Path:
            (tmp_path / "go").touch()
            await until(lambda: app._board.running_in(root) is None)
            return await root_of(checkpoint_id)

        monkeypatch.setattr(app._checkpoints, "root_of", while_it_ends)
        report = await app.restore(done.checkpoint)
        assert (report.is_done, report.kept) == (True, ())
        assert not (root / "late.txt").exists()

    run(tmp_path, body)


def test_a_call_that_a_crash_cut_off_is_finished_at_the_next_start(
    tmp_path: Path, root: Path
) -> None:
    checkpoints = Checkpoints(tmp_path / "data", SystemClock())
    taken = asyncio.run(checkpoints.take(root, "a call", "a1"))
    (root / "a.txt").write_text("half\n")
    (mark,) = (tmp_path / "data" / "checkpoints").glob(f"*/{UNFINISHED}")

    async def body(app: GrowBox) -> None:
        await until(lambda: not mark.exists())
        (root / "mine.txt").write_text("the user's\n")
        report = await app.restore(taken.id)
        assert report.is_done
        assert [path.name for path in report.kept] == ["mine.txt"]
        assert (root / "a.txt").read_text() == "old\n"

    run(tmp_path, body)


def test_a_project_whose_folder_is_away_is_not_taken_for_emptied(
    tmp_path: Path, root: Path
) -> None:
    async def main() -> None:
        await Checkpoints(tmp_path / "data", SystemClock()).take(root, "a call", "a1")
        (root / "a.txt").write_text("half\n")
        (mark,) = (tmp_path / "data" / "checkpoints").glob(f"*/{UNFINISHED}")
        away = root.rename(tmp_path / "away")  # noqa: ASYNC240
        checkpoints = Checkpoints(tmp_path / "data", SystemClock())
        await checkpoints.recover()
        assert mark.exists()
        away.rename(root)
        await checkpoints.recover()
        assert not mark.exists()
        (newest,) = await checkpoints.list(root)
        assert [change.after for change in await checkpoints.diff(newest.id)] == [b"half\n"]

    asyncio.run(main())


def test_one_damaged_repository_does_not_keep_another_from_being_finished(
    tmp_path: Path, root: Path
) -> None:
    async def main() -> None:
        base = tmp_path / "data" / "checkpoints"
        broken = base / "0000"
        (broken / "refs" / "checkpoints").mkdir(parents=True)
        (broken / "refs" / "checkpoints" / "000000000000001").write_text("0" * 39 + "1\n")
        (broken / UNFINISHED).touch()
        await Checkpoints(tmp_path / "data", SystemClock()).take(root, "a call", "a1")
        checkpoints = Checkpoints(tmp_path / "data", SystemClock())
        await checkpoints.recover()
        assert [path.parent.name for path in base.glob(f"*/{UNFINISHED}")] == ["0000"]

    asyncio.run(main())


@pytest.mark.parametrize("folder", ["data", "models", "cache"])
def test_our_own_folders_are_nobodys_business(
    tmp_path: Path, root: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROWBOX_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / folder / "logs").mkdir(parents=True)
    (tmp_path / folder / "logs" / "x.log").write_text("sesame\n")

    async def body(app: GrowBox) -> None:
        path = str(tmp_path / folder / "logs" / "x.log")
        done = await call(app, root, "shell", {"command": f"cat {path}"})
        assert not done.ok
        assert done.result == tr("safety.reason.sensitive", path=path)

    run(tmp_path, body)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_examination_uses_the_hands(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tr.use(language)
    assert doctor._hands().ok
    monkeypatch.setattr(Checkpoint, "__init__", lambda *_args, **_fields: 1 / 0)
    with pytest.raises(ZeroDivisionError):  # it does take one
        doctor._hands()
