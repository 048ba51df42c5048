#!/usr/bin/env python3
"""Does a frozen GrowBox work on a machine that has nothing? Starts it with an empty home, no network, no Python; uses it; looks.

  python3 packaging/smoke_test.py APP [--report FILE] [--root SYSTEM] [--home FOLDER] [--start-by COMMAND] [--trace] [--cold]
                                      [--same-user] [--no-isolation] [--timeout SECONDS]

APP is the app folder (`dist/GrowBox`); with --root, a path inside that system (`/opt/growbox`). One line per step, a JSON report,
exit code 0 when every step passed. Whatever ends the test, no process and no mount is left, and no folder unless it was killed outright.

Linux: runs inside namespaces of its own (see `smoke_surroundings.py`), on a display of its own. Elsewhere there is no isolation
and no look at the window: the app is asked by `growbox-cli`.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import smoke_app
import smoke_surroundings
from console import Trouble, console
from smoke_report import Report
from smoke_steps import Smoke
from smoke_surroundings import Surroundings
from smoke_window import Screen

_END_S = 10.0
_STOPPED = 130
_LINUX = sys.platform == "linux"


def main(arguments: Sequence[str]) -> int:
    """Runs the test; returns 0 when every step passed, 1 when not, 130 when stopped."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _stop)
    try:
        if options.inside is not None:
            return _test(options, Path(options.inside), isolated=True)
        return _surround(options, list(arguments))
    except Trouble as trouble:
        console.say(f"The smoke test could not run: {trouble}")
        return 1
    except KeyboardInterrupt:
        console.say("Stopped.")
        return _STOPPED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="smoke_test.py", description="Uses a frozen GrowBox once."
    )
    parser.add_argument("app", type=Path, help="the app folder; with --root a path in that system")
    parser.add_argument(
        "--report", type=Path, help="write the JSON report here, a picture beside it"
    )
    parser.add_argument("--root", type=Path, help="run the app in this folder with a whole system")
    parser.add_argument("--home", type=Path, help="use this empty folder as home and keep it")
    parser.add_argument("--trace", action="store_true", help="watch every process with strace")
    parser.add_argument("--cold", action="store_true", help="forget cached files before the start")
    parser.add_argument("--no-isolation", action="store_true", help="use the network as it is")
    parser.add_argument("--start-by", help="the command that opens the window, if not APP/GrowBox")
    parser.add_argument("--same-user", action="store_true", help="root stays root for the app too")
    parser.add_argument("--timeout", type=float, default=180.0, help="seconds for one answer")
    parser.add_argument("--inside", help=argparse.SUPPRESS)  # our own second run, in the namespace
    return parser


def _surround(options: argparse.Namespace, arguments: list[str]) -> int:
    """Makes the scratch folder, starts the test in its namespaces, and clears up after it."""
    _check(options)
    scratch = Path(
        tempfile.mkdtemp(prefix="smoke-", dir=options.root / "tmp" if options.root else None)
    )
    scratch.chmod(0o755)
    try:
        if options.no_isolation or not _LINUX:
            return _test(options, scratch.resolve(), isolated=False)
        words = [
            *smoke_surroundings.namespace_command(),
            sys.executable,
            str(Path(__file__).resolve()),
        ]
        return _run([*words, *arguments, "--inside", str(scratch.resolve())])
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _check(options: argparse.Namespace) -> None:
    app = _app_folder(options)
    name = "GrowBox.exe" if sys.platform == "win32" else "GrowBox"
    if not (app / name).is_file():
        raise Trouble(f"There is no {name} in {app}. Build it with: python3 packaging/dev.py build")
    if options.root and (options.no_isolation or not _LINUX or os.geteuid() != 0):
        raise Trouble("--root needs Linux, root, and isolation: it mounts into that folder.")
    if (
        options.root
        and options.home
        and not options.home.resolve().is_relative_to(options.root.resolve())
    ):
        raise Trouble("With --root, --home must be a folder inside that system.")


