"""Both languages say everything, with the same places to fill."""

import re
import string
from pathlib import Path

import pytest

from growbox_app.api import DeepSearchState, EnginePhase, Phase, ProblemCode
from growbox_app.executors.answers import Reason
from growbox_app.executors.memory_search import MemorySearch
from growbox_app.mcp_client.values import TROUBLES, ServerState
from growbox_app.rest.schedule import RestPhase, RestReason
from growbox_app.settings.schema import SETTINGS
from growbox_app.task_face import TaskState
from growbox_app.text import LANGUAGES, catalogue
from memory.rest_values import Cause, GoalKind, JournalKind, ProposalState, RestOutcome
from memory.values import BlockKind, DebtState, Depth, NodeKind, NodeStatus, PointerKind, Role, Way
from ui.menus import CHOICES, COMMANDS, MENUS
from ui.panels.conversation import SUGGESTIONS
from ui.panels.help_dialogs import FIXED_KEYS
from ui.panels.settings_dialog import SECTIONS
from ui.panels.tasks_dialog import COLUMNS
from ui.view_models.journal import FILTERS
from ui.view_models.region import FREE, RESERVE, SYSTEM

ROOT = Path(__file__).resolve().parents[2]
# Why nothing is about to begin; the other reasons stand behind what does.
_IDLE = set(RestReason) - {
    RestReason.DEBTS,
    RestReason.TIRED,
    RestReason.GOALS,
    RestReason.BACKING_OFF,
}
_LITERAL = re.compile(
    r"""\btr\(\s*"([a-z0-9_.]+)"|(?:Words|TextButton|show_as|hint|say)\(\s*"([a-z0-9_]+\.[a-z0-9_.]+)\""""
)
_SECOND = re.compile(r"""(?:IconButton|show_as)\(\s*"[a-z0-9-]+",\s*"([a-z0-9_.]+)\"""")
_CHOICE = re.compile(r"""tr\(\s*"([a-z0-9_.]+)" if .*? else "([a-z0-9_.]+)\"""", re.DOTALL)


def sources() -> list[Path]:
    return [*sorted((ROOT / "ui").rglob("*.py")), *sorted((ROOT / "growbox_app").rglob("*.py"))]


def literal_keys() -> set[str]:
    keys: set[str] = set()
    for path in sources():
        text = path.read_text(encoding="utf-8")
        for pattern in (_LITERAL, _SECOND, _CHOICE):
            for match in pattern.finditer(text):
                keys |= {group for group in match.groups() if group}
    return keys


def computed_keys() -> set[str]:
    """Keys that the code puts together from an enumeration or a table."""
    keys = {f"problem.{code}" for code in ProblemCode}
    keys |= {f"phase.{phase}" for phase in Phase}
    keys |= {f"engine.{phase}" for phase in EnginePhase}
    keys |= (
        {f"role.{role}" for role in Role}
        | {f"way.{way}" for way in Way}
        | {f"kind.{kind}" for kind in NodeKind}
    )
    keys |= {f"answer.{status}" for status in NodeStatus if status is not NodeStatus.COMPLETE}
    keys |= {f"queue.{pointer}" for pointer in PointerKind}
    keys |= {f"region.kind_{kind}" for kind in (*BlockKind, SYSTEM, FREE, RESERVE)}
    keys |= {f"setting.{key}.{part}" for key in SETTINGS for part in ("label", "help")}
    keys |= {
        f"choice.{setting.key}.{choice}"
        for setting in SETTINGS.values()
        for choice in setting.choices
    }
    keys |= {f"unit.{setting.unit}" for setting in SETTINGS.values() if setting.unit}
    keys |= {f"setting.section.{section}" for section in SECTIONS}
    keys |= {f"command.{command.name}" for command in COMMANDS} | {f"menu.{menu}" for menu in MENUS}
    keys |= {
        f"panel.{key}" for key in ("region", "queue", "ledger", "fatigue", "stains", "pointers")
    }
    keys |= {f"way_help.{way}" for way in Way}
    keys |= {f"stains.{form}{depth}" for form in ("", "name_") for depth in (*Depth, "none")}
    keys |= {f"stains.share_{depth}" for depth in Depth}
    keys |= {f"search.{state}" for state in DeepSearchState if state is not DeepSearchState.USED}
    keys |= {f"search.{state}_begun" for state in ("running", "paused")}
    keys |= {key for key, _keys in FIXED_KEYS}
    keys |= {f"fatigue.{name}" for name in ("calm", "busy", "tired", "miss", "eviction", "debt")}
    keys |= {f"empty.{name}{suffix}" for name in SUGGESTIONS for suffix in ("", "_project")}
    keys |= {f"unit.month_{month}" for month in range(1, 13)}
    keys |= {
        f"models.state.{state}" for state in ("missing", "partial", "unverified", "ready", "broken")
    }
    keys |= {f"models_page.purpose_{purpose}" for purpose in ("chat", "embedding")}
    keys |= {
        f"{key}_{form}"
        for key in (
            "agent.restored",
            "agent.show_all",
            "answer.used",
            "fatigue.accesses",
            "pointers.count",
            "pointers.negative",
            "pointers.positive",
            "queue.count",
            "search.judged",
            "search.notes",
            "stains.clusters",
            "stains.notes",
            "status.indexing",
        )
        for form in ("one", "many")
    }
    keys |= rest_keys() | result_keys() | server_keys() | task_keys()
    keys |= agent_keys()
    keys |= {f"secrets.trouble.{reason}" for reason in ("none", "locked", "slow", "failed")}
    stores = {f"store.{name}" for name in ("timeline", "lexical", "vectors", "pointers")}
    return keys | stores | {f"tool.{MemorySearch.name}", "problem.disk_full_plain"}


