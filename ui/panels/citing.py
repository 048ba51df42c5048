"""Dragging a message: what the mouse carries, and how the input reads it."""

from __future__ import annotations

import json

from PySide6.QtCore import QMimeData

from memory.values import NodeId
from ui.view_models.enclosures import Citation

FORMAT = "application/x-growbox-citation"


def carried(citation: Citation) -> QMimeData:
    """What the mouse carries; only this window can read it."""
    data = QMimeData()
    data.setData(FORMAT, json.dumps([citation.node_id, citation.title]).encode())
    return data


def citation_of(data: QMimeData) -> Citation | None:
    """The message that is dragged, None when it is something else."""
    if not data.hasFormat(FORMAT):
        return None
    node_id, title = json.loads(bytes(data.data(FORMAT).data()))
    return Citation(node_id=NodeId(str(node_id)), title=str(title))
