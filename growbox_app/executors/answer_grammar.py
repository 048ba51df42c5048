"""The grammar (GBNF) of an answer in words: how it begins, and what it does not repeat. Pure.

Source: design 5.1.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import count

from growbox_app.executors import gbnf

_SENTENCE_ENDS = r".!?。！？\n"
_SENTENCES = (
    f'words ::= [^<{_SENTENCE_ENDS}\\x00] words | "<" angle | tool | pause?',
    f'angle ::= [^t<{_SENTENCE_ENDS}\\x00] words | "t" [^o<{_SENTENCE_ENDS}\\x00] words | "<" angle | pause?',
    f"pause ::= [{_SENTENCE_ENDS}] [ \\t]* (begin | pause)?",
)
"""A sentence behind its first word, and the next one."""


def answer_grammar(lead: str = "", echoes: Collection[str] = (), *, call: str = "") -> str:
    """GBNF of an answer that is not blank.

    Args:
        lead: the words that it begins with; a whole sentence may be all of it.
        echoes: no sentence behind them begins like one of these: what the model was told is no answer.
        call: GBNF of a call, which may stand in its place or end it.
    """
    may = "?" if lead.endswith((".", "。")) else ""
    first = f"{gbnf.opening(lead)} ([ \\n]? first | pause){may}" if lead else "first"
    rules = [f"root ::= {first}", *_sentence_starts(echoes), *_SENTENCES]
    if not call:
        return "\n".join([*rules, "tool ::= [\\x00]"])
    return "\n".join(
        ["root ::= tool | " + first, *rules[1:], call.replace("root ::=", "tool ::=", 1)]
    )


def _sentence_starts(echoes: Collection[str]) -> list[str]:
    """How a sentence begins that is none of these, as a tree of their characters: `begin`, and `first` where it must be one of words."""
    told = set(filter(None, echoes))
    waiting, numbers, rules = [("first", told), ("begin", told)], count(1), []
    while waiting:
        name, tails = waiting.pop()
        branches: dict[str, set[str]] = {}
        for tail in tails:
            branches.setdefault(tail[0], set()).add(tail[1:])
        blank = {"first": r" \t\n{}", "begin": r" \t\n"}.get(name, "")
        barred = "".join(map(gbnf.in_class, sorted(branches)))
        parts = [f"[^{blank}{barred}<{_SENTENCE_ENDS}\\x00] words"]
        parts += [] if name == "first" else ["tool"]
        parts += [] if name == "first" or "<" in branches else ['"<" angle']
        parts += [] if blank else ["pause?"]
        for character, left in sorted(branches.items()):
            if "" not in left:
                waiting.append((f"begin-{next(numbers)}", left))
                parts.append(f"{gbnf.literal(character)} {waiting[-1][0]}")
        rules.append(f"{name} ::= " + " | ".join(parts))
    return rules
