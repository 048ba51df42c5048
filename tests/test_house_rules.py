"""The house rules of CONTRIBUTING.md, as tests: what a reviewer would otherwise have to remember."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import string
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from growbox_app.api import ProblemCode
from growbox_app.settings.schema import SETTINGS
from growbox_app.text import LANGUAGES, catalogue

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ("memory", "growbox_app", "ui", "packaging")
FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 800

# The four named places of the conventions: task supervisor, event fan-out, executor boundary, top-level hook. (A handler that cleans
# up and raises again catches nothing and is not counted.)
CATCHES_EVERYTHING = {
    "growbox_app/event_fan.py": 1,
    "growbox_app/executors/registry.py": 1,
    # Not of the four, because these are no end of the line: the error travels on to whoever awaits the storage thread, the keyring's thread,
    # the task that holds a connection.
    "growbox_app/memory_service.py": 1,
    "growbox_app/secrets.py": 1,
    "growbox_app/mcp_client/session.py": 1,
}

# Assembled, so that this file does not contain what it forbids.
FORBIDDEN_TEXT = (
    "py" + "pi.org",
    "python" + "hosted",
    "npm" + "js.org",
    "deb." + "debian.org",
    "/work" + "/main",
    "/work" + "/shared",
    "/root" + "/",
    "/tmp" + "/b/",
    "/opt/" + "pypi",
)
TEXT_SUFFIXES = {
    ".py",
    ".md",
    ".toml",
    ".txt",
    ".lock",
    ".json",
    ".yml",
    ".yaml",
    ".cfg",
    ".sh",
    ".svg",
    ".jinja",
    "",
}
COPYLEFT_BY_CHOICE = {
    "pyside6-essentials",
    "shiboken6",
}  # LGPL, chosen by the user; linked as shared libraries
BUILD_TOOLS = {
    "pyinstaller",
    "pyinstaller-hooks-contrib",
}  # chosen by the user; never part of the app but for the bootloader, whose exception to the GPL allows any licence around it


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def tracked_files() -> tuple[Path, ...]:
    """What git tracks or would track."""
    listing = subprocess.run(
        [
            "git",
            "-c",
            "core.quotePath=off",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = listing.stdout.decode().split("\0")
    return tuple(ROOT / name for name in names if name and (ROOT / name).is_file())


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# -- structure ----------------------------------------------------------------------------------


def test_import_contracts_hold() -> None:
    code = (
        "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " kept" in done.stdout


def test_functions_are_short() -> None:
    long = [
        f"{relative(path)}:{node.lineno} {node.name}"
        for path in python_files(*SOURCE, "tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= FUNCTION_LINES_MAX
    ]
    assert long == []


def test_modules_are_short() -> None:
    long = [
        relative(path)
        for path in python_files(*SOURCE, "tests")
        if len(path.read_text(encoding="utf-8").splitlines()) > MODULE_LINES_MAX
    ]
    assert long == []


def test_packaging_shadows_no_library() -> None:
    assert not (ROOT / "packaging" / "__init__.py").exists()


def swallowing_handlers(path: Path) -> Iterator[ast.ExceptHandler]:
    """Handlers of every exception that do not end by raising it again."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise):
            caught = [node.type] if node.type else []
            names = {
                name.id for part in caught for name in ast.walk(part) if isinstance(name, ast.Name)
            }
            if not caught or names & {"Exception", "BaseException"}:
                yield node


def test_only_named_places_catch_everything() -> None:
    found = {relative(path): len(list(swallowing_handlers(path))) for path in python_files(*SOURCE)}
    assert {name: count for name, count in found.items() if count} == CATCHES_EVERYTHING


# -- text of the repository ---------------------------------------------------------------------


def test_no_registry_and_no_machine_is_named() -> None:
    found = [
        f"{relative(path)}: {word}"
        for path in tracked_files()
        if path.suffix in TEXT_SUFFIXES
        for word in FORBIDDEN_TEXT
        if word in path.read_text(encoding="utf-8", errors="replace")
    ]
    assert found == []


def code_spans(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)))


def paths_named_in(document: str) -> set[str]:
    """Code spans that are paths of this repository: they begin with a top-level folder or are a file with a known suffix."""
    folders = (
        {entry.name for entry in ROOT.iterdir() if entry.is_dir()}
        | set(SOURCE)
        | {"resources", "tests", "docs"}
    )
    spans = code_spans((ROOT / document).read_text(encoding="utf-8"))
    paths = {span.rstrip("/") for span in spans if re.fullmatch(r"[\w.\-/*]+", span)}
    return {
        path
        for path in paths
        if ("/" in path and path.split("/")[0] in folders)
        or (re.search(r"\.(py|md|toml|lock)$", path) and "/" not in path)
    }