def agent_keys() -> set[str]:
    """Keys of calls, consents and what calls taught."""
    keys = {f"agent.refused_by.{by}" for by in ("user", "stop", "timeout")}
    keys |= {f"agent.approval_{end}" for end in ("allowed", "denied", "timeout", "stop")}
    keys |= {f"{kind}.{name}" for name in executor_names() for kind in ("agent.verb", "tool")}
    return keys | {f"lessons.{counsel}" for counsel in ("veto", "warn", "works")}


def rest_keys() -> set[str]:
    """The keys of rest that the code puts together."""
    keys = {f"rest.reason_{reason}" for reason in _IDLE} | {"rest.reason_paused"}
    keys |= {f"rest.{phase}" for phase in RestPhase if phase is not RestPhase.AWAKE}
    keys |= {f"rest.{verb}_{when}" for verb in ("sleeps", "learns") for when in ("in", "now")}
    keys |= {f"rest.ended_{kind}_{end}" for kind in ("dream", "sleep") for end in RestOutcome}
    keys |= {f"rest.ended_alone_{phase}" for phase in ("sleeping", "learning")}
    keys |= {f"ledger.state_{state}" for state in DebtState}
    keys |= {f"journal.filter_{choice}" for choice in FILTERS}
    keys |= {f"journal.cause_{cause}" for cause in Cause}
    keys |= {f"journal.did_{kind}" for kind in JournalKind}
    keys |= {f"skills.{state}" for state in ProposalState}
    keys |= {f"goals.{kind}" for kind in GoalKind if kind is not GoalKind.OWN}
    counted = (
        *(f"rest.{name}" for name in ("debts", "read", "found", "left", "rehearsed", "paid")),
        *("rest.unclear", "cli.rest.unclear", "ledger.unclear_notes"),
        *(f"journal.{name}" for name in ("notes", "found", "more", "after_find")),
        *("skills.seen", "answer.conclusions", "answer.skills"),
    )
    keys |= {f"{key}_{form}" for key in counted for form in ("one", "many")}
    return keys | {"trace.kind_knowledge", "trace.kind_skill"}


def result_keys() -> set[str]:
    """The lines of tool cards: what came of a call, and why it was not done."""
    counted = (
        *("changed_files", "definitions", "entries", "files", "matches", "memories", "tasks"),
        *("file_append", "file_created", "file_edit", "file_read", "file_replaced", "web_fetch"),
    )
    plain = (
        *("code_search", "exit", "file_line", "file_lines", "file_same", "memory_get"),
        *("no_match", "no_memories", "nothing_to_commit"),
        *(f"task_{state}" for state in ("ended", "ready", "running", "started", "stopped")),
    )
    keys = {f"tool.summary.{key}" for key in plain}
    keys |= {f"tool.summary.{key}_{form}" for key in counted for form in ("one", "many")}
    return keys | {f"tool.failed.{reason}" for reason in Reason}


