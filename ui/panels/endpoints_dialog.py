"""The servers that may answer: a list, and beside it what is known of one. Beside the work, never modal.

Shows and asks; what is saved, tested and chosen is the flow's business. A key is typed here and never shown again.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from growbox_app.endpoints.address import host_of, is_encrypted, is_loopback
from growbox_app.endpoints.book import TOKENS_MAX, TOKENS_MIN
from growbox_app.endpoints.face import Endpoint, EndpointDraft, ServedModel
from growbox_app.text import tr
from ui.panels.controls import QuietLabel, TextButton, Words

LIST_PIXELS = 190
FIELDS = ("name", "address", "model", "context", "key")
DEFAULT_TOKENS = 8192
TEXT_INSET = 6
ADDRESS_HINT = "http://localhost:8080/v1"


class EndpointsDialog(QDialog):
    """All servers.

    Signals: `save_wanted(EndpointDraft)`, `test_wanted(EndpointDraft)`, `use_wanted(str id)`, `remove_wanted(str id)`.
    """

    save_wanted = Signal(object)
    test_wanted = Signal(object)
    use_wanted = Signal(str)
    remove_wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("endpoints_dialog")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(False)
        self._endpoints: tuple[Endpoint, ...] = ()
        self._offline = True
        self._forget_key = False
        self.list = QListWidget()
        self.list.setFixedWidth(LIST_PIXELS)
        self.list.currentRowChanged.connect(lambda _row: self._fill())
        self.new_button = TextButton("endpoint.new", icon_name="plus")
        self.new_button.clicked.connect(self.begin_new)
        self.name_field = QLineEdit()
        self.address_field = QLineEdit()
        self.model_field = QComboBox()
        self.model_field.setEditable(True)
        self.model_field.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.context_field = QSpinBox()
        self.context_field.setRange(TOKENS_MIN, TOKENS_MAX)
        self.context_field.setGroupSeparatorShown(True)
        self.context_field.lineEdit().setTextMargins(TEXT_INSET, 0, 0, 0)
        self.key_field = QLineEdit()
        self.key_field.setEchoMode(QLineEdit.EchoMode.Password)
        self.forget_key_button = TextButton("endpoint.forget_key", kind="quiet")
        self.test_button = TextButton("endpoint.test", icon_name="search")
        self.save_button = TextButton("endpoint.save", icon_name="save", kind="primary")
        self.use_button = TextButton("endpoint.use", icon_name="check")
        self.remove_button = TextButton("endpoint.remove", icon_name="x")
        self._where = QuietLabel()
        self._said = QuietLabel()
        self._labels = {name: Words(f"endpoint.{name}") for name in FIELDS}
        self._models: tuple[ServedModel, ...] = ()
        self._arrange()
        self._connect()
        self.resize(720, 470)
        self.retranslate()
        self._fill()

    def _arrange(self) -> None:
        words = Words("endpoint.words", look="quiet")
        for label in (words, self._where, self._said):
            label.setWordWrap(True)
        left = QVBoxLayout()
        left.setSpacing(8)
        left.addWidget(self.list, 1)
        left.addWidget(self.new_button)
        halves = QHBoxLayout()
        halves.setSpacing(16)
        halves.addLayout(left)
        halves.addLayout(self._right(), 1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(20, 16, 20, 16)
        outer.setSpacing(16)
        outer.addWidget(words)
        outer.addLayout(halves, 1)

    def _right(self) -> QVBoxLayout:
        key_row = QHBoxLayout()
        key_row.setSpacing(8)
        key_row.addWidget(self.key_field, 1)
        key_row.addWidget(self.forget_key_button)
        form = QGridLayout()
        form.setHorizontalSpacing(12)
        form.setVerticalSpacing(8)
        form.setColumnStretch(1, 1)
        for row, name in enumerate(FIELDS):
            form.addWidget(self._labels[name], row, 0)
        form.addWidget(self.name_field, 0, 1)
        form.addWidget(self.address_field, 1, 1)
        form.addWidget(self.model_field, 2, 1)
        form.addWidget(self.context_field, 3, 1, Qt.AlignmentFlag.AlignLeft)
        form.addLayout(key_row, 4, 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        for button in (self.save_button, self.test_button, self.use_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        buttons.addWidget(self.remove_button)
        right = QVBoxLayout()
        right.setSpacing(12)
        right.addLayout(form)
        right.addWidget(self._where)
        right.addLayout(buttons)
        right.addWidget(self._said)
        right.addStretch(1)
        return right

    def _connect(self) -> None:
        self.address_field.textChanged.connect(lambda _text: self._show_where())
        self.model_field.activated.connect(self._take_context)
        self.forget_key_button.clicked.connect(self._forget)
        self.save_button.clicked.connect(lambda: self.save_wanted.emit(self.draft()))
        self.test_button.clicked.connect(lambda: self.test_wanted.emit(self.draft()))
        self.use_button.clicked.connect(lambda: self.use_wanted.emit(self.current_id()))
        self.remove_button.clicked.connect(lambda: self.remove_wanted.emit(self.current_id()))

    # -- what is shown --------------------------------------------------------------------------
    def show_all(
        self, endpoints: Sequence[Endpoint], *, offline: bool, current: str | None = None
    ) -> None:
        """Shows the servers, and one of them (None: the one that was shown)."""
        wanted = self.current_id() if current is None else current
        self._endpoints, self._offline = tuple(endpoints), offline
        self.list.blockSignals(True)
        self.list.clear()
        for endpoint in self._endpoints:
            item = QListWidgetItem(endpoint.name)
            item.setToolTip(f"{endpoint.model} · {endpoint.host}")
            font = item.font()
            font.setBold(endpoint.chosen)
            item.setFont(font)
            self.list.addItem(item)
        ids = [endpoint.id for endpoint in self._endpoints]
        self.list.setCurrentRow(ids.index(wanted) if wanted in ids else -1)
        self.list.blockSignals(False)
        self._fill()

    def show_offline(self, *, offline: bool) -> None:
        """Says whether others than this computer may be asked."""
        self._offline = offline
        self._show_where()

    def current(self) -> Endpoint | None:
        """The server that is shown; None while a new one is typed."""
        row = self.list.currentRow()
        return self._endpoints[row] if 0 <= row < len(self._endpoints) else None

    def current_id(self) -> str:
        """Its id; empty for a new one."""
        endpoint = self.current()
        return endpoint.id if endpoint is not None else ""

    def begin_new(self) -> None:
        """Empties the form for another server."""
        self.list.setCurrentRow(-1)
        self._fill()
        self.address_field.setFocus()

    def draft(self) -> EndpointDraft:
        """What is typed."""
        key = self.key_field.text() or None
        return EndpointDraft(
            id=self.current_id(),
            name=self.name_field.text(),
            base_url=self.address_field.text(),
            model=self.model_field.currentText(),
            context_tokens=self.context_field.value(),
            key="" if self._forget_key and key is None else key,
        )

    def show_models(self, models: Sequence[ServedModel]) -> None:
        """Offers what a server has; a model is chosen for the user only where he has named none."""
        self._models = tuple(models)
        typed = self.model_field.currentText()
        self.model_field.clear()
        self.model_field.addItems([model.id for model in models])
        self.model_field.setCurrentIndex(-1)
        self.model_field.setEditText(typed or (models[0].id if models else ""))
        if not typed and models:
            self._take_context(0)

    def say(self, text: str, *, trouble: bool = False) -> None:
        """Says how the last wish ended."""
        self._said.set_look("danger" if trouble else "quiet")
        self._said.setText(text)

    def said(self) -> str:
        """What stands there."""
        return self._said.text()

    def where(self) -> str:
        """Where text would go."""
        return self._where.text()

    # -- inside ---------------------------------------------------------------------------------
    def _fill(self) -> None:
        endpoint = self.current()
        self._forget_key = False
        self._models = ()
        self.name_field.setText(endpoint.name if endpoint else "")
        self.address_field.setText(endpoint.base_url if endpoint else "")
        self.model_field.clear()
        self.model_field.setEditText(endpoint.model if endpoint else "")
        self.context_field.setValue(endpoint.context_tokens if endpoint else DEFAULT_TOKENS)
        self.key_field.clear()
        self.say("")
        self._show_buttons()
        self._show_where()

    def _show_buttons(self) -> None:
        endpoint = self.current()
        key = endpoint.key if endpoint and not self._forget_key else ""
        self.key_field.setPlaceholderText(tr(f"endpoint.key_{key or 'hint'}"))
        self.forget_key_button.setVisible(bool(key))
        self.use_button.setVisible(endpoint is not None)
        self.use_button.setEnabled(endpoint is not None and not endpoint.chosen)
        chosen = endpoint is not None and endpoint.chosen
        self.use_button.show_as("endpoint.used" if chosen else "endpoint.use")
        self.remove_button.setVisible(endpoint is not None)

    def _show_where(self) -> None:
        """Where text would go, and who could read it on the way."""
        typed = self.address_field.text().strip()
        url = typed if "://" in typed else f"http://{typed}" if typed else ""
        host = host_of(url)
        lines = []
        if host and is_loopback(url):
            lines.append(tr("endpoint.goes_nowhere"))
        elif host:
            lines.append(tr("endpoint.goes_there", host=host))
            if "://" in typed and not is_encrypted(url):
                lines.append(tr("endpoint.open_text", host=host))
            if self._offline:
                lines.append(tr("endpoint.offline_hint"))
        self._where.setText("\n".join(lines))

    def _take_context(self, at: int) -> None:
        if 0 <= at < len(self._models) and self._models[at].context_tokens:
            self.context_field.setValue(self._models[at].context_tokens)

    def _forget(self) -> None:
        self._forget_key = True
        self.key_field.clear()
        self._show_buttons()

    def retranslate(self) -> None:
        """Says everything again."""
        self.setWindowTitle(tr("endpoint.title"))
        self.list.setAccessibleName(tr("endpoint.title"))
        self.name_field.setPlaceholderText(tr("endpoint.name_hint"))
        self.address_field.setPlaceholderText(ADDRESS_HINT)
        line = self.model_field.lineEdit()
        if line is not None:
            line.setPlaceholderText(tr("endpoint.model_hint"))
            line.setAccessibleName(tr("endpoint.model"))
        self.context_field.setSuffix(f" {tr('unit.tokens')}")
        fields = (
            self.name_field,
            self.address_field,
            self.model_field,
            self.context_field,
            self.key_field,
        )
        for name, field in zip(FIELDS, fields, strict=True):
            field.setAccessibleName(tr(f"endpoint.{name}"))
        self._show_buttons()
        self._show_where()
