"""The engine process: llama.cpp behind the worker's `Backend` protocol.

The only module that imports llama_cpp, and only inside the child process. Owns the chat model with two contexts over one
set of weights (foreground: the conversation; background: judging) and the embedding model. Everything here runs on the
process's main thread but `abort`, which only writes one byte. Holds no truth.

Source: design section 3; facts on aborting, states and UTF-8 in reference `desktop_anchors.md` section 3.
"""

from __future__ import annotations

import codecs
import collections
import ctypes
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from growbox_app.engine import native
from growbox_app.engine import protocol as p
from growbox_app.engine.template import ChatTemplate, Piece
from growbox_app.engine.textual import clean_for_embedding, degenerate, judge_messages
from growbox_app.engine.worker import Worker, die_with_parent

PREFILL_SLICE = 128
"""Tokens per decode call in prefill: about a second on a slow laptop, so progress and cancel stay alive."""
EMBED_TOKENS = 512
"""n_ctx = n_batch = n_ubatch of the embedder: an encoder aborts the process when a text exceeds its micro-batch."""
EMBED_SEQUENCES = 8
DELTA_S = 0.03
"""Text goes out at most this often; one frame per token would cost the window a wake-up each."""
SEED_DEFAULT = 1234

Send = Callable[[p.Answer], None]


def run(pipe: Connection) -> None:
    """Entry of the child process."""
    die_with_parent()
    os.environ.update(native.SPIN_ENVIRONMENT)
    Worker(pipe, LlamaBackend()).run()
    os._exit(0)


class NativeLog:
    """The last lines of llama.cpp's own log, so that a failure can show its reason."""

    def __init__(self, llama: Any) -> None:
        self._lines: collections.deque[str] = collections.deque(maxlen=40)
        self._callback = llama.llama_log_callback(self._take)
        llama.llama_log_set(self._callback, ctypes.c_void_p(0))

    def _take(self, level: int, text: bytes, _data: object) -> None:
        if level in (3, 4):  # warn, error
            self._lines.append(text.decode("utf-8", errors="replace").strip())

    def tail(self) -> str:
        """The newest lines, newest last."""
        return "\n".join(list(self._lines)[-4:])


class AbortFlag:
    """One byte that native code polls.

    The abort callback is libc's `strlen` over a two-byte buffer: an empty string reads false, a one-byte string reads true.
    A Python callback here would take the GIL at every graph node of every decode.
    """

    def __init__(self, llama: Any) -> None:
        self._buffer = ctypes.create_string_buffer(2)
        library = ctypes.CDLL(None) if os.name != "nt" else ctypes.cdll.msvcrt
        self.callback = ctypes.cast(library.strlen, llama.ggml_abort_callback)
        self.data = ctypes.cast(self._buffer, ctypes.c_void_p)

    def set(self, on: bool) -> None:
        """Thread-safe: writes one byte."""
        self._buffer[0] = b"\x01" if on else b"\x00"

    def __bool__(self) -> bool:
        return bool(self._buffer.value)


