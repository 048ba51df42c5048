"""What the window remembers of itself: geometry, docks, drafts. `window.ini` in the data folder, never the registry.

Lost or broken, it costs the layout and the drafts only. Written by Qt atomically.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path

from PySide6.QtCore import QByteArray, QSettings

from growbox_app.api import Attachment
from memory.values import NodeId
from ui.view_models.enclosures import Citation, Enclosure, attachments_of

NEW_CONVERSATION = "new"


class WindowState:
    """The remembered layout and drafts of one data folder."""

    def __init__(self, data_path: Path) -> None:
        self.data_path = data_path
        self._settings = QSettings(str(data_path / "window.ini"), QSettings.Format.IniFormat)

    def geometry(self) -> tuple[QByteArray, QByteArray]:
        """Geometry and dock layout; empty arrays when nothing was kept."""
        return self._bytes("window/geometry"), self._bytes("window/docks")

    def keep_geometry(self, geometry: QByteArray, docks: QByteArray) -> None:
        """Keeps geometry and dock layout."""
        self._settings.setValue("window/geometry", geometry)
        self._settings.setValue("window/docks", docks)

    def sidebar(self) -> QByteArray:
        """The splitter between sidebar and conversation."""
        return self._bytes("window/sidebar")

    def keep_sidebar(self, state: QByteArray) -> None:
        """Keeps the splitter."""
        self._settings.setValue("window/sidebar", state)

    def appearance(self) -> tuple[str, str]:
        """Language and theme last used, for the time before the settings are open."""
        return self._text("window/language", "system"), self._text("window/theme", "system")

    def keep_appearance(self, language: str, theme: str) -> None:
        """Keeps language and theme."""
        self._settings.setValue("window/language", language)
        self._settings.setValue("window/theme", theme)

    def last_conversation(self) -> str:
        """The conversation that was open."""
        return self._text("window/conversation", "")

    def keep_last_conversation(self, conversation_id: str) -> None:
        """Keeps which conversation is open."""
        self._settings.setValue("window/conversation", conversation_id)

    def draft(self, conversation_id: str) -> tuple[str, list[Enclosure]]:
        """The unsent text of a conversation, its attachments and what it cites."""
        try:
            stored = json.loads(self._text(f"drafts/{conversation_id}", "{}"))
            enclosures: list[Enclosure] = [
                Attachment(node_id=NodeId(str(node)), name=str(name), size_bytes=int(size))
                for node, name, size in stored.get("attachments", [])
            ]
            enclosures += [
                Citation(node_id=NodeId(str(node)), title=str(title))
                for node, title in stored.get("cited", [])
            ]
            return str(stored.get("text", "")), enclosures
        except (ValueError, TypeError, AttributeError):
            return "", []

    def keep_draft(self, conversation_id: str, text: str, enclosures: Sequence[Enclosure]) -> None:
        """Keeps or, when there is nothing, forgets a draft."""
        key = f"drafts/{conversation_id}"
        if not text and not enclosures:
            self._settings.remove(key)
            return
        rows = [(item.node_id, item.name, item.size_bytes) for item in attachments_of(enclosures)]
        cited = [(item.node_id, item.title) for item in enclosures if isinstance(item, Citation)]
        stored = {"text": text, "attachments": rows, "cited": cited}
        self._settings.setValue(key, json.dumps(stored, ensure_ascii=False))

    def prune_drafts(self, known: Collection[str]) -> None:
        """Forgets the drafts of conversations that are gone: one may have been deleted when this window was not there to hear of it."""
        self._settings.beginGroup("drafts")
        kept = {NEW_CONVERSATION, *known}
        for key in [key for key in self._settings.childKeys() if key not in kept]:
            self._settings.remove(key)
        self._settings.endGroup()

    def save(self) -> None:
        """Writes the file now."""
        self._settings.sync()

    def _text(self, key: str, default: str) -> str:
        value = self._settings.value(key, default)
        return value if isinstance(value, str) else default

    def _bytes(self, key: str) -> QByteArray:
        value = self._settings.value(key)
        return value if isinstance(value, QByteArray) else QByteArray()
