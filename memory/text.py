"""Text as the lexical index sees it: normalisation, terms, questions.

Pure functions, any thread. `TERMS_VERSION` names the algorithm: the lexical index remembers the version it was built with
and is rebuilt when it changes, so improving this file needs no migration.

Han, Kana and Hangul (and scripts that write without spaces) become uni- and bigrams; everything else becomes words, the
parts of identifiers, and lightly stemmed English. Measured on Chinese, bare `unicode61` finds 16.5 of 100 paragraphs and
pre-split bigrams 99.5. Source: design 4.4, memory_anchors 2e.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

TERMS_VERSION = "1"

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"  # Jamo, Kana
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"  # Han, Hangul
    "\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[\\w\u0300-\u036f])+")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_UNSPACED_START = re.compile(f"[{_UNSPACED}]")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")
_NO_LETTERS = re.compile(r"[\W\d_]+")
_CODE_MARK = re.compile(r"[(){}=_;<>]")
_CODE_MARKS_MIN = 3  # one pair of brackets makes no code
_CODE_START = re.compile(
    r"\s*(?:@\w+|(?:async )?def |class \w+|fn |func |function |#include|import \w|from \w[\w.]* import )"
)
_CODE_NAME = re.compile(r"\w_\w|[a-z][A-Z]|\w\(\)|::|\w\.[a-z]\w")
_SPEAKER = re.compile(r"([^\W\d_][^\n:：]{0,39}?)[:：]\s")
_SENTENCE_END = re.compile(r"(?<=[。！？!?；;\n])|(?<=\.)(?=\s)")

_STOP_TEXT = (
    "a an the this that these those i me my mine we us our you your he him his she her it its "
    "they them their is am are was were be been being do does did done doing have has had "
    "having will would shall should can could may might must to of in on at by for with from "
    "about into over under as and or but if then than so not no yes what which who whom whose "
    "when where why how there here please tell let s t m re ve ll d some any all just also "
    "very too up out again"
    " hello hi hey thanks thank thx bye goodbye ok okay sorry"
)
_STOP_WORDS = frozenset(_STOP_TEXT.split())
_STOP_CHARACTERS = frozenset(
    "我你您他她它们咱的地得了着过吗呢吧啊呀嘛是在和与或就也都还又很最这那哪个什么怎样谁几多少为被把给请让对"
    "从到向于而且但并其之所以如若因跟同些此该每只再已会能可要想没不有去来说"
)
_STOP_PAIRS = frozenset(("谢谢", "你好", "您好", "再见", "好的", "哈喽", "早安", "晚安"))
_QUESTION_START = re.compile(
    r"(?:what|which|who|whom|whose|when|where|why|how|do|does|did|is|are|am|was|were|can|could|will|would|should|may"
    r"|have|has|had|什么|哪|谁|怎么|怎样|为什么|为何|如何|几|多少|是否|能不能|可不可以|有没有)"
)
_QUESTION_START_WORDS = re.compile(rf"{_QUESTION_START.pattern}\b", re.ASCII)
_QUESTION_END = re.compile(r"[?？][\"'”’」）)\s]*$|[吗呢么][。.!！~～…\s]*$")
_QUESTION_WORD = re.compile(
    r"哪[个些里儿位种]?|什么|怎么|为什么|多少|谁|几[个点]|是不是|有没有|能不能"
)


def storable(text: str) -> str:
    """Replaces lone surrogates, which no UTF-8 store can hold, by U+FFFD; everything else is untouched."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


def normalise(text: str) -> str:
    """NFKC, outer white space off: full-width and half-width forms become one."""
    return unicodedata.normalize("NFKC", text).strip()


def folded(text: str) -> str:
    """The form in which substrings are compared: NFKC and case-folded."""
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    return text.casefold()


def terms(text: str) -> list[str]:
    """All index terms of a text, in order, repeats included."""
    found: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text)):
        if _UNSPACED_START.match(run):
            found.extend(run)
            found.extend(run[i : i + 2] for i in range(len(run) - 1))
        else:
            found.extend(_word_terms(run))
    return found


def _word_terms(word: str) -> list[str]:
    whole = word.strip("_")
    if not whole:
        return []
    parts = _PART.findall(whole)
    if len(parts) <= 1:
        return [stem(whole.casefold())]
    return [whole.casefold(), *(stem(part.casefold()) for part in parts)]


