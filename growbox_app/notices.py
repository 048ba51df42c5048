"""Versions and licences of everything that a bundle holds: for the About box and for NOTICES.txt.

A frozen build reads `notices.json`, which packaging/freeze.py makes with `python -m growbox_app.notices --json FILE --text FILE --only
NAME …`; a source tree collects live. What is no Python distribution stands in `resources/licences/components.toml`, the models in
`resources/models.toml`. Reads files only; any thread.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
import platform
import re
import sqlite3
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

from growbox_app.paths import resources_path
from growbox_app.version import is_frozen, version

JSON_NAME = "notices.json"
_PROJECT = Path(__file__).resolve().parent.parent
_LICENCE_FILE = re.compile(r"(licen[cs]e|copying|notice|copyright|authors)", re.IGNORECASE)
# An old free-text field longer than this holds the licence itself, not its name.
_NAME_CHARACTERS_MAX = 60
_RULE = "=" * 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One part of the bundle: `licence` is its name, `text` all that must be said and kept with it."""

    name: str
    version: str
    licence: str
    text: str


def load() -> tuple[Notice, ...]:
    """The notices of this program, GrowBox itself first."""
    if not is_frozen():
        return everything(runtime_distributions())
    inside = resources_path().parent
    # A macOS bundle keeps code and data in two folders; the file was put beside the data.
    places = (inside / JSON_NAME, inside.parent / "Resources" / JSON_NAME)
    found = next((path for path in places if path.is_file()), places[0])
    return _read(found)


def _read(path: Path) -> tuple[Notice, ...]:
    return tuple(Notice(**entry) for entry in json.loads(path.read_text(encoding="utf-8")))


def everything(distribution_names: Iterable[str]) -> tuple[Notice, ...]:
    """GrowBox, what is no distribution, the models, then the distributions by name."""
    return (_own(), *components(), *models(), *collect(distribution_names))


# -- Python distributions -----------------------------------------------------------------------


def collect(distribution_names: Iterable[str]) -> list[Notice]:
    """The notices of installed distributions, sorted by name; each once, however it is spelled.

    Raises:
        PackageNotFoundError: one is not installed.
    """
    names = sorted({_normal(name) for name in distribution_names})
    return [_notice(importlib.metadata.distribution(name)) for name in names]


def runtime_distributions(
    requirements: Sequence[str] | None = None,
    find: Callable[[str], Distribution] = importlib.metadata.distribution,
) -> list[str]:
    """Every installed distribution that the requirements reach, by its normal name.

    A requirement of another platform is not installed here, which is how its marker is answered; extras count where they are asked for.

    Args:
        requirements: as in a pyproject.toml; by default GrowBox's own.
        find: how a distribution is looked up.
    """
    todo = list(_own_requirements() if requirements is None else requirements)
    extras: dict[str, set[str]] = {}
    while todo:
        name, wanted = _parsed(todo.pop())
        if name in extras and wanted <= extras[name]:
            continue
        try:
            found = find(name)
        except PackageNotFoundError:
            continue
        extras[name] = extras.get(name, set()) | wanted
        todo += [line for line in found.requires or [] if _applies(line, extras[name])]
    return sorted(extras)


