"""A display of the smoke test's own, and what is to be seen and done on it: find the window, type, close, take a picture.

Talks to libX11 by ctypes, because starting a program for each look would slow down what is measured. One thread. Xvfb ends with
the `Screen`. Linux only; standard library only.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from console import Trouble
from smoke_surroundings import tool

TITLE = "GrowBox"
SIZE = (1920, 1200)
WIDTH_MIN, HEIGHT_MIN = 600, 400
"""The main window is larger; a message box is smaller."""
_VIEWABLE = 2
_CLIENT_MESSAGE = 33
_Z_PIXMAP = 2
_ALL_PLANES = ctypes.c_ulong(-1).value
_REVERT_TO_PARENT = 2
_PIXEL_BYTES = 4
_COLOURS_MIN = 3
"""A painted window shows more colours along its middle lines than a background and its frame."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A window of the display."""

    id: int
    title: str
    width: int
    height: int
    mapped: bool


def main_window(windows: Sequence[Seen]) -> Seen | None:
    """The app's main window among those of the display: mapped, named, of a sensible size."""
    fitting = [
        window
        for window in windows
        if window.mapped
        and TITLE in window.title
        and window.width >= WIDTH_MIN
        and window.height >= HEIGHT_MIN
    ]
    return max(fitting, key=lambda window: window.width * window.height, default=None)


class _Attributes(ctypes.Structure):
    _fields_: ClassVar = [
        *((name, ctypes.c_int) for name in ("x", "y", "width", "height", "border_width", "depth")),
        ("visual", ctypes.c_void_p),
        ("root", ctypes.c_ulong),
        *((name, ctypes.c_int) for name in ("kind", "bit_gravity", "win_gravity", "backing_store")),
        ("backing_planes", ctypes.c_ulong),
        ("backing_pixel", ctypes.c_ulong),
        ("save_under", ctypes.c_int),
        ("colormap", ctypes.c_ulong),
        ("map_installed", ctypes.c_int),
        ("map_state", ctypes.c_int),
        ("all_event_mask", ctypes.c_long),
        ("your_event_mask", ctypes.c_long),
        ("do_not_propagate_mask", ctypes.c_long),
        ("override_redirect", ctypes.c_int),
        ("screen", ctypes.c_void_p),
    ]


class _ClientMessage(ctypes.Structure):
    _fields_: ClassVar = [
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong),
        ("message_type", ctypes.c_ulong),
        ("format", ctypes.c_int),
        ("data", ctypes.c_long * 5),
        ("padding", ctypes.c_long * 24),  # Xlib copies a whole XEvent
    ]


class _Image(ctypes.Structure):
    _fields_: ClassVar = [
        *((name, ctypes.c_int) for name in ("width", "height", "xoffset", "format")),
        ("data", ctypes.c_void_p),
        *((name, ctypes.c_int) for name in ("byte_order", "unit", "bit_order", "pad", "depth")),
        ("bytes_per_line", ctypes.c_int),
        ("bits_per_pixel", ctypes.c_int),
    ]


_ERROR_HANDLER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def _ignore_error(_display: int | None, _event: int | None) -> int:
    """A window may go away while we look at it; Xlib's own handler would end the process."""
    return 0


_IGNORE_ERROR = _ERROR_HANDLER(_ignore_error)  # kept for life: Xlib holds its address