class Sequence0:
    """One context used as one sequence, with the ids that its KV cache holds."""

    def __init__(self, llama: Any, context: Any, abort: AbortFlag) -> None:
        self._llama = llama
        self.context = context
        self._memory = llama.llama_get_memory(context)
        self._abort = abort
        self.ids: list[int] = []

    def keep_prefix(self, ids: Sequence[int]) -> int:
        """Drops what differs from `ids` and returns how many tokens stay. The last is always decoded again."""
        kept = 0
        limit = min(len(self.ids), len(ids) - 1)
        while kept < limit and self.ids[kept] == ids[kept]:
            kept += 1
        self.cut(kept)
        return kept

    def cut(self, length: int) -> None:
        """Forgets everything behind `length`."""
        if not self._llama.llama_memory_seq_rm(self._memory, 0, length, -1):
            self._llama.llama_memory_clear(self._memory, True)
            length = 0
        del self.ids[length:]

    def decode(self, ids: Sequence[int]) -> bool:
        """Decodes up to one micro-batch. False: aborted, and the cache is as before.

        Raises:
            EngineFault: llama.cpp refused.
        """
        tokens = (ctypes.c_int32 * len(ids))(*ids)
        batch = self._llama.llama_batch_get_one(tokens, len(ids))
        code = self._llama.llama_decode(self.context, batch)
        if code == 0:
            self.ids.extend(ids)
            return True
        self.cut(len(self.ids))
        if code == 2 or self._abort:
            return False
        raise p.EngineFault(
            "engine_error", f"llama_decode returned {code}", reason=f"decode {code}"
        )

    def prefill(self, ids: Sequence[int], kept: int, progress: Callable[[int], None]) -> bool:
        """Decodes `ids[kept:]` in slices, telling the count done after each. False: aborted.

        The last token always goes alone: its logits then come from a batch of one, whether the rest was decoded just now,
        reused or restored, so greedy answers do not depend on it (batch size changes float rounding).
        """
        last = len(ids) - 1
        bounds = [*range(kept, last, PREFILL_SLICE), last, len(ids)]
        for start, end in itertools.pairwise(bounds):
            if self._abort or not self.decode(ids[start:end]):
                return False
            progress(end - kept)
        return True

    def logits(self) -> Any:
        """float32[vocabulary] of the last decoded token; valid until the next decode."""
        return self._llama.llama_get_logits_ith(self.context, -1)


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
        self._tokenizer = tokenizer
        self._bos = llama.llama_vocab_bos(vocabulary)
        self._adds_bos = bool(llama.llama_vocab_get_add_bos(vocabulary)) and self._bos >= 0
        self._template = ChatTemplate(
            (source or b"").decode("utf-8", errors="replace"),
            bos=tokenizer.text_of(self._bos),
            eos=tokenizer.text_of(llama.llama_vocab_eos(vocabulary)),
        )

    def ids(self, messages: Sequence[p.Message], date: str, *, generate: bool = True) -> list[int]:
        """Ids of the rendered conversation."""
        ids: list[int] = []
        for segment in self._template.segments(messages, date=date, generate=generate):
            if isinstance(segment, Piece):
                ids += self._tokenizer.raw(segment.text, special=True)
                continue
            message = messages[segment.index]
            if message.ids is not None:
                ids += message.ids
            for part in message.parts:
                ids += self._tokenizer.content(part)
        if self._adds_bos and ids[:1] != [self._bos]:
            ids.insert(0, self._bos)
        return ids

    def overheads(self) -> tuple[int, int, int]:
        """Template tokens around (system + generation prompt, one user message, one assistant message)."""
        count = len(self._tokenizer.content("x"))
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
        answer = p.Message(role="assistant", ids=tuple(self._tokenizer.content("Yes, of course.")))
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


