"""The registry of executors: the tool list of the prompt, the grammar of a call, and dispatch.

What a window has room for stands in the prompt whole; the rest is *deferred*: named only, and callable once it is loaded. The list is
sorted and fixed for a session, and loading appends to the conversation, so the prompt's prefix never changes; only the grammar grows.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from growbox_app.executors.answers import CallFailed, Reason
from growbox_app.executors.base import (
    CORE_WINDOW_MIN,
    CallContext,
    Executor,
    ExecutorResult,
    Parameter,
    Plan,
)
from growbox_app.executors.call_grammar import CLOSER, TRIGGER, Narrowing, call_grammar
from growbox_app.executors.tool_search import ToolSearch, by_words, names_it, shown

_LOG = logging.getLogger(__name__)
T = TypeVar("T")

__all__ = ["CLOSER", "TRIGGER", "Registry"]

FOREIGN_MARK = "__"
"""Stands in the name of every tool of a server, and in no other."""
RESULT_HEAD = "[result of {name}]"
"""How a tool's result begins in the prompt; see `prompts.tool_result_block`."""


IN_VIEW_MAX = 28
"""Source: seed item M16."""
DEFERRED_MIN = 3
"""Fewer tools out of view are not worth the words that the search for them takes: there are none."""
NAMES_SHOWN_MAX = 60
SUGGESTED_MAX = 3

Foreign = Callable[[], Sequence[Executor]]
"""Tools that come and go with the user's servers."""
Rank = Callable[[str, Sequence[Executor]], Sequence[Executor]]
"""The tools that fit a wish, best first."""


