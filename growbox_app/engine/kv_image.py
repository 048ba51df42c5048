"""One saved KV image on disk: the data as llama.cpp wrote it, and a sidecar that says what it is.

An image counts only with a sidecar that names this model, library and window, and the data's size and checksum; anything
else is cold. Order of writing: sidecar away, data in place, sidecar last, each made durable – a crash at any point leaves no
image or a whole one. Pure file work, in the engine process, so that nobody's event loop hashes 85 MB.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from growbox_app.files import sync_folder, write_atomically

DIGEST_BYTES = 16


def name_of(fingerprint: Mapping[str, object]) -> str:
    """A short name of what images must agree on."""
    text = json.dumps(fingerprint, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def temporary_of(path: Path) -> Path:
    """Where the data is written before it is sealed."""
    return path.with_suffix(".tmp")


def sidecar_of(path: Path) -> Path:
    """The file that says what an image is."""
    return path.with_suffix(".json")


def seal(path: Path, fingerprint: Mapping[str, object], *, tokens: int) -> int:
    """Makes the data in `temporary_of(path)` the image `path`; returns its size in bytes.

    Raises:
        OSError: disk full and the like; there is then no image.
    """
    temporary = temporary_of(path)
    with temporary.open("rb+") as stream:
        os.fsync(stream.fileno())
    size = temporary.stat().st_size
    sidecar = dict(fingerprint, tokens=tokens, bytes=size, blake2b=_digest(temporary))
    remove(path)
    temporary.replace(path)
    sync_folder(path.parent)
    write_atomically(sidecar_of(path), json.dumps(sidecar).encode())
    return size


def sealed_tokens(path: Path, fingerprint: Mapping[str, object]) -> int:
    """How many tokens a good image of this engine holds; 0 for none, a stranger's, or a damaged one."""
    try:
        sidecar = json.loads(sidecar_of(path).read_text(encoding="utf-8"))
        tokens = int(sidecar["tokens"])
        found = dict(
            fingerprint, tokens=tokens, bytes=path.stat().st_size, blake2b=sidecar["blake2b"]
        )
        good = sidecar == found and _digest(path) == sidecar["blake2b"]
    except (OSError, ValueError, TypeError, KeyError):
        return 0
    return tokens if good else 0


def remove(path: Path) -> None:
    """Removes an image, its sidecar first; idempotent."""
    sidecar_of(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(
            stream, lambda: hashlib.blake2b(digest_size=DIGEST_BYTES)
        ).hexdigest()
