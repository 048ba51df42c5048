"""An engine without a model: the real worker, protocol and process around a scripted backend.

Deterministic. An answer is made from the question: `scripted answer <n words of the question>` repeated to the length that
`say:<words>` in the question asks for; `tool:<word>` calls memory_search, `circle:<word>` too, and gets no further; `slow` makes each word take a while, `silent` says nothing unless a grammar asks for
words, `hang` never answers, `die` kills the process.
Embeddings are hashed bags of character pairs, so related texts are near. Token = three characters. The KV cache is a list of such tokens:
prefixes are reused, warmed in slices (`slow` ones take a while, `sticky` ones a second), saved and restored as with a model. What is judged or
written on `patient` text waits until a question was answered in between.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from growbox_app.engine import kv_image
from growbox_app.engine import protocol as p
from growbox_app.engine.worker import Worker, prepare_child

DIMENSION = 384
WORD_S = 0.02
WARM_S = {"slow": WORD_S, "sticky": 1.0}
"""Seconds of each slice that is warmed, by a word in what is read."""
PATIENCE_S = 2.0
SLICE = 32
FINGERPRINT = {"model": "scripted"}


def run(pipe: Connection) -> None:
    """Spawn target."""
    prepare_child()
    Worker(pipe, ScriptedBackend()).run()
    os._exit(0)


def run_rewriting(pipe: Connection) -> None:
    """Spawn target: a model whose template rewrites history."""
    prepare_child()
    Worker(pipe, ScriptedBackend(prefix_stable=False)).run()
    os._exit(0)


def embed(text: str) -> np.ndarray:
    """float32[384], normalised."""
    vector = np.full(DIMENSION, 0.02, dtype=np.float32)
    folded = re.sub(r"\W+", " ", text.lower()).strip()
    for start in range(max(len(folded) - 1, 1)):
        digest = hashlib.blake2b(folded[start : start + 2].encode(), digest_size=4).digest()
        vector[int.from_bytes(digest, "little") % DIMENSION] += 1.0
    return vector / np.linalg.norm(vector)


def tokens_of(text: str) -> int:
    """Three characters are a token."""
    return -(-len(text) // 3)


_MEANT = re.compile(r"```python\n((?:.*\n)*? +)return .*# meant: (.*)\n```")


def rendered(messages: Sequence[p.Message], *, generate: bool) -> list[str]:
    """Tokens of a conversation; their number is what `DoneLoad`'s overheads say."""
    tokens = ["<begin>", "<system>"]
    for message in messages:
        if message.role != "system":
            tokens += ["<end>", f"<{message.role}>"]
        tokens += [str(number) for number in message.ids or ()]
        for part in message.parts:
            tokens += [part[start : start + 3] for start in range(0, len(part), 3)]
    if generate:
        return [*tokens, "<end>", "<assistant>"]
    return tokens if messages[-1].role == "user" else [*tokens, "<end>", "<user>"]


