"""What each known program does with its arguments: the table that makes a command safe or reversible.

An allow-list to the last letter: a program, an option or a form that is not here is not understood. Options that write, run or load
something (`sort -o`, `find -exec`, `rg --pre`, `git -c`) are left out on purpose. The long table of risks:

=====================  ==========================================================  ============
what a command does    examples                                                    risk
=====================  ==========================================================  ============
reads in the project   ls, cat, grep, find without actions, git status/log/diff    safe
changes named files    mkdir, touch, cp, mv, rm FILE, sed -i, tee, `>`             reversible
runs project code      pytest, make, python FILE, npm test                         reversible in a sandbox, else irreversible
removes folders        rm -r                                                       irreversible
speaks to a host       curl, pip install, git push                                 irreversible; denied offline
runs text as code      sh -c, eval, xargs, python -c, find -exec, awk              unknown
anything else                                                                      unknown
=====================  ==========================================================  ============

Running code is never safe: a checkpoint restores the project and nothing else, and code can do all the user can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto


class Use(Enum):
    """What a program does with its operands."""

    TEXT = auto()
    NAMES = auto()
    """Looks at names and sizes, not into files; none named means the current folder."""
    READ = auto()
    PATTERN = auto()
    """The first operand is an expression, the others are read."""
    SCRIPT = auto()
    """Like PATTERN, but the expression is a small program (sed)."""
    WRITE = auto()
    REMOVE = auto()
    COPY = auto()
    MOVE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program. `recurses`: options with which it reads whole folders. `most`: operands it may have."""

    use: Use
    short: str = ""
    short_values: str = ""
    long: frozenset[str] = frozenset()
    long_values: frozenset[str] = frozenset()
    """A name that is in `long` too takes a value only after `=`."""
    file_options: frozenset[str] = frozenset()
    expressions: frozenset[str] = frozenset()
    recurses: frozenset[str] = frozenset()
    always_recurses: bool = False
    counts: bool = False
    attached: str = ""
    """Letters that take what stands behind them in the same word, and may have nothing there."""
    most: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """Parsed arguments of a known program."""

    flags: frozenset[str]
    values: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]


def parse_arguments(program: Program, words: Sequence[str]) -> Arguments | None:
    """Sorts arguments as GNU programs do; None when one of them is not in the table."""
    flags: set[str] = set()
    values: list[tuple[str, str]] = []
    operands: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            operands += rest
            break
        if word.startswith("--"):
            known = _long_option(program, word, rest, flags, values)
        elif word.startswith("-") and len(word) > 1:
            known = _short_options(program, word[1:], rest, flags, values)
        else:
            known = True
            operands.append(word)
        if not known:
            return None
    if len(operands) > program.most:
        return None
    return Arguments(flags=frozenset(flags), values=tuple(values), operands=tuple(operands))


def _long_option(
    program: Program, word: str, rest: list[str], flags: set[str], values: list[tuple[str, str]]
) -> bool:
    name, equals, value = word[2:].partition("=")
    if equals:
        values.append((name, value))
        return name in program.long_values
    flags.add(name)
    if name in program.long:
        return True
    if name not in program.long_values or not rest:
        return False
    values.append((name, rest.pop(0)))
    return True


def _short_options(
    program: Program, letters: str, rest: list[str], flags: set[str], values: list[tuple[str, str]]
) -> bool:
    if program.counts and letters.isdecimal():
        return True
    for index, letter in enumerate(letters):
        if letter in program.short_values:
            value = letters[index + 1 :] or (rest.pop(0) if rest else "")
            values.append((letter, value))
            return value != ""
        if letter in program.attached:
            flags.add(letter)
            values += [(letter, letters[index + 1 :])] if letters[index + 1 :] else []
            return True
        if letter not in program.short:
            return False
        flags.add(letter)
    return True


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


