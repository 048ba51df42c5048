"""`dev.py bench paging`: what the paged context window saves, one `figure=value` line each.

The real half, minutes and the light model: the first turns of a session through the engine in both layouts (`prefill_s_*`), and
the running application in child processes: a restart's first token with its KV image against none (`warm_ttft_ratio`), a new
conversation's with the image of the system prompt against none, and the time from a stop to its effect while a prompt is read.

The accounting half, seconds and no model: the recorded sessions of `paging_sessions.py` through the pager, both layouts and
several low watermarks, in tokens. `reuse_*` is what was reused of the tokens resident after the turn before and its pause;
`idle_prefill_per_pagein` is what was recomputed in pauses per token of memory that was paged in. Lines that begin with `#` are
tables for the reader.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from growbox_app.settings.schema import SETTINGS
from memory.config import PagingConfig
from memory.values import Layout
from tests.benchmarks.paging_engine import both_layouts
from tests.benchmarks.paging_replay import Costs, replay
from tests.benchmarks.paging_sessions import LANGUAGES, load
from tests.benchmarks.start import child
from tests.e2e.program import use_light_model

WINDOWS = (2048, 4096, 8192)
WINDOW = 4096
LOW_WATERMARKS = (0.45, 0.5, 0.6, 0.7)


def accounting() -> dict[str, float]:
    """Prints the tables and returns the figures of the default watermarks."""
    sessions = [load(language) for language in LANGUAGES]
    print(
        "# window layout     low  idle |  sent/turn resident/turn reuse (of left) |"
        " fresh foreground idle | per page-in, per block"
    )
    for window in WINDOWS:
        for layout in Layout:
            for low in LOW_WATERMARKS:
                for idle in (True, False):
                    costs = replay(sessions, layout=layout, window=window, low=low, idle=idle)
                    print(_row(f"{window:8} {layout:10} {low:.2f} {idle:5}", costs))
    log, ring = (replay(sessions, layout=layout, window=WINDOW) for layout in Layout)
    low = PagingConfig().low_watermark
    for layout in Layout:
        for language, session in zip(LANGUAGES, sessions, strict=True):
            alone = replay([session], layout=layout, window=WINDOW)
            print(_row(f"{WINDOW:8} {layout:10} {low:.2f} {language:>5}", alone))
    return {
        "reuse_append_log": log.reuse,
        "reuse_tail_ring": ring.reuse,
        "idle_prefill_per_pagein": log.idle_per_pagein,
        "idle_prefill_per_block_token": log.idle_per_entered,
        "foreground_prefill_append_log": log.foreground_prefill,
        "foreground_prefill_tail_ring": ring.foreground_prefill,
    }


def _row(head: str, costs: Costs) -> str:
    turns = max(1, costs.turns)
    return (
        f"# {head} | {costs.sent / turns:7.0f} {costs.resident / turns:7.0f}"
        f" {costs.reuse:.3f} ({costs.reuse_of_left:.3f}) |"
        f" {costs.fresh:6} {costs.foreground:6} {costs.idle:6} |"
        f" {costs.idle_per_pagein:5.2f} {costs.idle_per_entered:5.2f}"
    )


def running_application(folder: Path) -> dict[str, float]:
    """First tokens warm against cold, the stop, memory and disk."""
    settings = {"models.answer_tokens": 16, "models.prewarm": False}
    data = folder / "long"
    use_light_model(data, **settings)
    tokens = child("build_long", data)["tokens"]
    images = folder / "images"
    shutil.copytree(data / "kv", images)
    found = {
        "warm_region_tokens": tokens,
        "kv_bytes": sum(f.stat().st_size for f in images.iterdir()),
    }
    for state in ("cold", "warm"):
        shutil.rmtree(data / "kv", ignore_errors=True)
        if state == "warm":
            shutil.copytree(images, data / "kv")
        found[f"{state}_ttft_s"] = child("ttft", data)["seconds"]
    found |= _new_conversation(folder / "new", settings)
    use_light_model(folder / "cancel", **settings)
    found["cancel_prefill_s"] = child("cancel", folder / "cancel")["seconds"]
    found["warm_ttft_ratio"] = found["warm_ttft_s"] / found["cold_ttft_s"]
    return found


def _new_conversation(folder: Path, settings: dict[str, object]) -> dict[str, float]:
    """Its first token with and without the image of the system prompt, at the window that the application has by default.

    Both ask the first question of a copy of one folder, in which a warmed run has done what can be done ahead of time.
    """
    begun = folder / "begun"
    window = {"models.context_tokens": SETTINGS["models.context_tokens"].default}
    use_light_model(begun, **(settings | window | {"models.prewarm": True}))
    child("idle", begun)
    found = {}
    for state in ("cold", "warm"):
        data = folder / state
        shutil.copytree(begun, data, ignore=shutil.ignore_patterns("lock", "*.sock"))
        if state == "cold":
            shutil.rmtree(data / "kv")
        use_light_model(data, **(settings | window))
        found[state] = child("fresh", data)
    return {
        "new_conversation_cold_s": found["cold"]["seconds"],
        "new_conversation_warm_s": found["warm"]["seconds"],
        "new_conversation_ttft_ratio": found["warm"]["seconds"] / found["cold"]["seconds"],
        "rss_mb": found["warm"]["rss"] / 1e6,
        "engine_rss_mb": found["warm"]["engine_rss"] / 1e6,
    }


def main() -> None:
    """Prints the figures."""
    figures = accounting()
    engine = asyncio.run(both_layouts())
    for layout, found in engine.items():
        figures[f"prefill_s_{layout}"] = found.prefill_s
        figures[f"engine_foreground_{layout}"] = found.foreground
    folder = Path(tempfile.mkdtemp(prefix="growbox-bench-"))
    try:
        figures |= running_application(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name, value in figures.items():
        print(f"{name}={value:.3f}" if isinstance(value, float) else f"{name}={value}")


if __name__ == "__main__":
    main()
