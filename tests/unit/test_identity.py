"""What the program says of itself: version, notices, icons."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import struct
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from growbox_app import notices, version
from growbox_app.notices import Notice

ROOT = Path(__file__).resolve().parents[2]
PNG = b"\x89PNG\r\n\x1a\n"


def project_version() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])


def freeze(monkeypatch, executable: Path) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(executable))


# --- version


def test_a_source_tree_has_the_projects_version():
    assert version.version() == project_version()


@pytest.mark.parametrize(
    ("executable", "file"),
    [("GrowBox", "VERSION"), ("Contents/MacOS/GrowBox", "Contents/Resources/VERSION")],
)
def test_a_build_has_the_version_of_its_file(tmp_path, monkeypatch, executable, file):
    freeze(monkeypatch, tmp_path / executable)
    assert version.version() == ""
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("9.8.7\n", encoding="utf-8")
    assert version.version() == "9.8.7"


# --- notices


@pytest.fixture(scope="module")
def live() -> tuple[Notice, ...]:
    return notices.load()


def test_every_direct_dependency_is_in_the_closure():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = {
        re.split(r"[=><\[; ]", line)[0].lower() for line in project["project"]["dependencies"]
    }
    closure = set(notices.runtime_distributions())
    assert wanted <= closure
    assert {"h11", "markupsafe", "shiboken6"} <= closure  # through others
    assert not {"pytest", "ruff", "mypy", "pyinstaller", "hypothesis"} & closure


class Declared:
    """A distribution as far as the closure looks at it."""

    def __init__(self, *requires: str) -> None:
        self.requires = list(requires)


def test_the_closure_follows_extras_and_leaves_out_what_is_not_installed():
    shelf = {
        "a": Declared("b[fast]>=1", "Other_Platform; sys_platform == 'win32'"),
        "b": Declared('c; extra == "fast"', "d; extra == 'slow'", "A"),
        "c": Declared(),
        "d": Declared(),
    }

    def find(name: str) -> Declared:
        if name not in shelf:
            raise importlib.metadata.PackageNotFoundError(name)
        return shelf[name]

    assert notices.runtime_distributions(["a==2"], find) == ["a", "b", "c"]
    assert notices.runtime_distributions(["b"], find) == ["a", "b", "c"]  # a asks for the extra
    assert notices.runtime_distributions(["d"], find) == ["d"]


def test_everything_has_a_version_a_licence_and_a_text(live):
    assert [n.name for n in live if not (n.version and n.licence.strip() and n.text.strip())] == []
    short = [n.name for n in live if len(n.text) < 200]
    assert short == ["SQLite"]  # public domain: there is no text to keep
    assert len(live) > 60


def test_what_is_no_distribution_is_there(live):
    names = " ".join(notice.name for notice in live)
    for part in ("GrowBox", "llama.cpp", "Qt 6", "Python", "OpenSSL", "SQLite", "OpenBLAS", "GCC"):
        assert part in names
    for model in tomllib.loads((ROOT / "resources/models.toml").read_text())["model"]:
        assert model["name"] in names
    assert "Lucide" in names


def test_the_lgpl_is_kept(live):
    (qt,) = [notice for notice in live if notice.name == "Qt 6"]
    assert "linked dynamically" in qt.text
    assert "replace" in qt.text
    assert "download.qt.io" in qt.text
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in qt.text
    assert "TERMS AND CONDITIONS" in qt.text  # of the GPL, which the LGPL builds on
    (gcc,) = [notice for notice in live if notice.name.startswith("GCC")]
    assert "RUNTIME LIBRARY EXCEPTION" in gcc.text


def test_the_two_files_hold_everything(tmp_path, monkeypatch, live):
    target = tmp_path / "_internal"
    target.mkdir()
    text = tmp_path / "NOTICES.txt"
    code = notices.main(["--json", str(target / "notices.json"), "--text", str(text)])
    assert code == 0
    written = text.read_text(encoding="utf-8")
    for notice in live:
        assert f"{notice.name} {notice.version}" in written
        assert notice.text in written
    freeze(monkeypatch, tmp_path / "GrowBox")
    monkeypatch.setattr(notices, "resources_path", lambda: target / "resources")
    assert notices.load() == live
    monkeypatch.setattr(notices, "resources_path", lambda: tmp_path / "Frameworks" / "resources")
    target.rename(tmp_path / "Resources")  # as in a macOS bundle
    assert notices.load() == live


def test_a_build_lists_only_what_it_holds(tmp_path):
    arguments = ["--json", str(tmp_path / "n.json"), "--text", str(tmp_path / "n.txt")]
    assert notices.main([*arguments, "--only", "msgspec", "Jinja2"]) == 0
    names = [entry["name"] for entry in json.loads((tmp_path / "n.json").read_text())]
    assert names[-2:] == ["Jinja2", "msgspec"]
    assert "httpx" not in names


# --- icons


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("icons") / "out"
    command = [sys.executable, str(ROOT / "packaging" / "icons.py"), str(folder)]
    done = subprocess.run(command, env={**os.environ}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(PNG)
    width, height = struct.unpack(">II", png[16:24])
    return width, height


@pytest.mark.parametrize("name", ["growbox", "growbox-document"])
def test_every_size_is_drawn(drawn, name):
    for size in (16, 20, 24, 32, 40, 48, 64, 96, 128, 256, 512, 1024):
        assert size_of((drawn / f"{name}-{size}.png").read_bytes()) == (size, size)


def test_the_ico_file_parses(drawn):
    raw = (drawn / "growbox.ico").read_bytes()
    reserved, kind, count = struct.unpack_from("<HHH", raw)
    assert (reserved, kind, count) == (0, 1, 10)
    end = 6 + 16 * count
    sizes = []
    for at in range(count):
        width, height, *_, length, offset = struct.unpack_from("<BBBBHHII", raw, 6 + 16 * at)
        assert offset == end
        picture = raw[offset : offset + length]
        assert size_of(picture) == (width or 256, height or 256)
        sizes.append(width or 256)
        end = offset + length
    assert end == len(raw)
    assert {16, 32, 48, 256} <= set(sizes)


def test_the_icns_file_parses(drawn):
    raw = (drawn / "growbox.icns").read_bytes()
    assert raw[:4] == b"icns"
    assert struct.unpack_from(">I", raw, 4) == (len(raw),)
    at, sizes = 8, {}
    while at < len(raw):
        kind = raw[at : at + 4].decode()
        (length,) = struct.unpack_from(">I", raw, at + 4)
        sizes[kind] = size_of(raw[at + 8 : at + length])[0]
        at += length
    assert at == len(raw)
    assert {k: sizes[k] for k in ("ic07", "ic08", "ic09", "ic10", "ic11", "ic12", "ic13", "ic14")} == {
        "ic07": 128,
        "ic08": 256,
        "ic09": 512,
        "ic10": 1024,
        "ic11": 32,
        "ic12": 64,
        "ic13": 256,
        "ic14": 512,
    }  # fmt: skip


def test_the_icon_script_says_how_it_is_used():
    command = [sys.executable, str(ROOT / "packaging" / "icons.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "OUT_FOLDER" in done.stderr