class Embedder:
    """The embedding model: normalised mean-pooled vectors."""

    def __init__(self, llama: Any, path: str, threads: int, abort: AbortFlag) -> None:
        self._llama = llama
        self._abort = abort
        self._model = _load_model(llama, path, None)
        params = llama.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = EMBED_TOKENS
        params.n_seq_max = EMBED_SEQUENCES
        params.kv_unified = True
        params.n_threads = params.n_threads_batch = threads
        params.embeddings = True
        params.abort_callback = abort.callback
        params.abort_callback_data = abort.data
        self._context = llama.llama_init_from_model(self._model, params)
        if not self._context:
            raise p.EngineFault("engine_error", "no embedding context", reason="embedder")
        self._tokenizer = Tokenizer(llama, self._model)
        self.dimension = llama.llama_model_n_embd(self._model)

    def embed(
        self, texts: Sequence[str], kind: str, breathe: Callable[[], None]
    ) -> np.ndarray[Any, np.dtype[np.float32]]:
        """float32[len(texts), dimension], L2-normalised; long texts are averaged over windows by token count."""
        sums = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for batch in _packed(self._windows(texts, kind)):
            breathe()
            vectors = self._encode([window for _, window in batch])
            for (row, window), vector in zip(batch, vectors, strict=True):
                sums[row] += vector * len(window)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        normalised: np.ndarray[Any, np.dtype[np.float32]] = sums / np.maximum(norms, 1e-12)
        return normalised

    def _windows(self, texts: Sequence[str], kind: str) -> Iterator[tuple[int, list[int]]]:
        for row, text in enumerate(texts):
            clean = clean_for_embedding(text)
            ids = self._tokenizer.raw(f"{kind}: {clean}", special=False, add_special=True)
            head, body, tail = ids[:1], ids[1:-1], ids[-1:]
            room = EMBED_TOKENS - 2
            for start in range(0, max(len(body), 1), room):
                yield row, head + body[start : start + room] + tail

    def _encode(self, windows: list[list[int]]) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
        batch = self._llama.llama_batch_init(EMBED_TOKENS, 0, EMBED_SEQUENCES)
        try:
            position = 0
            for sequence, window in enumerate(windows):
                for offset, token in enumerate(window):
                    batch.token[position] = token
                    batch.pos[position] = offset
                    batch.n_seq_id[position] = 1
                    batch.seq_id[position][0] = sequence
                    batch.logits[position] = 1
                    position += 1
            batch.n_tokens = position
            code = self._llama.llama_decode(self._context, batch)
        finally:
            self._llama.llama_batch_free(batch)
        if code != 0:
            cancelled = code == 2 or bool(self._abort)
            raise p.EngineFault("cancelled" if cancelled else "engine_error", f"embedding {code}")
        vectors = []
        for sequence in range(len(windows)):
            pointer = self._llama.llama_get_embeddings_seq(self._context, sequence)
            vector = np.ctypeslib.as_array(pointer, shape=(self.dimension,)).astype(np.float32)
            vectors.append(vector / max(float(np.linalg.norm(vector)), 1e-12))
        return vectors


def _packed(
    windows: Iterator[tuple[int, list[int]]],
) -> Iterator[list[tuple[int, list[int]]]]:
    """Groups windows into batches within the embedder's token and sequence limits."""
    batch: list[tuple[int, list[int]]] = []
    tokens = 0
    for item in windows:
        if batch and (tokens + len(item[1]) > EMBED_TOKENS or len(batch) == EMBED_SEQUENCES):
            yield batch
            batch, tokens = [], 0
        batch.append(item)
        tokens += len(item[1])
    if batch:
        yield batch


