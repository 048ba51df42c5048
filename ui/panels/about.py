"""About GrowBox: what it is, where its data lies, and every bundled part with its licence. Beside the work, never modal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from growbox_app.notices import Notice
from growbox_app.text import tr
from growbox_app.version import version
from ui.facts import facts
from ui.icons import application_icon
from ui.panels.controls import ElidedLabel, IconButton, QuietLabel, TextButton, Words
from ui.theme import theme
from ui.view_models.display import one_line

ICON_PIXELS = 64
SIZE = (980, 640)
PARTS_PIXELS = 280
_LICENCE_CHARACTERS_MAX = 60


class AboutDialog(QDialog):
    """Name, version, data folder, parts and their licences. `show_notices` fills the list, which takes a moment to read.

    Args:
        data_path: shown, copied and opened.
        cpu_variant: the llama.cpp build in use, asked for when the facts are copied.
        judge: how well the model judges what it reads; empty while none is loaded.
    """

    def __init__(
        self,
        data_path: Path,
        cpu_variant: Callable[[], str],
        parent: QWidget | None = None,
        *,
        judge: str = "",
    ) -> None:
        super().__init__(parent)
        self.setObjectName("about_dialog")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(False)
        self._data_path, self._cpu_variant = data_path, cpu_variant
        self._notices: tuple[Notice, ...] = ()
        self.parts = QListWidget()
        self.parts.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.parts.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.parts.currentRowChanged.connect(self._show_part)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.parts.setFixedWidth(PARTS_PIXELS)
        both = QHBoxLayout()
        both.setSpacing(8)
        both.addWidget(self.parts)
        both.addWidget(self.text, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(12)
        column.addLayout(self._head())
        column.addLayout(self._folder_row())
        self.judge = QuietLabel(judge)
        self.judge.setWordWrap(True)
        self.judge.setVisible(bool(judge))
        column.addWidget(self.judge)
        column.addWidget(Words("about.parts", look="section"))
        column.addLayout(both, 1)
        column.addLayout(self._buttons())
        room = self.screen().availableGeometry()
        self.resize(min(SIZE[0], room.width() - 64), min(SIZE[1], room.height() - 96))
        self.retranslate()
        self.restyle()
        self.parts.setFocus()

    def _head(self) -> QHBoxLayout:
        picture = QuietLabel()
        picture.setPixmap(application_icon().pixmap(ICON_PIXELS, ICON_PIXELS))
        name = QuietLabel(f"GrowBox {version()}".strip(), look="hero")
        name.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        words = Words("about.words")
        words.setWordWrap(True)
        licence = Words("about.licence", look="quiet")
        licence.setWordWrap(True)
        beside = QVBoxLayout()
        beside.setSpacing(4)
        for label in (name, words, licence):
            beside.addWidget(label)
        row = QHBoxLayout()
        row.setSpacing(16)
        row.addWidget(picture, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(beside, 1)
        return row

    def _folder_row(self) -> QHBoxLayout:
        path = ElidedLabel(str(self._data_path))
        self.copy_path_button = IconButton("copy", "about.copy_path")
        self.copy_path_button.clicked.connect(
            lambda: QGuiApplication.clipboard().setText(str(self._data_path))
        )
        self.open_path_button = IconButton("folder-open", "about.open_path")
        self.open_path_button.clicked.connect(
            lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._data_path)))
        )
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(Words("about.data", look="section"))
        row.addWidget(path, 1)
        row.addWidget(self.copy_path_button)
        row.addWidget(self.open_path_button)
        return row

    def _buttons(self) -> QHBoxLayout:
        self.copy_facts_button = TextButton("about.copy_facts", icon_name="copy")
        self.copy_facts_button.clicked.connect(
            lambda: QGuiApplication.clipboard().setText(facts(self._cpu_variant()))
        )
        close = TextButton("source.close")
        close.clicked.connect(self.close)
        row = QHBoxLayout()
        row.addWidget(self.copy_facts_button)
        row.addStretch(1)
        row.addWidget(close)
        return row

    def show_notices(self, notices: tuple[Notice, ...]) -> None:
        """Lists the parts and shows the first one's text."""
        self._notices = notices
        self.parts.clear()
        for notice in notices:
            licence = one_line(notice.licence, _LICENCE_CHARACTERS_MAX)
            item = QListWidgetItem(f"{notice.name}\n{notice.version} · {licence}")
            item.setToolTip(f"{notice.name} {notice.version} · {notice.licence}")
            self.parts.addItem(item)
        self.parts.setCurrentRow(0)

    def _show_part(self, row: int) -> None:
        shown = self._notices[row].text if 0 <= row < len(self._notices) else ""
        self.text.setPlainText(shown)

    def retranslate(self) -> None:
        """Says everything again."""
        self.setWindowTitle(tr("help.about"))
        self.parts.setAccessibleName(tr("about.parts"))
        self.text.setAccessibleName(tr("about.text"))

    def restyle(self) -> None:
        """Takes the font of the theme."""
        self.text.setFont(theme.code_font())
