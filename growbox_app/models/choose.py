"""Which chat model to run: the user's choice, or by free memory and by what is here already.

Owns nothing. Any thread; reads the machine's memory figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import psutil

from growbox_app.models.catalogue import Model, Purpose, Tier, catalogue
from growbox_app.models.verify import is_here

AUTO = "auto"
# Design section 7: the standard model from this much free memory on.
STANDARD_FREE_BYTES = 6_000_000_000
_CGROUP = Path("/sys/fs/cgroup")


def free_ram_bytes(cgroup: Path = _CGROUP) -> int:
    """Memory that can be used without swapping, in bytes; inside a container no more than its limit leaves."""
    available = int(psutil.virtual_memory().available)
    try:
        limit = (cgroup / "memory.max").read_text(encoding="ascii").strip()
        used = int((cgroup / "memory.current").read_text(encoding="ascii"))
        return min(available, int(limit) - used) if limit != "max" else available
    except (OSError, ValueError):
        return available


def choose_chat(
    wanted: str,
    *,
    models_path: Path,
    free_bytes: int,
    models: Sequence[Model] | None = None,
) -> Model:
    """The chat model to load, or to fetch when its file is missing.

    Args:
        wanted: an id of the catalogue, or `auto`. An id that the catalogue does not have (a setting of a newer or older GrowBox)
            counts as `auto`, so that the program starts.
        models_path: where the files are.
        free_bytes: free memory, see `free_ram_bytes`.
        models: the catalogue; default the shipped one.

    A model that is here and fits goes before one that would have to be fetched.

    Source: design section 7 – standard from 6 GB of free memory on, else light; never large by itself.
    """
    models = catalogue() if models is None else tuple(models)
    named = _named(wanted, models)
    if named is not None:
        return named
    tiers = (
        (Tier.STANDARD, Tier.LIGHT)
        if free_bytes >= STANDARD_FREE_BYTES
        else (Tier.LIGHT, Tier.STANDARD)
    )
    candidates = [_chat(models, tier) for tier in tiers]
    for model in candidates:
        if _is_usable(model, models_path, free_bytes):
            return model
    return candidates[0]


def chat_to_fetch(wanted: str, *, models_path: Path, free_bytes: int) -> Model:
    """The chat model that set-up should bring.

    Unlike `choose_chat`, a light model that is here does not stand in for the standard one that this machine could run.
    """
    if _named(wanted, catalogue()) is None and free_bytes >= STANDARD_FREE_BYTES:
        return _chat(catalogue(), Tier.STANDARD)
    return choose_chat(wanted, models_path=models_path, free_bytes=free_bytes)


def has_usable_chat(*, models_path: Path, free_bytes: int) -> bool:
    """Whether any chat model is here that fits into the free memory, whichever the settings want."""
    return any(
        _is_usable(model, models_path, free_bytes)
        for model in catalogue()
        if model.purpose is Purpose.CHAT
    )


def _named(wanted: str, models: Sequence[Model]) -> Model | None:
    """The chat model of this id; None for `auto` and for what the catalogue does not have."""
    return next(
        (model for model in models if model.purpose is Purpose.CHAT and model.id == wanted), None
    )


def _chat(models: Sequence[Model], tier: Tier) -> Model:
    return next(model for model in models if model.purpose is Purpose.CHAT and model.tier is tier)


def _is_usable(model: Model, models_path: Path, free_bytes: int) -> bool:
    return model.ram_bytes <= free_bytes and is_here(model, models_path)
