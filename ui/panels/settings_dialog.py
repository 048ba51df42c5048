"""The settings, generated from the schema: search, sections, default and reset per item. Beside the work, never modal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDoubleSpinBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from growbox_app.settings.schema import SETTINGS, Setting, Value
from growbox_app.text import tr
from ui.panels.controls import IconButton, QuietLabel, TextButton, Words
from ui.view_models import wording

SECTIONS = ("general", "appearance", "models", "memory", "rest", "agent", "network")
TYPING_MS = 500
EDITOR_PIXELS = 220
TEXT_INSET = 6
AUTO = "auto"
_LONG_TEXT = ("models.instructions",)


class SettingRow(QFrame):
    """One setting with its editor.

    Signals: `changed(str key, object value)`.
    """

    changed = Signal(str, object)

    def __init__(
        self,
        setting: Setting,
        value: Value,
        choices: Mapping[str, str],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setting = setting
        self._choices = dict(choices)
        self._label = QuietLabel(look="")
        self._help = QuietLabel()
        self._help.setWordWrap(True)
        self._trouble = QuietLabel(look="danger")
        self._trouble.setWordWrap(True)
        self._trouble.hide()
        self.reset_button = IconButton("rotate-ccw", "settings.reset")
        self.reset_button.clicked.connect(lambda: self._change(setting.default))
        policy = self.reset_button.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.reset_button.setSizePolicy(policy)
        self._typing = QTimer(self)
        self._typing.setSingleShot(True)
        self._typing.setInterval(TYPING_MS)
        self.value = value
        self.editor, self._show = self._make_editor()
        self._show(value)
        wide = setting.key in _LONG_TEXT
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 8, 0, 8)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(0, 1)
        grid.addWidget(self._label, 0, 0)
        grid.addWidget(self._help, 1, 0)
        if wide:
            grid.addWidget(self.editor, 2, 0)
        else:
            self.editor.setFixedWidth(EDITOR_PIXELS)
            grid.addWidget(self.editor, 0, 1, 2, 1, Qt.AlignmentFlag.AlignVCenter)
        grid.addWidget(self.reset_button, 0, 2, 2, 1, Qt.AlignmentFlag.AlignVCenter)
        grid.addWidget(self._trouble, 3, 0, 1, 3)
        self.retranslate()

    def _make_editor(self) -> tuple[QWidget, Callable[[Value], None]]:
        default = self.setting.default
        if isinstance(default, bool):
            return self._make_check()
        if isinstance(default, int | float):
            return self._make_number()
        if self._choices:
            return self._make_choice()
        return self._make_text()

    def _make_check(self) -> tuple[QWidget, Callable[[Value], None]]:
        box = QCheckBox()
        box.clicked.connect(lambda checked: self._change(bool(checked)))
        return box, lambda value: box.setChecked(bool(value))

    def _make_number(self) -> tuple[QWidget, Callable[[Value], None]]:
        setting = self.setting
        low, high = setting.low or 0, setting.high if setting.high is not None else 1_000_000
        if isinstance(setting.default, float):
            real = QDoubleSpinBox()
            real.setRange(low, high)
            real.setSingleStep(0.1)
            real.setKeyboardTracking(False)
            real.lineEdit().setTextMargins(TEXT_INSET, 0, 0, 0)
            real.valueChanged.connect(self._change)
            return real, lambda value: real.setValue(float(value))
        whole = QSpinBox()
        whole.setRange(int(low), int(high))
        whole.setKeyboardTracking(False)
        whole.lineEdit().setTextMargins(TEXT_INSET, 0, 0, 0)
        whole.setGroupSeparatorShown(True)
        whole.valueChanged.connect(self._change)
        return whole, lambda value: whole.setValue(int(value))

    def _make_choice(self) -> tuple[QWidget, Callable[[Value], None]]:
        box = QComboBox()
        box.addItems(list(self._choices.values()))
        box.activated.connect(lambda at: self._change(list(self._choices)[at]))

        def show(value: Value) -> None:
            values = list(self._choices)
            box.setCurrentIndex(values.index(str(value)) if value in values else -1)

        return box, show

    def _make_text(self) -> tuple[QWidget, Callable[[Value], None]]:
        if self.setting.key in _LONG_TEXT:
            area = QPlainTextEdit()
            area.setFixedHeight(84)
            area.setTabChangesFocus(True)
            area.textChanged.connect(self._typing.start)
            self._typing.timeout.connect(lambda: self._change(area.toPlainText()))
            return area, lambda value: area.setPlainText(str(value))
        line = QLineEdit()
        line.editingFinished.connect(lambda: self._change(line.text()))
        return line, lambda value: line.setText(str(value))

    def _change(self, value: Value) -> None:
        if value != self.value:
            self.changed.emit(self.setting.key, value)

    def flush(self) -> None:
        """Takes at once what was typed a moment ago."""
        if self._typing.isActive():
            self._typing.stop()
            self._typing.timeout.emit()

    def show_value(self, value: Value) -> None:
        """Shows the value in force, and no trouble; what is being typed meanwhile stays."""
        self.value = value
        self.editor.blockSignals(True)
        same = isinstance(self.editor, QPlainTextEdit) and self.editor.toPlainText() == value
        if not same and not self._typing.isActive():
            self._show(value)
        self.editor.blockSignals(False)
        self._trouble.hide()
        self.reset_button.setVisible(value != self.setting.default)

    def show_choices(self, choices: Mapping[str, str]) -> None:
        """Offers other values of a choice."""
        if isinstance(self.editor, QComboBox):
            self._choices = dict(choices)
            self.editor.blockSignals(True)
            self.editor.clear()
            self.editor.addItems(list(choices.values()))
            self.editor.blockSignals(False)
            self._show(self.value)
            self.retranslate()

    def show_trouble(self, text: str) -> None:
        """Says why a value was refused."""
        self._trouble.setText(text)
        self._trouble.show()

    def matches(self, words: str) -> bool:
        """Whether a search for `words` finds this setting."""
        everything = f"{self.setting.key} {self._label.text()} {self._help.text()}".casefold()
        return all(word in everything for word in words.casefold().split())

    def retranslate(self) -> None:
        """Says everything again."""
        setting = self.setting
        name = tr(f"setting.{setting.key}.label")
        self._label.setText(name)
        parts = [
            tr(f"setting.{setting.key}.help"),
            tr("settings.default", value=self._words(setting.default)),
        ]
        if setting.needs_restart:
            parts.append(tr("settings.needs_restart"))
        self._help.setText(wording.sentences(*parts))
        self.editor.setAccessibleName(name)
        self.editor.setAccessibleDescription(self._help.text())
        self.reset_button.setAccessibleName(tr("settings.reset_named", name=name))
        if isinstance(self.editor, QComboBox):
            for at, value in enumerate(self._choices):
                self.editor.setItemText(at, self._words(value))
        if isinstance(self.editor, QSpinBox | QDoubleSpinBox) and setting.unit:
            self.editor.setSuffix(f" {tr(f'unit.{setting.unit}')}")
        self.reset_button.setVisible(self.value != setting.default)

    def _words(self, value: Value) -> str:
        if isinstance(value, bool):
            return tr("settings.on" if value else "settings.off")
        if isinstance(value, str):
            if self.setting.choices:
                return tr(f"choice.{self.setting.key}.{value}")
            if value == AUTO and AUTO in self._choices:
                return tr("settings.auto")
            return self._choices.get(value, value) or tr("settings.nothing")
        unit = f" {tr(f'unit.{self.setting.unit}')}" if self.setting.unit else ""
        return f"{value:,}{unit}"


class SettingsDialog(QDialog):
    """All settings.

    Signals: `changed(str key, object value)`, `models_wanted()`, `servers_wanted()`, `tools_wanted()`.
    """

    changed = Signal(str, object)
    models_wanted = Signal()
    servers_wanted = Signal()
    tools_wanted = Signal()

    def __init__(
        self,
        value_of: Callable[[str], object],
        names: Mapping[str, Mapping[str, str]],
        parent: QWidget | None = None,
    ) -> None:
        """`names`: for a setting that is chosen from what is there, its values with their names."""
        super().__init__(parent)
        self.setObjectName("settings_dialog")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.search_field = QLineEdit()
        self.search_field.setClearButtonEnabled(True)
        self.search_field.textChanged.connect(self._filter)
        self.rows: dict[str, SettingRow] = {}
        self._heads: dict[str, Words] = {}
        self._nothing = Words("settings.nothing_found", look="quiet")
        self._nothing.hide()
        column = QVBoxLayout()
        column.setSpacing(0)
        for section in SECTIONS:
            head = Words(f"setting.section.{section}", look="section")
            head.setContentsMargins(0, 12, 0, 2)
            self._heads[section] = head
            column.addWidget(head)
            for setting in SETTINGS.values():
                if setting.section == section:
                    column.addWidget(self._make_row(setting, value_of(setting.key), names))
        column.addWidget(self._nothing)
        column.addStretch(1)
        page = QWidget()
        page.setLayout(column)
        area = QScrollArea()
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(page)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(20, 16, 20, 16)
        outer.setSpacing(8)
        outer.addWidget(self.search_field)
        outer.addWidget(area, 1)
        outer.addLayout(self._make_buttons())
        self.resize(640, 560)
        self.retranslate()

    def _make_buttons(self) -> QHBoxLayout:
        """What is set up elsewhere."""
        self.models_button = TextButton("settings.models", icon_name="cpu")
        self.models_button.clicked.connect(self.models_wanted)
        self.servers_button = TextButton("endpoint.open", icon_name="send-horizontal")
        self.servers_button.clicked.connect(self.servers_wanted)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.models_button)
        buttons.addWidget(self.servers_button)
        self.tools_button = TextButton("tools.open", icon_name="settings")
        self.tools_button.clicked.connect(self.tools_wanted)
        buttons.addWidget(self.tools_button)
        buttons.addStretch(1)
        return buttons

    def _make_row(
        self, setting: Setting, value: object, names: Mapping[str, Mapping[str, str]]
    ) -> SettingRow:
        choices: Mapping[str, str] = {
            choice: tr(f"choice.{setting.key}.{choice}") for choice in setting.choices
        }
        if setting.key in names:
            auto = {AUTO: tr("settings.auto")} if setting.default == AUTO else {}
            choices = auto | dict(names[setting.key])
        row = SettingRow(setting, setting.validate(value), choices)
        row.changed.connect(self.changed)
        self.rows[setting.key] = row
        return row

    def _filter(self, words: str) -> None:
        found: set[str] = set()
        for row in self.rows.values():
            row.setVisible(row.matches(words))
            if row.matches(words):
                found.add(row.setting.section)
        for section, head in self._heads.items():
            head.setVisible(section in found)
        self._nothing.setVisible(not found)

    def flush(self) -> None:
        """Takes at once what was typed a moment ago."""
        for row in self.rows.values():
            row.flush()

    @override
    def done(self, result: int) -> None:
        """Every way of closing comes through here."""
        self.flush()
        super().done(result)

    def retranslate(self) -> None:
        """Says everything again."""
        self.setWindowTitle(tr("settings.title"))
        self.search_field.setPlaceholderText(tr("settings.search"))
        self.search_field.setAccessibleName(tr("settings.search"))