def common(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """Length of the common beginning."""
    limit = min(len(ours), len(theirs))
    return next((at for at in range(limit) if ours[at] != theirs[at]), limit)


def reading(query: str, text: str) -> p.Reading:
    """A word of the query that stands in the text is certain; the model says yes when a good share of them does."""
    words = set(re.findall(r"\w+", text.lower()))
    found = [word in words for word in re.findall(r"\w+", query.lower())]
    share = sum(found) / max(len(found), 1)
    return p.Reading(margin=8.0 * share - 4.0, query=tuple(0.0 if it else -6.0 for it in found))


def answer_to(question: str) -> str:
    """The script."""
    call = re.search(r"call:(\{.*\})", question)
    if call:
        return f"<tool_call> {call.group(1)} </tool_call>"
    tool = re.search(r"tool:(\S+)", question)
    if tool:
        arguments = f'{{"query": "{tool.group(1)}"}}'
        return f'<tool_call> {{"name": "memory_search", "arguments": {arguments}}} </tool_call>'
    circle = re.search(r"circle:(\S+)", question)
    if circle:
        begun = f'<tool_call> {{"name": "memory_search", "arguments": {{"query": "{circle.group(1)}'
        return begun + "\\nround and round" * 9
    wanted = re.search(r"say:(\d+)", question)
    words = (question.split("]\n", 1)[-1].split() or ["nothing"])[:8]
    count = int(wanted.group(1)) if wanted else len(words)
    return "scripted answer: " + " ".join(words[index % len(words)] for index in range(count))


class ScriptedBackend:
    """Implements `worker.Backend`."""

    def __init__(self, *, prefix_stable: bool = True) -> None:
        self._prefix_stable = prefix_stable
        self._abort = threading.Event()
        self._context = 0
        self._background = 0
        self._cached: list[str] = []
        self._chats = 0

    def abort(self, on: bool) -> None:
        if on:
            self._abort.set()
        else:
            self._abort.clear()

    def load(self, request: p.Load, send: Callable[[p.Answer], None]) -> p.DoneLoad:
        self._context = request.context_tokens
        self._background = request.background_tokens
        send(p.LoadProgress(id=request.id, share=1.0))
        return p.DoneLoad(
            id=request.id,
            name="scripted",
            context_tokens=request.context_tokens,
            tokenizer="scripted",
            kv="scripted",
            base_overhead=4,
            user_overhead=2,
            assistant_overhead=2,
            prefix_stable=self._prefix_stable,
            seconds=0.0,
        )

    def work(
        self,
        request: p.Request,
        send: Callable[[p.Answer], None],
        breathe: Callable[[], None],
    ) -> p.Answer:
        match request:
            case p.Count():
                return p.DoneCount(id=request.id, counts=tuple(map(tokens_of, request.texts)))
            case p.Measure():
                tokens = rendered(request.messages, generate=True)
                cached = common(self._cached, tokens)
                return p.DoneMeasure(id=request.id, total=len(tokens), cached=cached)
            case p.Chat():
                return self._chat(request, send)
            case p.Warm():
                return self._warm(request, send)
            case p.Embed():
                for _ in request.texts:
                    breathe()
                matrix = np.stack([embed(text) for text in request.texts]).astype("<f4")
                return p.DoneEmbed(
                    id=request.id,
                    rows=len(matrix),
                    dimension=DIMENSION,
                    vectors=matrix.tobytes(),
                )
            case p.Judge() | p.Write():
                return self._in_background(request, breathe)
            case p.SaveKv() | p.RestoreKv():
                return self._image(request)
            case p.Stats():
                return p.DoneStats(
                    id=request.id,
                    rss_bytes=0,
                    cached_tokens=len(self._cached),
                    threads=1,
                    variant="",
                    waiting=0,
                )
            case _:
                raise p.EngineFault("engine_error", "unknown request")

    def _in_background(
        self, request: p.Judge | p.Write, breathe: Callable[[], None]
    ) -> p.DoneJudge | p.DoneWrite:
        if isinstance(request, p.Judge):
            return self._judge(request, breathe)
        return self._write(request, breathe)

    def _judge(self, request: p.Judge, breathe: Callable[[], None]) -> p.DoneJudge:
        readings: list[p.Reading | None] = []
        chats = self._chats
        for text in request.candidates:
            breathe()
            if "patient" in text:
                self._wait_for_a_question(chats, breathe)
            fits = tokens_of(text) <= self._background
            readings.append(reading(request.query, text) if fits else None)
        blank = reading(request.query, request.blank)
        return p.DoneJudge(id=request.id, blank=blank, readings=tuple(readings))

    def _wait_for_a_question(self, before: int, breathe: Callable[[], None]) -> None:
        """Until one more was answered, or the request is cancelled; not for ever, as it may have come too early."""
        while self._chats == before and self._abort.wait(PATIENCE_S):
            breathe()

    def _write(self, request: p.Write, breathe: Callable[[], None]) -> p.DoneWrite:
        """The last passage's words, in every field of the grammar; code as it is meant, where it says that."""
        passage = request.messages[-1].parts[-2]
        chats = self._chats
        breathe()
        if "patient" in passage:
            self._wait_for_a_question(chats, breathe)
        meant = _MEANT.search("".join(request.messages[-1].parts))
        if meant:
            code = f"{meant.group(1)}{meant.group(2)}"
            return p.DoneWrite(id=request.id, text=f"```python\n{code}\n```", complete=True)
        fields = re.findall(r'\\"(\w+)\\": ', request.grammar)
        text = json.dumps(dict.fromkeys(fields, passage), ensure_ascii=False)
        return p.DoneWrite(id=request.id, text=text, complete=True)

    def _warm(self, request: p.Warm, send: Callable[[p.Answer], None]) -> p.DoneWarm:
        tokens = rendered(request.messages, generate=False)
        parts = [part for message in request.messages for part in message.parts]
        pause_s = next((s for word, s in WARM_S.items() if any(word in p for p in parts)), 0.0)
        kept = common(self._cached, tokens)
        self._cached = tokens[:kept]
        for start in range(kept, len(tokens), SLICE):
            if self._abort.wait(pause_s):
                break
            self._cached = tokens[: start + SLICE]
            done = len(self._cached) - kept
            send(p.PrefillProgress(id=request.id, done=done, total=len(tokens) - kept, rate=1.0))
        done = len(self._cached) - kept
        return p.DoneWarm(id=request.id, prefilled=done, reused=kept, total=len(tokens))

    def _image(self, request: p.SaveKv | p.RestoreKv) -> p.DoneKv:
        path = Path(request.path)
        if isinstance(request, p.RestoreKv):
            return self._restore(request.id, path)
        path.parent.mkdir(parents=True, exist_ok=True)
        kv_image.temporary_of(path).write_text(json.dumps(self._cached), encoding="utf-8")
        size = kv_image.seal(path, FINGERPRINT, tokens=len(self._cached))
        return p.DoneKv(id=request.id, tokens=len(self._cached), bytes=size)

    def _restore(self, request_id: int, path: Path) -> p.DoneKv:
        if not kv_image.sealed_tokens(path, FINGERPRINT):
            return p.DoneKv(id=request_id, tokens=0, bytes=0)
        self._cached = json.loads(path.read_text(encoding="utf-8"))
        return p.DoneKv(id=request_id, tokens=len(self._cached), bytes=path.stat().st_size)

    def _chat(self, request: p.Chat, send: Callable[[p.Answer], None]) -> p.DoneChat:
        self._chats += 1
        prompt = rendered(request.messages, generate=True)
        size = len(prompt)
        if size >= self._context:
            raise p.EngineFault("prompt_too_long", tokens=str(size), window=str(self._context))
        reused = min(common(self._cached, prompt), size - 1)
        self._cached = [*prompt, *map(str, request.prefix)]
        question = request.messages[-1].parts[-1]
        if re.search(r"\bhang\b", question):
            self._abort.wait()
        silent = re.search(r"\bsilent\b", question) and (not request.grammar or request.trigger)
        words = [] if silent else re.findall(r"\S+\s*", answer_to(question))
        sent = len(request.prefix)
        reason = "loop" if "circle:" in question else "stop"
        for number, word in enumerate(words[sent:], start=sent):
            if "die" in question and number == 3 and not request.prefix:
                os._exit(9)
            if self._abort.is_set() or ("slow" in question and self._abort.wait(WORD_S)):
                reason = "cancelled"
                break
            self._cached.append(str(number))
            send(p.Delta(id=request.id, text=word, ids=(number,)))
            sent = number + 1
            if any(end in "".join(words[:sent]) for end in request.ends):
                break
        return p.DoneChat(
            id=request.id,
            reason=reason,  # type: ignore[arg-type]
            prompt_tokens=size,
            reused_tokens=reused,
            answer_tokens=sent - len(request.prefix),
            prefill_s=0.01,
            decode_s=0.01,
            first_token_s=0.01,
        )
