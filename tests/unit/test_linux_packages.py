"""The Linux packages, made from a tiny app folder: what is in them, that they install, and that the same app gives the same bytes."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import platform
import plistlib
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGING = ROOT / "packaging"
ON_LINUX = sys.platform == "linux"
pytestmark = [
    pytest.mark.usefixtures("set_up_modules"),
    pytest.mark.skipif(not ON_LINUX, reason="makes and reads Linux packages"),
]


def module(name: str) -> Any:
    return importlib.import_module(name)


@pytest.fixture(autouse=True)
def surroundings(set_up_modules: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No time from outside; what packaging says goes where pytest shows it only when a test fails."""
    monkeypatch.setattr(module("console").console, "stream", sys.stderr)
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """Two shell scripts instead of programs; modes as a careful umask leaves them."""
    folder = tmp_path / "dist" / "GrowBox"
    (folder / "_internal" / "lib").mkdir(parents=True, mode=0o700)
    (folder / "models").mkdir(mode=0o700)
    for name in ("GrowBox", "growbox-cli"):
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*"\n', encoding="utf-8")
        (folder / name).chmod(0o700)
    for name, text in (
        ("VERSION", "0.1.0\n"),
        ("LICENSE", "MIT License\n"),
        ("NOTICES.txt", "Qt 6, LGPL-3.0\n"),
        ("models/tiny.gguf", "GGUF"),
        ("_internal/lib/libthing.so.1.2", "thing"),
    ):
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o600)
    (folder / "_internal" / "lib" / "libthing.so").symlink_to("libthing.so.1.2")
    os.utime(folder / "VERSION", (1_700_000_000, 1_700_000_000))
    return folder


@pytest.fixture
def deb(app: Path) -> Path:
    if shutil.which("dpkg-deb") is None:
        pytest.skip("no dpkg-deb here: not a Debian machine")
    target = app.parent / "growbox_0.1.0_amd64-light.deb"
    module("linux").make_deb(app, target, version="0.1.0", flavour="light")
    return target


def output_of(*command: str | Path) -> str:
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=True
    ).stdout


def unpacked(deb: Path) -> Path:
    folder = deb.parent / "unpacked"
    output_of("dpkg-deb", "--extract", deb, folder)
    return folder


