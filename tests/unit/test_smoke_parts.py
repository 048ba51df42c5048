"""The pure parts of the frozen app's smoke test: trace, report, window search, folders, menu entry, picture."""

from __future__ import annotations

import importlib
import json
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.usefixtures("set_up_modules"),
    pytest.mark.skipif(sys.platform != "linux", reason="namespaces, X, strace"),
]

QUIET = """\
101 execve("/usr/sbin/chroot", ["chroot", "/"], 0x7f /* 5 vars */) = 0
101 execve("/opt/growbox/GrowBox", ["GrowBox"], 0x7f /* 5 vars */) = 0
101 openat(AT_FDCWD, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3
101 socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 3
101 connect(3, {sa_family=AF_UNIX, sun_path=@"/tmp/.X11-unix/X0"}, 20) = 0
102 socketpair(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0, [4, 5]) = 0
102 sendto(4, "sa_family=AF_INET, socket(AF_INET, \\"x\\"", 40, 0, NULL, 0 <unfinished ...>
101 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---
102 <... sendto resumed>) = 40
"""


def module(name: str) -> Any:
    return importlib.import_module(name)


def traffic(*more: str) -> Any:
    trace = module("smoke_trace")
    return trace.read([*QUIET.splitlines(), *more], trace.Traffic())


def test_a_quiet_trace_has_no_faults() -> None:
    found = traffic()
    assert found.faults() == []
    assert found.socket_counts() == {"inet": 0, "inet6": 0, "unix": 2}
    assert found.program_counts() == {"chroot": 1, "GrowBox": 1}
    assert found.calls == 7


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("7 socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC, IPPROTO_IP) = 3", "internet"),
        ("7 socket(AF_INET6, SOCK_STREAM, 0 <unfinished ...>", "internet"),
        ("socket(PF_INET, SOCK_STREAM, 0) = -1 EPERM (Operation not permitted)", "internet"),
        (
            '7 connect(9, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("1")}',
            "internet",
        ),
        (
            '7 sendmsg(9, {msg_name={sa_family=AF_INET6, sin6_port=htons(1)}, msg_iov=[{"',
            "internet",
        ),
        ('7 openat(AT_FDCWD, "/etc/resolv.conf", O_RDONLY|O_CLOEXEC) = 5', "/etc/resolv.conf"),
        ('7 open("/etc/hosts", O_RDONLY) = 5', "/etc/hosts"),
        ('7 execve("/usr/bin/python3.11", ["python3.11"], 0x1) = 0', "/usr/bin/python3.11"),
        ('7 execve("/sbin/ldconfig", ["ldconfig", "-p"], 0x1) = -1 ENOENT', "/sbin/ldconfig"),
        ('7 execve("/usr/bin/gcc", ["gcc"], 0x1 <unfinished ...>', "/usr/bin/gcc"),
    ],
)
def test_a_trace_shows_what_must_not_be(line: str, words: str) -> None:
    faults = traffic(line).faults()
    assert len(faults) == 1
    assert words in faults[0]


def test_other_families_are_counted_and_no_fault() -> None:
    found = traffic("9 socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) = 3", "9 socket(AF_LOCAL, 1, 0)")
    assert found.socket_counts() == {"inet": 0, "inet6": 0, "unix": 3, "netlink": 1}
    assert found.faults() == []


def test_a_report_stands_for_its_steps(tmp_path: Path) -> None:
    report = module("smoke_report").Report(app="x")
    trouble = module("console").Trouble

    def refuse() -> str:
        raise trouble("No window within 30 s.")

    assert not report.ok
    assert report.run("first", lambda: "fine")
    assert report.ok
    assert not report.run("second", refuse)
    report.write(tmp_path / "new" / "r.json")
    written = json.loads((tmp_path / "new" / "r.json").read_text(encoding="utf-8"))
    assert written["ok"] is False
    assert written["app"] == "x"
    assert [(s["name"], s["ok"], s["detail"]) for s in written["steps"]] == [
        ("first", True, "fine"),
        ("second", False, "No window within 30 s."),
    ]


def test_a_stopped_step_is_in_the_report() -> None:
    report = module("smoke_report").Report()

    def interrupted() -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        report.run("window", interrupted)
    assert (report.ok, report.steps[0]["name"], report.steps[0]["detail"]) == (
        False,
        "window",
        "stopped",
    )


def test_the_main_window_is_found_among_others() -> None:
    window = module("smoke_window")

    def seen(number: int, title: str, width: int, *, mapped: bool = True) -> Any:
        return window.Seen(id=number, title=title, width=width, height=500, mapped=mapped)

    others = [
        seen(1, "Qt Selection Owner", 900),
        seen(2, "GrowBox", 300),
        seen(3, "GrowBox", 1280, mapped=False),
    ]
    assert window.main_window(others) is None
    assert window.main_window([]) is None
    right = seen(4, "GrowBox", 800)
    assert window.main_window([*others, right, seen(5, "GrowBox", 700)]) == right


def test_a_picture_is_a_png_of_the_right_colours() -> None:
    blue_then_red = b"\xff\x00\x00\x00" + b"\x00\x00\xff\x00"
    picture = module("smoke_window").png(blue_then_red, 1, 2)
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", picture[16:24]) == (1, 2)
    data = picture.index(b"IDAT")
    (length,) = struct.unpack(">I", picture[data - 4 : data])
    rows = zlib.decompress(picture[data + 4 : data + 4 + length])
    assert rows == b"\x00\x00\x00\xff" + b"\x00\xff\x00\x00"


