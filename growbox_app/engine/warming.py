"""Prefill ahead of time: the part of a prompt that is certain, decoded while nobody waits.

The native module is handed in: only `host.py` imports llama_cpp.
"""

from __future__ import annotations

import time

from growbox_app.engine import protocol as p
from growbox_app.engine.generation import ChatModel, Send, prefill_progress


def warm(model: ChatModel, request: p.Warm, send: Send) -> p.DoneWarm:
    """Serves one `Warm` request; stops between or within slices when the abort flag is set.

    Raises:
        EngineFault: the conversation does not fit the window, or the template refuses it.
    """
    sequence = model.sequence
    ids = model.renderer.certain(request.messages, request.date)
    window = model.llama.llama_n_ctx(sequence.context)
    if len(ids) >= window:
        raise p.EngineFault("prompt_too_long", tokens=str(len(ids)), window=str(window))
    kept = sequence.common(ids)
    sequence.cut(kept)
    if kept < len(ids):
        model.llama.llama_set_n_threads(sequence.context, model.threads, model.threads)
        told = prefill_progress(request.id, time.monotonic(), len(ids) - kept, send)
        sequence.prefill(ids, kept, told)
    done = len(sequence.ids) - kept
    return p.DoneWarm(id=request.id, prefilled=done, reused=kept, total=len(ids))
