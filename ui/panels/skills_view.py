"""Skills that were proposed: what each is, what it rests on, and Accept or Reject. Nothing is used before it is accepted."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from growbox_app.text import tr
from memory.rest_values import ProposalState, SkillProposal
from ui.panels.controls import QuietLabel, TextButton, Words
from ui.panels.part_box import PartBox
from ui.view_models import wording
from ui.view_models.journal import Part

CARDS_MAX = 60


class SkillCard(QFrame):
    """One proposal.

    Signals: `decided(int proposal_id, bool accepted)`, `why_wanted(int proposal_id)`, `note_wanted(NodeId)`.
    """

    decided = Signal(int, bool)
    why_wanted = Signal(int)
    note_wanted = Signal(object)

    def __init__(self, proposal: SkillProposal, now_ms: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.proposal = proposal
        self._now_ms = now_ms
        self.setProperty("look", "card")
        self._name = QuietLabel(proposal.name, look="strong")
        self._text = QuietLabel(proposal.text, look="")
        self._facts = QuietLabel()
        for label in (self._name, self._text, self._facts):
            label.setWordWrap(True)
        self.accept_button = TextButton("skills.accept", kind="primary")
        self.reject_button = TextButton("skills.reject")
        self.why_button = TextButton("skills.why", kind="quiet")
        self.why_button.setCheckable(True)
        self.boxes: list[PartBox] = []
        self._why = QWidget()
        self._parts = QVBoxLayout(self._why)
        self._parts.setContentsMargins(0, 0, 0, 0)
        self._parts.setSpacing(8)
        self._why.hide()
        self._arrange()
        number = proposal.id
        self.accept_button.clicked.connect(lambda: self.decided.emit(number, True))
        self.reject_button.clicked.connect(lambda: self.decided.emit(number, False))
        self.why_button.toggled.connect(self._toggle_why)
        self.retranslate()

    def _arrange(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(self.accept_button)
        row.addWidget(self.reject_button)
        row.addWidget(self.why_button)
        row.addStretch(1)
        open_still = self.proposal.state is ProposalState.OPEN
        self.accept_button.setVisible(open_still)
        self.reject_button.setVisible(open_still)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(6)
        for widget in (self._name, self._text, self._facts):
            column.addWidget(widget)
        column.addLayout(row)
        column.addWidget(self._why)

    def _toggle_why(self, wanted: bool) -> None:
        self._why.setVisible(wanted)
        if wanted and not self.boxes:
            self.why_wanted.emit(self.proposal.id)

    def show_why(self, parts: tuple[Part, ...]) -> None:
        """Shows the experiences and notes behind it."""
        for box in self.boxes:
            box.hide()
            box.deleteLater()
        self.boxes = [PartBox(part) for part in parts]
        for box in self.boxes:
            box.note_wanted.connect(self.note_wanted)
            self._parts.addWidget(box)

    def retranslate(self) -> None:
        """Says everything again."""
        proposal = self.proposal
        facts = (
            tr(f"skills.{proposal.state}"),
            wording.counted("skills.seen", len(proposal.experiences)),
            wording.clock_time(proposal.created_at_ms, self._now_ms),
        )
        self._facts.setText(" · ".join(facts))
        name = proposal.name
        self.accept_button.setAccessibleName(tr("skills.accept_named", name=name))
        self.reject_button.setAccessibleName(tr("skills.reject_named", name=name))
        self.why_button.setAccessibleName(tr("skills.why_named", name=name))


class SkillsView(QScrollArea):
    """All proposals, open ones first.

    Signals: `decided(int, bool)`, `why_wanted(int)`, `note_wanted(NodeId)`.
    """

    decided = Signal(int, bool)
    why_wanted = Signal(int)
    note_wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("skills_view")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._proposals: tuple[SkillProposal, ...] = ()
        self.cards: list[SkillCard] = []
        self._intro = Words("skills.intro", look="quiet")
        self._intro.setWordWrap(True)
        self.empty = Words("skills.empty", look="quiet")
        self.empty.setWordWrap(True)
        self._more = QuietLabel()
        self._column = QVBoxLayout()
        self._column.setSpacing(8)
        inner = QWidget()
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 8, 0, 8)
        column.setSpacing(8)
        column.addWidget(self._intro)
        column.addWidget(self.empty)
        column.addLayout(self._column)
        column.addWidget(self._more)
        column.addStretch(1)
        self.setWidget(inner)
        self.viewport().setAutoFillBackground(False)
        inner.setAutoFillBackground(False)
        self.show_proposals((), 0)

    def show_proposals(self, proposals: tuple[SkillProposal, ...], now_ms: int) -> None:
        """Shows another list; the same one stays as it is, with what is unfolded."""
        if proposals != self._proposals:
            self._fill(proposals, now_ms)
        self._intro.setVisible(bool(proposals))
        self.empty.setVisible(not proposals)
        older = len(proposals) - CARDS_MAX
        self._more.setText(tr("skills.more", count=wording.number(older)))
        self._more.setVisible(older > 0)

    def _fill(self, proposals: tuple[SkillProposal, ...], now_ms: int) -> None:
        self._proposals = proposals
        for card in self.cards:
            self._column.removeWidget(card)
            card.hide()
            card.deleteLater()
        self.cards = [SkillCard(proposal, now_ms) for proposal in proposals[:CARDS_MAX]]
        for card in self.cards:
            card.decided.connect(self.decided)
            card.why_wanted.connect(self.why_wanted)
            card.note_wanted.connect(self.note_wanted)
            self._column.addWidget(card)

    def proposal(self, proposal_id: int) -> SkillProposal | None:
        """One of the shown."""
        return next((item for item in self._proposals if item.id == proposal_id), None)

    def show_why(self, proposal_id: int, parts: tuple[Part, ...]) -> None:
        """Shows what a proposal rests on."""
        for card in self.cards:
            if card.proposal.id == proposal_id:
                card.show_why(parts)

    def retranslate(self) -> None:
        """Says the names again."""
        self.setAccessibleName(tr("skills.list"))
