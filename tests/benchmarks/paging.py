"""`dev.py bench paging`: what the paged context window saves, one `figure=value` line each.

The accounting half, seconds and no model: the recorded sessions of `paging_sessions.py` through the pager, both layouts and
several low watermarks, in tokens. `reuse_*` is what was reused of the tokens resident after the turn before and its pause;
`idle_prefill_per_pagein` is what was recomputed in pauses per token of memory that was paged in. Lines that begin with `#` are
tables for the reader.
"""

from __future__ import annotations

from memory.config import PagingConfig
from memory.paging.layout import Layout
from tests.benchmarks.paging_replay import Costs, replay
from tests.benchmarks.paging_sessions import LANGUAGES, load

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


def main() -> None:
    """Prints the figures."""
    for name, value in accounting().items():
        print(f"{name}={value:.3f}" if isinstance(value, float) else f"{name}={value}")


if __name__ == "__main__":
    main()
