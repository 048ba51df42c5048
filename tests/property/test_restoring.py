"""Properties of the judgement behind a restore: the agent's work goes back, nobody else's is lost."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from growbox_app.shadow.restoring import Fate, Step, judge
from growbox_app.shadow.values import ABSENT, STAMP_MODE, Entry, SkipReason, Snapshot

PATHS = [b"a", b"b", b"dir/c"]
CONTENT = st.one_of(
    st.just(ABSENT), st.integers(0, 3).map(lambda number: Entry(0o100644, b"%d" % number))
)
EDITS = st.dictionaries(st.sampled_from(PATHS), CONTENT, max_size=2)


def snapshot(files: dict[bytes, Entry]) -> Snapshot:
    return Snapshot(entries={path: entry for path, entry in files.items() if entry != ABSENT})


@given(EDITS, st.lists(st.tuples(EDITS, EDITS), min_size=1, max_size=4))
def test_the_agents_work_goes_back_and_nobody_elses_is_lost(first, calls):
    """Each call is followed by what a person does; `calls` are pairs of both."""
    files = {path: first.get(path, ABSENT) for path in PATHS}
    start = dict(files)
    steps, by_agent, by_person = [], set(), set()
    for agent, person in calls:
        before = snapshot(files)
        by_agent |= {path for path, entry in agent.items() if files[path] != entry}
        files |= agent
        steps.append(Step(before=before, after=snapshot(files)))
        by_person |= {path for path, entry in person.items() if files[path] != entry}
        files |= person
    changes = {change.path: change for change in judge(iter(steps), snapshot(files))}
    assert set(changes) == {path for path in PATHS if files[path] != start[path]}
    for path, change in changes.items():
        assert (change.now, change.then) == (files[path], start[path])
        if path not in by_person:
            assert change.fate is (Fate.REMOVE if start[path] == ABSENT else Fate.RESTORE)
        elif path not in by_agent:
            assert change.fate is Fate.KEEP
        else:
            assert change.fate is Fate.CONFLICT


FILE = Entry(0o100644, b"1")
OTHER = Entry(0o100644, b"2")
STAMP = Entry(STAMP_MODE, b"3")


def test_what_was_left_out_is_unknown_not_new():
    before = Snapshot(entries={}, skipped={b"out": SkipReason.IGNORED})
    shown = Snapshot(entries={b"out/a": FILE})
    assert judge([Step(before=before, after=shown)], shown) == []
    everything = Snapshot(entries={}, skipped={b"": SkipReason.TOO_MANY})
    assert judge([Step(before=everything, after=shown)], shown) == []


def test_a_file_named_by_a_later_call_goes_back_to_what_that_call_found():
    first = Snapshot(entries={}, skipped={b"out": SkipReason.IGNORED})
    found = Snapshot(entries={b"out/a": FILE}, skipped=first.skipped, named=frozenset({b"out/a"}))
    left = Snapshot(entries={b"out/a": OTHER}, skipped=first.skipped, named=found.named)
    (change,) = judge([Step(before=first, after=first), Step(before=found, after=left)], left)
    assert (change.then, change.fate) == (FILE, Fate.RESTORE)


def test_what_was_never_saved_is_said_and_what_cannot_be_saved_is_a_conflict():
    big, small = Snapshot(entries={b"a": STAMP}), Snapshot(entries={b"a": FILE})
    (lost,) = judge([Step(before=big, after=small)], small)
    assert lost.fate is Fate.NOT_SAVED
    (grown,) = judge([Step(before=small, after=big)], big)
    assert grown.fate is Fate.CONFLICT
