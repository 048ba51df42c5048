"""What a strace log says about the network: sockets by family, name look-ups, programs that were started. Pure.

The log is strace's own (`-f -o FILE`): one call per line, its process first. A call that was interrupted stands in two lines;
its arguments are in the first, which is the one that is read. Strings inside a call are not looked into.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

STRACE = ("strace", "-f", "-qq", "--seccomp-bpf", "-e", "trace=%network,execve,openat,open")
"""Network calls, programs and opened files; seccomp-bpf leaves every other call at full speed."""

_CALL = re.compile(r"^(?:\d+ +)?(?P<name>\w+)\((?P<arguments>.*)$")
_FAMILY = re.compile(r"^(?:AF_|PF_)(?P<family>\w+)")
_ADDRESS_FAMILY = re.compile(r"\{sa_family=AF_(?P<family>\w+)")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_FIRST_STRING = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"')
_RESOLVER_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf")
"""What the C library opens to look a host name up, and for nothing else."""
_TOOLS = re.compile(
    r"^(python[\d.]*|pip[\d.]*|gcc|g\+\+|cc|c\+\+|clang|ld|ldconfig|objdump|curl|wget)$"
)
"""Programs that must not be needed: another Python, and what `ctypes.util.find_library` starts."""


@dataclass(kw_only=True)
class Traffic:
    """What all processes of the traced runs did."""

    sockets: Counter[str] = field(default_factory=Counter)
    lookups: Counter[str] = field(default_factory=Counter)
    programs: Counter[str] = field(default_factory=Counter)
    calls: int = 0

    def faults(self) -> list[str]:
        """What must not be, in words; empty when all is well."""
        found = []
        internet = self.sockets["inet"] + self.sockets["inet6"]
        if internet:
            found.append(f"{internet} uses of the internet's address families")
        if self.lookups:
            found.append(f"a name look-up: {', '.join(sorted(self.lookups))}")
        tools = sorted(name for name in self.programs if _TOOLS.match(PurePosixPath(name).name))
        if tools:
            found.append(f"foreign programs were started: {', '.join(tools)}")
        return found

    def socket_counts(self) -> dict[str, int]:
        """Sockets by family; the three that matter are always named."""
        return {"inet": 0, "inet6": 0, "unix": 0} | dict(self.sockets)

    def program_counts(self) -> dict[str, int]:
        """Started programs, and attempts to start one, by file name."""
        found: Counter[str] = Counter()
        for path, count in self.programs.items():
            found[PurePosixPath(path).name] += count
        return dict(found)


def read(lines: Iterable[str], traffic: Traffic) -> Traffic:
    """Adds a log to what is known."""
    for line in lines:
        call = _CALL.match(line)
        if call is None:
            continue
        traffic.calls += 1
        _note(traffic, call["name"], call["arguments"])
    return traffic


def _note(traffic: Traffic, name: str, arguments: str) -> None:
    if name in ("socket", "socketpair"):
        family = _FAMILY.match(arguments)
        if family is not None:
            traffic.sockets[_short(family["family"])] += 1
    elif name in ("open", "openat"):
        path = _first_string(arguments)
        if path in _RESOLVER_FILES:
            traffic.lookups[path] += 1
    elif name == "execve":
        traffic.programs[_first_string(arguments)] += 1
    else:
        # A socket that was inherited or received is seen by the addresses it is used with.
        for family in _ADDRESS_FAMILY.finditer(_STRING.sub('""', arguments)):
            if family["family"] in ("INET", "INET6"):
                traffic.sockets[_short(family["family"])] += 1


def _first_string(arguments: str) -> str:
    found = _FIRST_STRING.search(arguments)
    return found["text"] if found else ""


def _short(family: str) -> str:
    """`UNIX` or `LOCAL` is unix, `INET` inet, and so on."""
    return "unix" if family == "LOCAL" else family.lower()
