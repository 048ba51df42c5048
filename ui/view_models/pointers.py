"""The pointer graph around one memory: who is near, how warm the way is, and where the boxes of a drawing lie."""

from __future__ import annotations

from dataclasses import dataclass

from growbox_app.text import tr
from memory.values import KSample, NeighbourhoodSnapshot, NodeId, PointerEdge
from ui.view_models import wording
from ui.view_models.display import title_line

TITLE_CHARACTERS = 90
WIDTH_MIN, WIDTH_MAX = 1.5, 6.0
ROW_PIXELS, GAP_PIXELS = 26, 6
GUTTER_PIXELS = 44
WIDE_PIXELS = 520
"""From here on three columns fit: what leads here, the memory, where it leads."""
COLUMN_GAP_PIXELS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """An edge as seen from the memory in the middle. `leaving`: it leads from there."""

    edge: PointerEdge
    leaving: bool

    @property
    def node_id(self) -> NodeId:
        """The node at the other end."""
        return self.edge.target_id if self.leaving else self.edge.source_id

    @property
    def title(self) -> str:
        """The other end in one line."""
        title = self.edge.target_title if self.leaving else self.edge.source_title
        return title_line(title, TITLE_CHARACTERS)

    @property
    def key(self) -> tuple[NodeId, NodeId]:
        """Tells edges apart."""
        return self.edge.source_id, self.edge.target_id


def neighbours(snapshot: NeighbourhoodSnapshot) -> tuple[Neighbour, ...]:
    """First the edges that lead here, then those that leave; each hottest first."""
    arriving = sorted(snapshot.arriving, key=lambda edge: -edge.heat)
    leaving = sorted(snapshot.leaving, key=lambda edge: -edge.heat)
    return (
        *(Neighbour(edge=edge, leaving=False) for edge in arriving),
        *(Neighbour(edge=edge, leaving=True) for edge in leaving),
    )


def heat_share(edge: PointerEdge, hottest: int) -> float:
    """Heat as 0..1 of the hottest edge in sight."""
    return min(1.0, max(0, edge.heat) / max(1, hottest))


def line_width(edge: PointerEdge, hottest: int) -> float:
    """How thick an edge is drawn."""
    return WIDTH_MIN + (WIDTH_MAX - WIDTH_MIN) * heat_share(edge, hottest)


def describe(neighbour: Neighbour) -> str:
    """An edge in one line: direction, other end, heat, questions for and against, whether it is a pinned jump."""
    edge = neighbour.edge
    parts = [
        tr("pointers.to" if neighbour.leaving else "pointers.from", title=neighbour.title),
        tr("queue.heat", value=wording.number(edge.heat)),
        wording.counted("pointers.positive", len(edge.positive)),
    ]
    if edge.negative:
        parts.append(wording.counted("pointers.negative", len(edge.negative)))
    if edge.forced:
        parts.append(tr("pointers.forced"))
    return " · ".join(parts)


def describe_sample(sample: KSample, now_ms: int, *, positive: bool) -> str:
    """A question of an edge: for or against, its words, weight and age."""
    sign = tr("pointers.sample_for" if positive else "pointers.sample_against")
    weight = tr("pointers.weight", count=wording.number(sample.weight))
    return f"{sign}: {sample.text} · {weight} · {wording.age(sample.used_at_ms, now_ms)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle in pixels."""

    left: float
    top: float
    width: float
    height: float = ROW_PIXELS

    @property
    def right(self) -> float:
        """Its right side."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Its lower side."""
        return self.top + self.height

    @property
    def middle(self) -> float:
        """Half way down."""
        return self.top + self.height / 2

    def holds(self, x: float, y: float) -> bool:
        """Whether a point is inside."""
        return self.left <= x <= self.right and self.top <= y <= self.bottom


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Where the memory in the middle lies, and which neighbours have room; the others stand in the list only."""

    centre: Box
    boxes: tuple[tuple[Neighbour, Box], ...]
    columns: bool


def drawing(found: tuple[Neighbour, ...], width: float, height: float) -> Drawing:
    """The boxes for a picture of this size: columns where it is wide, else one below the other."""
    arriving = [item for item in found if not item.leaving]
    leaving = [item for item in found if item.leaving]
    rows = max(1, int((height + GAP_PIXELS) // (ROW_PIXELS + GAP_PIXELS)))
    if width >= WIDE_PIXELS:
        return _columns(arriving[:rows], leaving[:rows], width, height)
    above, below = _shared(len(arriving), len(leaving), rows - 1)
    return _stacked(arriving[:above], leaving[:below], width, height)


def _shared(first: int, second: int, room: int) -> tuple[int, int]:
    """Shares rows between two sides: half each, and what one does not need goes to the other."""
    above = min(first, max(room // 2, room - second))
    return above, min(second, room - above)


def _columns(
    arriving: list[Neighbour], leaving: list[Neighbour], width: float, height: float
) -> Drawing:
    column = (width - 2 * COLUMN_GAP_PIXELS) / 3
    middle = Box(left=column + COLUMN_GAP_PIXELS, top=(height - ROW_PIXELS) / 2, width=column)
    boxes: list[tuple[Neighbour, Box]] = []
    for left, side in ((0.0, arriving), (width - column, leaving)):
        top = (height - _tall(len(side))) / 2
        for at, item in enumerate(side):
            place = top + at * (ROW_PIXELS + GAP_PIXELS)
            boxes.append((item, Box(left=left, top=place, width=column)))
    return Drawing(centre=middle, boxes=tuple(boxes), columns=True)


def _stacked(
    above: list[Neighbour], below: list[Neighbour], width: float, height: float
) -> Drawing:
    top = max(0.0, (height - _tall(len(above) + 1 + len(below))) / 2)
    places = [top + at * (ROW_PIXELS + GAP_PIXELS) for at in range(len(above) + 1 + len(below))]
    centre = Box(left=0.0, top=places.pop(len(above)), width=width)
    boxes = [
        (item, Box(left=GUTTER_PIXELS, top=place, width=width - GUTTER_PIXELS))
        for item, place in zip([*above, *below], places, strict=True)
    ]
    return Drawing(centre=centre, boxes=tuple(boxes), columns=False)


def _tall(rows: int) -> float:
    return rows * (ROW_PIXELS + GAP_PIXELS) - GAP_PIXELS if rows else 0.0