class Registry:
    """Executors by name."""

    def __init__(
        self,
        executors: Iterable[Executor],
        in_project: Iterable[Executor] = (),
        *,
        foreign: Foreign = tuple,
        rank: Rank = by_words,
    ) -> None:
        """Takes what every conversation may use, what needs a project's folder, and what is always deferred."""
        rest = sorted(in_project, key=lambda e: e.name)
        everything = sorted([*executors, *rest], key=lambda e: e.name)
        self._executors: dict[str, Executor] = {e.name: e for e in everything}
        self._in_project = frozenset(e.name for e in rest)
        self._foreign = foreign
        self._rank = rank
        self._deferred: dict[str, Executor] = {}
        self._loaded: dict[str, Executor] = {}

    def for_window(self, tokens: int, *, in_project: bool = False) -> Registry:
        """The executors of one conversation in a window of so many tokens. Each has its own loaded ones."""
        if tokens < CORE_WINDOW_MIN:
            return Registry(())
        usable = [
            executor
            for executor in self._executors.values()
            if (in_project or executor.name not in self._in_project) and _offered(executor)
        ]
        usable.sort(key=lambda executor: (executor.window_min, executor.name))
        shown = [executor for executor in usable if tokens >= executor.window_min][:IN_VIEW_MAX]
        names = {executor.name for executor in shown}
        hidden = [executor for executor in usable if executor.name not in names]
        hidden += [executor for executor in self._foreign() if executor.name not in self._executors]
        view = Registry(shown, rank=self._rank)
        if len(hidden) >= DEFERRED_MIN or any(foreign(executor) for executor in hidden):
            view._defer(hidden)
        return view

    def _defer(self, hidden: Sequence[Executor]) -> None:
        self._deferred = {e.name: e for e in sorted(hidden, key=lambda e: e.name)}
        search = ToolSearch(self.find, describe=described, load=self.load)
        everything = {**self._executors, search.name: search}
        self._executors = {name: everything[name] for name in sorted(everything)}

    # -- what is out of view ----------------------------------------------------------------------
    @property
    def deferred(self) -> tuple[Executor, ...]:
        """All that is out of view, loaded or not."""
        return tuple(self._deferred.values())

    def deferred_names(self) -> str:
        """What the prompt says of them; empty when there are none."""
        names = list(self._deferred)
        more = len(names) - NAMES_SHOWN_MAX
        return ", ".join(names[:NAMES_SHOWN_MAX]) + (f" … +{more}" if more > 0 else "")

    def find(self, wish: str) -> tuple[Executor, ...]:
        """The deferred tools that fit a wish, best first."""
        return tuple(self._rank(wish, self.deferred))

    def suggest(self, question: str) -> ExecutorResult | None:
        """What a search would have found, for a question that names a tool or its server: a small model seldom searches by itself."""
        named = [
            executor
            for executor in self.find(question)
            if executor.name not in self._loaded and names_it(question, executor)
        ]
        return shown(named[:SUGGESTED_MAX], described, self.load) if named else None

    def load(self, names: Iterable[str]) -> None:
        """Lets deferred tools be called from now on."""
        for name in names:
            if name in self._deferred:
                self._loaded[name] = self._deferred[name]

    def restore(self, texts: Iterable[str]) -> None:
        """Loads what the results of earlier searches, which still stand in the prompt, have described."""
        head = f"{RESULT_HEAD.format(name=ToolSearch.name)}\n"
        for text in texts:
            if text.startswith(head):
                self.load(_described_names(text))

    @property
    def names(self) -> frozenset[str]:
        """Names of all executors that may be called."""
        return frozenset(self._executors) | frozenset(self._loaded)

    @property
    def known(self) -> frozenset[str]:
        """Names of all executors, the deferred ones included."""
        return frozenset(self._executors) | frozenset(self._deferred)

    def tool_list(self) -> str:
        """One line of JSON per executor in view, sorted by name."""
        return "\n".join(described(executor) for executor in self._executors.values())

    def get(self, name: str) -> Executor | None:
        """An executor by name."""
        return self._executors.get(name) or self._loaded.get(name)

    def ends_turn(self, name: str) -> bool:
        """Whether a good result of this executor is the turn's answer."""
        return bool(getattr(self._executors.get(name), "ends_turn", False))

    def grammar(self, barred: Collection[str] = (), narrowed: Narrowing | None = None) -> str:
        """GBNF of one call of any executor but the barred ones; empty where none is left. See `call_grammar`."""
        callable_now = {**self._executors, **self._loaded}
        allowed = {n: e for n, e in callable_now.items() if n not in barred}
        wanted = narrowed or Narrowing()
        if wanted.tools is not None and not wanted.must_call:
            # What the user named, or the model looked up, makes sense in every stage.
            wanted = replace(wanted, tools=wanted.tools | self._loaded.keys())
        return call_grammar(allowed, wanted)

    async def plan(
        self, name: str, arguments: Mapping[str, str], context: CallContext
    ) -> Plan | ExecutorResult:
        """What a call would do; an executor's bug becomes a failed result and a log entry, never a dead turn."""
        executor = self.get(name)
        if executor is None:
            return self._not_callable(name)
        missing = [n for n, p in executor.parameters.items() if p.required and n not in arguments]
        if missing:
            text = f"{name} needs {', '.join(missing)}"
            return CallFailed(text, Reason.ARGUMENTS).result()
        return await _guarded(name, executor.plan(arguments, context))

    async def run(self, name: str, plan: Plan, context: CallContext) -> ExecutorResult:
        """Runs a planned call. See `plan`."""
        executor = self.get(name)
        assert executor is not None
        return await _guarded(name, executor.run(plan, context))

    def _not_callable(self, name: str) -> ExecutorResult:
        """A deferred tool that was called without having been looked up is shown, and may be called then."""
        executor = self._deferred.get(name)
        if executor is None:
            return CallFailed(f"there is no tool {name!r}", Reason.NO_TOOL).result()
        self.load([name])
        text = f"call it once more with these arguments:\n{described(executor)}"
        return replace(CallFailed(text, Reason.NOT_LOADED).result(), teaches=False)


async def _guarded(name: str, work: Coroutine[Any, Any, T]) -> T | ExecutorResult:
    try:
        return await work
    except Exception:  # noqa: BLE001 - executor boundary: one of the four places
        _LOG.exception("executor %s failed", name)
        return CallFailed("the tool failed", Reason.BROKEN).result()


def _offered(executor: Executor) -> bool:
    """Whether the user has not switched it off."""
    return bool(getattr(executor, "is_offered", True))


def foreign(executor: Executor) -> bool:
    """Whether a tool is of a server of the user's."""
    return FOREIGN_MARK in executor.name


def described(executor: Executor) -> str:
    """A tool as the model is told of it: one line of JSON."""
    return json.dumps(
        {
            "name": executor.name,
            "description": executor.description,
            "arguments": {
                name: _described(parameter) for name, parameter in executor.parameters.items()
            },
        },
        ensure_ascii=False,
    )


def _described_names(text: str) -> Iterable[str]:
    for line in text.split("\n"):
        if line.startswith('{"name": "'):
            yield line.removeprefix('{"name": "').partition('"')[0]


def _described(parameter: Parameter) -> str:
    choices = f" ({' | '.join(parameter.choices)})" if parameter.choices else ""
    return parameter.description + choices + ("" if parameter.required else " (optional)")
