"""Where llama.cpp's libraries are, and which CPU variant of them to load.

The wheel carries one `libggml-cpu-*` per x86-64 micro-architecture level. A score alone is unsafe (it picks a variant that
dies here by illegal instruction), so `growbox_app.engine.canary` proves a choice. Imports nothing native: only the child
processes load these files.

Source: design 3 "The native library must run anywhere"; reference `frozen_facts.md`.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

PLAIN_VARIANTS = frozenset({"x64", "sse42", "sandybridge", "ivybridge", "piledriver"})
"""x86-64 variants below AVX2: they work, about four times slower, and the user is told."""
AVX2_VARIANT = "haswell"
SPIN_ENVIRONMENT = {"GOMP_SPINCOUNT": "1000"}
"""Two llama processes on two cores: 2 s with this, 30 s without. Must be set before the library loads."""


def forced_variant() -> str | None:
    """`GROWBOX_CPU_VARIANT`: the variant that the user insists on, unproven; None without one."""
    return os.environ.get("GROWBOX_CPU_VARIANT")


def library_folder() -> Path:
    """The folder of `libllama` and `libggml`."""
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("llama_cpp is not installed")
    return Path(spec.origin).parent / "lib"


def ggml_library() -> Path:
    """The very `libggml` that `libllama` uses; a copy under another name has its own, empty registry."""
    folder = library_folder()
    names = {"win32": ["ggml.dll"], "darwin": ["libggml.0.dylib", "libggml.dylib"]}
    for name in names.get(sys.platform, ["libggml.so.0", "libggml.so"]):
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(f"no ggml library in {folder}")


def variant_files() -> dict[str, Path]:
    """Variant name (`haswell`, `zen4`, …) to file; empty where the CPU backend is linked in."""
    folder = library_folder()
    found: dict[str, Path] = {}
    for place in (folder, folder.parent.parent / "bin"):
        for path in sorted(place.glob("*ggml-cpu-*")):
            if path.suffix in {".so", ".dll", ".dylib"}:
                found.setdefault(path.stem.split("ggml-cpu-", 1)[1], path)
    return found
