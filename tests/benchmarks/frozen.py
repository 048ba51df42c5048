"""`dev.py bench frozen`: what the frozen app weighs and how fast its window is there.

Prints `size_mb` (without models), `window_s` (from exec to a mapped window, files not cached), `window_painted_s`, `model_ready_s` and `sockets`
(AF_INET and AF_INET6 sockets and name look-ups seen by strace while it is used), one `figure=value` line each, last.
Builds `dist/GrowBox` with the light model when there is none; GROWBOX_FROZEN_APP names another one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGING = ROOT / "packaging"


def application() -> Path:
    """The app folder, built when it is missing."""
    app = Path(os.environ.get("GROWBOX_FROZEN_APP") or ROOT / "dist" / "GrowBox")
    if not app.exists():
        command = [
            sys.executable,
            PACKAGING / "dev.py",
            "build",
            "--flavour",
            "light",
            "--app-only",
        ]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return app


def smoke(app: Path, *options: str) -> dict[str, Any]:
    """The report of one smoke test of `app`."""
    with tempfile.TemporaryDirectory(prefix="growbox-bench-") as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, PACKAGING / "smoke_test.py", app, "--report", report, *options]
        done = subprocess.run(command, check=False, stdout=sys.stderr)
        found: dict[str, Any] = json.loads(report.read_bytes())
    if done.returncode != 0 or not found["ok"]:
        raise SystemExit(f"the smoke test failed: {json.dumps(found)}")
    return found


def main() -> None:
    """Measures and prints."""
    sys.path.insert(0, str(PACKAGING))
    import freeze

    app = application()
    print(freeze.size_table(app))
    cold = smoke(app, "--cold")
    traced = smoke(app, "--trace")  # slower by strace, so its times are not used
    sockets = traced["sockets"]
    found = sockets["inet"] + sockets["inet6"] + sum(traced["lookups"].values())
    print(f"size_mb={freeze.size_bytes(app) / 1e6:.0f}")
    print(f"window_s={cold['window_s']:.3f}")
    print(f"window_painted_s={cold['painted_s']:.3f}")
    print(f"model_ready_s={cold['model_ready_s']:.2f}")
    print(f"sockets={found}")


if __name__ == "__main__":
    main()
