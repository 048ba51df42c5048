"""`dev.py bench start`: how the application feels from the first second.

Prints `window_s ttft_cold_s ttft_warm_s stall_p99_ms decode_ratio_to_bare prefill_ratio_to_bare decode_beside_load_ratio`,
one `figure=value` line each, last. Everything runs with the light model; every figure comes from a process of its own; the
ratios compare two sides of the same run. A quiet machine is assumed.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.engine_ratio import ratios
from tests.e2e.program import ROOT, environment, use_light_model
from tests.real_models import LIGHT

CHILD_S = 900


def child(what: str, data: Path) -> dict[str, Any]:
    """Runs one measurement in a child process."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.live", what],
        cwd=ROOT,
        env=environment(data),
        capture_output=True,
        timeout=CHILD_S,
        check=False,
    )
    lines = done.stdout.decode().splitlines()
    if not lines:
        raise SystemExit(f"{what}: exit {done.returncode}\n{done.stderr.decode()[-2000:]}")
    figures: dict[str, Any] = json.loads(lines[-1])
    print(f"# {what}: {lines[-1]}", flush=True)
    return figures


def first_tokens(folder: Path) -> tuple[float, float]:
    """Time to first token of a follow-up, without and with the saved KV image."""
    data = folder / "ttft"
    use_light_model(data, **{"models.answer_tokens": 16})
    child("build", data)
    images = folder / "images"
    shutil.copytree(data / "kv", images)
    shutil.rmtree(data / "kv")
    cold = child("ttft", data)["seconds"]
    shutil.rmtree(data / "kv", ignore_errors=True)
    shutil.copytree(images, data / "kv")
    return cold, child("ttft", data)["seconds"]


def main() -> None:
    """Measures and prints."""
    folder = Path(tempfile.mkdtemp(prefix="growbox-bench-"))
    try:
        data = folder / "window"
        use_light_model(data)
        child("window", data)  # warms the page cache and proves the CPU variant
        window_s = min(child("window", data)["seconds"] for _ in range(3))
        cold_s, warm_s = first_tokens(folder)
        engine = asyncio.run(ratios(LIGHT.parent / ".cpu_variant.json"))
        use_light_model(folder / "beside", **{"models.answer_tokens": 128})
        beside = child("beside", folder / "beside")
        use_light_model(folder / "stall", **{"models.answer_tokens": 400})
        stall = child("stall", folder / "stall")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"window_s={window_s:.3f}")
    print(f"ttft_cold_s={cold_s:.3f}")
    print(f"ttft_warm_s={warm_s:.3f}")
    print(f"stall_p99_ms={stall['p99_ms']:.2f}")
    print(f"decode_ratio_to_bare={engine['decode_ratio_to_bare']:.3f}")
    print(f"prefill_ratio_to_bare={engine['prefill_ratio_to_bare']:.3f}")
    print(f"decode_beside_load_ratio={beside['beside'] / beside['alone']:.3f}")


if __name__ == "__main__":
    main()