GREP = Program(
    use=Use.PATTERN, short="EFGIPivwxcLlnHhoqsrzabTU", short_values="eABCmf", counts=True,
    long=_words(
        "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case invert-match word-regexp line-regexp count"
        " files-without-match files-with-matches line-number with-filename no-filename only-matching quiet silent no-messages"
        " recursive text color"
    ),
    long_values=_words(
        "regexp after-context before-context context max-count include exclude exclude-dir color file"
    ),
    file_options=_words("f file"), expressions=_words("e f regexp file"), recurses=_words("r recursive"),
)  # fmt: skip
RIPGREP = Program(
    use=Use.PATTERN, short="iFvwxclnNHhoqsSUauP0p", short_values="eABCmgtTfM",
    long=_words(
        "ignore-case fixed-strings invert-match word-regexp line-regexp count files-with-matches files-without-match line-number"
        " no-line-number with-filename no-filename only-matching quiet no-messages smart-case multiline text hidden no-ignore"
        " no-heading heading json stats trim files column vimgrep pcre2 no-config null"
    ),
    long_values=_words(
        "regexp after-context before-context context max-count glob iglob type type-not max-columns sort max-depth color file"
    ),
    file_options=_words("f file"), expressions=_words("e f regexp file files"), always_recurses=True,
)  # fmt: skip
SED = Program(
    use=Use.SCRIPT, short="nErs", short_values="e", attached="i", long=_words("quiet silent regexp-extended in-place"),
    long_values=_words("expression"), expressions=_words("e expression"),
)  # fmt: skip