def _app_folder(options: argparse.Namespace) -> Path:
    path = Path(options.app)
    if options.root:
        return Path(options.root).resolve() / path.relative_to("/")
    return path.resolve()


def _run(words: Sequence[str]) -> int:
    """Runs ourselves in the namespaces. Ended politely first, so that the report is written; then for certain."""
    process = subprocess.Popen(words, start_new_session=True)
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _test(options: argparse.Namespace, scratch: Path, *, isolated: bool) -> int:
    app = _app_folder(options)
    report = Report(
        app=str(options.app),
        version=smoke_app.version(app),
        flavour=smoke_app.flavour(app),
        platform=platform.platform(),
        isolated=isolated,
        traced=bool(options.trace),
    )
    try:
        _run_steps(options, report, _surroundings(options, scratch, isolated=isolated))
    finally:
        if options.report:
            report.write(options.report)
    passed = sum(step["ok"] for step in report.steps)
    console.say(f"{'passed' if report.ok else 'FAILED'}: {passed} of {len(report.steps)} steps")
    return 0 if report.ok else 1


def _surroundings(options: argparse.Namespace, scratch: Path, *, isolated: bool) -> Surroundings:
    root = Path(options.root).resolve() if options.root else Path("/")
    source = _app_folder(options)
    shown = source
    if isolated:
        shown = source if options.root else scratch / smoke_surroundings.APP_FOLDER_NAME
    home = (
        options.home or (root / "home" if options.root else scratch) / smoke_surroundings.HOME_NAME
    )
    return Surroundings(
        root=root,
        app=shown,
        home=home.resolve(),
        scratch=scratch,
        isolated=isolated,
        # In a user namespace there is one user only, and without root there is no other to become.
        as_user=isolated and not options.same_user and _is_really_root(),
    )


def _is_really_root() -> bool:
    if os.geteuid() != 0:
        return False
    # A user namespace of our own maps one id; the machine's maps all.
    return int(Path("/proc/self/uid_map").read_text().split()[2]) > 1


def _run_steps(options: argparse.Namespace, report: Report, place: Surroundings) -> None:
    with ExitStack() as stack:
        if not report.run("surroundings", lambda: _prepare(options, place)):
            return
        if place.in_chroot and not options.home:
            stack.callback(shutil.rmtree, place.home, ignore_errors=True)
        screen = stack.enter_context(Screen(private=place.isolated)) if _LINUX else None
        app = smoke_app.App(
            place,
            display=screen.name if screen else None,
            trace=options.trace,
            timeout_s=options.timeout,
            start_by=options.start_by,
        )
        stack.callback(app.kill)
        report.facts["as_user"] = place.as_user
        picture = options.report.with_suffix(".png").resolve() if options.report else None
        smoke = Smoke(app, report, screen=screen, picture=picture)
        if options.cold:
            report.facts["cold"] = _forget_cached_files()
        for name, step in smoke.steps(report.facts["flavour"]):
            if not report.run(name, step):
                break
        if options.trace:
            app.kill()
            report.run("no network in the trace", smoke.traced)


def _prepare(options: argparse.Namespace, place: Surroundings) -> str:
    said = ["as the machine is"]
    if place.isolated:
        said = [smoke_surroundings.prove_no_way_out()]
        smoke_surroundings.private_x_sockets()
        if smoke_surroundings.bind_read_only(_app_folder(options), place.app):
            said.append("app folder read-only")
        if place.in_chroot:
            smoke_surroundings.furnish_root(place.root)
    place.make()
    said.append("empty home, no Python on PATH")
    return ", ".join(said)


def _forget_cached_files() -> bool:
    """Drops the page cache, so that the start reads from the disk; whether that was allowed."""
    try:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        return False
    return True


def _stop(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    sys.exit(main(sys.argv[1:]))
