"""Bytes of a page to text: a byte order mark, what the server or the page declares, else what the bytes look like. Pure.

Declared names are read as browsers read them: most that say GB2312 mean its superset, most that say Latin-1 mean Windows'.
"""

from __future__ import annotations

import codecs
import re

from growbox_app.ingest.decoding import NotText, decode

HEAD_BYTES = 4_096
SNIFFED_BYTES = 16_384
BROKEN_MAX = 0.02
"""More characters than this share that are none: the declaration is wrong."""
COMMON_MIN = 0.2
_IN_PAGE = re.compile(
    rb"<meta[^>]{0,500}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})|<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]{1,40})",
    re.IGNORECASE,
)
_SAME = {
    "utf8": "utf-8", "unicode-1-1-utf-8": "utf-8",
    "gb2312": "gb18030", "gb_2312-80": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "cp936": "gb18030", "hz-gb-2312": "hz",
    "big5": "big5hkscs", "big5-hkscs": "big5hkscs", "x-x-big5": "big5hkscs", "cp950": "big5hkscs",
    "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "x-sjis": "cp932", "ms_kanji": "cp932", "windows-31j": "cp932",
    "euc-kr": "cp949", "ks_c_5601-1987": "cp949", "windows-949": "cp949", "x-euc-jp": "euc-jp",
    "iso-8859-1": "cp1252", "iso8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252",
    "iso-8859-9": "cp1254", "tis-620": "cp874", "windows-874": "cp874", "utf-16": "utf-16-le",
}  # fmt: skip
_AS_NAMED = re.compile(
    r"utf-8|utf-16(le|be|-le|-be)|gb18030|euc-jp|iso-2022-jp|hz|koi8-[ru]|windows-125[0-8]|iso-8859-([2-8]|1[03-6])|mac-?roman"
)
"""Python knows more, and among them some that are slow on purpose-made bytes, or no charsets at all."""
_COMMON = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实"
    "這個們來為國說時會對過發後裡還進樣實經麼當沒動學開從現頁網們與號電話點"
    "ぁあいうえおかがきくけこさしすせそただちっつてでとなにのはひへほまみむもやゆよらりるれろをんアイウエオカキクグケコサシスセソタチッテデトドナニネノハバパヒビフプヘベペホボポマミムメモャュョラリルレロンー"
    "이다는을의에가하고로를은도한지서사기"
)
_GUESSES = ("gb18030", "big5hkscs", "cp932", "euc-jp", "cp949")


def page_text(data: bytes, declared: str) -> str:
    """The text of a page. `declared` is what the server said, or empty.

    Raises:
        NotText: it has none.
    """
    marked = data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if marked:
        return decode(data)
    for name in (declared, _in_page(data)):
        encoding = _encoding(name)
        text = data.decode(encoding, "replace") if encoding else ""
        if encoding and text.count("\ufffd") <= BROKEN_MAX * len(text):
            if "\0" in text[:HEAD_BYTES]:
                raise NotText(binary=True)
            return text
    return _guessed(data)


def _in_page(data: bytes) -> str:
    """What the page says of itself. That it is UTF-16 it could not say in letters that are read here."""
    match = _IN_PAGE.search(data[:HEAD_BYTES])
    if match is None:
        return ""
    name = (match[1] or match[2]).decode("ascii").lower()
    return "utf-8" if name.startswith("utf-16") else name


def _encoding(name: str) -> str:
    """Python's name of a declared charset; empty when it is none of the web's."""
    name = name.strip().lower()
    name = _SAME.get(name, name)
    known = _AS_NAMED.fullmatch(name) or name in _SAME.values()
    return name if known else ""


def _guessed(data: bytes) -> str:
    """UTF-8 when it is; else the Eastern charset in which common characters appear; else what a file of these bytes would be."""
    if b"\0" in data[:SNIFFED_BYTES]:
        raise NotText(binary=True)
    with_name = [(_share(data[:SNIFFED_BYTES], name), name) for name in _GUESSES]
    share, best = max(with_name, key=lambda one: one[0])
    if share >= COMMON_MIN and not _is_utf8(data):
        return data.decode(best, "replace")
    return decode(data)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _share(head: bytes, encoding: str) -> float:
    """How many of the characters beyond ASCII are common ones; 0 when the bytes are not of this charset."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        text = decoder.decode(head)  # the last character may be cut
    except UnicodeDecodeError:
        return 0.0
    beyond = [character for character in text if character > "\x7f"]
    return sum(character in _COMMON for character in beyond) / len(beyond) if beyond else 0.0
