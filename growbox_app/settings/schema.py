"""The one typed source of all settings: key, type, default, unit, range, help, restart.

The settings panel, validation and the reference table are generated from `SETTINGS`. `memory` never sees this; it gets a
`MemoryConfig`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting.

    `choices` lists the allowed words of a string setting (empty: free text). `low`/`high` bound a number, both included.
    `help` is one English sentence; the panel shows `setting.<key>.label` and `setting.<key>.help` from the translations.
    """

    key: str
    section: str
    default: Value
    help: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    needs_restart: bool = False

    def validate(self, value: object) -> Value:
        """Returns the value in this setting's type.

        Raises:
            ValueError: wrong type, out of range, or not one of the choices.
        """
        kind = type(self.default)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not kind:
            raise ValueError(f"{self.key} must be {kind.__name__}")
        if isinstance(value, str):
            if self.choices and value not in self.choices:
                raise ValueError(f"{self.key} must be one of {', '.join(self.choices)}")
            return value
        assert isinstance(value, bool | int | float)
        if (self.low is not None and value < self.low) or (
            self.high is not None and value > self.high
        ):
            raise ValueError(
                f"{self.key} must be between {self.low:g} and {self.high:g} {self.unit}".rstrip()
            )
        return value


_ALL = (
    Setting(
        key="general.language",
        section="general",
        default="system",
        choices=("system", "en", "zh"),
        help="Language of the window.",
    ),
    Setting(
        key="appearance.theme",
        section="appearance",
        default="system",
        choices=("system", "light", "dark"),
        help="Colours of the window.",
    ),
    Setting(
        key="appearance.font_size",
        section="appearance",
        default=15,
        low=10,
        high=28,
        unit="px",
        help="Text size of the conversation.",
    ),
    Setting(
        key="models.chat",
        section="models",
        default="auto",
        help="Id of the chat model; auto chooses by free memory.",
    ),
    Setting(
        key="models.context_tokens",
        section="models",
        default=8192,
        low=2048,
        high=32768,
        unit="tokens",
        needs_restart=True,
        help="Size of the context window.",
    ),
    Setting(
        key="models.answer_tokens",
        section="models",
        default=1024,
        low=64,
        high=8192,
        unit="tokens",
        help="Longest answer; this much of the window is kept free for it.",
    ),
    Setting(
        key="models.temperature",
        section="models",
        default=0.3,
        low=0.0,
        high=2.0,
        help="0 always takes the likeliest token.",
    ),
    Setting(
        key="models.threads",
        section="models",
        default=0,
        low=0,
        high=256,
        needs_restart=True,
        help="Threads of the model; 0 uses the physical cores.",
    ),
    Setting(
        key="models.instructions",
        section="models",
        default="",
        help="Your own instructions, added to the system prompt of new conversations.",
    ),
    Setting(
        key="models.prewarm",
        section="models",
        default=True,
        help="Reads ahead while you are idle, so that answers begin sooner; off while power is saved.",
    ),
    Setting(
        key="memory.pages_max",
        section="memory",
        default=6,
        low=0,
        high=20,
        unit="pages",
        help="Most memories that one question pages in.",
    ),
    Setting(
        key="memory.paused",
        section="memory",
        default=False,
        help="While on, nothing is recalled; conversations are still kept.",
    ),
    Setting(
        key="rest.enabled",
        section="rest",
        default=True,
        help="Dreams, sleeps and learns while nobody uses the computer.",
    ),
    Setting(
        key="rest.sleep_after_minutes",
        section="rest",
        default=8,
        low=1,
        high=240,
        unit="min",
        help="Quiet for so long before the memory sleeps.",
    ),
    Setting(
        key="rest.on_battery",
        section="rest",
        default=False,
        help="Also on battery.",
    ),
    Setting(
        key="memory.search_past",
        section="memory",
        default=True,
        help="When nothing fits a question, earlier notes are read for it: for seconds before an answer, and after it while you are idle.",
    ),
    Setting(
        key="agent.mode",
        section="agent",
        default="manual",
        choices=("manual", "auto", "read_only"),
        help="What the assistant may do in a project without asking: read only, also what can be undone (auto), or nothing else at all (read_only).",
    ),
    Setting(
        key="agent.rounds_max",
        section="agent",
        default=12,
        low=1,
        high=100,
        unit="calls",
        help="Most tool calls of one answer in a project.",
    ),
    Setting(
        key="agent.confined",
        section="agent",
        default=True,
        needs_restart=True,
        help="Commands run in a sandbox where bubblewrap is installed (Linux): they write only in the project and have no network.",
    ),
    Setting(
        key="agent.web",
        section="agent",
        default=False,
        help="The assistant may read web pages, asking for each host; never while Offline is on.",
    ),
    Setting(
        key="agent.notify",
        section="agent",
        default=True,
        help="A notification of the desktop says that something waits for your consent while the window is not in front.",
    ),
    Setting(
        key="network.offline",
        section="network",
        default=True,
        help="While on, GrowBox speaks to nothing but this computer; only model downloads that you start yourself go out.",
    ),
    Setting(
        key="network.chat_endpoint",
        section="network",
        default="",
        help="Id of the server that answers; empty: the model of this machine.",
    ),
    Setting(
        key="context.layout",
        section="memory",
        default="append_log",
        choices=("append_log", "tail_ring"),
        needs_restart=True,
        help="Order of the context: one growing log, which is fast, or the original ring of newest turns behind the memories.",
    ),
    Setting(
        key="memory.kv_bytes_max",
        section="memory",
        default=2048,
        low=0,
        high=65536,
        unit="MiB",
        needs_restart=True,
        help="Disk for saved warm contexts; the oldest go first.",
    ),
)
SETTINGS: Mapping[str, Setting] = {setting.key: setting for setting in _ALL}
