"""Colours code away from the GUI thread.

Building a lexer the first time compiles its expressions (a quarter of a second for Python), and long code takes many frames; both happen in Qt's
thread pool, and the answer comes back as a queued signal. A request that was overtaken by a newer one of the same owner is not answered.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QThreadPool, Signal

from ui.view_models.highlight import Piece, pieces


class Highlighter(QObject):
    """Colours the code of one owner, one request at a time; only the newest is answered."""

    _done = Signal(int, object)

    def __init__(self, show: Callable[[tuple[Piece, ...]], None], parent: QObject) -> None:
        super().__init__(parent)
        self._show = show
        self._newest = 0
        self._done.connect(self._take, Qt.ConnectionType.QueuedConnection)

    def colour(self, text: str, language: str) -> None:
        """Asks for coloured pieces; `show` gets them later on the GUI thread."""
        self._newest += 1
        number = self._newest
        answer = _Answer(self._done.emit)
        QThreadPool.globalInstance().start(
            lambda: answer.give(number, tuple(pieces(text, language)))
        )

    def forget(self) -> None:
        """Drops the answer to what was asked."""
        self._newest += 1

    def _take(self, number: int, made: tuple[Piece, ...]) -> None:
        if number == self._newest:
            self._show(made)


class _Answer:
    """Carries a result to an owner that may be gone by then."""

    def __init__(self, emit: Callable[[int, object], None]) -> None:
        self._emit = emit

    def give(self, number: int, made: tuple[Piece, ...]) -> None:
        try:
            self._emit(number, made)
        except RuntimeError:
            return  # the code block was closed meanwhile; nobody waits for colours
