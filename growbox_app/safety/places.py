"""Judges single paths: what may be read or changed where.

Every path is looked at as it is written and as it resolves, because a link may lead elsewhere. Reading outside the project can be
allowed for that path; writing outside, and touching a sensitive file, cannot be allowed at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from growbox_app.executors.base import Risk
from growbox_app.safety.paths import flavour, hazard, inside, joined
from growbox_app.safety.sensitive import (
    hides_secrets,
    is_repository_inside,
    runs_by_itself,
    sensitive,
)
from growbox_app.safety.values import Finding, Grant, GrantKind, Rules


class Places:
    """The places of one set of rules."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._disk = rules.disk
        self._platform = rules.platform
        self.home = str(rules.home)
        self._private = tuple(
            form for path in rules.private for form in {str(path), self._disk.resolved(str(path))}
        )
        root = rules.workspace.root
        self.root = self._disk.resolved(str(root)) if root is not None else None
        self._readable = tuple(self._disk.resolved(str(path)) for path in rules.workspace.readable)

    def absolute(self, path: str, cwd: str) -> str:
        """A path as written, from the folder it is written in."""
        return joined(cwd, path, self._platform)

    def resolved(self, path: str) -> str:
        """Where a path leads."""
        return self._disk.resolved(path)

    def swapped(self, path: str) -> bool:
        """Whether a path that was resolved when it was planned leads elsewhere now: a link took its place."""
        return not self._same(path, self._disk.resolved(path))

    def _same(self, left: str, right: str) -> bool:
        return inside(left, right, self._platform) and inside(right, left, self._platform)

    def looks(self, path: str) -> Iterator[Finding]:
        """Names and sizes are asked, contents are not."""
        yield from self._untrusted(path)
        resolved = self._disk.resolved(path)
        if sensitive(resolved, platform=self._platform, private=self._private) in (
            "private",
            "system",
        ):
            yield denied("sensitive", path)
        if not self._may_read(resolved):
            yield self._outside_read(path, resolved)

    def reads(self, path: str) -> Iterator[Finding]:
        """The content of a file, or of one folder's files."""
        yield from self._untrusted(path)
        resolved = self._disk.resolved(path)
        if self._sensitive(path, resolved):
            yield denied("sensitive", path)
        if not self._may_read(resolved):
            yield self._outside_read(path, resolved)

    def reaches(self, granted: str, path: str) -> bool:
        """Whether a grant for a path reaches another one: outside of the project grants are for reading, so none reaches into it."""
        return inside(path, granted, self._platform) and (
            self.root is None
            or not inside(path, self.root, self._platform)
            or inside(granted, self.root, self._platform)
        )

    def reads_below(self, path: str) -> Iterator[Finding]:
        """The content of everything in a folder."""
        yield from self.reads(path)
        resolved = self._disk.resolved(path)
        if not self._may_read(resolved):
            return
        hidden = any(inside(private, resolved, self._platform) for private in self._private)
        found = hidden or self._disk.any_below(resolved, hides_secrets)
        if found is not False:
            reason = "secret_below" if found else "too_many_files"
            yield Finding(reason=reason, risk=Risk.IRREVERSIBLE, details={"path": path})

    def writes(self, path: str, grant: Grant | None) -> Iterator[Finding]:
        """A file that would come, change or go; `grant` would cover it beside its path."""
        yield from self._untrusted(path)
        resolved = self._disk.resolved(path)
        if is_plain_sink(resolved, self._platform):
            return
        if self._sensitive(path, resolved):
            yield denied("sensitive", path)
        if is_repository_inside(path) or is_repository_inside(resolved):
            yield denied("repository", path)
        if self.root is None:
            yield denied("no_project", path)
        elif not inside(resolved, self.root, self._platform):
            readable = any(inside(resolved, place, self._platform) for place in self._readable)
            yield denied("read_only_folder" if readable else "outside", path)
        by_path = Grant(kind=GrantKind.PATH, value=resolved)
        if runs_by_itself(resolved):
            yield Finding(
                reason="runs_by_itself",
                risk=Risk.IRREVERSIBLE,
                covers=(by_path,),
                exact=True,
                details={"path": path},
            )
        covers = (by_path, grant) if grant else (by_path,)
        yield Finding(reason="changes", risk=Risk.REVERSIBLE, covers=covers, details={"path": path})

    def _untrusted(self, path: str) -> Iterator[Finding]:
        problem = hazard(path, self._platform)
        if problem is not None:
            yield denied(f"path_{problem}", path)

    def _sensitive(self, path: str, resolved: str) -> bool:
        return any(
            sensitive(form, platform=self._platform, private=self._private) is not None
            for form in (str(flavour(self._platform).normpath(path)), resolved)
        )

    def _may_read(self, resolved: str) -> bool:
        places = (self.root, *self._readable) if self.root else self._readable
        return is_plain_sink(resolved, self._platform) or any(
            inside(resolved, place, self._platform) for place in places
        )

    def _outside_read(self, path: str, resolved: str) -> Finding:
        return Finding(
            reason="reads_outside",
            risk=Risk.IRREVERSIBLE,
            covers=(Grant(kind=GrantKind.PATH, value=resolved),),
            details={"path": path},
        )


def is_plain_sink(path: str, platform: str) -> bool:
    """Whether it is the device that forgets everything."""
    return path == "/dev/null" and platform != "win32"


def denied(reason: str, path: str = "", **details: str) -> Finding:
    """A finding that stands whatever was granted."""
    shown = {"path": path, **details} if path else details
    return Finding(reason=reason, risk=Risk.IRREVERSIBLE, denied=True, details=shown)
