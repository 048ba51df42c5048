"""What goes into the frozen app and what stays out; read by `growbox.spec`, inside PyInstaller.

Every exclusion was seen to be unused: the smoke test runs the result. Source: reference `frozen_facts.md`.
"""

from __future__ import annotations

import fnmatch
import importlib
import importlib.metadata
import json
import os
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import system_libraries
from PyInstaller.depend.bindepend import get_imports
from PyInstaller.utils.hooks import copy_metadata

Entry = tuple[str, str, str]
"""PyInstaller's (name in the bundle, file, kind)."""

PLATFORM: str = sys.platform  # a variable, so that mypy reads the branches of every platform
ROOT = Path(__file__).resolve().parent.parent
IDENTIFIER = "io.github.growbox.GrowBox"

HIDDEN_IMPORTS = [
    # Named in strings by chromadb.
    "chromadb.telemetry.product.posthog",
    "chromadb.api.rust",
    # Imported inside functions of the child processes.
    "growbox_app.engine.host",
    "memory.storage.vector_host",
    # Grammars, named in strings by growbox_app.ingest.definitions.
    "tree_sitter_bash",
    "tree_sitter_c",
    "tree_sitter_cpp",
    "tree_sitter_go",
    "tree_sitter_java",
    "tree_sitter_javascript",
    "tree_sitter_python",
    "tree_sitter_rust",
    "tree_sitter_typescript",
    # Named in strings by growbox_app.ingest.check.
    "docx",
    "pypdf",
]

EXCLUDES = [
    # chromadb's server, its default embedder and its command line; none is reached with embedding_function=None. (starlette and uvicorn
    # are not here: the SDK of the Model Context Protocol imports its server with its client.)
    "chromadb.cli",
    "chromadb.server",
    "chromadb.test",
    "chromadb.utils.fastapi",
    "fastapi",
    "uvloop",
    "watchfiles",
    "websockets",
    "onnxruntime",
    "kubernetes",
    "tokenizers",
    "huggingface_hub",
    "hf_xet",
    "bcrypt",
    "aiohttp",
    "google",
    "grpc",
    "opentelemetry.exporter",
    "typer",
    "rich",
    "tqdm",
    "build",
    # Set-up only: the embedding model is repacked from a wheel, with pip. The frozen app has the file, or fetches it.
    "gguf",
    "pip",
    "setuptools",
    "pkg_resources",
    # Parts of libraries that nothing here uses; of lxml, python-docx needs only etree.
    "lxml.html",
    "lxml.isoschematron",
    "lxml.objectify",
    "numpy.f2py",
    "numpy.testing",
    "llama_cpp.server",
    "PIL",
    "tkinter",
    "readline",  # GPL
    "unittest",
    "lib2to3",
    "mypy",
    "ast_serialize",
    "librt",
    "requests",
    "urllib3",
    "charset_normalizer",
    "pytest",
    "_pytest",
    "hypothesis",
    "IPython",
    "PySide6.QtNetwork",
    "PySide6.QtDBus",
    "PySide6.QtOpenGL",
    "PySide6.QtQml",
    "PySide6.QtQuick",
    "PySide6.QtSql",
    "PySide6.QtTest",
    "PySide6.QtXml",
]

_UNWANTED = [
    # Our own copies are placed by `llama_libraries`; a second libggml has its own, empty registry of backends.
    "libllama*",
    "libggml*",
    "libmtmd*",
    "bin/*ggml*",
    "llama_cpp/lib/*",
    "llama_cpp/server/*",
    "bin/*",
    # Qt's plugins for displays, image formats and services that a desktop window does not use.
    *(
        f"*/plugins/{name}"
        for name in (
            "egldeviceintegrations/*",
            "generic/*",
            "networkinformation/*",
            "tls/*",
            "sqldrivers/*",
            "qmltooling/*",
            "xcbglintegrations/*",
            "wayland-graphics-integration-*/*",
            "platforms/*eglfs*",
            "platforms/*linuxfb*",
            "platforms/*vnc*",
            "platforms/*vkkhr*",
            "platforms/*minimalegl*",
            "platformthemes/*gtk3*",
            "imageformats/*tiff*",
            "imageformats/*icns*",
            "imageformats/*tga*",
            "imageformats/*wbmp*",
            "imageformats/*webp*",
            "imageformats/*gif*",
            "imageformats/*pdf*",
            "imageformats/*jpeg*",
        )
    ),
    "*/libQt6Network*",
    "*/libQt6Sql*",
    "*/libQt6Qml*",
    "*/libQt6Quick*",
    "*/libQt6Egl[fF]*",
    "*/libQt6Test*",
    "*/libQt6VirtualKeyboard*",
    "*/libQt6Pdf*",
    "*/translations/qt*",
]
_LLAMA_FILE = re.compile(r".*\.(so|so\.0|dll|dylib)")
_WANTED_AFTER_ALL = ["*/translations/qtbase_zh_CN.qm", "*/translations/qtbase_en.qm"]


def wanted(entries: Iterable[Entry]) -> list[Entry]:
    """The entries without what the app does not use, and without the libraries that only those needed."""
    kept = [entry for entry in entries if not _is_unwanted(entry[0].replace(os.sep, "/"))]
    return _reachable(kept) if PLATFORM == "linux" else kept


