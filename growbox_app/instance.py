"""One instance per data folder: the running one listens, a second one hands its wish over.

A local socket (named pipe on Windows) whose address follows from the data folder, with a key file only the user can read.
Frames are JSON. Two wishes exist: raise the window, and ask a question (answered over the same connection).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import TypeAlias

Frame: TypeAlias = dict[str, object]
Send: TypeAlias = Callable[[Frame], None]
Handler: TypeAlias = Callable[[Frame, Send], None]
"""Called on a connection's own thread; sends any number of frames and returns when the wish is done."""


def address_of(data_path: Path) -> str:
    """The socket's address. Short: a socket path may not exceed about a hundred bytes."""
    digest = hashlib.sha256(os.fsencode(data_path.resolve())).hexdigest()[:20]
    if sys.platform == "win32":
        return rf"\\.\pipe\growbox-{digest}"
    folder = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return str(Path(folder) / f"growbox-{os.getuid()}-{digest}.sock")


class InstanceServer:
    """Listens while this instance owns the data folder."""

    def __init__(self, data_path: Path, handler: Handler) -> None:
        """Starts to listen.

        Raises:
            OSError: no local socket can be had; the application runs on without this convenience.
        """
        address = address_of(data_path)
        if sys.platform != "win32":
            Path(address).unlink(
                missing_ok=True
            )  # the folder's lock is ours, so a left-over socket is dead
        self._handler = handler
        self._key = _key(data_path, create=True)
        self._address = address
        self._listener = Listener(address, authkey=self._key)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._accept, name="instance", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops listening. Idempotent."""
        if self._closing.is_set():
            return
        self._closing.set()
        with contextlib.suppress(OSError, EOFError, AuthenticationError):
            Client(self._address, authkey=self._key).close()  # wakes the accepting thread
        self._thread.join(2)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except (OSError, EOFError, AuthenticationError):
                if self._closing.is_set():
                    return
                continue
            if self._closing.is_set():
                connection.close()
                return
            threading.Thread(
                target=self._serve, args=(connection,), name="instance-connection", daemon=True
            ).start()

    def _serve(self, connection: Connection) -> None:
        with contextlib.suppress(OSError, EOFError, ValueError), connection:
            frame = json.loads(connection.recv_bytes(1 << 20))
            if isinstance(frame, dict):
                self._handler(frame, lambda f: connection.send_bytes(json.dumps(f).encode()))


def hand_over(data_path: Path, frame: Frame) -> Iterator[Frame]:
    """Sends a wish to the running instance and yields its frames.

    Raises:
        OSError: nobody listens.
    """
    try:
        connection = Client(address_of(data_path), authkey=_key(data_path, create=False))
    except (EOFError, AuthenticationError) as error:
        raise OSError(str(error)) from error
    with connection:
        connection.send_bytes(json.dumps(frame).encode())
        while True:
            try:
                yield json.loads(connection.recv_bytes())
            except (EOFError, OSError):
                return


def ask_to_raise(data_path: Path) -> bool:
    """Asks the running instance to show its window. False when nobody answers."""
    try:
        return any(frame.get("done") for frame in hand_over(data_path, {"wish": "raise"}))
    except OSError:
        return False


def _key(data_path: Path, *, create: bool) -> bytes:
    path = data_path / "instance.key"
    if create:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_bytes(32))
    return path.read_bytes()
