"""git_status, git_diff and git_commit with the real git in throw-away repositories."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from growbox_app.executors.base import Plan
from growbox_app.executors.git_commit import GitCommit
from growbox_app.executors.git_diff import GitDiff
from growbox_app.executors.git_status import GitStatus
from tests.unit.executor_world import call, context_of, failed, planned, wait

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="executable bits")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Tester\n\temail = t@example.org\n[init]\n\tdefaultBranch = main\n"
    )
    for name in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(home))
    folder = (tmp_path / "repo").resolve()
    folder.mkdir()
    git(folder, "init", "--quiet")
    return folder


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout


def begun(root: Path) -> Path:
    """With one commit of a.txt and b.txt."""
    (root / "a.txt").write_text("one\n")
    (root / "b.txt").write_text("b\n")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "first")
    return root


def test_status_in_words(root: Path) -> None:
    begun(root)
    assert call(GitStatus(), root).text == "branch main\nnothing changed"
    (root / "a.txt").write_text("two\n")
    (root / "b.txt").unlink()
    (root / "中文 name.txt").write_text("new\n")
    (root / "c.txt").write_text("c\n")
    git(root, "add", "c.txt")
    result = call(GitStatus(), root)
    assert sorted(result.text.split("\n")[1:]) == [
        "changed: a.txt",
        "deleted: b.txt",
        "new, added: c.txt",
        "new: 中文 name.txt",
    ]
    assert result.summary == "4 changed files"


def test_a_conflict_is_called_one(root: Path) -> None:
    begun(root)
    git(root, "checkout", "--quiet", "-b", "other")
    (root / "a.txt").write_text("theirs\n")
    git(root, "commit", "--quiet", "-am", "theirs")
    git(root, "checkout", "--quiet", "main")
    (root / "a.txt").write_text("ours\n")
    git(root, "commit", "--quiet", "-am", "ours")
    subprocess.run(["git", "merge", "other"], cwd=root, capture_output=True, check=False)
    assert "conflict: a.txt" in call(GitStatus(), root).text
    assert "not committed" in failed(GitCommit(), root, message="x")


def test_diff_since_the_last_commit(root: Path) -> None:
    begun(root)
    assert call(GitDiff(), root).text == "nothing changed"
    (root / "a.txt").write_text("two\n")
    (root / "b.txt").write_text("bb\n")
    git(root, "add", "a.txt")
    (root / "new.txt").write_text("x\n")
    result = call(GitDiff(), root)
    assert "-one\n+two" in result.text
    assert "-b\n+bb" in result.text
    assert result.text.endswith("new files, not in the diff: new.txt")
    assert result.summary == "2 changed files"
    assert "+bb" not in call(GitDiff(), root, path="a.txt").text
    assert "outside" in failed(GitDiff(), root, path="../x")


def test_secrets_are_not_in_a_diff(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / ".env").write_text("KEY=old\n")
    begun(root)
    (root / "sub" / ".env").write_text("KEY=sesame\n")
    (root / "credentials.json").write_text("{}\n")
    assert call(GitDiff(), root).text == "nothing changed"


@POSIX
def test_looking_runs_no_program_of_the_repositorys_configuration(root: Path) -> None:
    begun(root)
    trap = root.parent / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {root.parent}/sprung\ncat\n")
    trap.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "diff.external",
        "core.pager",
        "diff.x.textconv",
        "diff.x.command",
    ):
        git(root, "config", key, str(trap))
    (root / ".gitattributes").write_text("*.txt diff=x\n")
    (root / "a.txt").write_text("two\n")
    assert "+two" in call(GitDiff(), root).text
    assert call(GitStatus(), root).ok
    assert not (root.parent / "sprung").exists()


@POSIX
@pytest.mark.parametrize("how", ["config", "commondir"])
def test_filters_of_the_repositorys_own_stand_in_the_plan_and_do_not_run_before(
    root: Path, how: str
) -> None:
    begun(root)
    command = f"touch {root.parent}/sprung; cat"
    if how == "config":
        git(root, "config", "filter.x.clean", command)
    else:  # what a program in the sandbox could write, where the settings themselves are out of its reach
        shutil.copytree(root / ".git", root / "other")
        git(root, "config", "--file", str(root / "other" / "config"), "filter.x.clean", command)
        (root / ".git" / "commondir").write_text("../other\n")
    (root / ".gitattributes").write_text("*.txt filter=x\n")
    (root / "a.txt").write_text("two\n")
    for executor, arguments in (
        (GitStatus(), {}),
        (GitDiff(), {}),
        (GitCommit(), {"message": "x"}),
    ):
        assert planned(executor, root, **arguments).command == command
    assert not (root.parent / "sprung").exists()
    changed = "settings changed in the meantime"
    assert changed in wait(GitDiff().run(Plan(reads=(root,), cwd=root), context_of(root))).text
    assert changed in wait(GitStatus().run(Plan(reads=(root,), cwd=root), context_of(root))).text
    assert not (root.parent / "sprung").exists()
    assert "+two" in call(GitDiff(), root).text


def test_everything_that_changed_is_committed_but_new_secrets(root: Path) -> None:
    begun(root)
    (root / "a.txt").write_text("two\n")
    (root / "b.txt").unlink()
    (root / "new [1].txt").write_text("new\n")
    (root / ".npmrc").write_text("_auth=sesame\n")
    plan = planned(GitCommit(), root, message="second")
    assert {path.name for path in plan.reads} == {"a.txt", "b.txt", "new [1].txt"}
    assert plan.command == ""
    result = call(GitCommit(), root, message="Zweites: größer\n\nWhy not.")
    assert result.text.startswith("committed ")
    assert "3 files: a.txt, b.txt, new [1].txt" in result.text
    assert git(root, "log", "-1", "--format=%B").strip() == "Zweites: größer\n\nWhy not."
    assert git(root, "status", "--porcelain").strip() == "?? .npmrc"
    assert call(GitCommit(), root, message="again").text == "nothing changed, nothing to commit"


def test_only_named_files_are_committed_and_what_is_staged_stays(root: Path) -> None:
    begun(root)
    (root / "a.txt").write_text("two\n")
    (root / "b.txt").write_text("bb\n")
    (root / "c.txt").write_text("c\n")
    git(root, "add", "b.txt")
    assert call(GitCommit(), root, message="some", paths="a.txt\nc.txt").ok
    assert git(root, "status", "--porcelain") == "M  b.txt\n"


def test_the_first_commit(root: Path) -> None:
    (root / "a.txt").write_text("one\n")
    assert "new files, not in the diff: a.txt" in call(GitDiff(), root).text
    assert call(GitCommit(), root, message="first").ok
    assert git(root, "log", "--format=%s") == "first\n"


def test_a_folder_inside_a_repository_is_all_that_counts(root: Path) -> None:
    begun(root)
    (root / "sub").mkdir()
    (root / "sub" / "s.txt").write_text("s\n")
    (root / "a.txt").write_text("two\n")
    inner = root / "sub"
    assert "a.txt" not in call(GitStatus(), inner).text
    assert call(GitDiff(), inner).text == "nothing changed\nnew files, not in the diff: s.txt"
    assert call(GitCommit(), inner, message="inner").ok
    assert git(root, "status", "--porcelain") == " M a.txt\n"


def hook(root: Path, name: str, body: str) -> Path:
    path = root / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@POSIX
def test_the_users_hooks_run_and_stand_in_the_plan(root: Path) -> None:
    begun(root)
    hook(root, "commit-msg", 'grep -q "^fix" "$1" || { echo "say fix"; exit 1; }')
    (root / "new.txt").write_text("x\n")
    before = git(root, "status", "--porcelain")
    plan = planned(GitCommit(), root, message="other")
    assert plan.command == str(root / ".git" / "hooks" / "commit-msg")
    text = failed(GitCommit(), root, message="other")
    assert text == "not committed:\nsay fix"
    assert git(root, "status", "--porcelain") == before  # nothing stays announced
    assert call(GitCommit(), root, message="fix it").ok


@POSIX
def test_a_hook_that_came_after_the_plan_does_not_run(root: Path) -> None:
    begun(root)
    (root / "a.txt").write_text("two\n")
    plan = planned(GitCommit(), root, message="x")
    hook(root, "post-commit", f"touch {root}/sprung")
    assert "hooks changed" in wait(GitCommit().run(plan, context_of(root))).text
    assert not (root / "sprung").exists()
    assert git(root, "log", "--format=%s") == "first\n"


@POSIX
def test_a_link_is_committed_as_a_link(root: Path) -> None:
    begun(root)
    (root / "link").symlink_to("/etc/passwd")
    plan = planned(GitCommit(), root, message="x")
    assert plan.reads == ()
    assert call(GitCommit(), root, message="x").ok
    assert git(root, "show", "HEAD:link") == "/etc/passwd"


@POSIX
def test_a_hook_that_hangs_ends_with_the_users_stop(root: Path) -> None:
    begun(root)
    hook(root, "pre-commit", "sleep 300")
    (root / "a.txt").write_text("two\n")
    context = context_of(root)
    plan = wait(GitCommit().plan({"message": "x"}, context))
    assert isinstance(plan, Plan)
    context.cancelled.set()
    assert "stopped" in wait(GitCommit().run(plan, context)).text
    assert git(root, "log", "--format=%s") == "first\n"


@pytest.mark.parametrize("executor", [GitStatus(), GitDiff(), GitCommit()])
def test_without_a_repository_or_git_it_is_said(
    executor: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    folder = tmp_path / "plain"
    folder.mkdir()
    assert "no git repository" in failed(executor, folder, message="x")  # type: ignore[arg-type]
    assert "no project folder" in failed(executor, None, message="x")  # type: ignore[arg-type]
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert "git is not installed" in failed(executor, folder, message="x")  # type: ignore[arg-type]


def test_commits_that_make_no_sense(root: Path) -> None:
    assert "empty" in failed(GitCommit(), root, message=" ")
    assert "outside" in failed(GitCommit(), root, message="x", paths="../x")
