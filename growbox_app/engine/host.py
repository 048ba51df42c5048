"""The engine process: llama.cpp behind the worker's `Backend` protocol.

The only module that imports llama_cpp, and only inside the child process. Owns the chat model with two contexts over one
set of weights (foreground: the conversation; background: judging and writing) and the embedding model. Everything here runs on the
process's main thread but `abort`, which only writes one byte. Holds no truth.

Source: design section 3; facts on aborting, states and UTF-8 in reference `desktop_anchors.md` section 3.
"""

from __future__ import annotations

import collections
import ctypes
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from growbox_app.engine import kv_image, native
from growbox_app.engine import protocol as p
from growbox_app.engine.embedder import Embedder
from growbox_app.engine.generation import ChatModel, Generation, Send
from growbox_app.engine.judging import JudgeModel
from growbox_app.engine.sequence import AbortFlag, Sequence0
from growbox_app.engine.tokenizer import Renderer, Tokenizer
from growbox_app.engine.warming import warm
from growbox_app.engine.worker import Worker, prepare_child
from growbox_app.engine.writing import write


def run(pipe: Connection) -> None:
    """Entry of the child process."""
    prepare_child()
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
            self._tokenizer = Tokenizer(llama, self._model)
            self._renderer = Renderer(llama, self._model, self._tokenizer)
            background = self._context(request.background_tokens)
            self._background = background
            window = llama.llama_n_ctx(background.context)
            self._judge = JudgeModel(background, window, self._renderer)
            embedding_model = _load_model(llama, request.embed_path, None)
            self._embedder = Embedder(llama, embedding_model, request.threads, self._flag())
        except p.EngineFault as fault:
            fault.detail = fault.detail or (self._log.tail() if self._log else "")
            raise
        self._fingerprint = {
            "model": request.chat_sha256,
            "llama": _build_name(llama),
            "kv": "f16",
            "flash_attention": False,
            "context_tokens": llama.llama_n_ctx(self._foreground.context),
        }
        base, user, assistant = self._renderer.overheads()
        return p.DoneLoad(
            id=request.id,
            name=self._description(),
            context_tokens=llama.llama_n_ctx(self._foreground.context),
            tokenizer=request.chat_sha256[:16],
            kv=kv_image.name_of(self._fingerprint),
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
            case p.Chat() | p.Warm():
                return self._decode(request, send)
            case p.Embed():
                vectors = self._embedder.embed(request.texts, request.kind, breathe)
                data = np.ascontiguousarray(vectors, dtype="<f4").tobytes()
                return p.DoneEmbed(
                    id=request.id, rows=len(vectors), dimension=vectors.shape[1], vectors=data
                )
            case p.Judge() | p.Write():
                return self._in_background(request, breathe)
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
        # On a processor the fused kernel reads a short question behind a long region in almost twice the time (seen).
        params.flash_attn_type = self._llama.LLAMA_FLASH_ATTN_TYPE_DISABLED
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

    def _chat_model(self, sequence: Sequence0 | None = None) -> ChatModel:
        return ChatModel(
            llama=self._llama,
            sequence=sequence or self._foreground,
            tokenizer=self._tokenizer,
            renderer=self._renderer,
            threads=self._threads,
        )

    # -- answers ------------------------------------------------------------------------------
    def _decode(self, request: p.Chat | p.Warm, send: Send) -> p.Answer:
        if isinstance(request, p.Warm):
            return warm(self._chat_model(), request, send)
        return Generation(self._chat_model(), request, send).run()

    def _in_background(
        self, request: p.Judge | p.Write, breathe: Callable[[], None]
    ) -> p.DoneJudge | p.DoneWrite:
        if isinstance(request, p.Write):
            return write(self._chat_model(self._background), request, breathe)
        return self._judge.judge(request, breathe)

    def _measure(self, request: p.Measure) -> p.DoneMeasure:
        ids = self._renderer.ids(request.messages, request.date)
        cached = 0
        for ours, theirs in zip(self._foreground.ids, ids, strict=False):
            if ours != theirs:
                break
            cached += 1
        return p.DoneMeasure(id=request.id, total=len(ids), cached=cached)

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
        temporary = kv_image.temporary_of(path)
        tokens = (ctypes.c_int32 * len(ids))(*ids)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            written = self._llama.llama_state_seq_save_file(
                self._foreground.context, os.fsencode(temporary), 0, tokens, len(ids)
            )
            if not written:
                raise OSError("llama_state_seq_save_file wrote nothing")
            size = kv_image.seal(path, self._fingerprint, tokens=len(ids))
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise p.EngineFault("disk_full", str(error), path=str(path)) from error
        return p.DoneKv(id=request.id, tokens=len(ids), bytes=size)

    def _restore(self, request: p.RestoreKv) -> p.DoneKv:
        path = Path(request.path)
        cold = p.DoneKv(id=request.id, tokens=0, bytes=0)
        capacity = kv_image.sealed_tokens(path, self._fingerprint)
        if not capacity:
            return cold
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
        return p.DoneKv(id=request.id, tokens=count.value, bytes=path.stat().st_size)


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


def canary_decode(variant: str, model_path: str, *, threads: int, tokens: int) -> float:
    """Decodes a batch of `tokens` and one token more with `variant`; returns the batch's seconds. For `canary`'s process.

    Raises:
        EngineFault: the library refuses the CPU, or cannot load the model.
        RuntimeError: decoding failed.
    """
    import llama_cpp.llama_cpp as llama

    log = NativeLog(llama)
    load_variant(variant)
    llama.llama_backend_init()
    model = _load_model(llama, model_path, None)
    params = llama.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = max(64, 2 * tokens)
    params.n_threads = params.n_threads_batch = threads
    context = llama.llama_init_from_model(model, params)
    if not context:
        raise RuntimeError(log.tail())
    sequence = Sequence0(llama, context, AbortFlag(llama))
    started = time.perf_counter()
    alive = sequence.decode(list(range(1, tokens + 1)))
    seconds = time.perf_counter() - started
    if not (alive and sequence.decode([tokens + 1])):
        raise RuntimeError(log.tail())
    return seconds