PROGRAMS: Mapping[str, Program] = {
    "echo": Program(use=Use.TEXT, short="neE"),
    "printf": Program(use=Use.TEXT),
    "true": Program(use=Use.TEXT),
    "false": Program(use=Use.TEXT),
    ":": Program(use=Use.TEXT),
    "pwd": Program(use=Use.TEXT, short="LP", most=0),
    "date": Program(use=Use.TEXT, short="uR", attached="I", most=1),
    "seq": Program(use=Use.TEXT, short="w", most=3),
    "sleep": Program(use=Use.TEXT, most=1),
    "uname": Program(use=Use.TEXT, short="asrmnpio", most=0),
    "whoami": Program(use=Use.TEXT, most=0),
    "nproc": Program(use=Use.TEXT, long=_words("all"), most=0),
    "which": Program(use=Use.TEXT, short="a"),
    "type": Program(use=Use.TEXT, short="at"),
    "id": Program(use=Use.TEXT, short="ugnGr", most=1),
    "hostname": Program(use=Use.TEXT, most=0),
    "uptime": Program(use=Use.TEXT, short="p", most=0),
    "free": Program(use=Use.TEXT, short="bkmght", most=0),
    "basename": Program(use=Use.TEXT, short="a", short_values="s"),
    "dirname": Program(use=Use.TEXT),
    "tr": Program(use=Use.TEXT, short="cCdst", most=2),
    "ls": Program(
        use=Use.NAMES, short="aAbBcCdfFgGhiIklmnNopqQrRsStuUvxXZ1",
        long=_words("all almost-all human-readable recursive reverse directory size full-time group-directories-first inode color"),
        long_values=_words("color sort time time-style ignore format"),
    ),
    "stat": Program(use=Use.NAMES, short="Lt", short_values="c", long_values=_words("format printf")),
    "du": Program(use=Use.NAMES, short="abchkmsx", short_values="d", long=_words("all bytes total human-readable summarize apparent-size"),
                  long_values=_words("max-depth exclude")),
    "df": Program(use=Use.NAMES, short="hkTi"),
    "tree": Program(use=Use.NAMES, short="adfhpsDFirt", short_values="LIP", long=_words("dirsfirst noreport prune gitignore du")),
    "realpath": Program(use=Use.NAMES, short="emsqz"),
    "readlink": Program(use=Use.NAMES, short="fenmqsvz"),
    "test": Program(use=Use.NAMES, short="fdesrwxLhzn"),
    "file": Program(use=Use.READ, short="bikhL", long=_words("brief mime mime-type")),
    "cat": Program(use=Use.READ, short="AbeEnstTuv", long=_words("number number-nonblank show-all show-ends show-tabs squeeze-blank")),
    "head": Program(use=Use.READ, short="qv", short_values="nc", counts=True, long_values=_words("lines bytes")),
    "tail": Program(use=Use.READ, short="qv", short_values="nc", counts=True, long_values=_words("lines bytes")),
    "wc": Program(use=Use.READ, short="clmwL", long=_words("lines words bytes chars max-line-length")),
    "nl": Program(use=Use.READ, short="p", short_values="bsw"),
    "tac": Program(use=Use.READ),
    "rev": Program(use=Use.READ),
    "sort": Program(use=Use.READ, short="bdfghiMnRrVsucz", short_values="kt",
                    long=_words("numeric-sort reverse unique ignore-case human-numeric-sort version-sort stable"),
                    long_values=_words("key field-separator")),
    "uniq": Program(use=Use.READ, short="cdiuD", short_values="fsw", long=_words("count repeated unique ignore-case"), most=1),
    "cut": Program(use=Use.READ, short="sz", short_values="dfbc", long=_words("complement"),
                   long_values=_words("delimiter fields characters bytes output-delimiter")),
    "paste": Program(use=Use.READ, short="s", short_values="d"),
    "join": Program(use=Use.READ, short="i", short_values="t12ao", most=2),
    "comm": Program(use=Use.READ, short="123", most=2),
    "fold": Program(use=Use.READ, short="bs", short_values="w"),
    "fmt": Program(use=Use.READ, short="su", short_values="w"),
    "expand": Program(use=Use.READ, short="i", short_values="t"),
    "column": Program(use=Use.READ, short="tx", short_values="scN"),
    "diff": Program(use=Use.READ, short="abBcdeiNpqsuwy", short_values="UCxW",
                    long=_words("brief unified ignore-all-space ignore-case side-by-side color"),
                    long_values=_words("unified exclude color"), most=2),
    "cmp": Program(use=Use.READ, short="bls", most=2),
    "md5sum": Program(use=Use.READ, short="b"),
    "sha1sum": Program(use=Use.READ, short="b"),
    "sha256sum": Program(use=Use.READ, short="b"),
    "cksum": Program(use=Use.READ),
    "od": Program(use=Use.READ, short="bcdox", short_values="AtNj"),
    "hexdump": Program(use=Use.READ, short="Cbcdx", short_values="ns"),
    "xxd": Program(use=Use.READ, short="bip", short_values="cgls", most=1),
    "strings": Program(use=Use.READ, short="a", short_values="n"),
    "base64": Program(use=Use.READ, short="di", short_values="w", most=1),
    "grep": GREP,
    "egrep": GREP,
    "fgrep": GREP,
    "rg": RIPGREP,
    "sed": SED,
    "mkdir": Program(use=Use.WRITE, short="pv", long=_words("parents verbose")),
    "touch": Program(use=Use.WRITE, short="acm", long=_words("no-create")),
    "tee": Program(use=Use.WRITE, short="a", long=_words("append")),
    "rmdir": Program(use=Use.WRITE, short="v"),
    "rm": Program(use=Use.REMOVE, short="frRvid", long=_words("force recursive verbose dir")),
    "cp": Program(use=Use.COPY, short="fnpvruaRT", long=_words("recursive verbose force no-clobber archive")),
    "mv": Program(use=Use.MOVE, short="fnvuT", long=_words("verbose force no-clobber")),
}  # fmt: skip

