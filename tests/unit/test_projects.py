"""What the user decides about a project: folders and levels, mode, reach, grants; kept in small files that may break."""

from __future__ import annotations

from pathlib import Path

import pytest

from growbox_app.grants import GrantBook
from growbox_app.projects import FOLDERS_MAX, FolderLevel, ProjectBook
from growbox_app.safety.values import Grant, GrantKind, Mode
from memory.values import Project, ProjectId, Scope

READ = Grant(kind=GrantKind.PATH, value="/etc/hosts")
TEST = Grant(kind=GrantKind.COMMAND, value="pytest")


def project(tmp_path: Path) -> Project:
    folder = tmp_path / "main"
    folder.mkdir()
    return Project(id=ProjectId("p1"), name="main", path=str(folder), created_at_ms=0)


def other(tmp_path: Path, name: str = "other") -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder


def test_a_new_project_works_in_its_folder_as_the_settings_say(tmp_path):
    book, made = ProjectBook(tmp_path), project(tmp_path)
    workspace = book.workspace(made)
    assert workspace.root == Path(made.path)
    assert workspace.readable == ()
    assert book.mode(made.id, Mode.AUTO, workspace) is Mode.AUTO
    assert book.scope(made.id) is Scope.ALL


def test_one_folder_is_writable_and_the_others_are_read(tmp_path):
    book, made, more = ProjectBook(tmp_path), project(tmp_path), other(tmp_path)
    book.add_folder(made, more)
    book.add_folder(made, more)
    assert book.workspace(made).readable == (more,)
    book.set_level(made, more, FolderLevel.WRITABLE)
    workspace = ProjectBook(tmp_path).workspace(made)
    assert workspace.root == more
    assert workspace.readable == (Path(made.path),)
    book.remove_folder(made, more)
    assert book.workspace(made).root == Path(made.path)


def test_without_a_writable_folder_the_assistant_only_reads(tmp_path):
    book, made = ProjectBook(tmp_path), project(tmp_path)
    book.set_mode(made.id, Mode.AUTO)
    book.set_level(made, Path(made.path), FolderLevel.READ_ONLY)
    workspace = book.workspace(made)
    assert workspace.root == Path(made.path)
    assert book.mode(made.id, Mode.MANUAL, workspace) is Mode.READ_ONLY
    book.set_level(made, Path(made.path), FolderLevel.WRITABLE)
    assert book.mode(made.id, Mode.MANUAL, workspace) is Mode.AUTO


def test_while_the_writable_folder_is_not_there_no_other_becomes_it(tmp_path):
    book, made, more = ProjectBook(tmp_path), project(tmp_path), other(tmp_path)
    book.add_folder(made, more)
    book.set_level(made, more, FolderLevel.WRITABLE)
    workspace = book.workspace(made)
    assert book.mode(made.id, Mode.AUTO, workspace) is Mode.AUTO
    more.rmdir()
    workspace = book.workspace(made)
    assert workspace.root == Path(made.path)
    assert book.mode(made.id, Mode.AUTO, workspace) is Mode.READ_ONLY


def test_a_folder_that_is_only_read_already_stays_so(tmp_path):
    book, made, more = ProjectBook(tmp_path), project(tmp_path), other(tmp_path)
    book.add_folder(made, more)
    book.set_level(made, more, FolderLevel.READ_ONLY)
    assert book.workspace(made).root == Path(made.path)


def test_folders_that_are_gone_or_too_wide_give_nothing(tmp_path, monkeypatch):
    book, made = ProjectBook(tmp_path), project(tmp_path)
    Path(made.path).rmdir()
    assert book.workspace(made).root is None
    Path(made.path).mkdir()
    monkeypatch.setattr(Path, "home", lambda: Path(made.path))
    assert book.workspace(made).root is None


def test_a_removed_project_gives_nothing_and_comes_back_clean(tmp_path):
    book, made = ProjectBook(tmp_path), project(tmp_path)
    book.set_scope(made.id, Scope.PROJECT)
    book.remove(made.id)
    assert book.is_removed(made.id)
    assert book.workspace(made).root is None
    book.restore(made.id)
    assert ProjectBook(tmp_path).workspace(made).root == Path(made.path)
    assert book.scope(made.id) is Scope.ALL


def test_there_is_an_end_to_folders(tmp_path):
    book, made = ProjectBook(tmp_path), project(tmp_path)
    for number in range(FOLDERS_MAX - 1):
        book.add_folder(made, tmp_path / str(number))
    with pytest.raises(ValueError, match="folders"):
        book.add_folder(made, tmp_path / "one too many")


@pytest.mark.parametrize("content", [b"", b"[]", b'{"p1": {"mode": 3}}', b"\xff"])
def test_a_broken_file_decides_nothing(tmp_path, content):
    (tmp_path / "projects.json").write_bytes(content)
    made = project(tmp_path)
    book = ProjectBook(tmp_path)
    assert book.workspace(made).root == Path(made.path)
    book.set_mode(made.id, Mode.AUTO)
    assert ProjectBook(tmp_path).mode(made.id, Mode.MANUAL, book.workspace(made)) is Mode.AUTO


def test_unknown_words_of_a_newer_program_are_what_the_settings_say(tmp_path):
    (tmp_path / "projects.json").write_bytes(b'{"p1": {"mode": "wild", "scope": "moon"}}')
    made = project(tmp_path)
    rules = ProjectBook(tmp_path).rules(made)
    assert rules.mode is None
    assert rules.scope is Scope.ALL


def test_a_change_that_cannot_be_written_has_not_happened(tmp_path):
    book, made = ProjectBook(tmp_path / "no folder"), project(tmp_path)
    (tmp_path / "no folder").write_text("a file is in the way", encoding="utf-8")
    with pytest.raises(OSError, match="no folder"):
        book.set_mode(made.id, Mode.AUTO)
    assert book.rules(made).mode is None


def test_grants_are_listed_and_taken_back_one_by_one(tmp_path):
    grants, place = GrantBook(tmp_path), ProjectId("p1")
    grants.add(place, [READ, TEST, READ])
    grants.add(ProjectId("p2"), [TEST])
    assert GrantBook(tmp_path).listed(place) == (READ, TEST)
    grants.revoke(place, READ)
    assert GrantBook(tmp_path).of(place) == frozenset({TEST})
    grants.withdraw(place)
    grants.withdraw(place)
    assert GrantBook(tmp_path).listed(place) == ()
    assert GrantBook(tmp_path).of(ProjectId("p2")) == frozenset({TEST})
