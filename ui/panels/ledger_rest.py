"""The line over the fragment ledger: Dream all, or Wake while something runs, and beside it how far it is or why it cannot begin."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from growbox_app.text import tr
from ui.panels.controls import QuietLabel, TextButton
from ui.view_models.rest import RestView


class LedgerRest(QWidget):
    """One button, and what is said beside it. Signals: `dream_all_wanted()`, `wake_wanted()`."""

    dream_all_wanted = Signal()
    wake_wanted = Signal()

    def __init__(self, judge: QLabel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = RestView(headline="")
        self._owing = False
        self._judge = judge
        self.button = TextButton("ledger.dream_all")
        self.words = QuietLabel()
        self.words.setWordWrap(True)
        said = QVBoxLayout()
        said.setSpacing(0)
        said.addWidget(self.words)
        said.addWidget(judge)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 2, 0, 2)
        row.setSpacing(8)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(said, 1)
        self.button.clicked.connect(self._pressed)
        self.retranslate()

    def show_view(self, view: RestView) -> None:
        """Shows another moment."""
        if view != self._view:
            self._view = view
            self.retranslate()

    def show_owing(self, *, owing: bool) -> None:
        """Whether there is a debt at all."""
        self._owing = owing
        self.retranslate()

    def _pressed(self) -> None:
        if self._view.runs:
            self.wake_wanted.emit()
        else:
            self.dream_all_wanted.emit()

    def retranslate(self) -> None:
        """Says everything again."""
        view = self._view
        hindrance = "" if view.runs else view.dream_hindrance
        self.button.show_as("ledger.wake" if view.runs else "ledger.dream_all")
        self.button.setEnabled(not hindrance)
        self.button.setToolTip(hindrance or tr("rest.wake_tip" if view.runs else "rest.sleep_tip"))
        self.button.setAccessibleDescription(hindrance)
        self.button.setVisible(self._owing or view.runs)
        words = hindrance or (view.headline if view.runs else view.ended)
        self.words.setText(words)
        self.words.setToolTip(self._judge.text())
        said = bool(words) and (self._owing or view.runs)
        self.words.setVisible(said)
        # There is room for one of the two: who judges is said while nothing else is.
        self._judge.setVisible(not said and bool(self._judge.text()))
