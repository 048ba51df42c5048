"""The real light model and embedder that tests share (`GROWBOX_MODELS_DIR`, or this user's models folder)."""

from __future__ import annotations

import os
from pathlib import Path

from growbox_app import paths
from growbox_app.engine import protocol as p
from growbox_app.engine.canary import choose_variant
from growbox_app.models.catalogue import embedder, find

MODELS = Path(os.environ.get("GROWBOX_TEST_MODELS_DIR") or paths.models_path())
"""Read at import, before any test redirects the user's folders."""
LIGHT_ID = "qwen2.5-coder-0.5b"
LIGHT = find(LIGHT_ID).path(MODELS)
EMBEDDER = embedder().path(MODELS)


def real_load(request_id: int, cpu_file: Path, chat: Path = LIGHT) -> p.Load:
    """A load of the light model with a small window."""
    return p.Load(
        id=request_id,
        chat_path=str(chat),
        chat_sha256=find(LIGHT_ID).sha256,
        embed_path=str(EMBEDDER),
        context_tokens=2048,
        background_tokens=1024,
        threads=2,
        variant=choose_variant(str(LIGHT), memory=cpu_file, threads=2),
    )
