"""Entry of the window: `python -m ui.main`.

Imports nothing heavy at module level, because child processes started by spawn import this module again.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from growbox_app.api import Assistant

NO_DISPLAY = 2


def main(argv: list[str] | None = None) -> int:
    """Opens the window and returns the exit code.

    Args:
        argv: command-line words; none are needed, unknown ones go to Qt.
    """
    from growbox_app.text import tr
    from ui.environment import has_display, prepare_input_method, qt_input_contexts

    if argv is not None:
        sys.argv[1:] = argv
    if not has_display(os.environ):
        sys.stderr.write(tr("start.no_display") + "\n")
        return NO_DISPLAY
    prepare_input_method(os.environ, qt_input_contexts())
    from growbox_app.paths import data_path
    from ui.application import run

    return run(data_path(), _make_assistant)


def _make_assistant() -> Assistant:
    from growbox_app.assistant import GrowBox
    from growbox_app.paths import data_path, models_path

    return GrowBox(data_path=data_path(), models_path=models_path())


if __name__ == "__main__":
    multiprocessing.freeze_support()
    sys.exit(main())
