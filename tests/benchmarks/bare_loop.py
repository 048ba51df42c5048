"""The baseline: a bare llama-cpp-python loop in a process of its own, one measurement per line of input.

Reads a JSON object `{"tokens": n, "answer": m}` per line, prefills n tokens of plain text, decodes m tokens greedily and
prints `{"prefill_per_s": …, "decode_per_s": …}`.
"""

from __future__ import annotations

import json
import os
import sys
import time

from growbox_app.engine import native


def main(model_path: str, variant: str, threads: int) -> None:
    """Serves measurements until the input ends."""
    os.environ.update(native.SPIN_ENVIRONMENT)
    from llama_cpp import Llama

    from growbox_app.engine.host import load_variant

    load_variant(variant)
    llama = Llama(
        model_path,
        n_ctx=4096,
        n_threads=threads,
        n_threads_batch=threads,
        n_batch=512,
        verbose=False,
    )
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        wish = json.loads(line)
        print(json.dumps(_measure(llama, wish["tokens"], wish["answer"])), flush=True)


def _measure(llama: object, tokens: int, answer: int) -> dict[str, float]:
    from llama_cpp import Llama

    assert isinstance(llama, Llama)
    words = "".join(f"item {number} costs {number * 7 % 101} coins; " for number in range(tokens))
    ids = llama.tokenize(words.encode())[:tokens]
    llama.reset()
    started = time.monotonic()
    llama.eval(ids)
    token = llama.sample(temp=0.0)
    prefill_s = time.monotonic() - started
    started = time.monotonic()
    for _ in range(answer):
        llama.eval([token])
        token = llama.sample(temp=0.0)
    decode_s = time.monotonic() - started
    return {"prefill_per_s": tokens / prefill_s, "decode_per_s": answer / decode_s}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
