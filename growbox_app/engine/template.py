"""A model's own chat template, rendered as segments.

The template is rendered once with a placeholder for each message's content and then cut at the placeholders: what is left
are the template's own pieces, which are tokenised with special tokens, while content never is. So `<|im_start|>system`
inside a file or a memory stays plain text. Pure logic; no model.

Source: design 4.3, "Through the model's own chat template, as segments".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import jinja2
import jinja2.sandbox

from growbox_app.engine.protocol import EngineFault, Message

_PLACE = "\x02{}\x03"
_PLACE_PATTERN = re.compile("\x02([0-9]+)\x03")


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of the template itself."""

    text: str


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a message's content; `index` is its position in the conversation."""

    index: int


Segment: TypeAlias = Piece | Slot


class ChatTemplate:
    """Renders conversations of one model."""

    def __init__(self, source: str, *, bos: str, eos: str) -> None:
        """Compiles the template.

        Raises:
            EngineFault: the model has no template, or it does not compile.
        """
        if not source.strip():
            raise EngineFault("model_template", "the model file has no chat template")
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _raise_exception
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise EngineFault("model_template", str(error)) from error
        self._bos = bos
        self._eos = eos
        self._folds_system = self._rejects_system()

    def segments(
        self, messages: Sequence[Message], *, date: str, generate: bool = True
    ) -> list[Segment]:
        """The rendered conversation as template pieces and content slots, in order.

        Args:
            messages: the conversation, at most one system message, first.
            date: start date of the conversation, YYYY-MM-DD, for templates that print one.
            generate: ends with the generation prompt.

        Raises:
            EngineFault: the template refuses the conversation or swallows one of its messages.
        """
        return _cut(self._render(messages, date=date, generate=generate), count=len(messages))

    def _rejects_system(self) -> bool:
        probe = (Message(role="system", parts=("s",)), Message(role="user", parts=("u",)))
        try:
            _cut(self._render_plain(probe, date="2000-01-01", generate=True), count=2)
        except EngineFault:
            return True
        return False

    def _render(self, messages: Sequence[Message], *, date: str, generate: bool) -> str:
        if self._folds_system and len(messages) > 1 and messages[0].role == "system":
            return self._render_rows(_folded(messages), date=date, generate=generate)
        return self._render_plain(messages, date=date, generate=generate)

    def _render_plain(self, messages: Sequence[Message], *, date: str, generate: bool) -> str:
        rows = [
            {"role": message.role, "content": _PLACE.format(index)}
            for index, message in enumerate(messages)
        ]
        return self._render_rows(rows, date=date, generate=generate)

    def _render_rows(self, rows: list[dict[str, str]], *, date: str, generate: bool) -> str:
        try:
            return self._template.render(
                messages=rows,
                add_generation_prompt=generate,
                bos_token=self._bos,
                eos_token=self._eos,
                strftime_now=_fixed_date(date),
                tools=None,
                documents=None,
            )
        except (jinja2.TemplateError, TypeError, ValueError, KeyError) as error:
            raise EngineFault("model_template", str(error)) from error


def _folded(messages: Sequence[Message]) -> list[dict[str, str]]:
    """A template without a system role gets the system text at the head of the first user message."""
    head = _PLACE.format(0) + "\n\n" + _PLACE.format(1)
    rows = [{"role": "user", "content": head}]
    rows += [
        {"role": message.role, "content": _PLACE.format(index)}
        for index, message in enumerate(messages)
        if index > 1
    ]
    return rows


def _cut(rendered: str, *, count: int) -> list[Segment]:
    segments: list[Segment] = []
    for position, text in enumerate(_PLACE_PATTERN.split(rendered)):
        if position % 2:
            segments.append(Slot(int(text)))
        elif text:
            segments.append(Piece(text))
    found = [segment.index for segment in segments if isinstance(segment, Slot)]
    if found != list(range(count)):
        raise EngineFault("model_template", f"the template rendered messages {found} of {count}")
    return segments


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _fixed_date(date: str) -> Callable[[str], str]:
    """`strftime_now` of some templates; the start date of the conversation keeps the prefix stable."""
    import datetime

    moment = datetime.datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=datetime.UTC)
    return moment.strftime
