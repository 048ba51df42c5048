"""The engine process's spawn target; imports nothing heavy, so that the application may import it."""

from __future__ import annotations

from multiprocessing.connection import Connection


def run(pipe: Connection) -> None:
    """Runs the engine process until its pipe ends."""
    from growbox_app.engine import host

    host.run(pipe)
