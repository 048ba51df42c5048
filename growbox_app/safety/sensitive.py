"""Files that no call may touch, whatever was granted: keys, credentials, histories, browser profiles, the system's inside.

Pure, by name and place; names are compared without case, width and composition on every platform. What only *writing* makes
dangerous (`.git`, what an editor or shell runs by itself) is told apart.
"""

from __future__ import annotations

import fnmatch
import re

from growbox_app.safety.paths import comparable, folded, inside

NAMES = (
    ".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".mylogin.cnf", ".npmrc", ".yarnrc.yml",
    ".pypirc", ".git-credentials", ".dockercfg", ".dockerconfigjson", ".htpasswd", ".boto", ".s3cfg", ".vault-token",
    ".terraformrc", "*.tfstate", "*.tfstate.backup", "credentials", "credentials.json", "credentials.toml", "credentials.db",
    "credentials.xml", "credentials.yml", "credentials.yaml", "client_secret*.json", "service-account*.json",
    "service_account*.json", ".secrets", ".secrets.*", "secret.json", "kubeconfig", "*.kubeconfig", "secrets.json", "secrets.yml", "secrets.yaml", "secrets.toml", "application_default_credentials*",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.jks", "*.keystore",
    "*.kdbx", "*.kdb", "*.ppk", "*.keychain", "*.keychain-db", "*.gpg", "authorized_keys", "known_hosts",
    "*_history", ".histfile", ".lesshst", ".viminfo", "consolehost_history.txt", ".xauthority", ".iceauthority",
    "login data", "web data", "cookies", "cookies.sqlite", "key3.db", "key4.db", "logins.json", "signons.sqlite",
    "ntuser.dat*", "*.ovpn", "wallet.dat",
)  # fmt: skip
HARMLESS = (
    ".env.example", ".env.sample", ".env.template", ".env.dist", "example.env", "sample.env", "id_*.pub",
)  # fmt: skip
FOLDERS = frozenset(
    [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store", "keyrings", "kwalletd", "keychains", ".mozilla",
     ".thunderbird", "bravesoftware", ".1password", ".electrum", ".bitcoin", ".pki"]
)  # fmt: skip
NESTED_FOLDERS = (
    ".config/gh", ".config/op", ".config/chromium", ".config/google-chrome", ".config/gcloud", ".config/bitwarden", ".config/keepassxc",
    ".docker/config.json", "appdata/local/google", "appdata/local/chromium", ".config/hub", ".config/rclone", "google/chrome", "microsoft/edge", "mozilla/firefox",
    "application support/firefox", "microsoft/credentials", "microsoft/protect", "microsoft/vault", "microsoft/crypto",
    "appdata/roaming/mozilla", "opera software", "vivaldi/user data",
)  # fmt: skip
SYSTEM = (
    "/proc", "/dev", "/inet", "/inet4", "/inet6", "/sys", "/boot", "/run/user", "/run/secrets", "/run/systemd", "/run/credentials", "/run/docker.sock", "/var/run", "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-",
    "/etc/sudoers", "/etc/sudoers.d", "/etc/security", "/etc/ssl/private", "/etc/ssh", "/etc/krb5.keytab", "/etc/cron.d",
    "/var/spool/cron", "/var/lib/sss", "/private/etc/master.passwd", "/private/var/db/dslocal", "/var/db/dslocal",
    "/library/keychains", "/system/library/keychains",
)  # fmt: skip
WINDOWS_SYSTEM = (
    "windows/system32/config", "windows/repair", "windows/system32/drivers/etc", "windows/ntds", "pagefile.sys", "hiberfil.sys",
    "windows/panther", "system volume information", "$recycle.bin",
)  # fmt: skip
NOTHING = frozenset({"/dev/null"})
RUN_BY_ITSELF = frozenset(
    [".vscode", ".idea", ".husky", ".githooks", ".devcontainer", ".zed", ".cursor", ".fleet", ".venv", "venv", "node_modules",
     "site-packages", ".tox", ".nox", ".direnv", ".claude", ".windsurf", ".cargo", ".yarn"]
)  # fmt: skip
"""Folders whose files an editor runs or a shell finds first (their `bin` is on its path)."""
RUN_BY_ITSELF_NAMES = (
    "*.pth", "sitecustomize.py", "usercustomize.py", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".zprofile",
    ".gitconfig", ".gitmodules", ".gitattributes", ".pre-commit-config.yaml", ".vimrc", ".exrc", ".gdbinit", ".lldbinit",
    ".nvimrc", ".nvim.lua", ".mcp.json", ".yarnrc", ".pnp.cjs", "lefthook.yml", ".lefthook.yml",
    ".inputrc", ".tmux.conf", "autorun.inf", "desktop.ini", "*.desktop", "*.lnk", "*.code-workspace",
)  # fmt: skip


def _matcher(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{fnmatch.translate(pattern)})" for pattern in patterns))


_SECRET, _HARMLESS, _AUTORUN = (
    _matcher(NAMES),
    _matcher(HARMLESS),
    _matcher(RUN_BY_ITSELF_NAMES),
)


def _parts(path: str) -> list[str]:
    """Folded names, without what Windows ignores at their end."""
    return [folded(part).rstrip(". ") for part in re.split(r"[/\\]", path) if part]


def is_secret_name(path: str) -> bool:
    """Whether the last name of a path is that of a secret."""
    name = folded(re.split(r"[/\\]", path.rstrip("/\\"))[-1]).rstrip(". ")
    return bool(_SECRET.match(name)) and not _HARMLESS.match(name)


def hides_secrets(name: str) -> bool:
    """Whether a file or folder of this name is sensitive wherever it lies."""
    return is_secret_name(name) or folded(name).rstrip(". ") in FOLDERS


def _in_system(path: str) -> bool:
    normal = folded(comparable(path, "linux"))
    normal = normal[1:] if normal.startswith("//") else normal
    if normal in NOTHING:
        return False
    return any(normal == place or normal.startswith(f"{place}/") for place in SYSTEM)


def sensitive(path: str, *, platform: str, private: tuple[str, ...] = ()) -> str | None:
    """Why an absolute path must not be read or written: secret, private, system or device; None if it may."""
    if any(inside(path, folder, platform) for folder in private):
        return "private"
    parts = _parts(path)
    if is_secret_name(path) or FOLDERS & set(parts):
        return "secret"
    joined = "/".join(["", *parts, ""])
    if any(f"/{nested}/" in joined for nested in NESTED_FOLDERS):
        return "secret"
    if platform == "win32":
        rest = joined.split(":/", 1)[-1].lstrip("/")
        return "system" if rest.startswith(WINDOWS_SYSTEM) else None
    return "system" if _in_system(path) else None


def is_repository_inside(path: str) -> bool:
    """Whether writing there would write into a repository's own files: hooks and configuration run programs."""
    return any(part in {".git", ".hg", ".svn", "git~1"} for part in _parts(path))


def runs_by_itself(path: str) -> bool:
    """Whether an editor, a shell or an interpreter runs such a file unasked: the project's checkpoint comes too late."""
    parts = _parts(path)
    return bool(parts) and bool(RUN_BY_ITSELF & set(parts) or _AUTORUN.match(parts[-1]))
