"""What the smoke test does with the app, step by step, and what must be seen. Standard library only.

Two plots: with models (tell a fact, close, open again, ask for it) and without (the window opens and a question gets a sentence).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from console import Trouble
from smoke_app import App, Node
from smoke_report import Report, Step
from smoke_surroundings import differences, listing, wait_until
from smoke_window import Screen, Seen, main_window

FACT = "My favourite database is DuckDB, please remember that."
QUESTION = "Which database do I like?"
PLANTED = "DuckDB"
"""The planted fact's own word: what recall must bring back."""
QUESTION_ZH = "请用一句话介绍你自己。"
RECALL_WAYS = ("rag", "pointer", "scan")
WINDOW_S = 30.0
EXIT_S = 30.0
SETTLE_S = 3.0
"""After the window's end its helper processes are given this long."""
_LOOK_S = 0.005
_TYPED_S = 5.0
_EXAMINED = {"vectors", "documents", "hands", "connections"}
"""Parts that the app must have looked at: what they load is loaded by nothing else in this test."""


class Smoke:
    """The steps over one app and one screen. `screen` is None where there is no X: then no window is looked at."""

    def __init__(
        self, app: App, report: Report, *, screen: Screen | None, picture: Path | None
    ) -> None:
        self._app = app
        self._report = report
        self._screen = screen
        self._picture = picture
        self._before = self._listings()

    def steps(self, flavour: str) -> Sequence[tuple[str, Step]]:
        """Names and actions, in order; each needs the ones before it."""
        opening = ("window", self.first_window)
        ending = ("closed", self.close)
        last = [
            ("window without standard streams", lambda: self.open(closed_streams=True)),
            ("closed again", self.close),
            ("nothing written elsewhere", self.unchanged),
        ]
        if flavour == "slim":
            return [opening, ("a missing model is named", self.model_missing), ending, *last]
        return [
            opening,
            ("a fact is told", self.tell),
            ending,
            ("window again", self.open),
            ("the fact is recalled", self.recall),
            ("a question in Chinese", self.ask_in_chinese),
            ("closed", self.close),
            ("every part works", self.examine),
            *last,
        ]

    def first_window(self) -> str:
        """The first start, in an empty home; its times are the report's."""
        said = self.open()
        self._report.facts["window_s"] = self._window_s
        self._report.facts["painted_s"] = self._painted_s
        return said

    def open(self, *, closed_streams: bool = False) -> str:
        """Starts the app and waits for its painted window."""
        (self._app.surroundings.data / "instance.key").unlink(missing_ok=True)
        self._app.start(closed_streams=closed_streams)
        self._window_s = self._painted_s = 0.0
        if self._screen is None:
            key = self._app.surroundings.data / "instance.key"
            self._wait(key.exists, WINDOW_S, "The app does not listen")
            self._window_s = self._elapsed()
            return "listens"
        self._wait(lambda: self._window() is not None, WINDOW_S, "No window", every_s=_LOOK_S)
        self._window_s = self._elapsed()
        self._wait(self._is_painted, WINDOW_S, "The window stays empty", every_s=_LOOK_S)
        self._painted_s = self._elapsed()
        window = self._existing_window()
        return f"{window.width}x{window.height} after {self._window_s} s, painted after {self._painted_s} s"

    def tell(self) -> str:
        """Types the fact into the window, or asks by command line where nothing types; waits for the stored answer."""
        typed = self._screen is not None and self._screen.can_type()
        how = "asked by command line"
        if typed:
            tries = self._type(FACT)
            self._report.facts["typed_tries"] = tries
            how = "typed" if tries == 1 else f"typed {tries} times"
            self._wait(
                lambda: bool(_answers(self._app.nodes())),
                self._app.timeout_s,
                "No complete answer",
            )
            took = self._elapsed()
            answer = _answers(self._app.nodes())[0]
        else:
            asked = self._app.ask(FACT)
            took = self._elapsed()
            answer = Node(
                role="assistant",
                status=str(asked.answer.get("status")),
                content=str(asked.answer.get("answer")),
                trace=json.dumps(asked.answer),
            )
            if asked.code != 0 or not answer.content.strip():
                raise Trouble(f"The question was not answered: {asked.answer} {asked.words}")
        self._report.facts["first_answer_s"] = took
        self._report.facts["model_ready_s"] = round(max(0.0, took - _model_work_s(answer.trace)), 3)
        self._report.facts["processes"] = dict(self._app.processes())
        self._take_picture()
        return f"{how}, answered after {took} s: {_short(answer.content)}"

    def recall(self) -> str:
        """The window that is open must answer, and the told fact must be among the memories it used."""
        asked = self._app.ask(QUESTION)
        if asked.code != 0 or asked.answer.get("status") != "complete":
            raise Trouble(f"The question was not answered: {asked.answer} {asked.words}")
        memories = asked.answer.get("memories", [])
        found = [memory for memory in memories if PLANTED in str(memory.get("text"))]
        if not found or found[0].get("way") not in RECALL_WAYS:
            raise Trouble(f"The fact of the first start was not recalled; memories: {memories}")
        self._report.facts["recalled_by"] = found[0]["way"]
        return f"found by {found[0]['way']}, answer: {_short(str(asked.answer.get('answer')))}"

    def ask_in_chinese(self) -> str:
        """Words pass through arguments, socket and stores in any script."""
        asked = self._app.ask(QUESTION_ZH)
        if asked.code != 0 or not str(asked.answer.get("answer", "")).strip():
            raise Trouble(f"The question was not answered: {asked.answer} {asked.words}")
        if all(node.content != QUESTION_ZH for node in self._app.nodes()):
            raise Trouble("The Chinese question was not stored as it was asked.")
        return _short(str(asked.answer["answer"]))

    def examine(self) -> str:
        """The app's own examination: each part is used.

        Database, vector index (Chroma in its process), readers of files, a checkpoint taken and restored, a command judged, what speaks to
        servers, models, CPU variants.
        """
        asked = self._app.run("doctor", "--json")
        parts = {str(part["part"]): part for part in asked.answer.get("parts", [])}
        ill = [str(part["words"]) for part in parts.values() if not part["ok"]]
        if asked.code != 0 or ill or not parts.keys() >= _EXAMINED:
            raise Trouble(f"The examination found trouble: {ill or asked.words or asked.answer}")
        words = str(parts["processor"]["words"])
        self._report.facts["processor"] = words
        return words

    def model_missing(self) -> str:
        """A build without models says in words that one is missing, and goes on."""
        asked = self._app.ask(FACT)
        self._take_picture()
        problem = asked.answer.get("problem") or {}
        if asked.code != 1 or "model" not in str(problem.get("code")):
            raise Trouble(
                f"A missing model should be exit code 1 and a problem: {asked.code}, {asked.answer}"
            )
        if len(asked.words.split()) < 4:
            raise Trouble(f"No sentence says that a model is missing: {asked.words!r}")
        self._existing_window()
        return asked.words.splitlines()[-1]

    def close(self) -> str:
        """The user's click on the cross: exit code 0, nothing left running, no crash report."""
        began = time.monotonic()
        if self._screen is None:
            self._app.ask_to_end()
        else:
            self._screen.ask_to_close(self._existing_window())
        code = self._app.wait(EXIT_S)
        took = time.monotonic() - began
        if code != 0:
            raise Trouble(f"The window ended with exit code {code}. {self._app.log_tail()}")
        if not wait_until(lambda: not self._app.processes(), seconds=SETTLE_S):
            raise Trouble(f"Still running after the end: {dict(self._app.processes())}")
        crash = self._app.crash_report()
        if crash:
            raise Trouble(f"A crash report was written: {crash}")
        return f"exit code 0 after {took:.2f} s, no process left"

    def unchanged(self) -> str:
        """The app folder and the working directory are as before; in a system of its own, everything but the home is."""
        changed = differences(self._before, self._listings())
        if changed:
            raise Trouble(f"{len(changed)} files came, went or changed: {', '.join(changed[:5])}")
        return f"{len(self._before)} files as before"

    def traced(self) -> str:
        """No process of any run used the internet's sockets, looked a name up or started a foreign program."""
        traffic = self._app.traffic()
        self._report.facts["sockets"] = traffic.socket_counts()
        self._report.facts["lookups"] = dict(traffic.lookups)
        self._report.facts["programs"] = traffic.program_counts()
        if not traffic.sockets["unix"]:
            raise Trouble("The trace saw not even the display's socket, so it proves nothing.")
        faults = traffic.faults()
        if faults:
            raise Trouble("; ".join(faults))
        return (
            f"sockets {traffic.socket_counts()}, {sum(traffic.programs.values())} programs started"
        )

    # -- parts ----------------------------------------------------------------------------------

    def _listings(self) -> dict[str, tuple[int, int, int]]:
        place = self._app.surroundings
        found = {f"app folder: {name}": facts for name, facts in listing(place.app).items()}
        found |= {f"working directory: {n}": facts for n, facts in listing(place.working).items()}
        if place.in_chroot:
            mounted = [place.root / name for name in ("proc", "dev", "sys")]
            rest = listing(place.root, [*mounted, place.home, place.scratch, place.app])
            found |= {f"/{name}": facts for name, facts in rest.items()}
        return found

    def _elapsed(self) -> float:
        return round(time.monotonic() - self._app.started_s, 3)

    def _window(self) -> Seen | None:
        assert self._screen is not None
        return main_window(self._screen.windows())

    def _existing_window(self) -> Seen:
        window = self._window()
        if window is None:
            raise Trouble(f"The window is gone. {self._app.log_tail()}")
        return window

    def _is_painted(self) -> bool:
        assert self._screen is not None
        window = self._window()
        return window is not None and self._screen.is_painted(window)

    def _type(self, text: str) -> int:
        """Types into the window once its data are open; returns how often.

        On a first start a welcome page stands before the conversation until the models are loaded, and takes the keys.
        """
        assert self._screen is not None
        data = self._app.surroundings.data
        self._wait(
            lambda: (data / "instance.key").exists() and (data / "timeline.db").exists(),
            WINDOW_S,
            "The data folder was not opened",
        )
        for tries in range(1, 1 + max(1, round(self._app.timeout_s / _TYPED_S))):
            self._screen.type(self._existing_window(), text)
            if wait_until(lambda: self._was_said(text), seconds=_TYPED_S):
                return tries
        said = [node.content for node in self._app.nodes() if node.role == "user"]
        self._take_picture()
        raise Trouble(f"What was typed did not arrive; the timeline holds {said}.")

    def _was_said(self, text: str) -> bool:
        return any(node.content.strip() == text for node in self._app.nodes())

    def _take_picture(self) -> None:
        if self._screen is not None and self._picture is not None:
            self._screen.picture(self._picture)
            self._report.facts["picture"] = self._picture.name

    def _wait(
        self, holds: Callable[[], bool], seconds: float, else_say: str, every_s: float = 0.05
    ) -> None:
        """Waits until something holds while the window program runs.

        Raises:
            Trouble: it ended, or the time is over.
        """
        wait_until(
            lambda: holds() or self._app.ended() is not None, seconds=seconds, every_s=every_s
        )
        if holds():
            return
        code = self._app.ended()
        why = f"within {seconds:.0f} s" if code is None else f"and it ended with exit code {code}"
        raise Trouble(f"{else_say} {why}. {self._app.log_tail()}{self._seen()}")

    def _seen(self) -> str:
        if self._screen is None:
            return ""
        windows = [w for w in self._screen.windows() if w.mapped]
        return f" On the display: {[(w.title, w.width, w.height) for w in windows]}"


def _answers(nodes: Sequence[Node]) -> list[Node]:
    """The answers that are complete and say something."""
    return [
        node
        for node in nodes
        if node.role == "assistant" and node.status == "complete" and node.content.strip()
    ]


def _model_work_s(trace: str) -> float:
    """Seconds that the model worked on an answer, from what is stored with it; the rest was waiting for it to load."""
    try:
        stats = json.loads(trace)["stats"]
        return float(stats["prefill_s"]) + float(stats["decode_s"])
    except (ValueError, KeyError, TypeError):
        return 0.0


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else words[:59] + "…"
