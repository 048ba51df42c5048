"""The headless face: `python -m growbox_app ask "…"`, `ingest PATH…`, `audit`, `rebuild`. Same engine, no Qt.

Imports nothing heavy at module level: spawned child processes import this module again.
"""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> int:
    """Runs one command. Returns the exit code: 0 done, 1 known trouble, 2 wrong usage, 130 interrupted."""
    from growbox_app import cli

    return cli.main(sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    import multiprocessing

    multiprocessing.freeze_support()
    sys.exit(main())
