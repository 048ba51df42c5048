"""`packaging/dev.py`: folders, the wheel cache, `.venv`, the machine check and the command line."""

from __future__ import annotations

import errno
import hashlib
import importlib
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from platformdirs.macos import MacOS

from growbox_app import paths
from growbox_app.models import __main__ as command
from tests.unit.models_world import wheel

pytestmark = pytest.mark.usefixtures("set_up_modules")
ROOT = Path(__file__).resolve().parents[2]
FAKE_PYTHON = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import os, pathlib, sys
print("  [1/4] cc a.c", flush=True)
assert "SOURCE_DATE_EPOCH" not in os.environ and "CFLAGS" not in os.environ
assert "-DGGML_NATIVE=OFF" in os.environ["CMAKE_ARGS"]
requirement = pathlib.Path(sys.argv[sys.argv.index("--requirement") + 1]).read_text()
assert "--hash=sha256:" in requirement and "--no-cache-dir" in sys.argv
print("  [4/4] ld llama", flush=True)
if {fails}:
    sys.exit("error: the compiler said no")
folder = pathlib.Path(sys.argv[sys.argv.index("--wheel-dir") + 1])
folder.mkdir()
(folder / "llama_cpp_python-0.0.0-py3-none-any.whl").write_bytes(b"wheel" * 1000)
"""


def module(name: str) -> ModuleType:
    return importlib.import_module(name)


@pytest.fixture
def llama_wheel() -> Any:
    return module("llama_wheel")


@pytest.fixture
def environment() -> Any:
    return module("environment")


@pytest.fixture
def machine() -> Any:
    return module("machine")


@pytest.fixture
def dev() -> Any:
    return module("dev")


def fake_python(folder: Path, *, fails: bool = False) -> Path:
    """An interpreter whose `-m pip wheel` builds in no time; it checks what it was asked for."""
    path = folder / "python"
    path.write_text(FAKE_PYTHON.format(python=sys.executable, fails=fails), encoding="utf-8")
    path.chmod(0o755)
    return path


# -- folders ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"XDG_DATA_HOME": "/some/where", "XDG_CACHE_HOME": "/else where"},
        {"XDG_DATA_HOME": " ", "XDG_CACHE_HOME": ""},
        {"GROWBOX_DATA_DIR": "/d 树"},
        {"GROWBOX_DATA_DIR": "/d", "GROWBOX_MODELS_DIR": "/m", "GROWBOX_CACHE_DIR": "/c"},
    ],
)
def test_folders_are_those_of_the_application(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name in ("DATA", "MODELS", "CACHE"):
        monkeypatch.delenv(f"GROWBOX_{name}_DIR", raising=False)
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    folders = module("folders")
    assert folders.data_path() == paths.data_path()
    assert folders.models_path() == paths.models_path()
    assert folders.cache_path() == paths.cache_path()


def test_folders_on_a_mac_are_those_of_platformdirs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA", "MODELS", "CACHE"):
        monkeypatch.delenv(f"GROWBOX_{name}_DIR")
    folders = module("folders")
    monkeypatch.setattr(folders.sys, "platform", "darwin")
    expected = MacOS(paths.APP_NAME, appauthor=False)
    assert str(folders.data_path()) == expected.user_data_dir
    assert str(folders.cache_path()) == expected.user_cache_dir


# -- the llama.cpp wheel ------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["Linux", "Windows", "Darwin"])
@pytest.mark.parametrize("processor", ["x86_64", "AMD64", "arm64", "aarch64"])
def test_the_wheel_is_never_native(llama_wheel: Any, system: str, processor: str) -> None:
    arguments = llama_wheel.cmake_arguments(system, processor)
    assert "-DGGML_NATIVE=OFF" in arguments
    assert not any("NATIVE=ON" in word or "march" in word for word in arguments)
    variants = "-DGGML_CPU_ALL_VARIANTS=ON" in arguments
    assert variants == (processor in ("x86_64", "AMD64") and system != "Darwin")


def test_the_key_tells_kinds_of_machines_apart(llama_wheel: Any) -> None:
    kinds = [("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64"), ("Windows", "AMD64")]
    assert len({llama_wheel.wheel_folder(*kind) for kind in kinds}) == len(kinds)
    assert llama_wheel.wheel_folder("Windows", "AMD64") == llama_wheel.wheel_folder(
        "Windows", "amd64"
    )


@pytest.mark.skipif(os.name == "nt", reason="the fake interpreter is a script")
class TestBuild:
    """Building into the cache, with an interpreter that builds in no time."""

    def test_a_built_wheel_is_found_again(
        self, llama_wheel: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
        monkeypatch.setenv("CFLAGS", "-march=native")
        assert llama_wheel.cached_wheel() is None
        built = llama_wheel.build_wheel(fake_python(tmp_path))
        assert llama_wheel.cached_wheel() == built
        assert built.parent == llama_wheel.wheel_folder()
        assert not list(built.parent.parent.glob(".build-*"))

    def test_a_failed_build_shows_its_end_and_leaves_nothing(
        self, llama_wheel: Any, tmp_path: Path
    ) -> None:
        with pytest.raises(
            module("console").Trouble, match=r"llama-build\.log(.|\n)*the compiler said no"
        ):
            llama_wheel.build_wheel(fake_python(tmp_path, fails=True))
        assert llama_wheel.cached_wheel() is None
        assert not list(llama_wheel.wheel_folder().parent.iterdir())

    def test_what_a_kill_left_is_removed_by_the_next_build(
        self, llama_wheel: Any, tmp_path: Path
    ) -> None:
        stale = llama_wheel.wheel_folder().parent / ".build-stale"
        stale.mkdir(parents=True)
        (stale / "half.whl").write_bytes(b"half")
        llama_wheel.build_wheel(fake_python(tmp_path))
        assert not stale.exists()

    @pytest.mark.parametrize("damage", ["truncated", "no hash", "no wheel"])
    def test_a_damaged_wheel_is_no_wheel(
        self, llama_wheel: Any, tmp_path: Path, damage: str
    ) -> None:
        built = llama_wheel.build_wheel(fake_python(tmp_path))
        match damage:
            case "truncated":
                built.write_bytes(built.read_bytes()[:-1])
            case "no hash":
                (built.parent / "wheel.sha256").unlink()
            case _:
                built.unlink()
        assert llama_wheel.cached_wheel() is None
        llama_wheel.build_wheel(fake_python(tmp_path))
        assert llama_wheel.cached_wheel() == built


def test_build_progress_counts_and_estimates(llama_wheel: Any) -> None:
    progress = llama_wheel.BuildProgress()
    assert progress.text(10, 400, 100.0) == "llama.cpp 2 % (10/400)"
    assert progress.text(110, 400, 160.0) == "llama.cpp 27 % (110/400), about 3 min left"
    assert progress.text(400, 400, 300.0) == "llama.cpp 100 % (400/400), about 0 s left"


# -- .venv --------------------------------------------------------------------------------------


@pytest.fixture
def small_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: Any, llama_wheel: Any
) -> Path:
    """A source tree whose lock file and llama.cpp wheel are tiny, with pip kept off the network."""
    root = tmp_path / "树 a b"
    root.mkdir()
    qt = wheel(tmp_path, "PySide6", "1.0", "PySide6/__init__.py", b"")
    llama = wheel(tmp_path, "llama_cpp_python", "0.0", "llama_cpp/__init__.py", b"")
    digest = hashlib.sha256(qt.read_bytes()).hexdigest()
    (root / "requirements.lock").write_text(
        f"PySide6==1.0 --hash=sha256:{digest}\n", encoding="utf-8"
    )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setattr(environment, "ROOT", root)
    monkeypatch.setattr(environment, "LOCK_FILE", root / "requirements.lock")
    monkeypatch.setattr(environment, "VENV", root / ".venv")
    monkeypatch.setattr(module("folders"), "VENV", root / ".venv")
    monkeypatch.setattr(llama_wheel, "cached_wheel", lambda: llama)
    return root


@pytest.mark.slow
def test_the_environment_is_made_mended_and_left_alone(
    environment: Any,
    small_tree: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    venv = small_tree / ".venv"
    # What an interruption leaves: a folder that is no environment.
    (venv / "bin").mkdir(parents=True)
    monkeypatch.setattr(environment.console, "stream", sys.stdout)
    environment.prepare_environment()
    assert (
        environment.output_of(
            [module("folders").venv_python(), "-I", "-c", "import PySide6, llama_cpp"]
        )
        == ""
    )
    path = environment.output_of(
        [module("folders").venv_python(), "-I", "-c", "import sys; print(sys.path[-1])"]
    )
    assert path.strip() == str(small_tree)
    capfd.readouterr()

    environment.prepare_environment()
    assert capfd.readouterr().out == ""

    # Stopped between removing a stamp and writing it: only that step is done again.
    (venv / ".growbox-requirements").unlink()
    environment.prepare_environment()
    assert capfd.readouterr().out == "Installing the packages of requirements.lock\n"


def test_a_changed_lock_file_asks_for_a_new_installation(
    environment: Any, small_tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(environment, "_pip_install", lambda _arguments, what: asked.append(what))
    (small_tree / ".venv").mkdir()
    environment._install_requirements(complete=True)
    environment._install_requirements(complete=True)
    assert asked == ["packages"]
    (small_tree / "requirements.lock").write_text("", encoding="utf-8")
    environment._install_requirements(complete=True)
    assert asked == ["packages"] * 2
    environment._install_requirements(complete=False)
    assert asked == ["packages"] * 3


class WindowsLock:
    """`msvcrt`, as far as it is used: a lock that another process holds for a while."""

    LK_NBLCK = 2

    def __init__(self, refusals: int, number: int = errno.EACCES) -> None:
        self.refusals = refusals
        self.number = number
        self.taken = False

    def locking(self, _descriptor: int, mode: int, _bytes: int) -> None:
        assert mode == self.LK_NBLCK
        if self.refusals:
            self.refusals -= 1
            raise OSError(self.number, "refused")
        self.taken = True


def test_a_second_set_up_on_windows_waits_as_long_as_it_takes(
    environment: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = WindowsLock(refusals=30)
    monkeypatch.setitem(sys.modules, "msvcrt", lock)
    monkeypatch.setattr(environment.sys, "platform", "win32")
    monkeypatch.setattr(environment, "_pause", lambda _seconds: None)
    monkeypatch.setattr(environment.console, "stream", sys.stdout)
    with environment.one_at_a_time("setup"):
        assert lock.taken
    assert capsys.readouterr().out.count("waiting for it") == 1
    monkeypatch.setitem(sys.modules, "msvcrt", WindowsLock(refusals=1, number=errno.EIO))
    with pytest.raises(OSError, match="refused"), environment.one_at_a_time("setup"):
        pass


@pytest.mark.skipif(os.name == "nt", reason="locks with fcntl here")
def test_a_second_set_up_waits_for_the_first(
    environment: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment.console, "stream", sys.stdout)
    with ExitStack() as first:
        first.enter_context(environment.one_at_a_time("setup"))
        monkeypatch.setattr(environment, "_pause", lambda _seconds: first.close())
        with environment.one_at_a_time("setup"):
            assert capsys.readouterr().out.count("waiting for it") == 1


def test_a_failed_step_leaves_no_stamp(environment: Any, small_tree: Path) -> None:
    (small_tree / ".venv").mkdir()
    with pytest.raises(OSError, match="stopped"), environment._stamped("step", "x"):
        raise OSError("stopped")
    assert not environment._stamp_matches("step", "x")
    with environment._stamped("step", "x"):
        pass
    assert environment._stamp_matches("step", "x")


# -- the machine --------------------------------------------------------------------------------


def linux_without(machine: Any, monkeypatch: pytest.MonkeyPatch, *, manager: str) -> None:
    """A Linux machine that lacks everything and has one package manager; nobody is root."""
    monkeypatch.setattr(machine.platform, "system", lambda: "Linux")
    monkeypatch.setattr(machine.os, "geteuid", lambda: 1000, raising=False)
    monkeypatch.setattr(machine, "_loads", lambda _soname: False)
    monkeypatch.setattr(machine, "_has_venv", lambda: True)
    monkeypatch.setattr(machine, "_on_path", lambda program: program == manager)


@pytest.mark.parametrize(
    ("manager", "start", "package"),
    [
        ("apt-get", "sudo apt-get install -y --no-install-recommends ", "libxcb-cursor0"),
        ("dnf", "sudo dnf install -y ", "xcb-util-cursor"),
        ("pacman", "sudo pacman -S --needed --noconfirm ", "xcb-util-cursor"),
        ("none", "Install it with your system's package manager", "libxcb-cursor.so.0"),
    ],
)
def test_missing_libraries_are_one_command(
    machine: Any, monkeypatch: pytest.MonkeyPatch, manager: str, start: str, package: str
) -> None:
    linux_without(machine, monkeypatch, manager=manager)
    with pytest.raises(module("console").Trouble) as caught:
        machine.prepare(display=True, compiler=True)
    text = str(caught.value)
    assert start in text
    assert package in text
    assert text.count("sudo") <= 1


def test_asking_needs_no_libraries_of_a_window(
    machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    linux_without(machine, monkeypatch, manager="apt-get")
    machine.prepare(display=False, compiler=False)


def test_root_on_debian_gets_them_installed(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    linux_without(machine, monkeypatch, manager="apt-get")
    monkeypatch.setattr(machine.os, "geteuid", lambda: 0, raising=False)
    installed: list[str] = []
    monkeypatch.setattr(machine, "_loads", lambda _soname: bool(installed))

    def apt(command: list[str], **_options: object) -> int:
        installed.extend(command if "install" in command else [])
        return 0

    monkeypatch.setattr(machine, "stream_lines", apt)
    machine.prepare(display=True, compiler=False, tests=True)
    assert {"libxcb-cursor0", "libegl1", "libxkbcommon-x11-0", "xvfb"} <= set(installed)


def test_niceties_are_tried_once(
    machine: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    linux_without(machine, monkeypatch, manager="apt-get")
    monkeypatch.setattr(machine.os, "geteuid", lambda: 0, raising=False)
    monkeypatch.setattr(machine, "_loads", lambda _soname: True)
    monkeypatch.setattr(machine, "_has_cjk_font", lambda: False)
    monkeypatch.setattr(machine.console, "stream", sys.stdout)
    calls: list[list[str]] = []
    monkeypatch.setattr(
        machine, "stream_lines", lambda command, **_options: calls.append(command) or 100
    )
    machine.prepare(display=True, compiler=False)
    assert len(calls) == 2
    machine.prepare(display=True, compiler=False)
    assert len(calls) == 2
    assert "fonts-noto-cjk" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fonts", "here"), [(None, False), ("", False), ("\n", False), ("Noto Sans CJK SC\n", True)]
)
def test_a_chinese_font_is_seen_not_assumed(
    machine: Any, monkeypatch: pytest.MonkeyPatch, fonts: str | None, here: bool
) -> None:
    monkeypatch.setattr(machine, "output_of", lambda _command: fonts)
    assert machine._has_cjk_font() is here


def test_a_fresh_debian_gets_the_font_and_the_program_that_sees_it(
    machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    linux_without(machine, monkeypatch, manager="apt-get")
    monkeypatch.setattr(machine.os, "geteuid", lambda: 0, raising=False)
    monkeypatch.setattr(machine, "_loads", lambda _soname: True)
    # No fc-list: asking for it gives nothing.
    monkeypatch.setattr(machine, "output_of", lambda _command: None)
    installed: list[str] = []
    monkeypatch.setattr(
        machine, "stream_lines", lambda command, **_options: installed.extend(command) or 0
    )
    machine.prepare(display=True, compiler=False)
    assert {"fonts-noto-cjk", "fontconfig"} <= set(installed)


def test_a_full_disk_is_one_sentence(
    dev: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_rest: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(dev._COMMANDS, "setup", full)
    assert dev.main(["setup"]) == 1
    assert "No space left on device" in capsys.readouterr().err


def test_a_display_is_looked_for(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.platform, "system", lambda: "Linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    assert not machine.has_display()
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert machine.has_display()


# -- the command line ---------------------------------------------------------------------------


def test_without_a_display_run_points_to_ask(
    dev: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev.machine, "has_display", lambda: False)
    monkeypatch.setattr(
        dev,
        "set_up",
        lambda *_a, **_k: pytest.fail("nothing is set up for a window that cannot open"),
    )
    assert dev.main(["run"]) == 1
    assert "dev.py ask" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (["run"], ["fetch", "--quiet", "--or-go-on", "embedding", "chosen"]),
        (["ask", "?"], ["fetch", "--quiet", "--or-go-on", "embedding", "chosen"]),
        (["setup"], ["fetch", "--quiet", "embedding", "auto"]),
    ],
)
def test_starting_makes_do_with_the_models_that_are_here(
    dev: Any, monkeypatch: pytest.MonkeyPatch, arguments: list[str], asked: list[str]
) -> None:
    calls: list[list[str]] = []

    def run_models(*words: str) -> int:
        calls.append(list(words))
        return 1

    monkeypatch.setattr(dev.machine, "has_display", lambda: True)
    monkeypatch.setattr(dev.machine, "prepare", lambda **_options: None)
    monkeypatch.setattr(dev.environment, "needs_compiler", lambda: False)
    monkeypatch.setattr(dev.environment, "prepare_environment", lambda: None)
    monkeypatch.setattr(dev.environment, "run_models", run_models)
    monkeypatch.setattr(dev, "_become", lambda *_words: pytest.fail("started without models"))
    monkeypatch.setattr(dev.console, "stream", sys.stdout)
    assert dev.main(arguments) == 1
    assert calls == [asked]
    # The words are those that the models part knows.
    assert command._parser().parse_args(asked).models == asked[-2:]


def test_ctrl_c_is_one_sentence_and_130(
    dev: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(_rest: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setitem(dev._COMMANDS, "setup", stopped)
    monkeypatch.setattr(dev.console, "stream", sys.stdout)
    assert dev.main(["setup"]) == 130
    assert capsys.readouterr().err.strip() == "Stopped. Start it again to go on from here."


def test_an_unknown_benchmark_lists_what_exists(
    dev: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "start.py").touch()
    (tmp_path / "__init__.py").touch()
    monkeypatch.setattr(dev, "_BENCHMARKS", tmp_path)
    assert dev.main(["bench", "nothing"]) == 1
    assert "These exist: start." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ([], 2, "dev.py run"),
        (["--help"], 0, "dev.py test"),
        (["dance"], 2, "dev.py ask"),
        (["build", "--help"], 0, "--flavour"),
    ],
)
def test_commands_from_any_folder(
    tmp_path: Path, arguments: list[str], code: int, text: str
) -> None:
    command = [sys.executable, str(ROOT / "packaging" / "dev.py"), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert text in done.stdout


def test_the_help_names_every_command(dev: Any) -> None:
    assert all(f"dev.py {name}" in (dev.__doc__ or "") for name in dev._COMMANDS)


# -- the checks ---------------------------------------------------------------------------------


def test_every_check_runs_although_one_fails(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    checks = module("checks")
    three = (
        checks.Check("one", ("-c", "print('first')")),
        checks.Check("two", ("-c", "raise SystemExit(5)")),
        checks.Check("three", ("-c", "import os; print(os.environ['QT_QPA_PLATFORM'])")),
    )
    monkeypatch.setattr(checks, "all_checks", lambda _arguments: three)
    monkeypatch.setattr(checks, "venv_python", lambda: Path(sys.executable))
    monkeypatch.setattr(checks.console, "stream", sys.stdout)
    assert checks.run_checks([]) == 1
    printed = capfd.readouterr().out
    assert "offscreen" in printed
    assert printed.rstrip().endswith("FAILED: two (2 of 3 checks passed)")
    monkeypatch.setattr(checks, "all_checks", lambda _arguments: three[::2])
    assert checks.run_checks([]) == 0


@pytest.mark.skipif(os.name == "nt", reason="locks with fcntl here")
def test_a_stopped_set_up_child_leaves_no_grandchild(tmp_path: Path) -> None:
    import fcntl

    console = module("console")
    lock = tmp_path / "lock"
    # The grandchild holds a lock for as long as it lives, and would live for ever.
    grandchild = (
        "import fcntl, sys, threading; lock = open(sys.argv[1], 'w'); fcntl.flock(lock, fcntl.LOCK_EX);"
        "print('locked', flush=True); threading.Event().wait()"
    )
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"

    def stop(line: str) -> None:
        assert line == "locked"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        console.stream_lines(
            [sys.executable, "-c", child, grandchild, lock], log=tmp_path / "log", on_line=stop
        )
    with lock.open("w") as mine:
        fcntl.flock(mine, fcntl.LOCK_EX)
