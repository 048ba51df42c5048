"""`python -m growbox_app.models list | fetch | verify`: the models on this machine, without a window and without an engine.

`packaging/dev.py` calls it at set-up. Exit codes: 0 all right, 1 known trouble (one sentence on stderr), 130 stopped.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from growbox_app.api import Problem, ProblemError, Progress
from growbox_app.models.catalogue import Model, Purpose, Tier, catalogue, embedder, find
from growbox_app.models.choose import (
    AUTO,
    chat_to_fetch,
    choose_chat,
    free_ram_bytes,
    has_usable_chat,
)
from growbox_app.models.fetch import obtain, sources_for
from growbox_app.models.transfer import Job, bytes_text
from growbox_app.models.verify import FileState, file_state, is_here, verify_fully
from growbox_app.paths import data_path, models_path
from growbox_app.problems import sentence
from growbox_app.settings.store import SettingsStore
from growbox_app.text import tr

_LINE_EVERY_S = 5.0
# The model that would be loaded now: one that is here, as long as one is.
_CHOSEN = "chosen"
_WORDS = (AUTO, _CHOSEN, "light", "standard", "embedding")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except ProblemError as error:
        sys.stderr.write(f"\n{problem_text(error.problem)}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write(f"\n{tr('models.stopped')}\n")
        return 130


def problem_text(problem: Problem) -> str:
    """The sentence of a problem, with its copyable detail."""
    words = sentence(problem, tr)
    return f"{words}\n  {problem.detail}" if problem.detail else words


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m growbox_app.models", description=__doc__)
    commands = parser.add_subparsers(required=True)
    listing = commands.add_parser("list", help="the catalogue and what is on this machine")
    listing.set_defaults(run=_list)
    fetching = commands.add_parser("fetch", help="download and verify models")
    fetching.add_argument(
        "models", nargs="+", metavar="ID", help=f"an id, or one of {', '.join(_WORDS)}"
    )
    fetching.add_argument("--file", type=Path, help="take this file instead of downloading")
    fetching.add_argument(
        "--quiet", action="store_true", help="say nothing about models that are ready"
    )
    fetching.add_argument(
        "--or-go-on", action="store_true", help="trouble is no failure while usable models are here"
    )
    fetching.set_defaults(run=_fetch)
    verifying = commands.add_parser("verify", help="hash the files that are here")
    verifying.add_argument("models", nargs="*", metavar="ID")
    verifying.set_defaults(run=_verify)
    return parser


def resolve(word: str) -> Model:
    """The model that an id, a tier, `auto`, `chosen` or `embedding` names."""
    if word == "embedding":
        return embedder()
    if word in (AUTO, _CHOSEN):
        wanted = str(SettingsStore(data_path()).get("models.chat"))
        choose = chat_to_fetch if word == AUTO else choose_chat
        return choose(wanted, models_path=models_path(), free_bytes=free_ram_bytes())
    for model in catalogue():
        if model.purpose is Purpose.CHAT and word == model.tier and model.tier is not Tier.LARGE:
            return model
    return find(word)


def _list(_arguments: argparse.Namespace) -> int:
    folder = models_path()
    sys.stdout.write(f"{folder}\n")
    for model in catalogue():
        state = tr(f"models.state.{file_state(model, folder)}")
        sys.stdout.write(
            f"  {model.id:<24}{model.purpose:<11}{bytes_text(model.size):>8}  {model.licence:<11} {state}\n"
        )
    return 0


def _fetch(arguments: argparse.Namespace) -> int:
    try:
        _fetch_each(arguments)
    except ProblemError as error:
        if not (arguments.or_go_on and _can_go_on()):
            raise
        sys.stderr.write(f"\n{problem_text(error.problem)}\n{tr('models.go_on')}\n")
    return 0


def _can_go_on() -> bool:
    """Whether GrowBox can answer with what is here: an embedder and some chat model."""
    folder = models_path()
    return is_here(embedder(), folder) and has_usable_chat(
        models_path=folder, free_bytes=free_ram_bytes()
    )


def _fetch_each(arguments: argparse.Namespace) -> None:
    for model in dict.fromkeys(resolve(word) for word in arguments.models):
        if arguments.quiet and file_state(model, models_path()) is FileState.READY:
            continue
        path = obtain(
            model,
            models_path=models_path(),
            sources=sources_for(model, file=arguments.file),
            progress=_Printer(model),
            cancelled=_never,
        )
        _end_line()
        sys.stdout.write(f"{tr('models.ready', name=model.name, path=path)}\n")


def _verify(arguments: argparse.Namespace) -> int:
    folder = models_path()
    wanted = [resolve(word) for word in arguments.models] or [
        model for model in catalogue() if file_state(model, folder) is not FileState.MISSING
    ]
    broken = 0
    for model in wanted:
        job = Job(model=model, models_path=folder, progress=_Printer(model), cancelled=_never)
        try:
            verify_fully(job)
        except ProblemError as error:
            broken += 1
            sys.stderr.write(f"{problem_text(error.problem)}\n")
            continue
        _end_line()
        sys.stdout.write(f"{tr('models.ready', name=model.name, path=model.path(folder))}\n")
    return 1 if broken else 0


def _never() -> bool:
    return False


class _Printer:
    """Shows progress: one line that is rewritten on a terminal, a line now and then in a log."""

    def __init__(self, model: Model) -> None:
        self._name = model.name
        self._printed_s = float("-inf")
        self._step = ""

    def __call__(self, progress: Progress) -> None:
        terminal = sys.stdout.isatty()
        now = time.monotonic()
        if not terminal and progress.step == self._step and now - self._printed_s < _LINE_EVERY_S:
            return
        self._printed_s, self._step = now, progress.step
        text = self._text(progress)
        sys.stdout.write(f"\r\x1b[2K{text}" if terminal else f"{text}\n")
        sys.stdout.flush()

    def _text(self, progress: Progress) -> str:
        share = 100 * progress.done // max(1, progress.total)
        text = f"{self._name}: {tr(f'progress.{progress.step}')} {share} %"
        if progress.step != "model_verify":
            text += f" · {bytes_text(progress.done)} / {bytes_text(progress.total)}"
            if progress.left_s is not None:
                text += f" · {bytes_text(progress.rate)}/s · {tr('models.left', seconds=round(progress.left_s))}"
        return text


def _end_line() -> None:
    if sys.stdout.isatty():
        sys.stdout.write("\r\x1b[2K")


if __name__ == "__main__":
    sys.exit(main())
