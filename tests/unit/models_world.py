"""A small world for the models part: a model of a few kilobytes, a loopback hub, a recorder of progress, and wheels.

Fakes with behaviour: the hub speaks HTTP (ranges, redirects, cut connections, wrong answers) like the real one.
"""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from growbox_app.api import Progress
from growbox_app.models.catalogue import HubFile, Model, Purpose, Source, Tier
from growbox_app.models.fetch import obtain, sources_for

CONTENT = b"GGUF" + bytes(range(256)) * 4096
HUB_FILE = HubFile(repo="owner/name", file="tiny.gguf")


def model(content: bytes = CONTENT, sources: tuple[Source, ...] = (HUB_FILE,)) -> Model:
    """A catalogue entry whose file has this content."""
    return Model(
        id="tiny",
        name="Tiny",
        purpose=Purpose.CHAT,
        tier=Tier.LIGHT,
        file="tiny.gguf",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        licence="MIT",
        origin="owner/name",
        context_tokens=512,
        ram_bytes=1000,
        template="",
        sources=sources,
    )


@dataclass
class Recorder:
    """A progress sink; `cancel_when` decides from the progress so far whether to stop."""

    seen: list[Progress] = field(default_factory=list)
    cancel_when: Callable[[Progress], bool] = lambda _progress: False

    def __call__(self, progress: Progress) -> None:
        self.seen.append(progress)

    def cancelled(self) -> bool:
        return bool(self.seen) and self.cancel_when(self.seen[-1])

    def steps(self) -> list[str]:
        return list(dict.fromkeys(progress.step for progress in self.seen))


def fetch_into(
    folder: Path, entry: Model, recorder: Recorder | None = None, **options: object
) -> Path:
    """Obtains `entry` as the application does."""
    recorder = recorder or Recorder()
    return obtain(
        entry,
        models_path=folder,
        sources=sources_for(entry, **options),  # type: ignore[arg-type]
        progress=recorder,
        cancelled=recorder.cancelled,
    )


@dataclass
class Hub:
    """What the loopback hub serves and how it misbehaves."""

    content: bytes = CONTENT
    status: int = 200
    content_type: str = "application/octet-stream"
    cut_after: int | None = None
    ranges: bool = True
    redirects: bool = True
    wrong_range: bool = False
    requests: list[str] = field(default_factory=list)
    url: str = ""


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def do_GET(self) -> None:
        hub = self.hub
        hub.requests.append(f"{self.path} {self.headers.get('Range', '')}".strip())
        if hub.redirects and self.path.startswith("/owner"):
            self.send_response(302)
            self.send_header("Location", f"{hub.url}/blob")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self._send_file(hub)

    def _send_file(self, hub: Hub) -> None:
        start = 0
        wanted = self.headers.get("Range")
        if wanted and hub.ranges:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
        if start and start >= len(hub.content):
            self.send_response(416)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if hub.wrong_range:
            start = max(0, start - 1)
        body = hub.content[start:]
        self.send_response(206 if start and hub.status == 200 else hub.status)
        self.send_header("Content-Type", hub.content_type)
        self.send_header("Content-Length", str(len(body)))
        if start:
            self.send_header(
                "Content-Range", f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}"
            )
        self.end_headers()
        if hub.cut_after is not None:
            body = body[: hub.cut_after]
            self.close_connection = True
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Silent: the test asserts on `requests`."""


@contextmanager
def running(hub: Hub) -> Iterator[Hub]:
    """Serves the hub on a loopback port."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, name="hub"
    )
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def wheel(folder: Path, package: str, version: str, member: str, content: bytes) -> Path:
    """Writes a wheel that pip accepts, with one data member."""
    name = package.replace("-", "_")
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{info}/RECORD", "")
    return path
