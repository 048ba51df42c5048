#!/usr/bin/env python3
"""GrowBox from its source: set-up, run, test. Needs Python 3.11 to 3.13 and nothing else.

  python3 packaging/dev.py run            set up what is missing and open the window
  python3 packaging/dev.py test           set up what is missing and run every check
  python3 packaging/dev.py ask "…"        ask without a window (any arguments of `python -m growbox_app ask`)
  python3 packaging/dev.py ingest PATH    add files and folders to the memory (python -m growbox_app ingest)
  python3 packaging/dev.py setup          only set up
  python3 packaging/dev.py models         list, fetch ID, verify
  python3 packaging/dev.py bench NAME     one of tests/benchmarks
  python3 packaging/dev.py build          the frozen app and its packages (--flavour full, light or slim)

Everything may be stopped with Ctrl-C and started again; it goes on where it was.
"""

from __future__ import annotations

import sys

if not (3, 11) <= sys.version_info < (3, 14):
    import shutil

    found = [name for name in ("python3.13", "python3.12", "python3.11") if shutil.which(name)]
    hint = (
        f"This machine has {found[0]}: start packaging/dev.py with it."
        if found
        else "Install one of them."
    )
    sys.exit(f"GrowBox needs Python 3.11, 3.12 or 3.13; this is {sys.version.split()[0]}. {hint}")

import os
import signal
import subprocess
from collections.abc import Callable, Sequence

import environment
import freeze
import machine
from checks import run_checks
from console import Trouble, console
from folders import ROOT, models_path, venv_python
from llama_wheel import wheel_folder

_STOPPED = 130
_USAGE = 2
_BENCHMARKS = ROOT / "tests" / "benchmarks"


def main(argv: Sequence[str]) -> int:
    """Runs one command; known trouble is one sentence on stderr and exit code 1."""
    name, rest = (argv[0], list(argv[1:])) if argv else ("", [])
    command = _COMMANDS.get(name)
    if command is None:
        console.say(__doc__ or "")
        return 0 if name in ("help", "-h", "--help") else _USAGE
    signal.signal(signal.SIGTERM, _stop)
    try:
        return command(rest)
    except Trouble as trouble:
        console.stream = sys.stderr
        console.say(str(trouble))
        return 1
    except OSError as error:
        console.stream = sys.stderr
        console.say(
            f"The system refused: {error}. Free space or mend the permissions, then start again."
        )
        return 1
    except KeyboardInterrupt:
        console.stream = sys.stderr
        console.say("\nStopped. Start it again to go on from here.")
        return _STOPPED


def set_up(chat: str, *, display: bool, tests: bool = False) -> None:
    """Makes this machine ready; says little, and nothing when it is.

    Args:
        chat: which chat model to bring: `auto` (the setting, else by free memory), `chosen` (the same, but one that is here
            stands in and trouble with fetching is no reason to stop while one is) or `light`.
        display: also what a window needs from the system.
        tests: also what the tests need.

    Raises:
        Trouble: something is missing that cannot be got from here.
    """
    machine.prepare(display=display, compiler=environment.needs_compiler(), tests=tests)
    environment.prepare_environment()
    options = ("--quiet", "--or-go-on") if chat == "chosen" else ("--quiet",)
    if environment.run_models("fetch", *options, "embedding", chat) != 0:
        raise Trouble(
            "The models could not be fetched (above is why). Start again to go on from here, or put the files into\n"
            f"  {models_path()}\nwith: python3 packaging/dev.py models fetch ID --file FILE"
        )


def _setup(rest: Sequence[str]) -> int:
    if list(rest) == ["--print-wheel-dir"]:
        console.say(str(wheel_folder()))
        return 0
    if rest:
        raise Trouble("setup takes no arguments but --print-wheel-dir.")
    set_up("auto", display=True)
    console.say("GrowBox is set up. Start it with: python3 packaging/dev.py run")
    return 0


def _open_window(rest: Sequence[str]) -> int:
    if not machine.has_display():
        raise Trouble(
            "There is no display here, so no window can open. Ask in the terminal instead:\n"
            '  python3 packaging/dev.py ask "What do you remember about me?"'
        )
    set_up("chosen", display=True)
    return _become("-m", "ui.main", *rest)


def _ask(rest: Sequence[str]) -> int:
    # Its own output may be read by a program, so set-up talks on stderr.
    console.stream = sys.stderr
    set_up("chosen", display=False)
    return _become("-m", "growbox_app", "ask", *rest)


def _ingest(rest: Sequence[str]) -> int:
    console.stream = sys.stderr
    set_up("chosen", display=False)
    return _become("-m", "growbox_app", "ingest", *rest)


def _test(rest: Sequence[str]) -> int:
    set_up("light", display=True, tests=True)
    return run_checks(rest)


def _models(rest: Sequence[str]) -> int:
    machine.prepare(display=False, compiler=environment.needs_compiler())
    environment.prepare_environment()
    return _become("-m", "growbox_app.models", *(rest or ["list"]))


def _build(rest: Sequence[str]) -> int:
    wanted = freeze.parse(rest)
    machine.prepare(display=True, compiler=environment.needs_compiler())
    environment.prepare_environment()
    if environment.run_models("fetch", "--quiet", *freeze.FLAVOURS[wanted.flavour]) != 0:
        raise Trouble(
            "The models could not be fetched (above is why), and a build without them is none."
        )
    made = freeze.build(wanted.flavour, app_only=wanted.app_only)
    console.say(freeze.report(made))
    return 0


def _bench(arguments: Sequence[str]) -> int:
    name, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    known = sorted(path.stem for path in _BENCHMARKS.glob("*.py") if not path.stem.startswith("_"))
    if name not in known:
        raise Trouble(
            f"There is no benchmark {name!r}. These exist: {', '.join(known) or 'none yet'}."
        )
    set_up("light", display=True)
    # The figures depend on it: without it, two llama.cpp processes on two cores spin against each other.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    os.environ["GROWBOX_MODELS_DIR"] = str(models_path().absolute())
    os.chdir(ROOT)
    return _become("-m", f"tests.benchmarks.{name}", *rest)


def _become(*arguments: str) -> int:
    """Starts `.venv`'s Python in our place, in the user's working directory but never importing from it (-P)."""
    command = [str(venv_python()), "-P", *arguments]
    sys.stdout.flush()
    if os.name == "nt":
        return subprocess.run(command, check=False).returncode
    os.execv(command[0], command)  # noqa: S606


def _stop(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "run": _open_window,
    "test": _test,
    "ask": _ask,
    "ingest": _ingest,
    "setup": _setup,
    "models": _models,
    "bench": _bench,
    "build": _build,
}

if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    sys.exit(main(sys.argv[1:]))
