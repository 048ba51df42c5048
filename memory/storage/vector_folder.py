r"""Where the vector index lies: the one function that says so, and what must hold there.

Inside the data folder (`vectors`), but on Windows with a data path beyond ASCII: the index library opens files through the narrow API, which
cannot name them. There the folder is `%ProgramData%\GrowBox\<user>\<hash of the data path>\vectors`, readable by this user only. The index is
derived, so a folder that is lost, moved or left behind costs a rebuild and nothing else. Folders whose data folder is gone (it was renamed
or deleted) are removed when any other of the same user is opened.

Everything that touches the index asks the `VectorIndex` for its folder; nothing else builds the path. (The environment is read here, against
the rule of `memory/config.py`, because two hosts of one data folder must agree.)
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

NAME = "vectors"
_OWNER_FILE = "data-folder.txt"
_ICACLS_S = 10.0


def vector_folder(
    data_path: Path, *, platform: str = sys.platform, environment: Mapping[str, str] = os.environ
) -> Path:
    """The folder of the vector index. Pure.

    Args:
        data_path: the data folder, absolute.
        platform: as `sys.platform`.
        environment: `ProgramData`, `USERDOMAIN` and `USERNAME` are looked at, on Windows only.
    """
    inside = data_path / NAME
    if platform != "win32" or str(data_path).isascii():
        return inside
    common = environment.get("ProgramData", r"C:\ProgramData")
    if not common.isascii():
        return inside  # no place has a narrow name; the exact scan answers if the index cannot open
    # Windows takes paths that differ in case as the same.
    digest = hashlib.sha256(str(data_path).casefold().encode("utf-8", "surrogatepass")).hexdigest()
    return Path(common) / "GrowBox" / _user(environment) / digest[:16] / NAME


def _user(environment: Mapping[str, str]) -> str:
    """An ASCII folder name of the account: readable where it can be, unique in any case."""
    account = f"{environment.get('USERDOMAIN', '')}\\{environment.get('USERNAME', '')}"
    readable = re.sub(r"[^A-Za-z0-9]+", "-", environment.get("USERNAME", "")).strip("-")[:32]
    digest = hashlib.sha256(account.casefold().encode("utf-8", "surrogatepass")).hexdigest()
    return f"{readable}-{digest[:8]}".lstrip("-")


def prepare(folder: Path, data_path: Path) -> bool:
    """Makes a folder outside the data folder ready, and removes what an older place still holds.

    Returns:
        Whether the index may be kept there: True for the usual place; False when a foreign place cannot be made private.
    """
    if folder.parent == data_path:
        return True
    home = folder.parent
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        private = make_private(home.parent)
        (home / _OWNER_FILE).write_text(str(data_path), encoding="utf-8")
    except OSError:
        return False
    _remove_leftovers(home, data_path)
    return private


def _remove_leftovers(home: Path, data_path: Path) -> None:
    """The index in the old place, and those of data folders that are gone."""
    for old in data_path.glob(f"{NAME}*"):
        if old.name == NAME or old.name.startswith(f"{NAME}.broken-"):
            shutil.rmtree(old, ignore_errors=True)
    for other in home.parent.iterdir():
        try:
            owner = Path((other / _OWNER_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if not owner.is_dir():
            shutil.rmtree(other, ignore_errors=True)


def icacls_command(folder: Path, environment: Mapping[str, str]) -> list[str]:
    """The command that leaves a folder to its user: nothing inherited, full control for the account, files and folders in it too."""
    account = environment.get("USERNAME", "")
    if environment.get("USERDOMAIN"):
        account = f"{environment['USERDOMAIN']}\\{account}"
    return ["icacls", str(folder), "/inheritance:r", "/grant:r", f"{account}:(OI)(CI)F", "/q"]


if sys.platform == "win32":

    def make_private(folder: Path) -> bool:
        """Leaves a folder to this user only; False when the system refuses."""
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program with our own arguments
                icacls_command(folder, os.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_ICACLS_S,
                creationflags=subprocess.CREATE_NO_WINDOW,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

else:

    def make_private(folder: Path) -> bool:
        """Leaves a folder to this user only; False when the system refuses."""
        folder.chmod(0o700)
        return True
