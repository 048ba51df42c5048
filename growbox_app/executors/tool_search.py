"""The executor `tool_search`: finds tools that are not in view, by words of their names and descriptions.

What the prompt shows of a deferred tool is its name; a find shows the rest, and tells whoever keeps the grammar that these tools may
now be called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from growbox_app.executors.answers import Reason
from growbox_app.executors.base import (
    CORE_WINDOW_MIN,
    CallContext,
    Executor,
    ExecutorResult,
    Parameter,
    Plan,
    Risk,
)
from memory.text import terms

FOUND_MAX = 3
LOADED = "you can call these now:"
_IN_NAME, _IN_DESCRIPTION, _IN_PARAMETERS = 3, 2, 1
_WORD = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]{1,2}")


class ToolSearch:
    """Implements `Executor`."""

    name = "tool_search"
    description = "Finds more tools by a few words."
    parameters: Mapping[str, Parameter] = {
        "query": Parameter(description="what the tool should do")
    }
    risk = Risk.SAFE
    window_min = CORE_WINDOW_MIN

    def __init__(
        self,
        find: Callable[[str], Sequence[Executor]],
        *,
        describe: Callable[[Executor], str],
        load: Callable[[Sequence[str]], None],
    ) -> None:
        """Takes what finds tools by a wish, how one is described to the model, and who is told which were found."""
        self._find = find
        self._describe = describe
        self._load = load

    async def plan(
        self,
        arguments: Mapping[str, str],
        context: CallContext,  # noqa: ARG002 - the protocol's
    ) -> Plan | ExecutorResult:
        """Touches nothing outside the registry."""
        return Plan(detail={"query": arguments.get("query", "")})

    async def run(
        self,
        plan: Plan,
        context: CallContext,  # noqa: ARG002 - the protocol's
    ) -> ExecutorResult:
        """Searches, and loads what is found."""
        best = list(self._find(plan.detail["query"]))[:FOUND_MAX]
        if not best:
            text = "no such tool; go on with the tools you have, or try other words"
            return ExecutorResult(ok=True, text=text, summary=Reason.NO_TOOL.line())
        return shown(best, self._describe, self._load)


def shown(
    tools: Sequence[Executor],
    describe: Callable[[Executor], str],
    load: Callable[[Sequence[str]], None],
) -> ExecutorResult:
    """Loads tools, and describes them to the model."""
    names = [tool.name for tool in tools]
    load(names)
    text = "\n".join([LOADED, *map(describe, tools)])
    return ExecutorResult(ok=True, text=text, summary=", ".join(names))


def by_words(wish: str, tools: Sequence[Executor]) -> Sequence[Executor]:
    """Tools by the words of a wish alone, best first."""
    words = _words(wish)
    scored = [(_score(tool, words), tool) for tool in tools]
    scored.sort(key=lambda found: (-found[0], found[1].name))
    return [tool for score, tool in scored if score > 0]


def names_it(question: str, tool: Executor) -> bool:
    """Whether a question speaks of the server whose tool it is by name, or of a tool whose name is no ordinary word."""
    asked = frozenset(terms(question))
    server, _, own = tool.name.partition("__")
    name = terms(own or server)
    is_named = len(name) > 1 and asked.issuperset(name)
    return is_named or (bool(own) and asked.issuperset(terms(server)))


def _words(query: str) -> list[str]:
    return _WORD.findall(query.lower())


def _score(tool: Executor, words: list[str]) -> int:
    """How many of the words are in it, and where. Substrings count: `commit` finds `git_commit`, `files` finds `file`."""
    parameters = " ".join(f"{n} {p.description}" for n, p in tool.parameters.items()).lower()
    places = (
        (tool.name.lower(), _IN_NAME),
        (tool.description.lower(), _IN_DESCRIPTION),
        (parameters, _IN_PARAMETERS),
    )
    return sum(weight for word in words for text, weight in places if _is_in(word, text))


def _is_in(word: str, text: str) -> bool:
    return word in text or (len(word) > 3 and word.endswith("s") and word[:-1] in text)