RUNS_CODE = frozenset(
    [
        "pytest", "python", "python3", "make", "npm", "yarn", "pnpm", "node", "ruby", "cargo", "go", "ruff", "mypy", "black",
        "isort", "flake8", "pylint", "eslint", "prettier", "tsc", "jest", "vitest", "mocha", "gradle", "mvn", "dotnet", "cmake",
        "ctest", "ninja", "gcc", "g++", "cc", "c++", "clang", "clang++", "rustc", "javac", "java", "tox", "nox", "gofmt", "rustfmt",
        "bundle", "rake", "rspec", "phpunit", "composer", "swift", "zig", "deno", "bun", "pyright", "coverage",
    ]
)  # fmt: skip
SAYS_VERSION = frozenset(["python", "python3", "node", "gcc", "g++", "clang", "javac", "rustc"])
"""Of these, the ones that read nothing of the project before they say their version."""
TASK_FIRST = frozenset(
    ["make", "cargo", "go", "gradle", "mvn", "dotnet", "bundle", "rake", "swift", "zig"]
)
PACKAGE_RUNNERS = frozenset(["npm", "yarn", "pnpm", "bun", "deno", "composer"])
SPEAKS = frozenset(
    [
        "curl", "wget", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "sftp", "ssh", "scp", "rsync", "dig", "nslookup", "host",
        "ping", "traceroute", "whois", "pip", "pip3", "pipx", "uv", "uvx", "npx", "conda", "mamba", "gem", "brew", "apt", "apt-get",
        "dnf", "yum", "pacman", "zypper", "snap", "flatpak", "docker", "podman", "kubectl", "helm", "aws", "gcloud", "az", "gh",
        "glab", "http", "https", "aria2c", "axel", "lftp", "openssl", "mail", "sendmail", "mutt", "xdg-open", "open", "start",
        "terraform", "ansible", "ansible-playbook", "vercel", "heroku", "twine", "lynx", "w3m", "links", "tftp", "smbclient",
    ]
)  # fmt: skip
SPEAKING_TASKS = frozenset(
    [
        "install", "i", "ci", "add", "update", "upgrade", "publish", "login", "get", "fetch", "download", "require", "create", "dlx",
        "exec", "x", "restore", "push", "deploy", "release", "search", "audit", "outdated", "http.server", "pip", "ensurepip",
        "venv", "smtpd", "webbrowser", "mod", "owner", "adduser", "yank",
    ]
)  # fmt: skip
"""Of the programs that run code, for these a task says that they speak to a host."""
TASK_GROUPS = frozenset(
    [
        "package",
        "tool",
        "workload",
        "nuget",
        "plugin",
        "toolchain",
        "global",
        "workspaces",
        "self",
        "cache",
    ]
)
"""Words before the task itself: `dotnet tool install`."""
LOCAL_PIP = frozenset(["list", "show", "freeze", "check", "inspect"])


def speaking_task(name: str, words: Sequence[str]) -> bool:
    """Whether a program that runs code is told to fetch or send something; what a script of the project is told does not count."""
    plain = [word for word in words if not word.startswith("-")]
    if name in {"python", "python3"}:
        return bool(words) and words[0] == "-m" and bool(SPEAKING_TASKS & set(words[1:2]))
    if name not in TASK_FIRST | PACKAGE_RUNNERS or name == "make":
        return False
    while plain and plain[0] in TASK_GROUPS:
        plain.pop(0)
    task, code = plain[0] if plain else "", plain[1] if len(plain) > 1 else ""
    if task in {"run", "test"}:
        return "://" in code or code.startswith(("npm:", "jsr:")) or (name == "go" and "@" in code)
    if (name, task) in {("bundle", "exec"), ("yarn", "exec"), ("pnpm", "exec")}:
        return False
    return task in SPEAKING_TASKS or task.startswith("dependency:")


PRIVILEGE = frozenset(["sudo", "su", "doas", "pkexec", "runas", "chroot", "unshare", "nsenter", "setcap", "newgrp", "sg", "gosu"])  # fmt: skip
SYSTEM = frozenset(
    [
        "shutdown", "reboot", "halt", "poweroff", "init", "telinit", "systemctl", "service", "launchctl", "mount", "umount", "fdisk",
        "parted", "gparted", "sfdisk", "wipefs", "mkswap", "swapoff", "losetup", "cryptsetup", "iptables", "nft", "ufw", "useradd",
        "userdel", "usermod", "groupadd", "passwd", "chpasswd", "visudo", "crontab", "at", "batch", "insmod", "rmmod", "modprobe",
        "sysctl", "grub-install", "update-grub", "efibootmgr", "diskutil", "csrutil", "spctl", "security", "kextload", "hdiutil",
        "loginctl", "hostnamectl", "chattr", "mknod", "insserv", "update-rc.d", "kexec", "dmesg", "badblocks", "mkfs", "format",
    ]
)  # fmt: skip
SHELLS = frozenset(["sh", "bash", "zsh", "dash", "ksh", "fish", "csh", "tcsh", "ash", "rbash"])
WRAPPERS: Mapping[str, Callable[[str], bool]] = {
    "timeout": lambda word: bool(re.fullmatch(r"\d{1,6}(\.\d+)?[smh]?", word)),
    "time": lambda _: False,
    "nice": lambda _: False,
    "nohup": lambda _: False,
    "command": lambda _: False,
}
"""Programs that run the rest of their words; the function says which first word is their own."""

