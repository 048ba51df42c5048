"""Dream, Sleep, Nap and Wake, what comes next, how far the running one has come, and how the last one ended."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from growbox_app.text import tr
from ui.panels.controls import QuietLabel, TextButton
from ui.view_models.rest import RestView

BAR_PIXELS = 4


class RestControls(QWidget):
    """The upper part of the fatigue meter.

    Signals: `dream_wanted()`, `sleep_wanted()`, `nap_wanted()`, `wake_wanted()`.
    """

    dream_wanted = Signal()
    sleep_wanted = Signal()
    nap_wanted = Signal()
    wake_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = RestView(headline="")
        self.headline = QuietLabel(look="")
        self.headline.setWordWrap(True)
        self.detail = QuietLabel()
        self.detail.setWordWrap(True)
        self._bar = QProgressBar()
        self._bar.setFixedHeight(BAR_PIXELS)
        self._bar.setTextVisible(False)
        self.dream_button = TextButton("rest.dream")
        self.sleep_button = TextButton("rest.sleep")
        self.nap_button = TextButton("rest.nap")
        self.wake_button = TextButton("rest.wake")
        row = QHBoxLayout()
        row.setSpacing(6)
        for button in self._buttons():
            row.addWidget(button)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.headline)
        column.addWidget(self._bar)
        column.addLayout(row)
        column.addWidget(self.detail)
        self.dream_button.clicked.connect(self.dream_wanted)
        self.sleep_button.clicked.connect(self.sleep_wanted)
        self.nap_button.clicked.connect(self.nap_wanted)
        self.wake_button.clicked.connect(self.wake_wanted)
        self.retranslate()

    def show_view(self, view: RestView) -> None:
        """Shows another moment."""
        if view != self._view:
            self._view = view
            self.retranslate()

    def retranslate(self) -> None:
        """Says everything again."""
        view = self._view
        self.setAccessibleName(tr("rest.controls"))
        self._bar.setAccessibleName(tr("rest.progress"))
        self.headline.setText(view.headline)
        whole = view.judged + view.unread
        self._bar.setVisible(view.runs and whole > 0)
        self._bar.setRange(0, max(1, whole))
        self._bar.setValue(view.judged)
        words = view.detail or view.ended
        said = words in (view.headline, "")
        self.detail.setText("" if said else words)
        self.detail.setHidden(said)
        focused = [button for button in self._buttons() if button.hasFocus()]
        for button, hindrance, tip in (
            (self.wake_button, "" if view.runs else tr("rest.idle"), "rest.wake_tip"),
            (self.nap_button, "", "rest.nap_tip"),
            (self.sleep_button, view.sleep_hindrance, "rest.sleep_tip"),
            (self.dream_button, view.dream_hindrance, "rest.dream_tip"),
        ):
            reason = hindrance or tr(tip)
            button.setEnabled(not hindrance)
            button.setToolTip(reason)
            button.setAccessibleDescription(reason)
        # The focus does not fall out of the panel with the button that began or ended something.
        if focused and not focused[0].isEnabled():
            (self.wake_button if view.runs else self.nap_button).setFocus()

    def _buttons(self) -> tuple[TextButton, ...]:
        return self.dream_button, self.sleep_button, self.nap_button, self.wake_button
