"""A model's tokenizer, with content kept apart from template pieces, and the renderer of conversations.

The native module is handed in: only `host.py` imports llama_cpp.
"""

from __future__ import annotations

import collections
import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

from growbox_app.engine import protocol as p
from growbox_app.engine.template import ChatTemplate, Piece, Segment, Slot


class Tokenizer:
    """Tokenises content apart from template pieces, and turns ids into bytes."""

    CACHE_CHARACTERS = 4_000_000

    def __init__(self, llama: Any, model: Any) -> None:
        self._llama = llama
        self.vocabulary = llama.llama_model_get_vocab(model)
        self.size = llama.llama_vocab_n_tokens(self.vocabulary)
        self._cache: collections.OrderedDict[str, list[int]] = collections.OrderedDict()
        self._cached_characters = 0
        self._markup = self._markup_words()
        self._pieces: dict[int, bytes] = {}

    def _markup_words(self) -> list[str]:
        """User-defined tokens that look like markup; llama.cpp matches them even where specials are off."""
        words = []
        for token in range(self.size):
            if self._llama.llama_vocab_get_attr(self.vocabulary, token) & 16:
                text = self._llama.llama_vocab_get_text(self.vocabulary, token).decode()
                if len(text) > 2 and text[0] in "<[" and text[-1] in ">]":
                    words.append(text)
        return words

    def raw(self, text: str, *, special: bool, add_special: bool = False) -> list[int]:
        """Tokenises one string in one call."""
        data = text.encode("utf-8", errors="replace")
        capacity = len(data) + 8
        while True:
            tokens = (ctypes.c_int32 * capacity)()
            count = self._llama.llama_tokenize(
                self.vocabulary, data, len(data), tokens, capacity, add_special, special
            )
            if count >= 0:
                return list(tokens[:count])
            capacity = -count

    def content(self, text: str) -> list[int]:
        """Ids of content: never a control token, never a markup token. Cached."""
        cached = self._cache.get(text)
        if cached is not None:
            self._cache.move_to_end(text)
            return cached
        ids: list[int] = []
        for piece in self._without_markup(text):
            ids += self.raw(piece, special=False)
        self._remember(text, ids)
        return ids

    def _without_markup(self, text: str) -> Iterator[str]:
        """Cuts inside every markup word, so that it cannot be matched as one token."""
        cuts = [0]
        for word in self._markup:
            start = text.find(word)
            while start >= 0:
                cuts.append(start + 1)
                start = text.find(word, start + 1)
        cuts = sorted(set(cuts))
        for begin, end in zip(cuts, [*cuts[1:], len(text)], strict=True):
            if begin < end:
                yield text[begin:end]

    def _remember(self, text: str, ids: list[int]) -> None:
        self._cache[text] = ids
        self._cached_characters += len(text)
        while self._cached_characters > self.CACHE_CHARACTERS:
            old, _ = self._cache.popitem(last=False)
            self._cached_characters -= len(old)

    def piece(self, token: int) -> bytes:
        """The bytes of a token; control tokens have none."""
        known = self._pieces.get(token)
        if known is None:
            buffer = ctypes.create_string_buffer(256)
            length = self._llama.llama_token_to_piece(
                self.vocabulary, token, buffer, len(buffer), 0, False
            )
            known = buffer.raw[: max(length, 0)]
            self._pieces[token] = known
        return known

    def ends(self, token: int) -> bool:
        """True for a token that ends the answer."""
        return bool(self._llama.llama_vocab_is_eog(self.vocabulary, token))

    def text_of(self, token: int) -> str:
        """The vocabulary's own spelling of a token; empty for -1."""
        if token < 0:
            return ""
        return str(self._llama.llama_vocab_get_text(self.vocabulary, token).decode())


class Renderer:
    """Turns messages into token ids by the model's own template."""

    def __init__(self, llama: Any, model: Any, tokenizer: Tokenizer) -> None:
        source = llama.llama_model_chat_template(model, None)
        vocabulary = tokenizer.vocabulary
        self.tokenizer = tokenizer
        self._bos = llama.llama_vocab_bos(vocabulary)
        self._adds_bos = bool(llama.llama_vocab_get_add_bos(vocabulary)) and self._bos >= 0
        self._template = ChatTemplate(
            (source or b"").decode("utf-8", errors="replace"),
            bos=tokenizer.text_of(self._bos),
            eos=tokenizer.text_of(llama.llama_vocab_eos(vocabulary)),
        )

    def ids(self, messages: Sequence[p.Message], date: str, *, generate: bool = True) -> list[int]:
        """Ids of the rendered conversation."""
        segments = self._template.segments(messages, date=date, generate=generate)
        return self._ids_of(segments, messages)

    def certain(self, messages: Sequence[p.Message], date: str) -> list[int]:
        """Ids that every continuation of a conversation begins with, whatever is said next.

        The next words join a user message that stands last; behind anything else they open a new one.
        """
        joins = messages[-1].role == "user"
        rows = [*messages] if joins else [*messages, p.Message(role="user", parts=("",))]
        segments = self._template.segments(rows, date=date)
        last = max(at for at, segment in enumerate(segments) if isinstance(segment, Slot))
        return self._ids_of(segments[: last + joins], rows)

    def around(self, messages: Sequence[p.Message], date: str) -> tuple[list[int], list[int]]:
        """What stands before and behind the content of the last message, when the model answers next."""
        segments = self._template.segments(messages, date=date)
        last = max(at for at, segment in enumerate(segments) if isinstance(segment, Slot))
        tail = [segment for segment in segments[last + 1 :] if isinstance(segment, Piece)]
        behind = [token for piece in tail for token in self.tokenizer.raw(piece.text, special=True)]
        return self._ids_of(segments[:last], messages), behind

    def _ids_of(self, segments: Sequence[Segment], messages: Sequence[p.Message]) -> list[int]:
        ids: list[int] = []
        for segment in segments:
            if isinstance(segment, Piece):
                ids += self.tokenizer.raw(segment.text, special=True)
                continue
            message = messages[segment.index]
            if message.ids is not None:
                ids += message.ids
            for part in message.parts:
                ids += self.tokenizer.content(part)
        if self._adds_bos and ids[:1] != [self._bos]:
            ids.insert(0, self._bos)
        return ids

    def overheads(self) -> tuple[int, int, int]:
        """Template tokens around (system + generation prompt, one user message, one assistant message)."""
        count = len(self.tokenizer.content("x"))
        row = [
            p.Message(role=role, parts=("x",)) for role in ("system", "user", "assistant", "user")
        ]
        date = "2000-01-01"
        one = len(self.ids(row[:2], date)) - 2 * count
        three = len(self.ids(row, date)) - 4 * count
        bare = len(self.ids(row[:2], date, generate=False)) - 2 * count
        user = len(self.ids(row[:4], date, generate=False)) - len(
            self.ids(row[:3], date, generate=False)
        )
        user -= count
        return one - user, user, max(three - one - user, one - bare)

    def prefix_stable(self) -> bool:
        """Whether each rendering of a growing conversation is a token prefix of the next."""
        answer = p.Message(role="assistant", ids=tuple(self.tokenizer.content("Yes, of course.")))
        turns = [p.Message(role="system", parts=("Be kind.",))]
        date = "2000-01-01"
        before: list[int] = []
        for text in ("Hello", "  and\n\nthen?", "你好"):
            turns.append(p.Message(role="user", parts=(text,)))
            now = self.ids(turns, date)
            if now[: len(before)] != before:
                return False
            before = now + list(answer.ids or ())
            turns.append(answer)
        return True
