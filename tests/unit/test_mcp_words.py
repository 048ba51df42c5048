"""What the user writes about a server, in the window and on the command line."""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growbox_app import cli_tools
from growbox_app.mcp_client.values import ServerSpec, problem_of_spec
from growbox_app.mcp_client.words import place_of, spec_of, trouble_words
from tests.conftest import ROOT
from tests.fakes.application import scripted
from tests.fakes.keyring_backend import MemoryKeyring


def test_a_command_and_a_url_are_told_apart() -> None:
    spec, secrets = spec_of(" hub ", "npx -y '@hub/my server' a=b", "TOKEN = x=y \n\nREGION")
    assert (spec.name, spec.command, spec.args) == ("hub", "npx", ("-y", "@hub/my server", "a=b"))
    assert spec.secret_names == ("TOKEN", "REGION")
    assert secrets == {"TOKEN": "x=y"}
    spec, _ = spec_of("hub", "https://example.org/mcp?a=b", "")
    assert (spec.url, spec.command) == ("https://example.org/mcp?a=b", "")
    spec, _ = spec_of("hub", "server --url http://localhost", "")
    assert spec.command == "server"


def test_what_was_said_of_its_tools_stays() -> None:
    before = ServerSpec(name="hub", command="x", safe_tools=frozenset({"look"}))
    assert spec_of("hub", "y", "", before=before)[0].safe_tools == {"look"}


words = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12
)


@pytest.mark.skipif(sys.platform == "win32", reason="other quoting")
@given(
    words.filter(lambda word: "://" not in word and word.strip() == word),
    st.lists(words, max_size=4),
)
def test_a_place_reads_back_as_it_was(command: str, args: list[str]) -> None:
    spec = ServerSpec(name="s", command=command, args=tuple(args))
    again, _ = spec_of("s", place_of(spec), "")
    assert again == spec


@given(st.text(), st.text(), st.text())
def test_whatever_is_typed_is_refused_with_a_reason_or_taken(
    name: str, place: str, secrets: str
) -> None:
    spec, values = spec_of(name, place, secrets)
    assert set(values) <= set(spec.secret_names)
    problem_of_spec(spec)


def test_trouble_has_a_sentence() -> None:
    assert trouble_words("s", "ended", "no licence").endswith("(no licence)")
    assert "keyring is locked" in trouble_words("s", "keyring", "locked")


def command(tmp_path: Path, *line: str, keyring: MemoryKeyring | None = None) -> int:
    parser = argparse.ArgumentParser()
    cli_tools.add_parser(parser.add_subparsers(dest="command"))
    options = parser.parse_args(["tools", *line])

    async def main() -> int:
        return await cli_tools.run(
            options, lambda: scripted(tmp_path, find_keyring=lambda: keyring)
        )

    return asyncio.run(main())


def test_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(sys, "stdin", io.StringIO("very-secret\n"))
    keyring = MemoryKeyring()
    server = (sys.executable, "-m", "tests.fakes.mcp_server", "stdio")
    assert command(tmp_path, "list") == 0
    assert "No server" in capsys.readouterr().out
    assert command(tmp_path, "add", "--secret", "TOKEN", "s", *server, keyring=keyring) == 0
    assert "Adds two numbers." in capsys.readouterr().out
    assert list(keyring.secrets.values()) == ["very-secret"]
    assert command(tmp_path, "check", "t") == 1
    assert command(tmp_path, "memory") == 0
    assert command(tmp_path, "forget") == 0
    assert command(tmp_path, "remove", "s", keyring=keyring) == 0
    assert not keyring.secrets
    assert command(tmp_path, "remove", "s") == 1