def exists_in_tree(path: str) -> bool:
    """A path from the root, or (a bare file name) anywhere in the sources."""
    if "/" in path or (ROOT / path).exists():
        return any(True for _ in ROOT.glob(path))
    return any(file.name == path for file in tracked_files())


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"])
def test_paths_in_documents_exist(document: str) -> None:
    named = paths_named_in(document)
    assert sorted(path for path in named if not exists_in_tree(path)) == []
    if document == "ARCHITECTURE.md":
        assert len(named) >= 20


def links(text: str) -> set[str]:
    return {link for link in re.findall(r"\]\(([^)#\s]+)\)", text) if "://" not in link}


@pytest.mark.parametrize(
    "document", ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "README.zh-CN.md"]
)
def test_links_between_documents_lead_somewhere(document: str) -> None:
    assert (
        sorted(
            link
            for link in links((ROOT / document).read_text(encoding="utf-8"))
            if not (ROOT / link).exists()
        )
        == []
    )


def outline(document: str) -> tuple[list[int], list[str], list[str], list[int]]:
    """Heading levels, commands (their quoted words aside, which are translated), code spans' commands, and table widths."""
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    commands = [
        re.sub(r'"[^"]*"', '"…"', line) for block in blocks for line in block.splitlines() if line
    ]
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    levels = [len(mark) for mark in re.findall(r"^(#+) ", prose, flags=re.MULTILINE)]
    ids = re.findall(r"^\| (`[^`]+`)", prose, flags=re.MULTILINE)
    widths = [line.count("|") for line in prose.splitlines() if line.startswith("|")]
    return levels, commands, ids, widths


def test_the_readmes_are_twins() -> None:
    english, chinese = outline("README.md"), outline("README.zh-CN.md")
    assert english == chinese
    assert english[1][:2] == ["python3 packaging/dev.py run", "python3 packaging/dev.py test"]


@pytest.mark.parametrize("document", ["README.md", "README.zh-CN.md", "CONTRIBUTING.md"])
def test_commands_in_documents_exist(document: str) -> None:
    known = set(
        re.findall(
            r'^    "(\w+)": _',
            (ROOT / "packaging/dev.py").read_text(encoding="utf-8"),
            flags=re.MULTILINE,
        )
    )
    assert known >= {"run", "test", "ask"}
    used = re.findall(
        r"packaging/dev\.py (\w+)(?: (\w+))?", (ROOT / document).read_text(encoding="utf-8")
    )
    assert {command for command, _ in used} <= known
    for command, name in used:
        assert command != "bench" or (ROOT / "tests" / "benchmarks" / f"{name}.py").exists(), name


def test_ci_runs_the_readmes_test_command() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "python3 packaging/dev.py test" in script
    assert "set -euo pipefail" in script
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100


def test_the_acknowledgements_are_there() -> None:
    for document in ("README.md", "README.zh-CN.md"):
        text = (ROOT / document).read_text(encoding="utf-8")
        for name in (
            "https://github.com/NightPoetry/GrowBox",
            "Grok Build",
            "MaClaw",
            "CraniMem",
            "Core-Memory",
        ):
            assert name in text


# -- settings, sentences, prompts ---------------------------------------------------------------


@cache
def string_constants() -> Counter[str]:
    """Every string literal of the product, the settings' schema aside."""
    found: Counter[str] = Counter()
    for path in python_files("memory", "growbox_app", "ui"):
        if relative(path) == "growbox_app/settings/schema.py":
            continue
        found.update(
            node.value
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
    return found


def test_every_setting_is_read() -> None:
    assert sorted(key for key in SETTINGS if key not in string_constants()) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_setting_has_words(language: str) -> None:
    keys = {f"setting.{key}.{part}" for key in SETTINGS for part in ("label", "help")}
    assert sorted(keys - catalogue(language).keys()) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_problem_has_a_sentence(language: str) -> None:
    assert sorted({f"problem.{code}" for code in ProblemCode} - catalogue(language).keys()) == []


def test_both_languages_say_the_same_things() -> None:
    english, chinese = (catalogue(language) for language in LANGUAGES)
    assert english.keys() == chinese.keys()
    different = [key for key in english if fields(english[key]) != fields(chinese[key])]
    assert different == []
    assert [key for key, sentence in (english | chinese).items() if not sentence.strip()] == []


def fields(sentence: str) -> set[str | None]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None}