def stem(word: str) -> str:
    """A light English stemmer: plural, -ing, -ed, final e. Others' words pass through.

    Porter's full algorithm was not taken: it conflates `universe` with `university`, and both sides only need the same key.
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= 3 and re.search("[aeiouy]", rest):
            word = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def content_terms(text: str) -> list[str]:
    """Distinct terms that carry meaning, for a query; none for "hello" or "who am I".

    Bigrams with a stop character in them and single characters beside bigrams say little and are left out.
    """
    found = list(dict.fromkeys(terms(text)))
    pairs = [t for t in found if is_pair(t) and not _STOP_CHARACTERS.intersection(t)]
    pairs = [t for t in pairs if t not in _STOP_PAIRS]
    greetings = {c for pair in _STOP_PAIRS.intersection(found) for c in pair}
    paired = set("".join(pairs))
    singles = [
        t
        for t in found
        if _is_single(t) and t not in _STOP_CHARACTERS and t not in paired | greetings
    ]
    words = [t for t in found if not _UNSPACED_START.match(t) and t not in _STOP_STEMS]
    chosen = set(pairs) | set(singles) | set(words)
    return [t for t in found if t in chosen]


def _is_single(term: str) -> bool:
    return len(term) == 1 and _UNSPACED_START.match(term) is not None


def any_terms(text: str) -> bool:
    """False for a text of symbols only."""
    return _RUN.search(text) is not None and bool(terms(text))


def is_pair(term: str) -> bool:
    """True for a bigram of a script without spaces."""
    return len(term) == 2 and _UNSPACED_START.match(term) is not None


_STOP_STEMS = _STOP_WORDS | {stem(word) for word in _STOP_WORDS}


def match_expression(query_terms: Iterable[str]) -> str:
    """An FTS5 expression that matches any of the terms; each is quoted, so no term can be syntax."""
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in query_terms)


def inverse_frequency(documents: int, frequency: int) -> float:
    """BM25's never-negative idf."""
    return math.log1p((documents - frequency + 0.5) / (frequency + 0.5))


def coverage(
    weights: Mapping[str, float],
    own: frozenset[str],
    near: frozenset[str] = frozenset(),
    near_credit: float = 0.0,
) -> float:
    """The idf-weighted share of the query's terms that a text has.

    Args:
        weights: idf per query term, > 0.
        own: the text's own terms.
        near: terms of neighbouring messages.
        near_credit: 0..1, what a term counts that only stands in a neighbour.

    Returns:
        0..1.
    """
    total = sum(weights.values())
    if total <= 0.0:
        return 0.0
    found = sum(
        weight if term in own else near_credit * weight
        for term, weight in weights.items()
        if term in own or term in near
    )
    return min(1.0, found / total)


def overlap(left: frozenset[str], right: frozenset[str]) -> float:
    """Jaccard index of two term sets; two empty sets do not overlap."""
    union = len(left | right)
    return len(left & right) / union if union else 0.0


def is_question(text: str) -> bool:
    """True when a text only asks: every sentence of weight in it is a question.

    "My database is DuckDB. Which one is yours?" also states something and is no mere question.
    """
    found = sentences(text)
    return bool(found) and all(_asks(s) for s in found)


@lru_cache(maxsize=4096)  # a search asks it of hundreds of heads, mostly of the same ones
def asks(text: str) -> bool:
    """True when some sentence of a text is a question, whatever the others are."""
    return any(_asks(s) for s in sentences(text))


def sentences(text: str) -> list[str]:
    """The sentences of a text, normalised, without blank ones."""
    return [s.strip() for s in _SENTENCE_END.split(normalise(text)) if s.strip()]


def _asks(sentence: str) -> bool:
    low = sentence.casefold()
    if _QUESTION_END.search(low) or _QUESTION_START_WORDS.match(low):
        return True
    if _UNSPACED_START.match(low):
        return _QUESTION_START.match(low) is not None or (
            len(low) <= 24 and _QUESTION_WORD.search(low) is not None
        )
    return False


def is_code(text: str, share: float = 0.03) -> bool:
    """True when a text looks like source code: by its first words, or by the share of marks that prose seldom has."""
    head = text[:1000]
    if _CODE_START.match(head):
        return True
    marks = len(_CODE_MARK.findall(head))
    return marks >= max(_CODE_MARKS_MIN, share * len(head)) and not is_unspaced(head)


def names_code(text: str) -> bool:
    """True when a question names an identifier: `parse_header`, `parseHeader`, `os.path`, `main()`."""
    return _CODE_NAME.search(text) is not None


def speaker(text: str) -> str:
    """Who speaks in a line of a transcript ("Ann: …"), case-folded; "" for other texts."""
    found = _SPEAKER.match(text)
    return found.group(1).casefold() if found else ""


def is_unspaced(text: str, share: float = 0.2) -> bool:
    """True when a good share of a text's letters are of scripts written without spaces."""
    head = text[:500]
    letters = len(_NO_LETTERS.sub("", head))
    unspaced = sum(len(run) for run in _UNSPACED_RUN.findall(head))
    return letters > 0 and unspaced >= share * letters


def title(text: str, characters_max: int = 60) -> str:
    """The first line of a text that has anything on it, cut for a list."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= characters_max else line[: characters_max - 1] + "…"
