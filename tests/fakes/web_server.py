"""A web server on loopback that answers each path as a test wants: bytes as they are, or a function that writes them."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

Answer = bytes | Callable[[socket.socket, threading.Event], None]
"""A function gets the connection, and an event that is set when the test is over."""


class WebServer:
    """`requests` are the heads that came, `answers` what is said to each path."""

    def __init__(self, secure: ssl.SSLContext | None = None) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[str] = []
        self.over = threading.Event()
        self._secure = secure
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def url(self, path: str = "/", host: str = "site.example", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    def paths(self) -> list[str]:
        return [request.split(" ")[1] for request in self.requests]

    def close(self) -> None:
        self.over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while not self.over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.settimeout(5)
            if self._secure is not None:
                connection = self._secure.wrap_socket(connection, server_side=True)
            head = b""
            while b"\r\n\r\n" not in head:
                piece = connection.recv(65_536)
                if not piece:
                    return
                head += piece
            self.requests.append(head.decode("latin-1"))
            answer = self.answers.get(self.paths()[-1], page(b"nothing", status="404 Not Found"))
            if isinstance(answer, bytes):
                connection.sendall(answer)
            else:
                answer(connection, self.over)
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
            connection.close()


def page(
    body: bytes, kind: str = "text/html; charset=utf-8", *headers: str, status: str = "200 OK"
) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    if kind:
        lines.append(f"Content-Type: {kind}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def redirect(location: str, *headers: str) -> bytes:
    return page(b"", "", f"Location: {location}", *headers, status="302 Found")


@contextlib.contextmanager
def serving(secure: ssl.SSLContext | None = None) -> Iterator[WebServer]:
    server = WebServer(secure)
    try:
        yield server
    finally:
        server.close()
