"""The stage machine of known kinds of work: what is looked at first, which calls make sense now, what follows from a result. Pure.

reproduce → look → edit → verify → answer. What follows by rule – running the tests after a change, searching a name that is to be
renamed – is called by the machine itself, through the same hands as any call; what needs language is left to the model, with few tools in view. The view
is narrowed through the grammar of a call only: the prompt's prefix never changes. Nothing here knows a task; a request of no known kind leaves the
model as free as it is without this.

`works/work.py` is what all kinds have in common; each kind is a class of its own. Source: design 5.1.
"""

from __future__ import annotations

from collections.abc import Mapping

from growbox_app.agent.kinds import Kind, understood
from growbox_app.agent.survey import Survey
from growbox_app.agent.works.questions import Explain, Find, Run, Summarise
from growbox_app.agent.works.tested import Add, Fix
from growbox_app.agent.works.work import Work
from growbox_app.agent.works.writing import Change, Rename, Script, Writing

WORKS: Mapping[Kind, type[Work]] = {
    Kind.FIND: Find,
    Kind.EXPLAIN: Explain,
    Kind.SUMMARISE: Summarise,
    Kind.RUN: Run,
    Kind.RENAME: Rename,
    Kind.CHANGE: Change,
    Kind.SCRIPT: Script,
    Kind.FIX: Fix,
    Kind.ADD: Add,
}


def begin(text: str, survey: Survey, *, about_the_past: bool = False) -> Work | None:
    """The work that a request asks for, before anything was done.

    Returns:
        None when it is of no known kind; a question about what was said before is for the memory and not for the project.
    """
    request = understood(text, survey.files)
    kind = WORKS.get(request.kind)
    if kind is None or (about_the_past and not issubclass(kind, Writing)):
        return None
    work = kind(request, survey)
    work.start()
    return work
