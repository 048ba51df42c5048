"""Small parts of a grammar in GBNF, the notation of llama.cpp. Pure."""

from __future__ import annotations

import json


def literal(text: str) -> str:
    """A GBNF terminal."""
    return json.dumps(text, ensure_ascii=False)


def in_class(character: str) -> str:
    """A character as it stands in a class."""
    return f"\\x{ord(character):02x}" if character in "]\\^-[" else character


def opening(words: str) -> str:
    """The words, and behind a letter no other one: a token that begins like their last would change them."""
    ends_in_letter = words[-1:].isascii() and words[-1:].isalnum()
    return literal(words) + (" [^A-Za-z0-9\\x00\\n<{}]" if ends_in_letter else "")