class LlamaBackend:
    """Implements `worker.Backend` with llama.cpp."""

    def __init__(self) -> None:
        self._abort: AbortFlag | None = None
        self._abort_wanted = False
        self._log: NativeLog | None = None
        self._llama: Any = None
        self._fingerprint: dict[str, object] = {}
        self._threads = 1
        self._variant = ""

    # -- Backend ------------------------------------------------------------------------------
    def abort(self, on: bool) -> None:
        """See `worker.Backend.abort`."""
        self._abort_wanted = on
        if self._abort is not None:
            self._abort.set(on)

    def load(self, request: p.Load, send: Send) -> p.DoneLoad:
        """See `worker.Backend.load`."""
        started = time.monotonic()
        llama = self._open_library(request.variant)
        self._threads = request.threads
        try:
            self._model = _load_model(llama, request.chat_path, self._progress(request.id, send))
            self._foreground = self._context(request.context_tokens)
            self._background = self._context(request.background_tokens)
            self._tokenizer = Tokenizer(llama, self._model)
            self._renderer = Renderer(llama, self._model, self._tokenizer)
            self._embedder = Embedder(llama, request.embed_path, request.threads, self._flag())
        except p.EngineFault as fault:
            fault.detail = fault.detail or (self._log.tail() if self._log else "")
            raise
        self._fingerprint = {
            "model": request.chat_sha256,
            "llama": _build_name(llama),
            "kv": "f16",
            "context_tokens": llama.llama_n_ctx(self._foreground.context),
        }
        base, user, assistant = self._renderer.overheads()
        return p.DoneLoad(
            id=request.id,
            name=self._description(),
            context_tokens=llama.llama_n_ctx(self._foreground.context),
            tokenizer=request.chat_sha256[:16],
            base_overhead=base,
            user_overhead=user,
            assistant_overhead=assistant,
            prefix_stable=self._renderer.prefix_stable(),
            seconds=time.monotonic() - started,
        )

    def work(self, request: p.Request, send: Send, breathe: Callable[[], None]) -> p.Answer:
        """See `worker.Backend.work`."""
        if self._llama is None or not self._fingerprint:
            raise p.EngineFault("engine_error", "no model is loaded", reason="not loaded")
        match request:
            case p.Count():
                counts = tuple(len(self._tokenizer.content(text)) for text in request.texts)
                return p.DoneCount(id=request.id, counts=counts)
            case p.Measure():
                return self._measure(request)
            case p.Chat():
                return Generation(self, request, send).run()
            case p.Embed():
                vectors = self._embedder.embed(request.texts, request.kind, breathe)
                data = np.ascontiguousarray(vectors, dtype="<f4").tobytes()
                return p.DoneEmbed(
                    id=request.id, rows=len(vectors), dimension=vectors.shape[1], vectors=data
                )
            case p.Judge():
                return self._judge(request, breathe)
            case p.SaveKv():
                return self._save(request)
            case p.RestoreKv():
                return self._restore(request)
            case p.Stats():
                return self._stats(request)
            case _:
                raise p.EngineFault("engine_error", f"cannot do {type(request).__name__}")

    # -- loading ------------------------------------------------------------------------------
    def _open_library(self, variant: str) -> Any:
        if self._llama is not None:
            return self._llama
        import llama_cpp.llama_cpp as llama

        self._log = NativeLog(llama)
        load_variant(variant)
        llama.llama_backend_init()
        self._variant = variant
        self._llama = llama
        self._abort = AbortFlag(llama)
        self._abort.set(self._abort_wanted)
        return llama

    def _flag(self) -> AbortFlag:
        assert self._abort is not None
        return self._abort

    def _progress(self, request_id: int, send: Send) -> Callable[[float], bool]:
        last = [0.0]

        def told(share: float) -> bool:
            if share - last[0] >= 0.01 or share >= 1.0:
                last[0] = share
                send(p.LoadProgress(id=request_id, share=share))
            return not self._abort_wanted

        return told

    def _context(self, tokens: int) -> Sequence0:
        params = self._llama.llama_context_default_params()
        params.n_ctx = tokens
        params.n_batch = params.n_ubatch = 512
        params.n_threads = params.n_threads_batch = self._threads
        params.abort_callback = self._flag().callback
        params.abort_callback_data = self._flag().data
        context = self._llama.llama_init_from_model(self._model, params)
        if not context:
            raise p.EngineFault("not_enough_ram", need=f"{tokens}", free="?")
        return Sequence0(self._llama, context, self._flag())

    def _description(self) -> str:
        buffer = ctypes.create_string_buffer(256)
        self._llama.llama_model_desc(self._model, buffer, len(buffer))
        return buffer.value.decode(errors="replace")

    # -- answers ------------------------------------------------------------------------------
    def _measure(self, request: p.Measure) -> p.DoneMeasure:
        ids = self._renderer.ids(request.messages, request.date)
        cached = 0
        for ours, theirs in zip(self._foreground.ids, ids, strict=False):
            if ours != theirs:
                break
            cached += 1
        return p.DoneMeasure(id=request.id, total=len(ids), cached=cached)

    def _judge(self, request: p.Judge, breathe: Callable[[], None]) -> p.DoneJudge:
        margins: list[float | None] = []
        yes = self._tokenizer.content("Yes")[0]
        no = self._tokenizer.content("No")[0]
        for candidate in request.candidates:
            breathe()
            messages = judge_messages(request, candidate)
            ids = self._renderer.ids(messages, "2000-01-01")
            if len(ids) > self._llama.llama_n_ctx(self._background.context):
                margins.append(None)
                continue
            kept = self._background.keep_prefix(ids)
            if not self._background.prefill(ids, kept, lambda _done: None):
                raise p.EngineFault("cancelled")
            logits = self._background.logits()
            margins.append(float(logits[yes] - logits[no]))
        return p.DoneJudge(id=request.id, margins=tuple(margins))

    def _stats(self, request: p.Stats) -> p.DoneStats:
        return p.DoneStats(
            id=request.id,
            rss_bytes=psutil.Process().memory_info().rss,
            cached_tokens=len(self._foreground.ids),
            threads=self._llama.llama_n_threads(self._foreground.context),
            variant=self._variant,
            waiting=0,
        )

    # -- KV images ----------------------------------------------------------------------------
    def _save(self, request: p.SaveKv) -> p.DoneKv:
        path = Path(request.path)
        ids = self._foreground.ids
        if not ids:
            return p.DoneKv(id=request.id, tokens=0, bytes=0)
        temporary = path.with_suffix(".tmp")
        tokens = (ctypes.c_int32 * len(ids))(*ids)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            size = self._llama.llama_state_seq_save_file(
                self._foreground.context, os.fsencode(temporary), 0, tokens, len(ids)
            )
            if not size:
                raise OSError("llama_state_seq_save_file wrote nothing")
            with temporary.open("rb+") as stream:
                os.fsync(stream.fileno())
            sidecar = dict(self._fingerprint, tokens=len(ids), bytes=temporary.stat().st_size)
            path.with_suffix(".json").unlink(missing_ok=True)
            temporary.replace(path)
            path.with_suffix(".json").write_text(json.dumps(sidecar), encoding="utf-8")
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise p.EngineFault("disk_full", str(error), path=str(path), need="") from error
        return p.DoneKv(id=request.id, tokens=len(ids), bytes=int(size))

    def _restore(self, request: p.RestoreKv) -> p.DoneKv:
        path = Path(request.path)
        cold = p.DoneKv(id=request.id, tokens=0, bytes=0)
        try:
            sidecar = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
            size = path.stat().st_size
        except (OSError, ValueError):
            return cold
        if sidecar != dict(self._fingerprint, tokens=sidecar.get("tokens"), bytes=size):
            return cold
        capacity = int(sidecar["tokens"])
        tokens = (ctypes.c_int32 * capacity)()
        count = ctypes.c_size_t(0)
        self._foreground.cut(0)
        read = self._llama.llama_state_seq_load_file(
            self._foreground.context, os.fsencode(path), 0, tokens, capacity, ctypes.byref(count)
        )
        if not read:
            self._foreground.cut(0)
            return cold
        self._foreground.ids = list(tokens[: count.value])
        return p.DoneKv(id=request.id, tokens=count.value, bytes=size)


