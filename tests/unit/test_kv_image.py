"""A saved KV image is whole or cold, whatever happened to its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from growbox_app import power
from growbox_app.engine import kv_image

ENGINE = {"model": "m", "context_tokens": 2048}


def sealed(folder: Path, content: bytes = b"0123456789" * 50) -> Path:
    path = folder / "c.kv"
    kv_image.temporary_of(path).write_bytes(content)
    assert kv_image.seal(path, ENGINE, tokens=7) == len(content)
    return path


def test_a_sealed_image_is_known_by_its_engine_only(tmp_path: Path) -> None:
    path = sealed(tmp_path)
    assert kv_image.sealed_tokens(path, ENGINE) == 7
    assert kv_image.sealed_tokens(path, dict(ENGINE, context_tokens=4096)) == 0
    assert kv_image.sealed_tokens(path, dict(ENGINE, llama="b2")) == 0
    assert [item.name for item in tmp_path.iterdir() if item.suffix == ".tmp"] == []


@pytest.mark.parametrize("place", [0, 250, 499])
def test_one_flipped_bit_is_cold(tmp_path: Path, place: int) -> None:
    path = sealed(tmp_path)
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)
    assert kv_image.sealed_tokens(path, ENGINE) == 0


@pytest.mark.parametrize("sidecar", ["", "{", "[]", "null", "{}", '{"tokens": "x"}'])
def test_a_damaged_sidecar_is_cold(tmp_path: Path, sidecar: str) -> None:
    path = sealed(tmp_path)
    kv_image.sidecar_of(path).write_text(sidecar, encoding="utf-8")
    assert kv_image.sealed_tokens(path, ENGINE) == 0


def test_the_token_count_is_part_of_what_is_checked(tmp_path: Path) -> None:
    path = sealed(tmp_path)
    sidecar = kv_image.sidecar_of(path)
    fields = json.loads(sidecar.read_text(encoding="utf-8"))
    del fields["tokens"]
    sidecar.write_text(json.dumps(fields), encoding="utf-8")
    assert kv_image.sealed_tokens(path, ENGINE) == 0


def test_no_crash_between_the_steps_of_sealing_leaves_a_half_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Crash(Exception):
        """The power went."""

    def crash(*_arguments: object, **_options: object) -> None:
        raise Crash

    for step in ("sync_folder", "write_atomically", "remove"):
        path = sealed(tmp_path)
        kv_image.temporary_of(path).write_bytes(b"new" * 90)
        with monkeypatch.context() as patch:
            patch.setattr(kv_image, step, crash)
            with pytest.raises(Crash):
                kv_image.seal(path, ENGINE, tokens=9)
        assert kv_image.sealed_tokens(path, ENGINE) in {0, 7}


def test_removing_is_complete_and_idempotent(tmp_path: Path) -> None:
    path = sealed(tmp_path)
    kv_image.remove(path)
    kv_image.remove(path)
    assert list(tmp_path.iterdir()) == []
    assert kv_image.sealed_tokens(path, ENGINE) == 0


class Battery:
    """What psutil says of one."""

    def __init__(self, percent: float, *, plugged: bool | None) -> None:
        self.percent = percent
        self.power_plugged = plugged


@pytest.mark.parametrize(
    ("battery", "saving"),
    [
        (None, False),
        (Battery(10, plugged=True), False),
        (Battery(10, plugged=None), False),
        (Battery(90, plugged=False), False),
        (Battery(10, plugged=False), True),
    ],
)
def test_power_is_saved_on_a_low_battery(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, battery: Battery | None, saving: bool
) -> None:
    monkeypatch.setattr(power.psutil, "sensors_battery", lambda: battery, raising=False)
    monkeypatch.setattr(power, "_PROFILE", tmp_path / "none")
    assert power.saving_power() is saving


def test_the_power_profile_of_linux_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    profile = tmp_path / "platform_profile"
    monkeypatch.setattr(power.psutil, "sensors_battery", lambda: None, raising=False)
    monkeypatch.setattr(power, "_PROFILE", profile)
    monkeypatch.setattr(power.sys, "platform", "linux")
    for words, saving in (("low-power\n", True), ("balanced\n", False)):
        profile.write_text(words, encoding="ascii")
        assert power.saving_power() is saving
