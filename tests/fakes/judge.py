"""A judge that says what the test has written down."""

from __future__ import annotations

import re

from memory.requests import Judgement, NeedVerdicts, Verdict

HEADER = re.compile(r"^\[[^]]*\] (?:User: |Assistant: |用户：|助手：)?")


class ScriptedJudge:
    """Answers yes to texts that hold a word of `yes`, unknown to those of `unknown`, else no. `out` makes it answer None.

    `read` is what stood behind the headers, `headed` all of it.
    """

    def __init__(self) -> None:
        self.name = "scripted"
        self.trusted = True
        self.out = False
        self.yes: set[str] = set()
        self.unknown: set[str] = set()
        self.read: list[str] = []
        self.headed: list[str] = []
        self.batches = 0

    def __call__(self, request: NeedVerdicts) -> Judgement | None:
        if self.out:
            return None
        self.batches += bool(request.candidates)
        self.headed.extend(text for _, text in request.candidates)
        self.read.extend(HEADER.sub("", text) for _, text in request.candidates)
        verdicts = tuple(self.verdict(text) for _, text in request.candidates)
        return Judgement(judge=self.name, trusted=self.trusted, verdicts=verdicts)

    def verdict(self, text: str) -> Verdict:
        """What it thinks of one text."""
        if any(word in text for word in self.unknown):
            return Verdict.UNKNOWN
        return Verdict.YES if any(word in text for word in self.yes) else Verdict.NO
