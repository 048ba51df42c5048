"""A selection as SQL: the filter that every search applies inside its own query."""

from __future__ import annotations

from memory.storage.database import Value
from memory.values import Node, Selection

EVERYTHING = Selection()


def condition(selection: Selection) -> tuple[str, tuple[Value, ...]]:
    """An expression over the nodes table `n`, which begins with AND, and its values; empty for everything."""
    parts: list[str] = []
    values: list[Value] = []
    if selection.kinds:
        parts.append(f"AND n.kind IN ({','.join('?' * len(selection.kinds))})")
        values += sorted(selection.kinds)
    if selection.project_id is not None:
        parts.append("AND n.project_id = ?")
        values.append(selection.project_id)
    if selection.since_ms is not None:
        parts.append("AND n.created_at_ms >= ?")
        values.append(selection.since_ms)
    if selection.until_ms is not None:
        parts.append("AND n.created_at_ms < ?")
        values.append(selection.until_ms)
    return " ".join(parts), tuple(values)


def admits(selection: Selection, node: Node) -> bool:
    """The same, for a node at hand."""
    return (
        (not selection.kinds or node.kind in selection.kinds)
        and selection.project_id in (None, node.project_id)
        and (selection.since_ms is None or node.created_at_ms >= selection.since_ms)
        and (selection.until_ms is None or node.created_at_ms < selection.until_ms)
    )
