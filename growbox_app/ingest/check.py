"""Are the readers of files all there? For `doctor`, and through it for the smoke test of a build."""

from __future__ import annotations

import importlib


def check_readers() -> int:
    """Loads every parser. Returns for how many suffixes of source code there is a grammar.

    Raises:
        ImportError, OSError, ValueError: one is missing or does not fit.
    """
    for name in ("docx", "pypdf"):
        importlib.import_module(name)
    from growbox_app.ingest import definitions

    suffixes = definitions.suffixes()
    for suffix in suffixes:
        definitions.definitions("x\n", f"x{suffix}", 1)
    return len(suffixes)