def desktop_entry(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


# -- tarball ------------------------------------------------------------------------------------


def members(tarball: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(tarball) as archive:
        return {entry.name: entry for entry in archive}


def test_tarball_holds_the_app_for_everybody(app: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "growbox.tar.gz"
    module("linux").make_tarball(app, target)
    found = members(target)
    assert {name.split("/")[0] for name in found} == {"GrowBox"}
    assert {(e.uid, e.gid, e.uname, e.gname, e.mtime) for e in found.values()} == {
        (0, 0, "root", "root", 1_700_000_000)
    }
    assert found["GrowBox/GrowBox"].mode == 0o755
    assert found["GrowBox/models/tiny.gguf"].mode == 0o644
    assert found["GrowBox/models"].mode == 0o755
    assert found["GrowBox/_internal/lib/libthing.so"].linkname == "libthing.so.1.2"
    assert found["GrowBox/install-menu-entry.sh"].mode == 0o755
    assert "GrowBox/share/icons/hicolor/256x256/apps/growbox.png" in found
    assert list(found) == sorted(found)
    assert list(target.parent.iterdir()) == [target]


def test_same_app_same_tarball(app: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "1" / "x.tar.gz", tmp_path / "2" / "y.tar.gz"
    module("linux").make_tarball(app, first)
    os.utime(app / "LICENSE")
    module("linux").make_tarball(app, second)
    assert first.read_bytes() == second.read_bytes()


def test_a_failed_build_leaves_the_old_package(app: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "growbox.tar.gz"
    module("linux").make_tarball(app, target)
    before = target.read_bytes()
    (target.parent / ".packing-stopped").mkdir()
    (app / "VERSION").unlink()
    with pytest.raises(FileNotFoundError):
        module("linux").make_tarball(app, target)
    assert target.read_bytes() == before
    shutil.copyfile(app / "LICENSE", app / "VERSION")
    module("linux").make_tarball(app, target)
    assert list(target.parent.iterdir()) == [target]


# -- the menu entry of the tarball --------------------------------------------------------------

AWKWARD = ("plain", "with space", "张 庭 綱", "a\"b`c$d\\e%f'g")


@pytest.fixture(params=AWKWARD)
def portable(app: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The tarball, unpacked into a folder with an awkward name."""
    module("linux").make_tarball(app, tmp_path / "growbox.tar.gz")
    place = tmp_path / request.param
    with tarfile.open(tmp_path / "growbox.tar.gz") as archive:
        archive.extractall(place, filter="data")
    return place / "GrowBox"


def install_menu_entry(portable: Path, share: Path, *arguments: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(share),
        "XDG_DATA_HOME": str(share),
        "LANG": "zh_CN.UTF-8",
    }
    script = portable / "install-menu-entry.sh"
    done = subprocess.run(
        [script, *arguments], env=environment, capture_output=True, text=True, check=True, cwd="/"
    )
    assert done.stderr == ""
    return done.stdout


def unescaped(value: str) -> str:
    """A string value of a desktop entry. Source: Desktop Entry Specification, "Possible value types"."""
    return re.sub(r"\\(.)", r"\1", value)


def exec_word(value: str) -> str:
    """The one quoted word of an Exec line. Source: the same, "The Exec key"."""
    match = re.fullmatch(r'"((?:[^"\\`$]|\\["\\`$])*)"', unescaped(value))
    assert match is not None, value
    return re.sub(r"\\(.)", r"\1", match[1]).replace("%%", "%")


def test_menu_entry_starts_this_very_folder(portable: Path, tmp_path: Path) -> None:
    share = tmp_path / "主 share"
    assert "已将 GrowBox 加入菜单" in install_menu_entry(portable, share)
    entry = desktop_entry(share / "applications" / "growbox.desktop")
    assert exec_word(entry["Exec"]) == str(portable / "GrowBox")
    assert unescaped(entry["TryExec"]) == str(portable / "GrowBox")
    assert entry["StartupWMClass"] == "GrowBox"
    assert (share / "icons" / "hicolor" / "scalable" / "apps" / "growbox.svg").is_file()
    assert (share / "mime" / "packages" / "growbox.xml").is_file()


def test_menu_entry_comes_out_again_and_memory_stays(portable: Path, tmp_path: Path) -> None:
    share = tmp_path / "share"
    memory = share / "GrowBox" / "timeline"
    memory.mkdir(parents=True)
    install_menu_entry(portable, share)
    install_menu_entry(portable, share)
    install_menu_entry(portable, share, "--remove")
    left = [path for path in share.rglob("*") if path.is_file() and "growbox" in path.name.lower()]
    assert left == []
    assert memory.is_dir()


# -- the Debian package -------------------------------------------------------------------------


def test_needs_name_the_tools_of_these_tests() -> None:
    wanted = module("machine").needs(display=False, compiler=False, tests=True)
    assert {"dpkg", "desktop-file-utils"} <= {need.packages[0] for need in wanted}


def listing(deb: Path) -> dict[str, tuple[str, str]]:
    """Name to mode and owner, links with their aim."""
    lines = [line.split(maxsplit=5) for line in output_of("dpkg-deb", "-c", deb).splitlines()]
    return {name.removeprefix("./"): (mode, owner) for mode, owner, _, _, _, name in lines}


def test_deb_lays_everything_out(deb: Path) -> None:
    found = listing(deb)
    assert {owner for _, owner in found.values()} == {"root/root"}
    assert found["opt/growbox/GrowBox"][0] == "-rwxr-xr-x"
    assert found["opt/growbox/models/tiny.gguf"][0] == "-rw-r--r--"
    assert found["opt/growbox/models/"][0] == "drwxr-xr-x"
    assert "opt/growbox/_internal/lib/libthing.so -> libthing.so.1.2" in found
    assert "usr/bin/growbox -> /opt/growbox/GrowBox" in found
    assert "usr/bin/growbox-cli -> /opt/growbox/growbox-cli" in found
    assert "usr/share/man/man1/growbox.1.gz" in found
    for size in (16, 24, 32, 48, 64, 128, 256, 512):
        assert f"usr/share/icons/hicolor/{size}x{size}/apps/growbox.png" in found
    top_folders = {"/".join(name.split("/")[:2]) for name in found if name.count("/") > 1}
    assert top_folders == {"opt/growbox", "usr/bin", "usr/share"}


def test_deb_makes_the_builders_folder_no_worse(app: Path, deb: Path) -> None:
    assert (app / "models" / "tiny.gguf").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in deb.parent.iterdir()) == ["GrowBox", deb.name]


def test_same_app_same_deb(app: Path, deb: Path, tmp_path: Path) -> None:
    again = tmp_path / "again" / "other.deb"
    module("linux").make_deb(app, again, version="0.1.0", flavour="light")
    assert again.read_bytes() == deb.read_bytes()


def test_deb_says_what_it_is_and_needs(deb: Path) -> None:
    fields = dict(
        line.split(": ", 1)
        for line in output_of("dpkg-deb", "-f", deb).splitlines()
        if not line.startswith(" ")
    )
    assert (fields["Package"], fields["Version"]) == ("growbox", "0.1.0")
    assert fields["Architecture"] == output_of("dpkg", "--print-architecture").strip()
    needs = fields["Depends"].split(", ")
    assert f"libc6 (>= {platform.libc_ver()[1]})" in needs
    assert "libglib2.0-0t64 | libglib2.0-0" in needs
    assert {"libegl1", "libxcb-cursor0", "libxkbcommon-x11-0"} <= set(needs)
    assert "fonts-noto-cjk" in fields["Recommends"]
    assert int(fields["Installed-Size"]) > 0
    assert "small model" in output_of("dpkg-deb", "-f", deb, "Description")


def test_deb_carries_licences_and_a_valid_menu_entry(deb: Path) -> None:
    share = unpacked(deb) / "usr" / "share"
    licences = (share / "doc" / "growbox" / "copyright").read_text(encoding="utf-8")
    assert "MIT License" in licences
    assert "Qt 6, LGPL-3.0" in licences
    path = share / "applications" / "growbox.desktop"
    if shutil.which("desktop-file-validate"):
        output_of("desktop-file-validate", path)
    entry = desktop_entry(path)
    assert (entry["Exec"], entry["TryExec"], entry["Icon"]) == ("growbox", "growbox", "growbox")
    for key in ("GenericName", "Comment", "Keywords"):
        assert entry[key] != entry[f"{key}[zh_CN]"]


def test_menu_entry_belongs_to_the_window() -> None:
    """X11 has the application's name as window class, Wayland the desktop file's name."""
    source = (ROOT / "ui" / "application.py").read_text(encoding="utf-8")
    entry = desktop_entry(PACKAGING / "linux" / "growbox.desktop")
    assert f'setApplicationName("{entry["StartupWMClass"]}")' in source
    assert 'setDesktopFileName("growbox")' in source


def test_exports_are_a_known_type_that_nobody_claims_to_open(deb: Path) -> None:
    share = unpacked(deb) / "usr" / "share"
    kind = ElementTree.parse(share / "mime" / "packages" / "growbox.xml").find("{*}mime-type")
    assert kind is not None
    assert kind.get("type") == "application/x-growbox"
    glob = kind.find("{*}glob")
    assert glob is not None
    assert glob.get("pattern") == "*.growbox"
    icon = share / "icons" / "hicolor" / "scalable" / "mimetypes" / "application-x-growbox.svg"
    assert icon.is_file()
    assert "MimeType" not in desktop_entry(share / "applications" / "growbox.desktop")


def test_store_page_tells_the_version(deb: Path) -> None:
    folder = unpacked(deb) / "usr" / "share" / "metainfo"
    page = ElementTree.parse(next(folder.iterdir())).getroot()
    release = page.find("releases/release")
    assert release is not None
    assert release.attrib == {"version": "0.1.0", "date": "2023-11-14"}
    assert page.findtext("launchable") == "growbox.desktop"


@pytest.mark.parametrize("action", ["configure", "remove", "purge"])
def test_maintainer_scripts_work_without_any_tool(deb: Path, tmp_path: Path, action: str) -> None:
    control = tmp_path / "control"
    output_of("dpkg-deb", "--control", deb, control)
    assert sorted(path.name for path in control.iterdir()) == ["control", "postinst", "postrm"]
    script = control / ("postinst" if action == "configure" else "postrm")
    empty = tmp_path / "empty"
    empty.mkdir()
    done = subprocess.run(
        ["/bin/sh", script, action], env={"PATH": str(empty)}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = script.read_text(encoding="utf-8")
    assert "HOME" not in text
    assert "rm " not in text


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A folder with a package database of its own; its maintainer scripts are not run (no system is in it)."""
    root = tmp_path / "system"
    for name in ("info", "updates"):
        (root / "var/lib/dpkg" / name).mkdir(parents=True)
    for name in ("status", "available"):
        (root / "var/lib/dpkg" / name).touch()
    return root


@pytest.mark.skipif(not ON_LINUX or os.geteuid() != 0, reason="dpkg unpacks only for root")
def test_removing_leaves_the_users_data(deb: Path, system: Path) -> None:
    dpkg = ("dpkg", "--root", str(system), "--force-depends", "--force-not-root", "--log=/dev/null")
    memory = system / "home" / "me" / ".local" / "share" / "GrowBox" / "timeline"
    memory.mkdir(parents=True)
    output_of(*dpkg, "--unpack", deb)
    assert (system / "opt" / "growbox" / "GrowBox").is_file()
    for script in ("postinst", "postrm"):
        (system / "var/lib/dpkg/info" / f"growbox.{script}").unlink()
    output_of(*dpkg, "--purge", "growbox")
    assert not (system / "opt" / "growbox").exists()
    assert not (system / "usr" / "share" / "applications" / "growbox.desktop").exists()
    assert memory.is_dir()


# -- what it depends on -------------------------------------------------------------------------


def test_an_elf_file_says_what_it_needs() -> None:
    python = Path(sys.executable).resolve()
    assert "libc.so.6" in module("elf").needed(python)
    assert module("elf").needed(Path(__file__)) == []


def copy_of_python(app: Path, *, instead_of_libc: bytes) -> None:
    """A real ELF file that asks for another library: the name in its string table is as long as the one it replaces."""
    content = Path(sys.executable).resolve().read_bytes()
    assert len(instead_of_libc) == len(b"libc.so.6")
    assert b"\0libc.so.6\0" in content
    changed = content.replace(b"\0libc.so.6\0", b"\0" + instead_of_libc + b"\0")
    (app / "_internal" / "lib" / "program").write_bytes(changed)
    for soname in module("elf").needed(Path(sys.executable).resolve()):
        if soname not in ("libc.so.6", instead_of_libc.decode()):
            (app / "_internal" / "lib" / soname).touch()


def test_a_library_that_nobody_brings_ends_the_build(app: Path) -> None:
    copy_of_python(app, instead_of_libc=b"libq.so.6")
    with pytest.raises(module("console").Trouble, match=r"program needs libq\.so\.6"):
        module("linux_depends").depends(app)
    (app / "_internal" / "lib" / "libq.so.6").write_bytes(b"")
    module("linux_depends").depends(app)


def test_a_library_of_the_system_is_named(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_of_python(app, instead_of_libc=b"libz.so.1")
    assert "zlib1g" in module("linux_depends").depends(app).split(", ")
    (app / "_internal" / "lib" / "libz.so.1").write_bytes(b"")
    assert "zlib1g" not in module("linux_depends").depends(app).split(", ")


@pytest.mark.parametrize(
    ("version", "debian"),
    [("0.1.0", "0.1.0"), ("1.0rc1", "1.0~rc1"), ("1.0.dev3", "1.0~dev3"), ("2.0b1", "2.0~b1")],
)
def test_a_preview_comes_before_its_release(version: str, debian: str) -> None:
    assert module("linux").debian_version(version) == debian


# -- AppImage -----------------------------------------------------------------------------------

FAKE_APPIMAGETOOL = """\
#!/bin/sh
set -e
[ "$1" = --no-appstream ]
[ -x "$2/AppRun" ] && [ -f "$2/growbox.desktop" ] && [ -f "$2/.DirIcon" ]
"$2/AppRun" started > "$3"
"""


def test_appimage_is_made_where_its_tool_is(
    app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    target = tmp_path / "growbox.AppImage"
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    if shutil.which("appimagetool") is None:
        assert not module("linux").make_appimage(app, target, version="0.1.0")
    (tools / "appimagetool").write_text(FAKE_APPIMAGETOOL, encoding="utf-8")
    (tools / "appimagetool").chmod(0o755)
    assert module("linux").make_appimage(app, target, version="0.1.0")
    assert target.read_text(encoding="utf-8") == "GrowBox started\n"


# -- recipes for other systems: read here, run there --------------------------------------------


def version_info() -> ModuleType:
    path = PACKAGING / "windows" / "version_info.py"
    spec = importlib.util.spec_from_file_location("growbox_version_info", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("version", "numbers"), [("0.1.0", "(0, 1, 0, 0)"), ("1.2rc3", "(1, 2, 3, 0)")]
)
def test_windows_resource_is_an_expression_with_the_version(version: str, numbers: str) -> None:
    text = version_info().version_info(version)
    assert isinstance(ast.parse(text, mode="eval").body, ast.Call)
    assert f"filevers={numbers}" in text
    assert f"StringStruct('ProductVersion', '{version}')" in text


def test_windows_installer_speaks_both_languages_and_spares_the_data() -> None:
    script = (PACKAGING / "windows" / "growbox.iss").read_text(encoding="utf-8-sig")
    keys = {
        language: set(re.findall(rf"^{language}\.(\w+)=", script, flags=re.MULTILINE))
        for language in ("english", "chinese")
    }
    assert keys["english"] == keys["chinese"] != set()
    assert "PrivilegesRequired=lowest" in script
    deleted = re.search(r"^\[InstallDelete\]\n(.*?)^\[", script, flags=re.MULTILINE | re.DOTALL)
    assert deleted is not None
    assert set(re.findall(r'Name: "([^"]*)"', deleted[1])) == {r"{app}\_internal"}
    assert "[UninstallDelete]" not in script


def test_windows_texts_have_a_byte_order_mark() -> None:
    for name in ("growbox.iss", "ChineseSimplified.isl"):
        assert (PACKAGING / "windows" / name).read_bytes().startswith(b"\xef\xbb\xbf"), name


def test_macos_property_lists_can_be_read() -> None:
    folder = PACKAGING / "macos"
    facts = plistlib.loads((folder / "Info.plist").read_bytes())
    assert facts["CFBundleLocalizations"] == ["en", "zh-Hans"]
    assert "CFBundleDocumentTypes" not in facts
    allowed = plistlib.loads((folder / "entitlements.plist").read_bytes())
    assert all(allowed.values())
    assert len(allowed) == 3


@pytest.mark.parametrize(
    "script", ["linux/install-menu-entry.sh", "macos/make_dmg.sh", "macos/sign_and_notarise.sh"]
)
def test_shell_scripts_can_be_parsed_and_started(script: str) -> None:
    path = PACKAGING / script
    output_of("/bin/sh", "-n", path)
    assert path.stat().st_mode & 0o111 == 0o111


def test_workflow_pins_its_actions_and_uses_our_own_commands() -> None:
    text = (ROOT / ".github" / "workflows" / "build.yml").read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action)] == []
    for path in set(re.findall(r"packaging/[\w/]+\.\w+", text)):
        assert (ROOT / path).exists(), path
