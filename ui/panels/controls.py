"""Small controls that every panel uses, and the walk that renews words and colours.

A widget that shows words has `retranslate()`, one that draws colours by itself has `restyle()`; `refresh` calls both on a whole tree, so a
change of language or theme is live everywhere.
"""

from __future__ import annotations

from typing import Protocol, cast

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QSizePolicy, QToolButton, QWidget
from typing_extensions import override

from growbox_app.text import tr
from ui.icons import icon

ICON_PIXELS = 16


class Retranslatable(Protocol):
    """Shows words."""

    def retranslate(self) -> None:
        """Says everything again in the current language."""
        ...


class Restylable(Protocol):
    """Draws colours by itself."""

    def restyle(self) -> None:
        """Takes the colours of the current theme."""
        ...


def refresh(root: QWidget) -> None:
    """Renews words and colours of a widget and everything in it.

    Children first: a parent gives some of them words that their own key does not know.
    """
    for widget in (*reversed(root.findChildren(QWidget)), root):
        # Not by isinstance: a protocol's costs more than all the work, with the hundreds of widgets of a window.
        if hasattr(widget, "restyle"):
            cast("Restylable", widget).restyle()
        if hasattr(widget, "retranslate"):
            cast("Retranslatable", widget).retranslate()


class IconButton(QToolButton):
    """A flat button with an icon; its name is tooltip and accessible name at once."""

    def __init__(self, icon_name: str, key: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._icon_name = icon_name
        self._tint = "muted"
        self._key = key
        self._shortcut = ""
        self.setAutoRaise(True)
        self.setIconSize(QSize(ICON_PIXELS, ICON_PIXELS))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.retranslate()
        self.restyle()

    def show_as(self, icon_name: str, key: str) -> None:
        """Changes what the button does in words and picture."""
        self._icon_name, self._key = icon_name, key
        self.retranslate()
        self.restyle()

    def tint(self, token: str) -> None:
        """Draws the icon in another theme colour."""
        self._tint = token
        self.restyle()

    def name_shortcut(self, shortcut: str) -> None:
        """Adds the key to the tooltip."""
        self._shortcut = shortcut
        self.retranslate()

    def retranslate(self) -> None:
        """Says the name again."""
        name = tr(self._key)
        self.setAccessibleName(name)
        self.setToolTip(f"{name} ({self._shortcut})" if self._shortcut else name)

    def restyle(self) -> None:
        """Draws the icon again."""
        self.setIcon(icon(self._icon_name, self._tint))


class TextButton(QPushButton):
    """A button with words and, if wanted, an icon. `kind` is `plain`, `primary`, `quiet` or `row`."""

    def __init__(
        self, key: str, *, icon_name: str = "", kind: str = "plain", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._key = key
        self._icon_name = icon_name
        self._kind = kind
        self.setProperty("kind", kind)
        self.setIconSize(QSize(ICON_PIXELS, ICON_PIXELS))
        self.retranslate()
        self.restyle()

    def set_kind(self, kind: str) -> None:
        """Changes how the button stands out."""
        if kind != self._kind:
            self._kind = kind
            self.setProperty("kind", kind)
            self.style().unpolish(self)
            self.style().polish(self)
            self.restyle()

    def show_as(self, key: str) -> None:
        """Changes the words."""
        self._key = key
        self.retranslate()

    def retranslate(self) -> None:
        """Says the words again."""
        self.setText(tr(self._key))
        self.setAccessibleName(tr(self._key))

    def restyle(self) -> None:
        """Draws the icon again."""
        if self._icon_name:
            self.setIcon(icon(self._icon_name, "on_accent" if self._kind == "primary" else "muted"))


class Words(QLabel):
    """A label bound to a key of the translations. `look` is empty, `quiet`, `title`, `section` or `danger`."""

    def __init__(self, key: str, *, look: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._key = key
        self.setProperty("look", look)
        self.retranslate()

    def retranslate(self) -> None:
        """Says the words again."""
        self.setText(tr(self._key))


class QuietLabel(QLabel):
    """A label for words that change; `look` as in `Words`."""

    def __init__(
        self, text: str = "", *, look: str = "quiet", parent: QWidget | None = None
    ) -> None:
        super().__init__(text, parent)
        self.setProperty("look", look)
        self.setTextFormat(Qt.TextFormat.PlainText)

    def set_look(self, look: str) -> None:
        """Changes the look."""
        if self.property("look") != look:
            self.setProperty("look", look)
            self.style().unpolish(self)
            self.style().polish(self)


class ElidedLabel(QLabel):
    """A one-line label that ends in an ellipsis where there is no room; the tooltip has it whole."""

    def __init__(self, text: str = "", *, look: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", look)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.say(text)

    def say(self, text: str) -> None:
        """Shows other words."""
        self.setText(text)
        self.setToolTip(text)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        metrics = QFontMetrics(self.font())
        shown = metrics.elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
        painter.setPen(self.palette().windowText().color())
        painter.drawText(
            self.rect(), int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft), shown
        )

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(24, super().minimumSizeHint().height())


def horizontal_line(parent: QWidget | None = None) -> QFrame:
    """A one-pixel separator."""
    line = QFrame(parent)
    line.setProperty("look", "line")
    line.setFixedHeight(1)
    return line