def _own_requirements() -> list[str]:
    project = tomllib.loads((_PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    return [str(line) for line in project["project"]["dependencies"]]


def _parsed(requirement: str) -> tuple[str, set[str]]:
    match = re.match(r"\s*([\w.-]+)\s*(?:\[([^\]]*)\])?", requirement)
    assert match is not None, requirement
    extras = {extra.strip() for extra in (match[2] or "").split(",")} - {""}
    return _normal(match[1]), extras


def _applies(requirement: str, extras: set[str]) -> bool:
    wanted = set(re.findall(r"extra\s*==\s*['\"]([^'\"]+)['\"]", requirement))
    return not wanted or bool(wanted & extras)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _notice(found: Distribution) -> Notice:
    licence = licence_name(found)
    texts = _licence_files(found) or _standard_texts(licence)
    home = _home(found)
    parts = [*([home] if home else []), *texts]
    return Notice(
        name=found.metadata["Name"],
        version=found.version,
        licence=licence,
        text="\n\n".join(parts) or licence,
    )


def licence_name(found: Distribution) -> str:
    """What a distribution says its licence is: an SPDX expression, the old field where it is a name, or its classifiers."""
    old = _field(found, "License").strip()
    classifiers = [
        line.rpartition("::")[2].strip()
        for line in found.metadata.get_all("Classifier") or []
        if line.startswith("License ::")
    ]
    short = old if len(old) <= _NAME_CHARACTERS_MAX and "\n" not in old else ""
    first = old.splitlines()[0].strip() if old else ""
    return _field(found, "License-Expression") or short or ", ".join(classifiers) or first


def _licence_files(found: Distribution) -> list[str]:
    """The texts in the distribution's own metadata folder; each once."""
    inside = [path for path in found.files or [] if ".dist-info" in path.parts[0]]
    wanted = [
        path for path in inside if _LICENCE_FILE.search(path.name) or "licenses" in path.parts[:-1]
    ]
    texts = [
        path.read_text(encoding="utf-8").strip("\n")
        for path in sorted(wanted)
        if path.suffix != ".py" and Path(str(path.locate())).is_file()
    ]
    return list(dict.fromkeys(texts))


def _standard_texts(licence: str) -> list[str]:
    """Texts for a distribution that ships none, by the names in its licence expression."""
    aliases = {"Apache": "Apache-2.0", "MIT": "MIT", "LGPL-3.0": "LGPL-3.0"}
    names = [name for word, name in aliases.items() if word in licence]
    if "LGPL-3.0" in names:  # it is a set of permissions on top of the GPL's text
        names.append("GPL-3.0")
    return [_text(f"{name}.txt") for name in names]


def _home(found: Distribution) -> str:
    urls = dict(
        line.split(", ", 1) for line in found.metadata.get_all("Project-URL") or [] if ", " in line
    )
    chosen = next(
        (
            urls[key]
            for key in urls
            if key.lower() in ("homepage", "home", "source", "source code", "repository")
        ),
        "",
    )
    return _field(found, "Home-page") or chosen


def _field(found: Distribution, name: str) -> str:
    return str((found.metadata.get_all(name) or [""])[0])


# -- what is no distribution --------------------------------------------------------------------


def components() -> list[Notice]:
    """The entries of `components.toml`."""
    table = tomllib.loads(_text("components.toml"))
    return [_component(entry) for entry in table["component"]]


def _component(entry: Mapping[str, object]) -> Notice:
    names = entry["texts"]
    assert isinstance(names, list)
    texts = [_text(str(name)) for name in names]
    holder = str(entry.get("text_of", ""))
    if holder:
        texts += _licence_files(importlib.metadata.distribution(holder))
    return Notice(
        name=str(entry["name"]),
        version=str(entry.get("version") or _version_of(str(entry["version_of"]))),
        licence=str(entry["licence"]),
        text="\n\n".join([str(entry["words"]).strip(), *texts]),
    )


def _version_of(source: str) -> str:
    import ssl  # costs 20 ms, which a frozen window never needs

    asked = {
        "python": platform.python_version(),
        "openssl": ssl.OPENSSL_VERSION.removeprefix("OpenSSL "),
        "sqlite": sqlite3.sqlite_version,
    }
    if source in asked:
        return asked[source]
    return f"{source} {importlib.metadata.version(source)}"


def models() -> list[Notice]:
    """The models of the catalogue: a bundle may hold them, and GrowBox may fetch them."""
    table = tomllib.loads((resources_path() / "models.toml").read_text(encoding="utf-8"))
    return [
        Notice(
            name=str(model["name"]),
            version=str(model["file"]),
            licence=str(model["licence"]),
            text="\n\n".join([str(model["origin"]), *_standard_texts(str(model["licence"]))]),
        )
        for model in table["model"]
    ]


def _own() -> Notice:
    """GrowBox's licence file lies beside the sources; a bundle has it in its first notice."""
    text = (_PROJECT / "LICENSE").read_text(encoding="utf-8").strip()
    return Notice(name="GrowBox", version=version(), licence="MIT", text=text)


def _text(name: str) -> str:
    text = (resources_path() / "licences" / name).read_text(encoding="utf-8")
    return text.strip("\n")


# -- the two files of a build -------------------------------------------------------------------


def as_text(notices: Sequence[Notice]) -> str:
    """One readable document: a table of contents, then every text."""
    lines = ["GrowBox is made of these parts:", ""]
    lines += [f"  {notice.name} {notice.version}: {notice.licence}" for notice in notices]
    for notice in notices:
        lines += ["", _RULE, f"{notice.name} {notice.version}", notice.licence, _RULE, ""]
        lines.append(notice.text)
    return "\n".join(lines) + "\n"


def as_json(notices: Sequence[Notice]) -> str:
    """What `load` reads in a frozen build."""
    return json.dumps([dataclasses.asdict(notice) for notice in notices], ensure_ascii=False)


def main(arguments: list[str]) -> int:
    """Writes the two files."""
    parser = argparse.ArgumentParser(prog="notices")
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument(
        "--only", nargs="+", help="distributions in the bundle; default: the run-time closure"
    )
    parser.add_argument(
        "--system", type=Path, help="JSON notices of libraries of the build machine"
    )
    options = parser.parse_args(arguments)
    system = _read(options.system) if options.system else ()
    notices = (*everything(options.only or runtime_distributions()), *system)
    options.json.write_text(as_json(notices), encoding="utf-8")
    options.text.write_text(as_text(notices), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