def test_every_change_of_a_folder_is_seen(tmp_path: Path) -> None:
    surroundings = module("smoke_surroundings")
    for name in ("same", "grown", "gone", "deep/mode"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    (tmp_path / "home").mkdir()
    before = surroundings.listing(tmp_path, [tmp_path / "home"])
    (tmp_path / "grown").write_text("12")
    (tmp_path / "gone").unlink()
    (tmp_path / "deep" / "mode").chmod(0o700)
    (tmp_path / "deep" / "new").symlink_to("nowhere")
    (tmp_path / "home" / "allowed").write_text("1")
    after = surroundings.listing(tmp_path, [tmp_path / "home"])
    assert surroundings.differences(before, after) == ["deep/mode", "deep/new", "gone", "grown"]


@pytest.mark.parametrize(
    ("models", "flavour"),
    [
        ([], "slim"),
        (["e5-small.gguf"], "slim"),
        (["e5-small.gguf", "chat-0.5b.gguf"], "light"),
        (["e5-small.gguf", "chat-1.5b.gguf"], "full"),
    ],
)
def test_the_flavour_is_known_by_the_models(
    models: list[str], flavour: str, tmp_path: Path
) -> None:
    (tmp_path / "models").mkdir()
    for name in models:
        (tmp_path / "models" / name).touch()
    assert module("smoke_app").flavour(tmp_path) == flavour


def place(tmp_path: Path, **changes: Any) -> Any:
    settings = {
        "root": Path("/"),
        "app": tmp_path / "app",
        "home": tmp_path / "家 home",
        "scratch": tmp_path / "s",
        "isolated": False,
        "as_user": False,
    }
    return module("smoke_surroundings").Surroundings(**settings | changes)


def test_the_environment_comes_from_nothing(tmp_path: Path) -> None:
    world = place(tmp_path)
    world.make()
    assert set(world.environment(":5")) == {"HOME", "PATH", "LANG", "TMPDIR", "DISPLAY"}
    assert list(Path(world.environment(None)["PATH"]).iterdir()) == []


def test_another_system_is_seen_from_inside(tmp_path: Path) -> None:
    world = place(tmp_path, root=tmp_path)
    found = world.environment(None)
    assert found["HOME"] == "/家 home"
    assert found["PATH"].split(":")[1] == "/usr/bin"
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "usr" / "bin" / "python3").symlink_to("/bin/sh")
    with pytest.raises(module("console").Trouble, match="python3"):
        world.make()


def test_a_home_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    world = place(tmp_path)
    world.home.mkdir()
    (world.home / "old").touch()
    with pytest.raises(module("console").Trouble, match="empty"):
        world.make()


def test_the_apps_processes_are_those_with_its_home(tmp_path: Path) -> None:
    import subprocess

    world = place(tmp_path)
    assert world.processes() == {}
    child = subprocess.Popen(["/bin/sleep", "60"], env={"HOME": str(world.home)})
    try:
        wait = module("smoke_surroundings").wait_until
        assert wait(lambda: world.processes() == {child.pid: "sleep"}, seconds=10)
    finally:
        child.kill()
        child.wait()
    assert world.processes() == {}


def system_with_menu(root: Path, entry: str) -> None:
    for folder in ("usr/bin", "opt/growbox", "usr/share/applications"):
        (root / folder).mkdir(parents=True)
    icons = root / "usr/share/icons/hicolor/scalable/apps"
    icons.mkdir(parents=True)
    (icons / "growbox.svg").touch()
    program = root / "opt/growbox/GrowBox"
    program.touch(mode=0o755)
    (root / "usr/bin/growbox").symlink_to("/opt/growbox/GrowBox")
    (root / "usr/share/applications/growbox.desktop").write_text(entry, encoding="utf-8")


ENTRY = """[Desktop Entry]
Type=Application
Name=GrowBox
Comment=An assistant
Comment[zh_CN]=助手
Categories=Utility;
Icon=growbox
TryExec=growbox
Exec=growbox
"""


def test_a_good_menu_entry_is_shown(tmp_path: Path) -> None:
    system_with_menu(tmp_path, ENTRY)
    assert "1 icons" in module("smoke_debian").menu_entry(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Exec=growbox", "Exec=grow-box", "names no program"),
        ("Icon=growbox", "Icon=box", "no icon"),
        ("Categories", "NoDisplay=true\nCategories", "would not be shown"),
        ("Comment[zh_CN]=助手\n", "", "no Chinese"),
    ],
)
def test_a_bad_menu_entry_is_told(old: str, new: str, words: str, tmp_path: Path) -> None:
    system_with_menu(tmp_path, ENTRY.replace(old, new))
    with pytest.raises(module("console").Trouble, match=words):
        module("smoke_debian").menu_entry(tmp_path)


def test_a_python_in_a_system_is_found(tmp_path: Path) -> None:
    debian = module("smoke_debian")
    (tmp_path / "usr/bin").mkdir(parents=True)
    assert "none" in debian.no_python(tmp_path)
    (tmp_path / "usr/bin/python3.11").touch()
    with pytest.raises(module("console").Trouble, match=r"usr/bin/python3\.11"):
        debian.no_python(tmp_path)
