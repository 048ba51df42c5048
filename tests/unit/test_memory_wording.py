"""Which questions are one question in other words."""

from __future__ import annotations

import pytest

from memory.config import LearningConfig
from memory.recall.wording import Match, Wanted, matched, wanted

CONFIG = LearningConfig(same_question=1.0, near_question=0.8)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("When did Ann apply?", Wanted.TIME),
        ("On which day did Ann apply?", Wanted.TIME),
        ("How long has Ann been there?", Wanted.TIME),
        ("我什么时候申请的？", Wanted.TIME),
        ("她在那里多久了？", Wanted.TIME),
        ("Why did Ann apply?", Wanted.REASON),
        ("What was her reason for that?", Wanted.REASON),
        ("她为什么申请？", Wanted.REASON),
        ("How many children has Ann?", Wanted.AMOUNT),
        ("她有几个孩子？", Wanted.AMOUNT),
        ("一共多少钱？", Wanted.AMOUNT),
        ("What does Ann do when she is tired?", Wanted.OTHER),
        ("Where does she live?", Wanted.OTHER),
        ("她住在哪里？", Wanted.OTHER),
        ("Is Ann single?", Wanted.WHETHER),
        ("安娜单身吗？", Wanted.WHETHER),
        ("Is Ann single or married?", Wanted.OTHER),
        ("Can you tell me when Ann is back?", Wanted.TIME),
        ("你知道安娜什么时候回来吗？", Wanted.TIME),
        ("When Ann is to be back?", Wanted.TIME),
        ("the name of the box", Wanted.OTHER),
        ("When hiking, what does Ann like?", Wanted.OTHER),
    ],
)
def test_the_first_question_word_says_what_is_asked_for(text, kind):
    assert wanted(text) is kind


@pytest.mark.parametrize(
    ("text", "stored", "likeness", "found"),
    [
        ("On what day did Ann apply?", "when did ann apply?", 1.1, Match(query=7, same=True)),
        ("On what day did Ann apply?", "when did ann apply?", 0.9, Match(query=7, same=False)),
        ("On what day did Ann apply?", "when did ann apply?", 0.7, None),
        ("Why did Ann apply?", "when did ann apply?", 1.3, None),
        ("When did Bob apply?", "when did ann apply?", 1.1, None),
        ("她为什么申请？", "她什么时候申请？", 1.3, None),
        ("What is on port 8443?", "what is on port 8080?", 1.2, None),
        ("What does Bob like?", "what does ann like?", 1.2, None),
        (
            "What does Ann's mother like?",
            "what does ann's mum like?",
            1.2,
            Match(query=7, same=True),
        ),
    ],
)
def test_nearness_kind_and_names_decide(text, stored, likeness, found):
    assert matched(text, {7: stored}, {7: likeness}, CONFIG) == found


def test_the_nearest_that_asks_for_the_same_wins():
    known = {1: "why did ann apply?", 2: "what is it?", 3: "when did ann ask?", 4: "when is it?"}
    likeness = {1: 1.4, 2: 1.3, 3: 1.1, 4: 0.9}
    assert matched("When did Ann apply?", known, likeness, CONFIG) == Match(query=3, same=True)
    assert matched("When did Ann apply?", {}, {}, CONFIG) is None