RUNNERS = frozenset(
    [
        "env", "xargs", "exec", "builtin", "setsid", "stdbuf", "ionice", "chrt", "taskset", "flock", "strace", "ltrace", "watch",
        "busybox", "toybox", "parallel", "unbuffer", "entr", "script", "caffeinate", "coproc", "trap", "alias", "!", "setarch", "linux64",
        "prlimit", "choom", "cgexec", "dbus-run-session", "xvfb-run", "perf", "valgrind", "gtimeout",
        "if", "then", "elif", "else", "while", "until", "do",
    ]
)  # fmt: skip
"""Programs and words of the shell that run words of theirs, behind options that are not understood here."""

FIND_TESTS = _words(
    "-name -iname -path -ipath -wholename -type -size -mtime -mmin -ctime -cmin -atime -amin -maxdepth -mindepth -perm -regex"
    " -iregex -regextype"
)
FIND_WORDS = _words("-empty -print -print0 -not ! -a -o -and -or ( ) -prune -true -false -mount -xdev -depth -readable -writable -executable")  # fmt: skip


def find_places(words: Sequence[str]) -> tuple[str, ...] | None:
    """The folders that a `find` looks into; None when it does more than look."""
    rest = list(words)
    places: list[str] = []
    while rest and not rest[0].startswith(("-", "!", "(", ")")):
        places.append(rest.pop(0))
    while rest:
        word = rest.pop(0)
        if word in FIND_TESTS and rest:
            rest.pop(0)
        elif word not in FIND_WORDS:
            return None
    return tuple(places) or (".",)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindActions:
    """What a `find` does beside looking: where it looks, whether it deletes there, files it writes, commands it runs."""

    places: tuple[str, ...]
    deletes: bool
    files: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]


def find_actions(words: Sequence[str]) -> FindActions:
    """Read loosely: enough to say what it must not do."""
    first = next(
        (i for i, word in enumerate(words) if word.startswith(("-", "!", "("))), len(words)
    )
    files: list[str] = []
    commands: list[tuple[str, ...]] = []
    for index, word in enumerate(words):
        if word in {"-fprint", "-fprint0", "-fprintf", "-fls"}:
            files += words[index + 1 : index + 2]
        elif word in {"-exec", "-execdir", "-ok", "-okdir"}:
            rest = words[index + 1 :]
            end = next((i for i, other in enumerate(rest) if other in {";", "+"}), len(rest))
            commands.append(tuple(rest[:end]))
    return FindActions(
        places=tuple(words[:first]) or (".",),
        deletes="-delete" in words,
        files=tuple(files),
        commands=tuple(commands),
    )


SED_PRINT = re.compile(r"(\d+|\$)?(,(\d+|\$))?[pd]")
SED_FIND = re.compile(r"/[^/\\\[\n]+/[pd]")


def plain_sed(script: str) -> bool:
    """Whether a sed script only prints, deletes or substitutes: `w`, `r` and `e` reach files and programs.

    A part that is a whole command by itself ends where sed ends it, so the parts may be looked at one by one.
    """
    parts = [part.strip(" ") for part in script.split(";")]
    return any(parts) and all(_plain_sed_command(part) for part in parts if part)


