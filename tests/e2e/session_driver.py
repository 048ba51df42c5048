"""One life of the real window for the scripted session: `python -m tests.e2e.session_driver FOLDER ENGINE LIFE SECONDS END`.

Driven through Qt's own events, as a person would. FOLDER holds the project and takes the screenshots; ENGINE is `scripted` (the real
program around a scripted engine) or `light` (the real light model); LIFE numbers the starts; END is `quit` or `hang` (says so and waits
to be killed, with an approval open). Each line of standard output is a JSON object `{"step": …}`. A failed expectation ends the process
with exit code 1.
"""

from __future__ import annotations

import asyncio
import faulthandler
import hashlib
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
STALL_S = 0.25
"""The window's thread did nothing for so long: felt as a hitch."""
BEAT_MS = 10
POLL_S = 0.04
LATER_ACTS = 4
"""How many acts a later life does at least; the first does all of them."""
ACT_S = 60.0
MODEL_ACT_S = 900.0
"""With a real model only a hang ends an act: a busy machine reads four tokens a second."""
HUGE_LINES = 2_000
STOP_S, STOP_MODEL_S = 8.0, 8.0
"""Longest time to stop. On a machine at rest it is below one second; a busy one must not fail the session."""
TEXT = "one\ntwo\nthree\n"
BYTES = b"\xef\xbb\xbfone\r\ntwo\r\n\xe4\xb8\x89\r\nno newline at the end"
"""What an undo must bring back to the last byte: a mark at the front, both ends of lines, no newline."""
LONG = "".join(f"line {number}\n" for number in range(60))


def say(step: str, **facts: object) -> None:
    """One line of the report."""
    print(json.dumps({"step": step} | facts, ensure_ascii=False), flush=True)


class StallProbe:
    """Measures how long the window's thread does not come round, and how much of that it worked (a busy machine lets it wait).

    A second thread notes where it stands meanwhile.

    By faulthandler: a reference to a frame would keep the painters in it alive beyond their time, which Qt does not survive.
    """

    def __init__(self, path: Path) -> None:
        from PySide6.QtCore import QTimer

        self.stalls: list[tuple[float, float, str]] = []
        self.beats = 0
        self._last, self._worked = time.perf_counter(), time.thread_time()
        self._where = ""
        self._path = path
        self._main = f"0x{threading.get_ident():016x}"
        self._timer = QTimer()
        self._timer.setInterval(BEAT_MS)
        self._timer.timeout.connect(self._beat)
        self._timer.start()
        threading.Thread(target=self._watch, daemon=True).start()

    def _beat(self) -> None:
        gap = time.perf_counter() - self._last
        work = time.thread_time() - self._worked
        self.beats += 1
        if gap > STALL_S:
            self.stalls.append((gap, work, self._where))
        self.skip()

    def skip(self) -> None:
        """What was just done does not count: the session's own doing, such as a screenshot."""
        self._last, self._worked = time.perf_counter(), time.thread_time()
        self._where = ""

    def _watch(self) -> None:
        pause = threading.Event()
        while not pause.wait(STALL_S / 4):
            if time.perf_counter() - self._last > STALL_S and not self._where:
                self._where = self._stack()

    def _stack(self) -> str:
        with self._path.open("w+", encoding="utf-8", errors="replace") as stream:
            faulthandler.dump_traceback(stream, all_threads=True)
            stream.seek(0)
            _before, _mark, after = stream.read().partition(self._main)
        lines = after.split("\n\n")[0].splitlines()[1:5]
        return " < ".join(line.strip().replace(str(ROOT), "") for line in lines)


