"""What a command line is made of: each command in it, with its risk and why. GUI thread; shows values, decides nothing."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from growbox_app.approval_face import CommandPart
from growbox_app.text import tr
from ui.icons import icon
from ui.panels.controls import ICON_PIXELS, QuietLabel, TextButton
from ui.panels.mono_text import MonoText
from ui.view_models import wording
from ui.view_models.display import visible

PARTS_SHOWN = 8
SAFE = "safe"
CAREFUL_RISKS = ("irreversible", "unknown")


class PartView(QWidget):
    """One command."""

    def __init__(self, part: CommandPart, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._part = part
        self._picture = QuietLabel()
        self._picture.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.text = MonoText("agent.command")
        self.text.show_lines(tuple(part.text.split("\n")))
        self.words = QuietLabel(look="danger" if part.risk in CAREFUL_RISKS else "quiet")
        self.words.setWordWrap(True)
        column = QVBoxLayout()
        column.setSpacing(0)
        column.addWidget(self.text)
        column.addWidget(self.words)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self._picture)
        row.addLayout(column, 1)
        self.retranslate()
        self.restyle()

    def retranslate(self) -> None:
        """Says the risk again."""
        part = self._part
        reason = visible(tr(f"safety.reason.{part.reason}", **part.details))
        risk = tr("agent.risk", risk=tr(f"safety.risk.{part.risk}"))
        self.words.setText(reason if part.risk == SAFE else wording.sentences(risk, reason))
        self.text.setAccessibleDescription(self.words.text())

    def restyle(self) -> None:
        """Draws the icon again."""
        careful = self._part.risk in CAREFUL_RISKS
        name, token = ("circle-alert", "danger_text") if careful else ("check", "muted")
        self._picture.setPixmap(icon(name, token).pixmap(ICON_PIXELS, ICON_PIXELS))


class CommandParts(QWidget):
    """The commands of one line; the later ones of many are one click away, dangerous ones never."""

    def __init__(self, parts: tuple[CommandPart, ...], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.views = [PartView(part) for part in parts]
        self._folded = [
            view
            for at, view in enumerate(self.views)
            if at >= PARTS_SHOWN and parts[at].risk not in CAREFUL_RISKS
        ]
        self.all_button = TextButton("agent.more_parts_many", kind="quiet")
        self.all_button.clicked.connect(self._unfold)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for view in self.views:
            column.addWidget(view)
        column.addWidget(self.all_button, 0, Qt.AlignmentFlag.AlignLeft)
        for view in self._folded:
            view.hide()
        self.retranslate()

    def _unfold(self) -> None:
        if self.all_button.hasFocus() and self._folded:
            self._folded[0].text.setFocus()
        for view in self._folded:
            view.show()
        self._folded = []
        self.retranslate()

    def retranslate(self) -> None:
        """Says again how many are left out."""
        self.all_button.setVisible(bool(self._folded))
        words = wording.counted("agent.more_parts", len(self._folded))
        self.all_button.setText(words)
        self.all_button.setAccessibleName(words)
