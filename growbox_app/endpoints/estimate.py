"""How many tokens a text may be for a model whose tokenizer is not here: an estimate that errs upwards.

Pure. Letters of ASCII words come two and a half to a token at worst, digits and signs one by one, ideographs three tokens for
two, everything else by its bytes. Against tokenizers of today this is a third more than they need for prose and code.
"""

from __future__ import annotations

import math
import re

_LETTERS = re.compile(r"[A-Za-z]+")
_BLANKS = re.compile(r"[ \t]+|\n+")
LETTERS_PER_TOKEN = 2.5
BLANKS_PER_TOKEN = 4
IDEOGRAPH_TOKENS = 1.5
_IDEOGRAPHS = re.compile("[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uff00-\uffef]")


def estimate(text: str) -> int:
    """Tokens of a text, rather too many than too few."""
    letters: int = sum(math.ceil(len(run) / LETTERS_PER_TOKEN) for run in _LETTERS.findall(text))
    rest = _LETTERS.sub("", text)
    blanks: int = sum(
        math.ceil(len(run) / BLANKS_PER_TOKEN) - (run == " ") for run in _BLANKS.findall(rest)
    )
    rest = _BLANKS.sub("", rest)
    ideographs = len(_IDEOGRAPHS.findall(rest))
    others = len(_IDEOGRAPHS.sub("", rest).encode("utf-8", "replace"))
    return letters + blanks + math.ceil(ideographs * IDEOGRAPH_TOKENS) + others