def _reachable(entries: list[Entry]) -> list[Entry]:
    """Drops libraries at the top of the bundle that nothing in it links to; PyInstaller added them for a plugin that went."""
    loose = {name: (name, path, kind) for name, path, kind in entries if _may_go(name, kind)}
    kept = [entry for entry in entries if entry[0] not in loose]
    todo = [path for _name, path, kind in kept if kind in ("BINARY", "EXTENSION")]
    while todo:
        for needed, _path in get_imports(todo.pop()):
            found = loose.pop(Path(needed).name, None)
            if found is not None:
                kept.append(found)
                todo.append(found[1])
    names = {name for name, _path, _kind in kept}
    return [entry for entry in kept if entry[2] != "SYMLINK" or _target(entry) in names]


def _may_go(name: str, kind: str) -> bool:
    return kind == "BINARY" and "/" not in name and not name.startswith("libpython")


def _target(link: Entry) -> str:
    return os.path.normpath(Path(link[0]).parent / link[1])


def _is_unwanted(name: str) -> bool:
    if any(fnmatch.fnmatch(name, pattern) for pattern in _WANTED_AFTER_ALL):
        return False
    return any(fnmatch.fnmatch(name, pattern) for pattern in _UNWANTED)


def llama_libraries() -> list[Entry]:
    """llama.cpp's libraries: each real file once, the names that the loader asks for as links, and the CPU variants beside."""
    import llama_cpp

    home = Path(llama_cpp.__file__).parent / "lib"
    found: dict[str, Entry] = {}
    for path in [*home.iterdir(), *(home.parent.parent / "bin").glob("*ggml-cpu-*")]:
        if _LLAMA_FILE.fullmatch(path.name) and not path.name.startswith("libmtmd"):
            name = str(Path("llama_cpp") / "lib" / path.name)
            found[name] = (name, str(path.resolve()), "BINARY")
    for name in list(found):  # the wheel's other names are copies
        versioned = f"{name}.0"
        if versioned in found:
            found[name] = (name, Path(versioned).name, "SYMLINK")
    return sorted([*found.values(), *_openmp(found.values())])


def _openmp(libraries: Iterable[Entry]) -> list[Entry]:
    """The OpenMP run-time that the variants link to: no Python module does, so PyInstaller does not see it."""
    paths = [path for _name, path, kind in libraries if kind == "BINARY" and PLATFORM == "linux"]
    needed = {found for path in paths for found in get_imports(path) if "libgomp" in found[0]}
    return [(Path(name).name, str(path), "BINARY") for name, path in sorted(needed) if path]


def metadata() -> list[tuple[str, str]]:
    """The version of Chroma marks its folders; llama.cpp's stands in reports."""
    return [*copy_metadata("chromadb"), *copy_metadata("llama-cpp-python")]


def note_distributions(found: Iterable[Entry]) -> None:
    """Writes down which packages the modules and files of the bundle came from; the notices are made for those."""
    owners = importlib.metadata.packages_distributions()
    parts = {re.split(r"[./\\]", name, maxsplit=1)[0] for name, _path, _kind in found}
    names = {owner for part in parts for owner in owners.get(part, ())}
    text = "".join(f"{name}\n" for name in sorted(names))
    (_work_folder() / "distributions.txt").write_text(text, encoding="utf-8")


def note_system_libraries(found: Iterable[Entry]) -> None:
    """Writes the notices of the libraries that came from this machine's system."""
    ours = (Path(sys.prefix), Path(sys.base_prefix), ROOT)
    paths = [
        Path(path)
        for _name, path, kind in found
        if kind == "BINARY" and not any(Path(path).resolve().is_relative_to(o) for o in ours)
    ]
    notices = system_libraries.notices_of(paths) if PLATFORM == "linux" else []
    (_work_folder() / "system.json").write_text(json.dumps(notices), encoding="utf-8")


def _work_folder() -> Path:
    return Path(os.environ["GROWBOX_BUILD_FACTS"])


def version() -> str:
    """GrowBox's version."""
    return str(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    )


def program_icon() -> str | None:
    """The icon of the program file on Windows and macOS; made by packaging/icons.py into the work folder."""
    name = {"win32": "growbox.ico", "darwin": "growbox.icns"}.get(PLATFORM)
    return str(_work_folder() / name) if name else None


def version_resource() -> object | None:
    """What Windows shows as the file's properties."""
    if PLATFORM != "win32":
        return None
    sys.path.insert(0, str(ROOT / "packaging" / "windows"))
    version_info = importlib.import_module("version_info").version_info

    target = _work_folder() / "version_info.txt"
    target.write_text(version_info(version()), encoding="utf-8")
    return str(target)


def entitlements() -> str | None:
    """macOS: what the hardened runtime must allow."""
    return (
        str(ROOT / "packaging" / "macos" / "entitlements.plist") if PLATFORM == "darwin" else None
    )


def signing_identity() -> str | None:
    """macOS: a Developer ID when there is one."""
    return os.environ.get("GROWBOX_CODESIGN_IDENTITY") or None


def info_plist() -> dict[str, object]:
    """macOS: the keys of Info.plist beyond PyInstaller's own."""
    import plistlib

    path = ROOT / "packaging" / "macos" / "Info.plist"
    return dict(plistlib.loads(path.read_bytes()))