class Session:
    """Hands and eyes of one life."""

    def __init__(self, life: Any, folder: Path, engine: str, number: int) -> None:
        self._life = life
        self._folder = folder
        self._project = folder / "项目 project"
        self._scripted = engine == "scripted"
        self._number = number
        self._shots = 0
        self._turns = 0
        self._probe: StallProbe | None = None

    # -- the whole life -----------------------------------------------------------------------
    async def run(self, seconds: float, end: str) -> None:
        """Looks at what the life before has left, then acts until the time is over."""
        await self._until(lambda: self.window is not None and self.window.isVisible())
        self._probe = StallProbe(self._folder / f"stack-{self._number}.txt")
        await self._until(lambda: self._phase() in {"ready", "failed"}, MODEL_ACT_S)
        assert self._phase() == "ready"
        # Once the engine is ready, the first life opens the project; later ones find their conversation.
        await self._until(lambda: self.window.sidebar.isEnabled())
        await self._found_again()
        until = time.monotonic() + seconds
        acts = self._acts()
        at = 0
        first = self._number * LATER_ACTS
        least = LATER_ACTS if self._number else len(acts)
        while at < least or time.monotonic() < until:
            act = acts[(first + at) % len(acts)]
            started = time.monotonic()
            async with asyncio.timeout(ACT_S if self._scripted else MODEL_ACT_S):
                await act()
            say("act", name=act.__name__, seconds=round(time.monotonic() - started, 2))
            at += 1
            if not self._scripted and time.monotonic() >= until:
                break
        if end == "hang":
            await self._ask_edit("two", "zwei")
            await self._card()
            self._shoot("killed-here")
        say("left", **self._left())
        self._tell_stalls()
        if end == "hang":
            say("hang", pid=os.getpid())
            await asyncio.sleep(600)

    def _tell_stalls(self) -> None:
        probe = self._probe
        if probe is not None:
            say(
                "stalls",
                beats=probe.beats,
                stalls=[(round(gap, 3), round(work, 3)) for gap, work, _where in probe.stalls],
                where=[where for _gap, work, where in probe.stalls if work > STALL_S],
            )

    def _acts(self) -> list[Callable[[], Any]]:
        if not self._scripted:
            return [self.free]
        return [
            self.approve,
            self.deny_with_a_word,
            self.edit_the_change,
            self.leave_a_change_out,
            self.run_a_command,
            self.edit_the_command,
            self.queue_behind_an_approval,
            self.stop_while_waiting,
            self.stop_a_running_tool,
            self.stop_while_writing,
            self.undo_and_bring_back,
            self.undo_the_answer,
            self.a_huge_change,
            self.look_elsewhere,
        ]

    def _left(self) -> dict[str, object]:
        """What must be there again after a restart."""
        transcript = self.window.flow.shown
        messages = [[str(m.node_id), len(m.text)] for m in transcript.messages if not m.live]
        return {
            "conversation": str(transcript.conversation_id),
            "messages": messages,
            "calls": sum(len(self._calls(m)) for m in transcript.messages),
            "draft": self.panel.composer.text(),
            "files": {
                name: hashlib.sha256((self._project / name).read_bytes()).hexdigest()
                for name in ("a.txt", "b.txt", "big.txt")
                if (self._project / name).exists()
            },
            "turns": self._turns,
        }

    async def _found_again(self) -> None:
        path = self._folder / "left.json"
        if not path.exists():
            await self.window.open_folder(self._project)
            say("opened")
            return
        left = json.loads(path.read_text(encoding="utf-8"))
        await self._until(
            lambda: str(self.window.flow.shown.conversation_id) == left["conversation"]
        )
        found = self._left()
        known = dict(found["messages"])  # type: ignore[call-overload]
        lost = [node for node, size in left["messages"] if known.get(node, -1) < size]
        assert not lost, f"messages lost or cut: {lost}"
        assert found["calls"] >= left["calls"], (found["calls"], left["calls"])  # type: ignore[operator]
        assert found["draft"] == left["draft"]
        assert found["files"] == left["files"], "a file is not as the life before left it"
        self._shoot("restarted")
        say("found_again", messages=len(known), calls=found["calls"])

    # -- acts ---------------------------------------------------------------------------------
    async def approve(self) -> None:
        await self._ask_edit("two", "2")
        card = await self._card()
        self._shoot("approval")
        assert self._marked(), "the sidebar does not say that something waits"
        self._click(card.once_button)
        await self._end()
        assert self._read() == TEXT.replace("two", "2")

    async def deny_with_a_word(self) -> None:
        from PySide6.QtCore import Qt
        from PySide6.QtTest import QTest

        await self._ask_edit("two", "zwei")
        card = await self._card()
        QTest.keyClicks(card.word, "rather in French")
        QTest.keyClick(card.word, Qt.Key.Key_Return)
        await self._end()
        assert self._read() == TEXT
        assert "rather in French" in self._newest_call().output
        self._shoot("denied")

    async def edit_the_change(self) -> None:
        await self._ask_edit("two", "2")
        card = await self._card()
        self._click(card.edit_button)
        field = card.hunks[0].field
        field.setPlainText(field.toPlainText().replace("2", "deux 二"))
        await asyncio.sleep(0.1)
        self._shoot("editing")
        self._click(card.once_button)
        await self._end()
        assert self._read() == TEXT.replace("two", "deux 二")
        assert self._newest_call().edited
        self._shoot("edited")

    async def leave_a_change_out(self) -> None:
        (self._project / "b.txt").write_text(LONG, encoding="utf-8")
        wanted = LONG.replace("line 3\n", "LINE 3\n").replace("line 50\n", "LINE 50\n")
        await self._call("file_write", path="b.txt", content=wanted)
        card = await self._card()
        card.hunks[0].box.click()
        await asyncio.sleep(0.1)
        self._shoot("left-out")
        self._click(card.once_button)
        await self._end()
        assert self._read("b.txt") == LONG.replace("line 50\n", "LINE 50\n")

    async def run_a_command(self) -> None:
        from PySide6.QtCore import Qt
        from PySide6.QtTest import QTest

        await self._call("shell", command="mkdir -p out && touch out/a && rm -r out; cat a.txt")
        card = await self._card()
        assert len(card.parts.views) == 4
        self._shoot("command")
        self.window.activateWindow()
        card.setFocus()
        await self._until(card.hasFocus)
        QTest.keyClick(card, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
        await self._end()
        assert self._newest_call().ok

    async def edit_the_command(self) -> None:
        await self._call("shell", command="touch from-the-model")
        card = await self._card()
        self._click(card.edit_button)
        card.command_field.setPlainText("touch from-the-user")
        self._click(card.once_button)
        await self._end()
        assert (self._project / "from-the-user").exists()
        assert not (self._project / "from-the-model").exists()

    async def queue_behind_an_approval(self) -> None:
        await self._ask_edit("two", "2")
        card = await self._card()
        before = len(self.messages)
        self._type("say:4 this waits")
        assert self.panel.queue_row.texts == ("say:4 this waits",)
        self._shoot("queued")
        self._click(card.once_button)
        await self._until(lambda: len(self.messages) == before + 2)
        await self._end()
        assert "this waits" in self.messages[-1].text

    async def stop_while_waiting(self) -> None:
        await self._ask_edit("two", "zwei")
        await self._card()
        await self._stop()
        assert self._read() == TEXT

    async def stop_a_running_tool(self) -> None:
        await self._call("shell", command="touch started; sleep 30")
        self._click((await self._card()).once_button)
        await self._until((self._project / "started").exists)
        await self._stop()
        self._shoot("stopped-tool")

    async def stop_while_writing(self) -> None:
        self._type("slow say:400 tell me a long story")
        await self._until(lambda: len(self.messages[-1].text) > 60)
        await self._stop()
        self._shoot("stopped-writing")

    async def undo_and_bring_back(self) -> None:
        changed = await self._change_bytes()
        self._click(self._cards()[-1].undo_button)
        await self._until(lambda: self._read_bytes() == BYTES)
        await self._until(lambda: self._line_button() is not None)
        self._shoot("undone")
        self._click(self._line_button())
        await self._until(lambda: self._read_bytes() == changed)

    async def undo_the_answer(self) -> None:
        await self._change_bytes()
        self._click(self._view().undo_button)
        await self._until(lambda: self._read_bytes() == BYTES)
        await asyncio.sleep(0.1)
        self._shoot("answer-undone")

    async def _change_bytes(self) -> bytes:
        (self._project / "a.txt").write_bytes(BYTES)
        await self._call("file_edit", path="a.txt", old="two", new="2")
        self._click((await self._card()).once_button)
        await self._end()
        changed = self._read_bytes()
        assert changed == BYTES.replace(b"two", b"2"), changed
        return changed

    async def a_huge_change(self) -> None:
        (self._project / "big.txt").unlink(missing_ok=True)
        await self._call("file_write", path="big.txt", content="x\n" * HUGE_LINES)
        card = await self._card()
        self._shoot("huge")
        self._click(card.once_button)
        await self._end()
        assert self._read("big.txt").count("\n") == HUGE_LINES

    async def look_elsewhere(self) -> None:
        here = self.window.flow.shown.conversation_id
        looks = (("light", "en"), ("dark", "zh"), ("light", "zh"), ("dark", "en"))
        look, language = looks[self._number % len(looks)]
        await self.window.change_setting("appearance.theme", look)
        await self.window.change_setting("general.language", language)
        self.window.new_conversation()
        await asyncio.sleep(0.1)
        self.window.open_conversation(here)
        await self._until(lambda: self.window.flow.shown.conversation_id == here)
        await self._until(lambda: bool(self._cards()) or bool(self.messages))
        for card in self._cards():
            card.toggle()
        await asyncio.sleep(0.1)
        self._shoot("again")
        self.panel.composer.show_text(f"a draft of life {self._number}")
        self.window.flow.keep_draft()

    async def free(self) -> None:
        """The real model is asked for something, and whatever it wants to do is answered in turn."""
        wishes = (
            "Read a.txt and tell me its second line.",
            "In a.txt, replace the word two with the word zwei. Use file_edit.",
            "请把 hello 写入新文件 你好.txt。",
            "Run the command: ls -la",
            "Create the file notes/plan.md with three short points about testing.",
        )
        if len(self.messages) > 30:
            self.window.new_conversation()
            await asyncio.sleep(0.2)
        (self._project / "a.txt").write_text(TEXT, encoding="utf-8")
        self._type(wishes[(self._number + self._turns) % len(wishes)])
        await self._until(lambda: self.window.flow.busy)
        answered = 0
        while self.window.flow.busy:
            cards = [card for card in self._approval_cards() if card.armed]
            if cards:
                self._shoot("model-asks")
                answered += 1
                self._click(cards[0].once_button if answered % 3 else cards[0].deny_button)
            if answered > 6:
                await self._stop()
            await asyncio.sleep(0.05)
        self._shoot("model-done")
        say("answer", text=self.messages[-1].text[:300], asked=answered)

    # -- hands and eyes -----------------------------------------------------------------------
    @property
    def window(self) -> Any:
        return self._life.window

    @property
    def panel(self) -> Any:
        return self.window.conversation_panel

    @property
    def messages(self) -> Any:
        return self.window.flow.shown.messages

    async def _ask_edit(self, old: str, new: str) -> None:
        (self._project / "a.txt").write_text(TEXT, encoding="utf-8")
        await self._call("file_edit", path="a.txt", old=old, new=new)

    async def _call(self, name: str, **arguments: str) -> None:
        """The scripted engine makes the call that it is asked for."""
        for leftover in ("from-the-user", "from-the-model", "started"):
            (self._project / leftover).unlink(missing_ok=True)
        before = len(self.messages)
        wish = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
        self._type(f"call:{wish}")
        await self._until(lambda: len(self.messages) >= before + 2)

    async def _card(self) -> Any:
        """The open approval, its first moments over."""
        await self._until(
            lambda: not self.window.flow.busy or any(card.armed for card in self._approval_cards())
        )
        card = next((card for card in self._approval_cards() if card.armed), None)
        assert card is not None, f"nothing was asked: {self.messages[-1].text[:200]}"
        return card

    def _view(self) -> Any:
        view = self.panel.view
        if not view.following:
            view.jump_to_newest()
        return view.view_of(len(view.transcript.messages) - 1)

    def _approval_cards(self) -> list[Any]:
        from ui.panels.approval_card import ApprovalCard

        view = self._view()
        return [c for c in view.findChildren(ApprovalCard) if c.isVisible()] if view else []

    def _cards(self) -> list[Any]:
        from ui.panels.tool_card import ToolCard

        view = self._view()
        return [c for c in view.findChildren(ToolCard) if c.isVisible()] if view else []

    def _line_button(self) -> Any:
        from ui.panels.notes import NoteLine

        buttons = [line.restore_button for line in self._view().findChildren(NoteLine)]
        return next((button for button in buttons[::-1] if button is not None), None)

    def _calls(self, message: Any) -> list[Any]:
        from growbox_app.api import ToolCalled

        return [note for note in message.notes if isinstance(note, ToolCalled)]

    def _newest_call(self) -> Any:
        return self._calls(self.messages[-1])[-1]

    def _marked(self) -> bool:
        from growbox_app.text import tr

        tree = self.window.sidebar.tree
        item = tree._find(self.window.flow.shown.conversation_id)
        return item is not None and tr("agent.waits") in item.toolTip(0)

    async def _end(self) -> None:
        await self._until(lambda: not self.window.flow.busy)

    async def _stop(self) -> None:
        started = time.monotonic()
        self._click(self.panel.stop_button)
        await self._end()
        seconds = time.monotonic() - started
        # How many wanted the processors meanwhile: what a busy machine waits for is not the program's.
        load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else 0.0
        say("stopped", seconds=round(seconds, 2), load=load)
        assert seconds < (STOP_S if self._scripted else STOP_MODEL_S), (
            f"stopping took {seconds:.1f} s"
        )

    def _read(self, name: str = "a.txt") -> str:
        return (self._project / name).read_text(encoding="utf-8")

    def _read_bytes(self) -> bytes:
        return (self._project / "a.txt").read_bytes()

    def _phase(self) -> str:
        return str(self.window._assistant.engine_status().phase.value)

    def _click(self, button: Any) -> None:
        from PySide6.QtCore import Qt
        from PySide6.QtTest import QTest

        assert button.isEnabled(), button.text()
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    def _type(self, text: str) -> None:
        from PySide6.QtCore import Qt
        from PySide6.QtTest import QTest

        field = self.panel.input
        field.setFocus()
        self.panel.composer.show_text("")
        field.insertPlainText(text)
        QTest.keyClick(field, Qt.Key.Key_Return)
        self._turns += 1

    def _shoot(self, name: str) -> None:
        self._shots += 1
        path = self._folder / "shots" / f"{self._number}-{self._shots:02}-{name}.png"
        self.window.grab().save(str(path))
        if self._probe is not None:
            self._probe.skip()

    async def _until(self, condition: Callable[[], bool], seconds: float = ACT_S) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(POLL_S)


async def _live(life: Any, session: Session, seconds: float, end: str) -> int:
    running = asyncio.get_running_loop().create_task(life.run())
    try:
        await session.run(seconds, end)
    except Exception as error:  # noqa: BLE001 - whatever it is, the session has failed
        text = session.panel.transcript_text()[-2000:] if session.window else ""
        session._tell_stalls()
        say("failed", error=f"{type(error).__name__}: {error}", text=text)
        session._shoot("failed")
        traceback.print_exc()
        os._exit(1)
    session.window.close()
    return await running


def main(arguments: list[str]) -> int:
    """Runs one life."""
    from growbox_app.assistant import GrowBox, Options
    from growbox_app.clock import SystemClock
    from growbox_app.paths import data_path, models_path
    from tests.fakes import scripted_engine
    from ui import application, event_loop
    from ui.crash import CrashLog

    folder, engine, number, seconds, end = arguments
    options = (
        Options(engine_target=scripted_engine.run, scripted_engine=True)
        if engine == "scripted"
        else Options()
    )
    app = application.make_application(["growbox"])
    crash_log = CrashLog(data_path() / "logs", SystemClock())
    crash_log.install()
    life = application.Life(
        data_path(),
        lambda: GrowBox(data_path=data_path(), models_path=models_path(), options=options),
        crash_log,
    )
    session = Session(life, Path(folder), engine, int(number))
    code = event_loop.run(app, _live(life, session, float(seconds), end))
    crash_log.close()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