def server_keys() -> set[str]:
    """The keys of tool servers."""
    reasons = ("name", "words", "too_many", "place", "url", "secret_name")
    keys = {f"mcp.invalid.{reason}" for reason in reasons}
    keys |= {f"mcp.state.{state}" for state in ServerState}
    keys |= {f"mcp.trouble.{reason}" for reason in TROUBLES}
    answers = ("answered", "answered_failure")
    return keys | {f"mcp.{key}_{form}" for key in answers for form in ("one", "many")}


def task_keys() -> set[str]:
    """The keys of background tasks that the code puts together."""
    keys = {f"tasks.state_{state}" for state in TaskState}
    keys |= {f"tasks.column_{name}" for name in COLUMNS if name}
    return keys | {f"tasks.running_{form}" for form in ("one", "many")}


def executor_names() -> set[str]:
    """The names of all executors, as their modules give them."""
    pattern = re.compile(r'^    name = "([a-z_]+)"', re.MULTILINE)
    found = {
        match[1]
        for path in (ROOT / "growbox_app" / "executors").glob("*.py")
        for match in pattern.finditer(path.read_text(encoding="utf-8"))
    }
    assert len(found) >= 19
    return found


def fields(sentence: str) -> set[str]:
    return {
        name for _text, name, _format, _conversion in string.Formatter().parse(sentence) if name
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_key_in_the_code_has_a_sentence(language: str) -> None:
    known = set(catalogue(language))
    assert len(literal_keys()) > 120
    assert sorted((literal_keys() | computed_keys()) - known) == []


def test_no_line_of_a_tool_card_is_left_over() -> None:
    lines = {k for k in catalogue("en") if k.startswith(("tool.summary.", "tool.failed."))}
    assert sorted(lines - result_keys()) == []


def test_both_languages_have_the_same_keys() -> None:
    assert set(catalogue("en")) == set(catalogue("zh"))


def test_both_languages_fill_the_same_places() -> None:
    english, chinese = catalogue("en"), catalogue("zh")
    different = [
        key
        for key in english
        if fields(english[key]) != fields(chinese[key]) and not key.startswith("unit.day")
    ]
    assert different == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_two_files_give_the_same_key(language: str) -> None:
    import tomllib

    from growbox_app.text import _flatten

    seen: dict[str, str] = {}
    for path in sorted((ROOT / "resources" / "translations" / language).glob("*.toml")):
        for key in _flatten(tomllib.loads(path.read_text(encoding="utf-8"))):
            assert key not in seen, f"{key} in {seen[key]} and {path.name}"
            seen[key] = path.name


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_problem_says_what_happened_and_what_to_do(language: str) -> None:
    ends = ".。"
    for code in ProblemCode:
        sentence = catalogue(language)[f"problem.{code}"]
        assert sentence[-1] in ends, code
        marks = sum(sentence.count(mark) for mark in ".。;；,，:")
        assert marks >= 2, f"{code} says only one thing"


def test_the_chinese_sentences_are_chinese() -> None:
    latin = {
        key
        for key, sentence in catalogue("zh").items()
        if not any("\u4e00" <= character <= "\u9fff" for character in sentence)
    }
    allowed = {
        "role.assistant",
        "region.kind_assistant",
        "choice.general.language.en",
        "unit.MiB",
        "answer.tool",
        "forget.and",
        "message.attached",
        "pointers.arrow_from",
        "pointers.arrow_to",
        "pointers.sign_against",
        "pointers.sign_for",
        "pointers.times",
        "stains.dates",
    }
    assert {key for key in latin if not key.startswith("cli.")} <= allowed
    assert "您好" not in catalogue("zh")["empty.recall"]


def test_the_design_terms_are_used() -> None:
    chinese = catalogue("zh")
    assert chinese["panel.region"] == "上下文区域"
    assert chinese["panel.queue"] == "索引队列"
    assert chinese["panel.ledger"] == "碎片台账"
    assert chinese["panel.fatigue"] == "疲劳度"
    assert "染色" in chinese["panel.stains"]
    assert "指针" in chinese["panel.pointers"]
    assert chinese["way.pointer"] == "指针"
    assert chinese["way.anchor"] == "锚点"
    assert "淘汰" in chinese["queue.evict"]


def test_choices_in_the_menu_are_settings() -> None:
    for key in CHOICES:
        assert SETTINGS[key].choices
