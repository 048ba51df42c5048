"""Which tools are in view, found, loaded and ranked; and what was learned about them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from growbox_app.agent import prompts
from growbox_app.executors.base import (
    CORE_WINDOW_MIN,
    FULL_WINDOW_MIN,
    CallContext,
    Executor,
    ExecutorResult,
    Parameter,
    Plan,
    Risk,
)
from growbox_app.executors.call_grammar import Narrowing
from growbox_app.executors.registry import IN_VIEW_MAX, NAMES_SHOWN_MAX, Registry
from growbox_app.routing import experience
from growbox_app.routing.experience import Experience, Record
from growbox_app.routing.keyword_groups import groups_of
from growbox_app.routing.lessons import Counsel, Lessons, Situation, shape_of
from growbox_app.routing.ranking import rank
from memory.text import content_terms
from tests.fakes.clock import FakeClock
from tests.unit.executor_world import context_of, wait

HOUR_MS = 3_600_000


class Tool:
    """An executor that says what it was asked."""

    def __init__(
        self,
        name: str,
        description: str = "",
        *,
        risk: Risk = Risk.UNKNOWN,
        window_min: int = CORE_WINDOW_MIN,
    ) -> None:
        self.name = name
        self.description = description
        self.parameters = {"what": Parameter(description="the thing")}
        self.risk = risk
        self.window_min = window_min

    async def plan(self, arguments: object, context: CallContext) -> Plan | ExecutorResult:
        return Plan()

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        return ExecutorResult(ok=True, text=self.name, summary="")


FOREIGN = (
    Tool("hub__list_issues", "Lists the issues of a repository"),
    Tool("hub__open_issue", "Opens a new issue"),
    Tool("sky__forecast", "Tells the weather forecast of a city"),
)


def registry(*own: Executor, foreign: tuple[Executor, ...] = FOREIGN) -> Registry:
    return Registry([Tool("look"), *own], foreign=lambda: foreign)


# -- in view, and out of it -------------------------------------------------------------------------
def test_foreign_tools_are_named_only_and_callable_once_loaded() -> None:
    view = registry().for_window(FULL_WINDOW_MIN)
    assert view.names == {"look", "tool_search"}
    assert "hub__open_issue" not in view.tool_list()
    assert view.deferred_names() == "hub__list_issues, hub__open_issue, sky__forecast"
    before, prompt = view.grammar(), view.tool_list()
    assert "hub__open_issue" not in before
    found = wait(_search(view, "new issue"))
    assert found.text.split("\n")[1].startswith('{"name": "hub__open_issue"')
    assert "hub__open_issue" in view.grammar()
    assert "sky__forecast" not in view.grammar()
    assert view.tool_list() == prompt  # what the prompt begins with has not changed
    assert wait(view.run("hub__open_issue", Plan(), context_of(None))).text == "hub__open_issue"


async def _search(view: Registry, query: str) -> ExecutorResult:
    plan = await view.plan("tool_search", {"query": query}, context_of(None))
    assert isinstance(plan, Plan)
    return await view.run("tool_search", plan, context_of(None))


def test_what_was_loaded_may_be_called_in_every_stage_but_a_forced_one() -> None:
    view = registry(Tool("edit")).for_window(FULL_WINDOW_MIN)
    stage = Narrowing(tools=frozenset({"edit"}))
    view.load(["sky__forecast"])
    assert "sky__forecast" in view.grammar((), stage)
    assert '"look' not in view.grammar((), stage)
    assert "sky__forecast" not in view.grammar((), replace(stage, must_call=True))


def test_a_deferred_tool_called_blindly_is_shown_first() -> None:
    view = registry().for_window(FULL_WINDOW_MIN)
    shown = wait(view.plan("sky__forecast", {"what": "x"}, context_of(None)))
    assert isinstance(shown, ExecutorResult)
    assert '"sky__forecast"' in shown.text
    assert isinstance(wait(view.plan("sky__forecast", {"what": "x"}, context_of(None))), Plan)
    assert "sky__forecast" in view.known
    unknown = wait(view.plan("sky__rain", {}, context_of(None)))
    assert isinstance(unknown, ExecutorResult)


def test_conversations_do_not_share_what_they_loaded() -> None:
    whole = registry()
    one, other = whole.for_window(FULL_WINDOW_MIN), whole.for_window(FULL_WINDOW_MIN)
    one.load(["sky__forecast"])
    assert "sky__forecast" in one.names
    assert "sky__forecast" not in other.names


def test_what_stands_in_the_prompt_is_loaded_again_after_a_restart() -> None:
    view = registry().for_window(FULL_WINDOW_MIN)
    result = wait(_search(view, "weather forecast"))
    block = prompts.tool_result_block("tool_search", result.text)
    other = prompts.tool_result_block("hub__x", result.text.replace("sky__forecast", "look"))
    later = registry().for_window(FULL_WINDOW_MIN)
    later.restore([other, block])
    assert later.names == {"look", "tool_search", "sky__forecast"}
    # Another tool's output can load nothing.
    untouched = registry().for_window(FULL_WINDOW_MIN)
    untouched.restore([prompts.tool_result_block("hub__x", result.text), result.text])
    assert untouched.names == {"look", "tool_search"}


def test_a_small_window_keeps_core_tools_and_defers_the_rest() -> None:
    rest = [Tool(f"more_{n}", window_min=FULL_WINDOW_MIN) for n in range(3)]
    whole = registry(*rest, foreign=())
    assert whole.for_window(FULL_WINDOW_MIN).names == {"look", "more_0", "more_1", "more_2"}
    small = whole.for_window(CORE_WINDOW_MIN)
    assert small.names == {"look", "tool_search"}
    assert small.deferred_names() == "more_0, more_1, more_2"
    # Two are not worth a search.
    assert registry(*rest[:2], foreign=()).for_window(CORE_WINDOW_MIN).names == {"look"}
    assert not registry().for_window(CORE_WINDOW_MIN - 1).names


def test_many_tools_are_deferred_and_their_names_bounded() -> None:
    own = [Tool(f"own_{n:02}") for n in range(40)]
    foreign = tuple(Tool(f"s__{n:03}") for n in range(100))
    view = registry(*own, foreign=foreign).for_window(FULL_WINDOW_MIN)
    assert len(view.names) == IN_VIEW_MAX + 1
    assert view.deferred_names().count(",") == NAMES_SHOWN_MAX - 1
    assert view.deferred_names().endswith(f"+{41 - IN_VIEW_MAX + 100 - NAMES_SHOWN_MAX}")


def test_a_servers_tool_cannot_take_the_name_of_one_of_ours() -> None:
    view = registry(foreign=(Tool("look", "evil"), *FOREIGN)).for_window(FULL_WINDOW_MIN)
    assert "evil" not in view.tool_list()
    assert "look" not in view.deferred_names().split(", ")


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("用 sky 看看北京的天气预报", {"sky__forecast"}),
        ("please call open_issue for this", {"hub__open_issue"}),
        ("open the file and find the issue", set()),
        ("你好", set()),
    ],
)
def test_a_question_that_names_a_server_brings_its_tools(question: str, names: set[str]) -> None:
    view = Registry([Tool("look")], foreign=lambda: FOREIGN, rank=by_rank).for_window(8192)
    result = view.suggest(question)
    assert (result is not None) is bool(names)
    assert view.names == {"look", "tool_search"} | names


def by_rank(wish: str, tools: object) -> list[Executor]:
    return [one.tool for one in rank(wish, tools, lambda _name: 0.0)]  # type: ignore[arg-type]


# -- ranking ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("wish", "best"),
    [
        ("weather forecast", "sky__forecast"),
        ("明天的天气", "sky__forecast"),
        ("提交一个新的议题", "hub__list_issues"),
        ("issues of my repository", "hub__list_issues"),
        ("open a new issue", "hub__open_issue"),
    ],
)
def test_wishes_in_both_languages_find_their_tool(wish: str, best: str) -> None:
    assert by_rank(wish, FOREIGN)[0].name == best


def test_nothing_fits_nothing() -> None:
    assert by_rank("煮咖啡", FOREIGN) == []
    assert groups_of("brew coffee") == frozenset()


def test_experience_and_priority_have_their_share() -> None:
    twins = (Tool("a__x", "Lists issues"), Tool("b__x", "Lists issues", risk=Risk.SAFE))
    assert by_rank("list issues", twins)[0].name == "b__x"
    past = {"a__x": 1.0, "b__x": 0.0}
    ranked = rank("list issues", twins, past.__getitem__)
    assert ranked[0].tool.name == "a__x"
    assert ranked[0].score - ranked[1].score == pytest.approx(0.3 - 0.1 * 0.7)


# -- experience ---------------------------------------------------------------------------------------
def record(
    at_ms: int = 0, *, ok: bool = True, words: str = "list issues", **more: object
) -> Record:
    given: dict[str, object] = {
        "tool": "t",
        "at_ms": at_ms,
        "ok": ok,
        "words": tuple(content_terms(words)),
    }
    return Record(**(given | more))  # type: ignore[arg-type]


def test_the_formula(tmp_path: Path) -> None:
    clock = FakeClock()
    kept = Experience(tmp_path, clock)
    now = clock.now_ms()
    kept.add(record(now, words="list issues"))
    assert kept.score("t", "list issues") == pytest.approx(1.0)
    assert kept.score("other", "list issues") == 0.0
    assert kept.score("t", "weather") == 0.0
    kept.add(record(now - 100 * HOUR_MS, ok=False, words="list issues"))
    assert kept.score("t", "list issues") == pytest.approx((1 - 0.3 * 2.718281828**-1) / 2)
    for _ in range(9):
        kept.add(record(now, ok=False, words="list issues"))
    assert kept.score("t", "list issues") == 0.0


def test_it_is_durable_bounded_and_forgettable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experience, "RECORDS_MAX", 20)
    monkeypatch.setattr(experience, "SLACK", 5)
    clock = FakeClock()
    kept = Experience(tmp_path, clock)
    for n in range(60):
        kept.add(record(n, conversation="odd" if n % 2 else "even"))
    (path,) = tmp_path.iterdir()
    assert len(path.read_bytes().split(b"\n")) <= 26
    with path.open("ab") as stream:
        stream.write(b'\n{"at_ms": 7, "too')  # a crash tore it
    again = Experience(tmp_path, clock)
    assert [one.at_ms for one in again.records] == list(range(40, 60))
    assert again.forget(lambda one: one.conversation == "odd") == 10
    assert b"odd" not in path.read_bytes()
    again.add(record(99))
    assert len(Experience(tmp_path, clock).records) == 11


# -- tool memory --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("command", "shape"),
    [
        ("npm test -- --watch", "npm test"),
        ("FOO=1 sudo npm run build && ls", "npm run"),
        ("/usr/bin/python3 -m pytest -q", "python3 -m pytest"),
        ("python x.py", "python"),
        ("git -C . status", "git status"),
        ("ls | wc", "ls"),
        ("'unclosed", "'unclosed"),
        ("  ", ""),
    ],
)
def test_shapes_of_commands(command: str, shape: str) -> None:
    assert shape_of("shell", Plan(command=command)) == shape


def test_only_commands_and_foreign_tools_have_a_shape() -> None:
    assert shape_of("file_edit", Plan()) == ""
    assert shape_of("hub__open_issue", Plan()) == "hub__open_issue"


NOT_FOUND = ExecutorResult(ok=False, text="exit code 127\nnpm: not found", summary="exit code 127")
RED = ExecutorResult(ok=False, text="exit code 1\n3 failed", summary="exit code 1")
FINE = ExecutorResult(ok=True, text="exit code 0\nok", summary="exit code 0")
ERROR = ExecutorResult(ok=False, text="it is broken", summary="failed")
OUTAGE = ExecutorResult(ok=False, text="the server is away", summary="away", teaches=False)


def lessons(tmp_path: Path) -> tuple[Lessons, FakeClock]:
    clock = FakeClock()
    return Lessons(Experience(tmp_path, clock), clock), clock


def npm(question: str = "build it", project: str = "p") -> Situation:
    return Situation(tool="shell", shape="npm test", project=project, question=question)


def test_what_cannot_work_here_is_warned_of_then_barred(tmp_path: Path) -> None:
    learned, _ = lessons(tmp_path)
    assert learned.advise(npm()).counsel is Counsel.NONE
    learned.learn(npm(), NOT_FOUND)
    assert learned.advise(npm()).counsel is Counsel.WARN
    learned.learn(npm(), NOT_FOUND)
    advice = learned.advise(npm())
    assert advice.counsel is Counsel.VETO
    assert advice.failing == pytest.approx((6 + 0.4) / 8)
    assert advice.warning("npm test") == "npm test failed 2 of 2 times here: exit code 127."
    # Elsewhere it may work, and the user's own word counts more.
    assert learned.advise(npm(project="q")).counsel is Counsel.NONE
    assert learned.advise(npm("run npm test again")).counsel is Counsel.WARN


def test_a_red_test_run_is_no_failure_of_the_tool(tmp_path: Path) -> None:
    learned, _ = lessons(tmp_path)
    for _ in range(30):
        learned.learn(npm(), RED)
    assert learned.advise(npm()).counsel is Counsel.NONE


def test_an_outage_teaches_nothing(tmp_path: Path) -> None:
    learned, _ = lessons(tmp_path)
    for _ in range(30):
        learned.learn(npm(), OUTAGE)
    assert not learned.experience.records


def test_a_success_outweighs_and_time_heals(tmp_path: Path) -> None:
    learned, clock = lessons(tmp_path)
    hub = Situation(tool="hub__x", shape="hub__x", project="p")
    for _ in range(6):
        learned.learn(hub, ERROR)
    assert learned.advise(hub).counsel is Counsel.VETO
    clock.advance(12 * 3600)
    assert learned.advise(hub).counsel is not Counsel.VETO
    learned.learn(hub, ExecutorResult(ok=True, text="x", summary=""))
    assert learned.advise(hub).counsel is Counsel.WORKS


def test_the_user_sees_it_and_can_have_it_forgotten(tmp_path: Path) -> None:
    learned, _ = lessons(tmp_path)
    for _ in range(2):
        learned.learn(npm(), NOT_FOUND)
    learned.learn(npm(project="q"), FINE)
    seen = learned.situations()
    assert [(s.shape, s.project, a.counsel) for s, a in seen.items()] == [
        ("npm test", "p", Counsel.VETO),
        ("npm test", "q", Counsel.WORKS),
    ]
    assert learned.forget(next(iter(seen))) == 2
    assert learned.advise(npm()).counsel is Counsel.NONE
    assert len(learned.situations()) == 1


def test_secrets_are_not_kept(tmp_path: Path) -> None:
    learned, _ = lessons(tmp_path)
    failed = ExecutorResult(ok=False, text="token=abcdef1234567890 refused", summary="")
    learned.learn(Situation(tool="a__b", shape="a__b"), failed)
    assert "refused" in learned.experience.records[-1].why
    assert "abcdef1234567890" not in json.dumps([str(one) for one in learned.experience.records])
