"""Attempts on the policy, as a table, with the verdict that each must get. Zero may be allowed that should not be."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from growbox_app.executors.base import Risk
from growbox_app.safety.values import Mode, Verdict
from growbox_app.text import LANGUAGES, catalogue
from tests.unit.safety_world import PLANTED, SafetyWorld, build_world

TABLE = Path(__file__).parent.parent / "data" / "safety_attempts.txt"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and POSIX paths")


def attempts() -> list[tuple[str, str]]:
    lines = TABLE.read_text(encoding="utf-8").split("\n")
    rows = [line.partition(" ") for line in lines if line and not line.startswith("# ")]
    return [(command, verdict) for verdict, _, command in rows]


ATTEMPTS = attempts()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> SafetyWorld:
    return build_world(tmp_path_factory.mktemp("safety"))


def spelled(command: str, world: SafetyWorld) -> str:
    places = {"{HOME}": world.home, "{LIB}": world.library, "{DATA}": world.data}
    for name, path in places.items():
        command = command.replace(name, str(path))
    command = re.sub(r"\{U\+([0-9A-F]{4})\}", lambda match: chr(int(match[1], 16)), command)
    return command.replace("⏎", "\n")


def test_the_table_is_long_and_each_attempt_is_there_once() -> None:
    assert len(ATTEMPTS) >= 400
    assert [row for row, count in Counter(row for row, _ in ATTEMPTS).items() if count > 1] == []
    assert {verdict for _, verdict in ATTEMPTS} == set(Verdict)


@pytest.mark.parametrize(("command", "verdict"), ATTEMPTS)
def test_attempt(world: SafetyWorld, command: str, verdict: str) -> None:
    decision = world.shell(spelled(command, world))
    assert (decision.verdict, decision.reason) == (verdict, decision.reason)
    # What the other modes say follows from the risk.
    manual = world.shell(spelled(command, world), Mode.MANUAL)
    read_only = world.shell(spelled(command, world), Mode.READ_ONLY)
    safe = verdict == "allow" and decision.risk is Risk.SAFE
    assert (manual.verdict is Verdict.ALLOW) == safe
    assert (read_only.verdict is Verdict.ALLOW) == safe
    assert read_only.verdict is not Verdict.ASK
    assert (manual.verdict is Verdict.DENY) == (verdict == "deny")


@pytest.mark.parametrize("command", [row for row, verdict in ATTEMPTS if verdict == "deny"])
def test_no_grant_turns_a_denial(world: SafetyWorld, command: str) -> None:
    for mode in Mode:
        decision = world.shell(spelled(command, world), mode, *world.everything(), confined=True)
        assert decision.verdict is Verdict.DENY
        assert decision.path_grants == decision.project_grants == ()


@pytest.mark.parametrize("command", [row for row, verdict in ATTEMPTS if verdict == "ask"])
def test_what_is_asked_for_can_be_granted_only_as_offered(world: SafetyWorld, command: str) -> None:
    text = spelled(command, world)
    decision = world.shell(text)
    for offer in (decision.path_grants, decision.project_grants):
        if offer:
            assert world.shell(text, Mode.AUTO, *offer).verdict is Verdict.ALLOW
    if not decision.path_grants and not decision.project_grants:
        assert world.shell(text, Mode.AUTO, *world.everything()).verdict is not Verdict.ALLOW


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_reason_has_a_sentence_that_its_details_fill(
    world: SafetyWorld, language: str
) -> None:
    sentences = catalogue(language)
    for command, _ in ATTEMPTS:
        for mode in Mode:
            decision = world.shell(spelled(command, world), mode, offline=mode is not Mode.AUTO)
            assert sentences[f"safety.reason.{decision.reason}"].format(**decision.details)


@pytest.mark.parametrize(("command", "verdict"), ATTEMPTS[::7])
def test_planted_instructions_change_nothing(
    world: SafetyWorld, command: str, verdict: str
) -> None:
    """The same call gets the same decision, whatever files, tool results or memories say: there is no way in for them."""
    text = spelled(command, world)
    before = world.shell(text)
    planted = [
        world.root / "notes_from_tool.txt",
        world.root / "AGENTS.md",
        world.root / "src" / "memory.md",
    ]
    for path in planted:
        path.write_text(PLANTED, encoding="utf-8")
    assert world.shell(text) == before
    for path in planted:
        path.unlink()