class Generation:
    """One answer: prefill with progress, then sampling, until an end, a limit, a loop or a cancel."""

    def __init__(self, backend: LlamaBackend, request: p.Chat, send: Send) -> None:
        self._llama = backend._llama
        self._sequence = backend._foreground
        self._tokenizer = backend._tokenizer
        self._abort = backend._flag()
        self._threads = backend._threads
        self._request = request
        self._send = send
        self._prompt = backend._renderer.ids(request.messages, request.date)
        self._limit = self._llama.llama_n_ctx(self._sequence.context)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._sampled: list[int] = []
        self._unsent_text = ""
        self._unsent_ids: list[int] = []
        self._sent_at = 0.0
        self._pace = Pace(backend._threads)

    def run(self) -> p.DoneChat:
        """Generates; frames go out on the way."""
        if len(self._prompt) + len(self._request.prefix) >= self._limit:
            raise p.EngineFault(
                "prompt_too_long", tokens=str(len(self._prompt)), window=str(self._limit)
            )
        started = time.monotonic()
        ids = self._prompt + list(self._request.prefix)
        kept = self._sequence.keep_prefix(ids)
        complete = self._sequence.prefill(ids, kept, self._progress(started, len(ids) - kept))
        prefill_s = time.monotonic() - started
        reason = "cancelled"
        first_s = 0.0
        if complete:
            for token in self._request.prefix:
                self._decoder.decode(self._tokenizer.piece(token))
            sampler = self._sampler()
            try:
                reason, first_s = self._sample(sampler, started)
            finally:
                self._llama.llama_sampler_free(sampler)
        self._flush(final=True)
        return p.DoneChat(
            id=self._request.id,
            reason=reason,  # type: ignore[arg-type]
            prompt_tokens=len(self._prompt),
            reused_tokens=kept,
            answer_tokens=len(self._sampled),
            prefill_s=prefill_s,
            decode_s=max(time.monotonic() - started - prefill_s, 0.0),
            first_token_s=first_s,
        )

    def _progress(self, started: float, total: int) -> Callable[[int], None]:
        def told(done: int) -> None:
            rate = done / max(time.monotonic() - started, 1e-6)
            frame = p.PrefillProgress(id=self._request.id, done=done, total=total, rate=rate)
            self._send(frame)

        return told

    def _sample(self, sampler: Any, started: float) -> tuple[str, float]:
        first_s = 0.0
        room = min(self._request.max_tokens, self._limit - len(self._sequence.ids) - 1)
        for _ in range(room):
            token = self._llama.llama_sampler_sample(sampler, self._sequence.context, -1)
            if self._tokenizer.ends(token):
                return "stop", first_s
            first_s = first_s or time.monotonic() - started
            self._take(token)
            if degenerate(self._sampled):
                return "loop", first_s
            begun = time.monotonic()
            if self._abort or not self._sequence.decode([token]):
                return "cancelled", first_s
            self._adapt(time.monotonic() - begun)
        return "length", first_s

    def _adapt(self, token_s: float) -> None:
        threads = self._pace.threads_after(token_s)
        if threads != self._threads:
            self._threads = threads
            self._llama.llama_set_n_threads(self._sequence.context, threads, threads)

    def _take(self, token: int) -> None:
        self._sampled.append(token)
        self._unsent_ids.append(token)
        self._unsent_text += self._decoder.decode(self._tokenizer.piece(token))
        if time.monotonic() - self._sent_at >= DELTA_S:
            self._flush()

    def _flush(self, *, final: bool = False) -> None:
        if final:
            self._unsent_text += self._decoder.decode(b"", True)
        if self._unsent_ids or self._unsent_text:
            delta = p.Delta(
                id=self._request.id, text=self._unsent_text, ids=tuple(self._unsent_ids)
            )
            self._send(delta)
            self._unsent_text = ""
            self._unsent_ids = []
            self._sent_at = time.monotonic()

    def _sampler(self) -> Any:
        llama, request = self._llama, self._request
        params = llama.llama_sampler_chain_default_params()
        chain = llama.llama_sampler_chain_init(params)
        spelled = [self._tokenizer.raw(text, special=True) for text in request.barred]
        barred = [ids[0] for ids in spelled if len(ids) == 1]
        if barred:
            biases = (llama.llama_logit_bias * len(barred))(
                *[llama.llama_logit_bias(token, float("-inf")) for token in barred]
            )
            llama.llama_sampler_chain_add(
                chain,
                llama.llama_sampler_init_logit_bias(self._tokenizer.size, len(barred), biases),
            )
        trigger = self._tokenizer.raw(request.trigger, special=True)
        if request.grammar and len(trigger) == 1:
            llama.llama_sampler_chain_add(chain, self._grammar(trigger[0]))
        if request.temperature <= 0:
            llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_greedy())
            return chain
        for sampler in (
            llama.llama_sampler_init_top_k(40),
            llama.llama_sampler_init_top_p(request.top_p, 1),
            llama.llama_sampler_init_temp(request.temperature),
            llama.llama_sampler_init_dist(request.seed),
        ):
            llama.llama_sampler_chain_add(chain, sampler)
        return chain

    def _grammar(self, trigger: int) -> Any:
        """Constrains from the trigger token on; before it the answer is free text."""
        tokens = (ctypes.c_int32 * 1)(trigger)
        patterns = (ctypes.c_char_p * 1)()
        grammar = self._llama.llama_sampler_init_grammar_lazy_patterns(
            self._tokenizer.vocabulary,
            self._request.grammar.encode(),
            b"root",
            patterns,
            0,
            tokens,
            1,
        )
        if not grammar:
            raise p.EngineFault(
                "engine_error", "the tool grammar does not compile", reason="grammar"
            )
        return grammar


