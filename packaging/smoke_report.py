"""The smoke test's report: steps with their times, figures, one verdict; printed line by line and written as JSON."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from console import Trouble, console

Step = Callable[[], str]
"""Does something and says in a few words what was seen; raises `Trouble` with a sentence when it is not as it should be."""


class Report:
    """Grows step by step; `facts` are the top-level keys of the JSON object."""

    def __init__(self, **facts: Any) -> None:
        self.facts: dict[str, Any] = facts
        self.steps: list[dict[str, Any]] = []

    @property
    def ok(self) -> bool:
        """Whether every step passed, and there was one."""
        return bool(self.steps) and all(step["ok"] for step in self.steps)

    def run(self, name: str, step: Step) -> bool:
        """Runs and records one step; whether it passed."""
        began = time.monotonic()
        try:
            detail, ok = step(), True
        except Trouble as trouble:
            detail, ok = str(trouble), False
        except (OSError, subprocess.SubprocessError) as error:
            detail, ok = f"{type(error).__name__}: {error}", False
        except KeyboardInterrupt:
            self._add(name, False, time.monotonic() - began, "stopped")
            raise
        self._add(name, ok, time.monotonic() - began, detail)
        return ok

    def _add(self, name: str, ok: bool, seconds: float, detail: str) -> None:
        self.steps.append({"name": name, "ok": ok, "seconds": round(seconds, 3), "detail": detail})
        console.say(f"{'ok  ' if ok else 'FAIL'} {seconds:7.2f} s  {name}: {detail}")

    def as_json(self) -> dict[str, Any]:
        """The whole report."""
        return {"ok": self.ok, **self.facts, "steps": self.steps}

    def write(self, path: Path) -> None:
        """Writes the report."""
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.as_json(), ensure_ascii=False, indent=1)
        path.write_text(text + "\n", encoding="utf-8")
