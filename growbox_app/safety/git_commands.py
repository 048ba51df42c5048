"""Judges a `git` command: a few reading subcommands with listed options are safe, local changes ask, the network asks or is denied.

git runs programs that a repository's configuration names (`core.fsmonitor`, hooks, filters). Safe is therefore only the repository
whose `.git` lies in the project's folder – which no call may write into – asked from that folder: a folder below may hold a planted
bare repository with a configuration of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from growbox_app.executors.base import Risk
from growbox_app.safety.places import Places
from growbox_app.safety.programs import (
    GIT_LOCAL,
    GIT_READS,
    GIT_SPEAKS,
    GitRead,
    Program,
    Use,
    parse_arguments,
)
from growbox_app.safety.sensitive import is_secret_name
from growbox_app.safety.values import Finding, Grant, GrantKind, Rules


def judge_git(
    words: list[str], folders: Sequence[str], places: Places, rules: Rules
) -> Iterator[Finding]:
    """What speaks against `git` with these words, run in one of these folders."""
    if list(words) == ["--version"]:
        return
    words = words[1:] if words[:1] == ["--no-pager"] else words
    count = 2 if " ".join(words[:2]) in GIT_READS else 1
    name, rest = " ".join(words[:count]), words[count:]
    reads = name in GIT_READS and _plainly_reads(GIT_READS[name], rest)
    if name in GIT_SPEAKS and not reads:
        yield Finding(
            reason="command_offline" if rules.offline else "command_network",
            risk=Risk.IRREVERSIBLE,
            denied=rules.offline,
            details={"program": f"git {name}"},
        )
        return
    if not _in_own_repository(folders, places, rules):
        yield _unknown(name)
    elif reads:
        yield from _secrets_named(rest)
        if GIT_READS[name].recurses and places.root is not None:
            yield from places.reads_below(places.root)
    elif name in GIT_LOCAL:
        yield Finding(
            reason="git_changes",
            risk=Risk.IRREVERSIBLE,
            covers=(Grant(kind=GrantKind.COMMAND, value=f"git {name}"),),
            details={"command": f"git {name}"},
        )
    else:
        yield _unknown(name)


def _in_own_repository(folders: Sequence[str], places: Places, rules: Rules) -> bool:
    if places.root is None or {places.resolved(folder) for folder in folders} != {places.root}:
        return False
    repository = places.absolute(".git", places.root)
    return rules.disk.is_folder(repository) and not places.swapped(repository)


def _plainly_reads(read: GitRead, words: Sequence[str]) -> bool:
    """Long options take their value only after `=` here: some have one only sometimes."""
    program = Program(
        use=Use.TEXT,
        short=read.short,
        short_values=read.short_values,
        long=read.long | read.long_values,
        long_values=read.long_values,
        counts=read.counts,
        most=1_000 if read.operands else 0,
    )
    return parse_arguments(program, words) is not None


def _secrets_named(words: Sequence[str]) -> Iterator[Finding]:
    """A secret may also be read out of history: `git show HEAD:.env`."""
    for word in words:
        if is_secret_name(word.rpartition(":")[2]):
            yield Finding(
                reason="sensitive", risk=Risk.IRREVERSIBLE, denied=True, details={"path": word}
            )


def _unknown(name: str) -> Finding:
    return Finding(
        reason="unlisted_option", risk=Risk.UNKNOWN, details={"program": f"git {name}".strip()}
    )
