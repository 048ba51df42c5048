"""What every test gets: folders of its own, no network but loopback, no thread left behind, one language.

`GROWBOX_MODELS_DIR` points at the shared, read-only models only for tests marked `model`; all others see an empty folder.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# Before anything imports Qt: windows are drawn off screen unless a test starts its own process with a display.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# Before anything loads llama.cpp: two of them on two cores would spin against each other.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

from growbox_app.paths import models_path
from growbox_app.text import tr

ROOT = Path(__file__).resolve().parent.parent
_SHARED_MODELS = models_path().absolute()
_LOOPBACK = ("127.", "::1", "localhost", "0.0.0.0")
_THREAD_END_S = 5.0

hypothesis.settings.register_profile("dev", max_examples=50, deadline=None)
hypothesis.settings.register_profile(
    "ci", max_examples=100, deadline=None, derandomize=True, database=None, print_blob=True
)
hypothesis.settings.register_profile("nightly", max_examples=1000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("GROWBOX_HYPOTHESIS", "dev"))


class NetworkInTest(RuntimeError):
    """A test (or the code under it) tried to leave this machine. Not an OSError: no code may take it for an outage."""


def pytest_report_header() -> str:
    profile = os.environ.get("GROWBOX_HYPOTHESIS", "dev")
    return f"growbox: SQLite {sqlite3.sqlite_version}, models {_SHARED_MODELS}, hypothesis profile {profile}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"qapp", "qtbot"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("gui")


@pytest.fixture(autouse=True)
def _own_folders(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uses_models = request.node.get_closest_marker("model") is not None
    monkeypatch.setenv("GROWBOX_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("GROWBOX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv(
        "GROWBOX_MODELS_DIR", str(_SHARED_MODELS if uses_models else tmp_path / "models")
    )
    monkeypatch.delenv("HF_ENDPOINT", raising=False)


@pytest.fixture(autouse=True)
def _english() -> None:
    tr.use("en")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", _guarded(socket.socket.connect))
    monkeypatch.setattr(socket.socket, "connect_ex", _guarded(socket.socket.connect_ex))
    look_up = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
        if not _is_local(host):
            raise NetworkInTest(f"looked up {host!r}")
        return look_up(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def _guarded(connect: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_local(address[0]):
            raise NetworkInTest(f"connected to {address!r}")
        return connect(self, address)

    return guarded


def _is_local(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    return not name or (isinstance(name, str) and name.startswith(_LOOPBACK))


@pytest.fixture(autouse=True)
def _no_thread_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Non-daemon threads keep a process alive: whoever started one has to end it."""
    before = set(threading.enumerate())
    yield
    left = [
        thread for thread in threading.enumerate() if thread not in before and not thread.daemon
    ]
    for thread in left:
        thread.join(_THREAD_END_S)
    names = [thread.name for thread in left if thread.is_alive()]
    assert not names, f"threads left behind by {request.node.nodeid}: {names}"


@pytest.fixture(scope="session")
def root() -> Path:
    """The source tree."""
    return ROOT


@pytest.fixture(scope="session")
def set_up_modules() -> Iterator[None]:
    """Makes the modules of `packaging/` importable, as they are when dev.py runs."""
    sys.path.insert(0, str(ROOT / "packaging"))
    yield
    sys.path.remove(str(ROOT / "packaging"))


@pytest.fixture(autouse=True)
def talk_to_standard_output() -> None:
    """A test in which set-up talked to a captured stream must not leave that stream to the next."""
    loaded = sys.modules.get("console")
    if loaded is not None:
        loaded.console._chosen = None