def _plain_sed_command(script: str) -> bool:
    if SED_PRINT.fullmatch(script) or SED_FIND.fullmatch(script):
        return True
    body = re.sub(r"^\d+(,(\d+|\$))?(?=s)", "", script)
    if len(body) < 4 or not body.startswith("s") or "\n" in body or body[1] not in "/|#,:@!%":
        return False
    mark = body[1]
    parts = body.split(mark)
    return (
        len(parts) == 4
        and f"\\{mark}" not in body
        and re.fullmatch(r"[gpI0-9]*", parts[3]) is not None
    )


_FIELD = r"(?:\$(?:\d+|NF)|NR|NF|\"[\w .,:=/|-]*\")"
_CHOICE = r"(?:NR *[=<>]=? *\d+|/[\w .:=-]+/)"
_PRINT = rf"\{{ *print(?: +{_FIELD}(?: *, *{_FIELD})*)? *;? *\}}"
_SUM = r"\{ *(\w+) *\+= *\$\d+ *;? *\} *END *\{ *print +\w+ *;? *\}"
AWK_PRINT = re.compile(rf"(?:{_CHOICE} *)?{_PRINT}|{_CHOICE}|{_SUM}")
AWK_LENGTH_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class GitRead:
    """A git command that only reads, and the options it may have."""

    short: str = ""
    short_values: str = ""
    long: frozenset[str] = frozenset()
    long_values: frozenset[str] = frozenset()
    operands: bool = True
    counts: bool = False
    recurses: bool = False


_LOG = _words(
    "oneline stat shortstat numstat name-only name-status graph all decorate no-decorate patch no-patch follow merges no-merges"
    " reverse cached staged no-color word-diff abbrev-commit date-order topo-order first-parent summary raw full-index"
    " ignore-all-space ignore-space-change check no-ext-diff no-textconv quiet exit-code no-renames function-context"
)
_LOG_VALUES = _words(
    "max-count since until after before author grep format pretty date unified diff-filter skip decorate color stat"
)

GIT_READS: Mapping[str, GitRead] = {
    "status": GitRead(short="sbuv", long=_words("short branch porcelain long untracked-files"), long_values=_words("porcelain untracked-files")),
    "log": GitRead(short="pisz", short_values="nSGLU", counts=True, long=_LOG, long_values=_LOG_VALUES),
    "diff": GitRead(short="pwbRsz", short_values="USG", long=_LOG, long_values=_LOG_VALUES),
    "show": GitRead(short="psz", short_values="U", long=_LOG, long_values=_LOG_VALUES),
    "shortlog": GitRead(short="sne", long=_words("summary numbered email all")),
    "blame": GitRead(short="wsel", short_values="L"),
    "ls-files": GitRead(short="cdmostz", long=_words("cached deleted modified others exclude-standard stage")),
    "ls-tree": GitRead(short="rtdlz", long=_words("name-only full-tree")),
    "rev-parse": GitRead(short="q", long=_words("abbrev-ref short show-toplevel verify is-inside-work-tree show-prefix git-dir")),
    "describe": GitRead(long=_words("tags always dirty all long")),
    "branch": GitRead(short="avr", long=_words("all list show-current remotes verbose"), operands=False),
    "tag": GitRead(short="ln", long=_words("list"), operands=False),
    "grep": GitRead(short="niwlcEFPIh", short_values="eABC", long=_words("line-number ignore-case name-only count cached"), recurses=True),
    "merge-base": GitRead(long=_words("all is-ancestor")),
    "rev-list": GitRead(short_values="n", counts=True, long=_words("count all"), long_values=_words("max-count since until")),
    "version": GitRead(operands=False),
    "remote": GitRead(short="v", long=_words("verbose"), operands=False),
    "stash list": GitRead(operands=False),
    "reflog": GitRead(short_values="n", counts=True, operands=False),
}  # fmt: skip
GIT_LOCAL = frozenset(
    ["add", "commit", "checkout", "switch", "restore", "stash", "branch", "tag", "mv", "rm", "merge", "reset", "revert", "cherry-pick"]
)  # fmt: skip
GIT_SPEAKS = frozenset(["push", "pull", "fetch", "clone", "remote", "ls-remote", "submodule", "archive", "send-email", "request-pull", "lfs"])  # fmt: skip
