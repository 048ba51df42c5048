"""The gate: is what the search shows enough, or should the past be read? Pure.

Two decisions. What *may be shown* is decided page by page, on the score: no page is held back because the search is unsure. Whether
to *stop* there is decided on all pages together: by the chance that the evidence is among those shown and not in another passage
of the pool. A rank is a log-odds, so these chances are its softmax (`Candidate.share`); the chance of a set of pages is the sum.

It is monotone: a passage that is shown and fits better makes the search surer, one that is not shown and fits better makes it
less sure. What can be no evidence (echoes, vetoed memories) and what repeats a page that is kept has no part in it. A page that
this very question has used before is enough by itself (`recaller`): learned pointers are the other way in.

The score says little here: on LoCoMo it tells "shown" from "not shown" with an AUC of 0.56, the chance with 0.75 (CoSQA 0.69 and
0.86, CMRC sentences 0.54 and 0.69). Something fits in words or meaning in nearly every conversation; only the others tell
whether it fits as no other does. At one half a quarter of LoCoMo's questions fall through, half of those whose evidence is not
shown and 15 in 100 of the others; of the answers shown of CoSQA 21 in 100, of CMRC none.
"""

from __future__ import annotations

from collections.abc import Iterable

from memory.recall.hybrid import Candidate


def certainty(shown: Iterable[Candidate], others: Iterable[Candidate], *, beyond: float) -> float:
    """The chance, 0..1, that the evidence is among the candidates shown; 0 where none is.

    Args:
        shown: those that become pages.
        others: the rest that could be evidence, without repetitions of what is kept.
        beyond: the share of passages that are no candidates, for so many others are better.
    """
    own = sum(c.share for c in shown)
    return own / (own + sum(c.share for c in others) + beyond) if own else 0.0