def test_no_sentence_is_defined_twice() -> None:
    for language in LANGUAGES:
        seen: Counter[str] = Counter()
        for path in (ROOT / "resources" / "translations" / language).glob("*.toml"):
            seen.update(flat_keys(tomllib.loads(path.read_text(encoding="utf-8"))))
        assert [key for key, count in seen.items() if count > 1] == []


def flat_keys(table: dict[str, object], prefix: str = "") -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat_keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def translated_keys() -> set[str]:
    """Literal keys given to a translator: `tr("…")`, `self._tr("…")`, `translate("…")`."""
    names = {"tr", "_tr", "translate", "_translate"}
    found = set()
    for path in python_files("growbox_app", "ui"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                called = (
                    node.func.attr
                    if isinstance(node.func, ast.Attribute)
                    else getattr(node.func, "id", "")
                )
                if called in names and isinstance(node.args[0].value, str):
                    found.add(node.args[0].value)
    return found


def test_every_sentence_that_is_asked_for_exists() -> None:
    keys = translated_keys()
    assert len(keys) > 10
    assert sorted(keys - catalogue("en").keys()) == []


def test_prompts_are_files_in_both_languages_and_used() -> None:
    folder = ROOT / "resources" / "prompts"
    files = {
        language: {path.name for path in (folder / language).iterdir()} for language in LANGUAGES
    }
    assert files["en"] == files["zh"] != set()
    used = string_constants()
    unused = [name for name in files["en"] if name not in used and Path(name).stem not in used]
    assert unused == []


# -- packages -----------------------------------------------------------------------------------


def locked_packages() -> list[str]:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    return sorted(set(re.findall(r"^([A-Za-z0-9._-]+)==", text, flags=re.MULTILINE)))


def licence_of(name: str) -> str:
    """What the installed package says about its licence; empty when it is not installed here (another platform's)."""
    try:
        metadata = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
    classifiers = [
        line for line in metadata.get_all("Classifier") or [] if line.startswith("License ::")
    ]
    # The old free-text field may hold the whole licence; its first line names it.
    old = (metadata.get("License") or "").strip().splitlines()[:1]
    return " | ".join([metadata.get("License-Expression") or "", *old, *classifiers])


def is_gpl(licence: str) -> bool:
    if re.search(r"\b(MIT|BSD|Apache|PSF|MPL)[\w. -]* OR ", licence):
        return False
    return bool(re.search(r"\bA?GPL|Affero|(?<!Lesser )General Public License", licence))


@pytest.mark.parametrize(
    ("licence", "gpl"),
    [
        ("GPL-3.0-only", True),
        ("AGPL-3.0-or-later", True),
        (" |  | License :: OSI Approved :: GNU Affero General Public License v3", True),
        ("GNU General Public License v2 (GPLv2)", True),
        ("LGPL-3.0-only", False),
        ("GNU Lesser General Public License v3", False),
        ("MIT OR GPL-3.0-only", False),
        ("MIT", False),
    ],
)
def test_the_licence_check_can_tell(licence: str, gpl: bool) -> None:
    assert is_gpl(licence) is gpl


def test_no_package_is_gpl() -> None:
    names = locked_packages()
    assert len(names) > 50
    licences = {name: licence_of(name) for name in names}
    assert [
        name
        for name, licence in licences.items()
        if is_gpl(licence) and name not in COPYLEFT_BY_CHOICE | BUILD_TOOLS
    ] == []
    for name in COPYLEFT_BY_CHOICE:
        assert "LGPL" in licences[name]


def test_direct_dependencies_are_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    names = {re.split(r"[=><\[; ]", requirement)[0].lower() for requirement in wanted}
    # Built by set-up with its own pin, see packaging/llama_wheel.py.
    assert names - set(locked_packages()) == {"llama-cpp-python"}
    wheel = (ROOT / "packaging" / "llama_wheel.py").read_text(encoding="utf-8")
    pinned = next(
        requirement for requirement in wanted if requirement.startswith("llama-cpp-python")
    )
    assert f'VERSION = "{pinned.split("==")[1]}"' in wheel