class Screen:
    """An Xvfb and our connection to it."""

    def __init__(self, *, private: bool) -> None:
        """Starts the display.

        Args:
            private: the X sockets are our own, so no lock file in a shared folder is needed.

        Raises:
            Trouble: it does not start.
        """
        self._server, number = _start_server(private=private)
        self.name = f":{number}"
        self._x = _x_library()
        self._display = self._x.XOpenDisplay(self.name.encode())
        if not self._display:
            self._server.kill()
            raise Trouble(f"The virtual display {self.name} does not answer.")
        self._root = self._x.XDefaultRootWindow(self._display)

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        # Without XCloseDisplay: it would wait for a server that may be dead.
        self._server.terminate()
        try:
            self._server.wait(5)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()

    def windows(self) -> list[Seen]:
        """The top-level windows; there is no window manager that would put frames around them."""
        root, parent = ctypes.c_ulong(), ctypes.c_ulong()
        children = ctypes.POINTER(ctypes.c_ulong)()
        count = ctypes.c_uint()
        self._x.XQueryTree(
            self._display,
            self._root,
            ctypes.byref(root),
            ctypes.byref(parent),
            ctypes.byref(children),
            ctypes.byref(count),
        )
        found = [self._seen(children[index]) for index in range(count.value)]
        if count.value:
            self._x.XFree(children)
        return [window for window in found if window is not None]

    def _seen(self, window: int) -> Seen | None:
        facts = _Attributes()
        if not self._x.XGetWindowAttributes(self._display, window, ctypes.byref(facts)):
            return None
        name = ctypes.c_char_p()
        self._x.XFetchName(self._display, window, ctypes.byref(name))
        title = (name.value or b"").decode("utf-8", "replace")
        if name.value is not None:
            self._x.XFree(name)
        return Seen(
            id=window,
            title=title,
            width=facts.width,
            height=facts.height,
            mapped=facts.map_state == _VIEWABLE,
        )

    def is_painted(self, window: Seen) -> bool:
        """Whether the middle lines of the window show more than its background."""
        half_x, half_y = window.width // 2, window.height // 2
        lines = ((0, half_y, window.width, 1), (half_x, 0, 1, window.height))
        found = b"".join(self._pixels(window.id, line) for line in lines)
        colours = {found[at : at + _PIXEL_BYTES] for at in range(0, len(found), _PIXEL_BYTES)}
        return len(colours) >= _COLOURS_MIN

    def _pixels(self, window: int, area: tuple[int, int, int, int]) -> bytes:
        """The pixels of an area, four bytes each (blue, green, red, nothing); none when it cannot be read.

        The image's memory is freed with the test.
        """
        found = self._x.XGetImage(self._display, window, *area, _ALL_PLANES, _Z_PIXMAP)
        if not found or found.contents.bits_per_pixel != 8 * _PIXEL_BYTES:
            return b""
        image = found.contents
        return ctypes.string_at(image.data, image.bytes_per_line * image.height)

    def ask_to_close(self, window: Seen) -> None:
        """What a window manager sends when the user clicks the cross."""
        message = _ClientMessage(
            type=_CLIENT_MESSAGE,
            display=self._display,
            window=window.id,
            message_type=self._atom("WM_PROTOCOLS"),
            format=32,
        )
        message.data[0] = self._atom("WM_DELETE_WINDOW")
        self._x.XSendEvent(self._display, window.id, 0, 0, ctypes.byref(message))
        self._x.XSync(self._display, 0)

    def _atom(self, name: str) -> int:
        return int(self._x.XInternAtom(self._display, name.encode(), 0))

    def can_type(self) -> bool:
        """Whether there is a program that presses keys."""
        return shutil.which("xdotool") is not None

    def type(self, window: Seen, text: str) -> None:
        """Types a line into the window, in place of what is there, and sends it; as a keyboard does, by XTEST."""
        self._x.XSetInputFocus(self._display, window.id, _REVERT_TO_PARENT, 0)
        self._x.XSync(self._display, 0)
        for words in (
            ["key", "ctrl+a"],
            ["type", "--delay", "15", "--", text],
            ["key", "Return"],
        ):
            subprocess.run(
                [tool("xdotool"), *words],
                env={**os.environ, "DISPLAY": self.name},
                timeout=60,
                check=True,
            )

    def picture(self, path: Path) -> None:
        """Saves the whole display as a PNG."""
        width, height = SIZE
        path.write_bytes(png(self._pixels(self._root, (0, 0, width, height)), width, height))


def png(pixels: bytes, width: int, height: int) -> bytes:
    """A picture file of rows of blue, green, red, nothing.

    Source: Portable Network Graphics specification, third edition: 5 (datastream), 9 (filter type 0).
    """
    rows = bytearray(width * height * 3)
    for place in range(3):
        rows[place::3] = pixels[2 - place :: _PIXEL_BYTES]
    step = width * 3
    filtered = b"".join(b"\0" + rows[at : at + step] for at in range(0, len(rows), step))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(filtered)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def _start_server(*, private: bool) -> tuple[subprocess.Popen[bytes], str]:
    reading, writing = os.pipe()
    words = [tool("Xvfb"), "-displayfd", str(writing), "-screen", "0", "{}x{}x24".format(*SIZE)]
    words += ["-nolisten", "tcp", "-noreset", "-ac", *(["-nolock"] if private else [])]
    server = subprocess.Popen(
        words,
        pass_fds=[writing],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    with os.fdopen(reading) as pipe:
        number = pipe.readline().strip()  # end of file when the server gives up
    if not number:
        server.kill()
        server.wait()
        raise Trouble("The virtual display (Xvfb) did not start.")
    return server, number


def _x_library() -> ctypes.CDLL:
    try:
        x = ctypes.CDLL("libX11.so.6")
    except OSError as error:
        raise Trouble(f"libX11 is needed for this test: {error}") from error
    window, display, number = ctypes.c_ulong, ctypes.c_void_p, ctypes.c_int
    pointer = ctypes.c_void_p
    for name, result, arguments in (
        ("XOpenDisplay", pointer, [ctypes.c_char_p]),
        ("XDefaultRootWindow", window, [display]),
        ("XQueryTree", number, [display, window, pointer, pointer, pointer, pointer]),
        ("XFree", number, [pointer]),
        ("XGetWindowAttributes", number, [display, window, pointer]),
        ("XFetchName", number, [display, window, pointer]),
        ("XInternAtom", window, [display, ctypes.c_char_p, number]),
        ("XSendEvent", number, [display, window, number, ctypes.c_long, pointer]),
        ("XSetInputFocus", number, [display, window, number, window]),
        ("XSync", number, [display, number]),
    ):
        function = getattr(x, name)
        function.restype, function.argtypes = result, arguments
    x.XGetImage.restype = ctypes.POINTER(_Image)
    size = ctypes.c_uint
    x.XGetImage.argtypes = [display, window, number, number, size, size, window, number]
    x.XSetErrorHandler(_IGNORE_ERROR)
    return x
