"""What goes out with a question besides its words: attachments, and messages that the user points at ("cite this")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from growbox_app.api import Attachment
from memory.values import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A message or memory that the user points at; `title` is how its chip names it."""

    node_id: NodeId
    title: str


Enclosure: TypeAlias = Attachment | Citation


def attachments_of(enclosures: Iterable[Enclosure]) -> tuple[Attachment, ...]:
    """The attachments among them, in order."""
    return tuple(item for item in enclosures if isinstance(item, Attachment))


def cited_of(enclosures: Iterable[Enclosure]) -> tuple[NodeId, ...]:
    """The nodes that are cited, in order, each once."""
    cited = (item.node_id for item in enclosures if isinstance(item, Citation))
    return tuple(dict.fromkeys(cited))