class Pace:
    """Lowers the threads when tokens take three times their baseline, and tries again later.

    A busy neighbour at normal priority makes llama.cpp's threads wait for each other at barriers: fewer threads are then
    faster. Source: design 3, "Background is really background".
    """

    WINDOW = 8
    RECOVER_AFTER = 64

    def __init__(self, threads: int) -> None:
        self._full = threads
        self._threads = threads
        self._recent: collections.deque[float] = collections.deque(maxlen=self.WINDOW)
        self._baseline = 0.0
        self._since_change = 0

    def threads_after(self, token_s: float) -> int:
        """The number of threads to use from now on."""
        self._recent.append(token_s)
        self._since_change += 1
        if len(self._recent) < self.WINDOW:
            return self._threads
        median = sorted(self._recent)[self.WINDOW // 2]
        self._baseline = min(self._baseline or median, median)
        if median > 3 * self._baseline and self._threads > 1:
            self._change(self._threads - 1)
        elif self._threads < self._full and self._since_change >= self.RECOVER_AFTER:
            self._change(self._full)
        return self._threads

    def _change(self, threads: int) -> None:
        self._threads = threads
        self._since_change = 0
        self._recent.clear()


def load_variant(variant: str) -> None:
    """Registers one CPU variant with the `libggml` that `libllama` uses.

    Raises:
        EngineFault: the file is gone or refuses.
    """
    files = native.variant_files()
    if not files:
        return
    path = files.get(variant)
    if path is None:
        raise p.EngineFault("cpu_unsupported", f"no variant named {variant!r}")
    library = ctypes.CDLL(str(native.ggml_library()))
    library.ggml_backend_load.restype = ctypes.c_void_p
    library.ggml_backend_load.argtypes = [ctypes.c_char_p]
    if not library.ggml_backend_load(os.fsencode(path)):
        raise p.EngineFault("cpu_unsupported", f"{path.name} refuses this CPU")


def _load_model(llama: Any, path: str, progress: Callable[[float], bool] | None) -> Any:
    params = llama.llama_model_default_params()
    callback = None
    if progress is not None:
        callback = llama.llama_progress_callback(lambda share, _data: progress(share))
        params.progress_callback = callback
    model = llama.llama_model_load_from_file(os.fsencode(path), params)
    del callback
    if not model:
        raise p.EngineFault(
            "model_broken", model=Path(path).name, reason="llama.cpp cannot load it"
        )
    return model


def _build_name(llama: Any) -> str:
    version = llama.llama_version()
    return version.decode(errors="replace") if isinstance(version, bytes) else str(version)


def canary_decode(variant: str, model_path: str, threads: int) -> bool:
    """Decodes a small batch and one token more with `variant`; used by `canary` in a throw-away process."""
    import llama_cpp.llama_cpp as llama

    log = NativeLog(llama)
    load_variant(variant)
    llama.llama_backend_init()
    model = _load_model(llama, model_path, None)
    params = llama.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = 64
    params.n_threads = params.n_threads_batch = threads
    context = llama.llama_init_from_model(model, params)
    if not context:
        return False
    sequence = Sequence0(llama, context, AbortFlag(llama))
    alive = sequence.decode(list(range(1, 9))) and sequence.decode([9])
    del log
    return alive
