"""Start of the frozen programs: the window (`GrowBox`), the command line (`growbox-cli`), and their child processes.

One script for all, so that a child started by spawn finds the main module that its parent names. Nothing heavy is imported
at module level: children run this file too, and `growbox-cli` is frozen without Qt.

Source: reference `frozen_facts.md`, traps 4 to 6.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

COMMAND_LINE = "growbox-cli"


def keep_standard_streams() -> None:
    """Opens what is closed: a file of ours must never become descriptor 0, 1 or 2, and nothing may write to None."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - for life


def restore_library_path() -> None:
    """Programs that GrowBox starts for its user must find their own libraries, not ours.

    Our children set theirs anew: the bootloader must be told, or it takes a child of the same program for one whose path is set.
    """
    os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"
    for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"):
        before = os.environ.pop(f"{name}_ORIG", None)
        if before is not None:
            os.environ[name] = before
        else:
            os.environ.pop(name, None)


def use_lean_children() -> None:
    """Children run as `growbox-cli`, which holds no Qt: less memory and a faster start. Windows would flash a console."""
    lean = Path(sys.executable).with_name(COMMAND_LINE)
    if sys.platform == "linux" and lean.exists():
        multiprocessing.set_executable(str(lean))


def main() -> int:
    """Runs the program that this executable is named after; returns the exit code."""
    if Path(sys.executable).stem == COMMAND_LINE:
        from growbox_app.__main__ import main as ask

        return ask()
    from ui.main import main as show

    return show()


if __name__ == "__main__":
    keep_standard_streams()
    multiprocessing.freeze_support()
    restore_library_path()
    use_lean_children()
    sys.exit(main())
