"""Makes `docs/screenshot.png` from the running app and a real model: `python -m tests.e2e.readme_screenshot`.

Run it under a virtual display with a fresh `GROWBOX_DATA_DIR`. The answers are the model's own.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.e2e import window_driver

FACTS = (
    "We picked DuckDB for the search index, because the whole index is one file and scans columns fast.",
    "Our release checklist: run the benchmarks, update CHANGELOG.md, tag, then build the installers.",
)
QUESTION = "Which database did we pick for the search index, and why? Show how to open it read-only in Python."


class Photographer(window_driver.Driver):
    """Tells facts, asks, takes the picture."""

    async def photograph(self) -> None:
        await self._ready()
        self.window.resize(1280, 800)
        for fact in FACTS:
            self.window.new_conversation()
            await asyncio.sleep(0.3)
            await self._ask(fact)
        self.window.new_conversation()
        await asyncio.sleep(2)
        await self._ask(QUESTION)
        await asyncio.sleep(1)
        path = Path("docs/screenshot.png")
        path.parent.mkdir(exist_ok=True)
        self.window.grab().save(str(path))


if __name__ == "__main__":
    sys.exit(window_driver.main(["photograph"], Photographer))
