"""The framed protocol between the application and the engine process.

One frame is one msgpack value of a closed set of structs, sent with the length prefix of `multiprocessing.Connection`
(`send_bytes`), never a pickle. Requests carry an id; every request is answered by exactly one `Done…` or `Failed` with the
same id, after any number of progress frames. Vectors travel as little-endian float32 bytes.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One chat message.

    `parts` are tokenised one by one, as content (never with special tokens), so that token counts add up exactly and a
    part that stays the same stays the same tokens. `ids` replaces the text of a sampled answer: it is never retokenised.
    """

    role: Literal["system", "user", "assistant"]
    parts: tuple[str, ...] = ()
    ids: tuple[int, ...] | None = None


class Load(msgspec.Struct, frozen=True, kw_only=True, tag="load"):
    """Loads the chat model and the embedder. `variant` is a file name of a CPU backend, empty where none is needed."""

    id: int
    chat_path: str
    chat_sha256: str
    embed_path: str
    context_tokens: int
    background_tokens: int
    threads: int
    variant: str


class Count(msgspec.Struct, frozen=True, kw_only=True, tag="count"):
    """Counts the tokens of each text, as content."""

    id: int
    texts: tuple[str, ...]


class Measure(msgspec.Struct, frozen=True, kw_only=True, tag="measure"):
    """Renders a conversation and counts it. `date` is the conversation's start date, YYYY-MM-DD."""

    id: int
    messages: tuple[Message, ...]
    date: str


class Chat(msgspec.Struct, frozen=True, kw_only=True, tag="chat"):
    """Generates an answer.

    `prefix` are ids already sampled for this answer (after a restart of the engine): they are decoded again and not sent
    again. `grammar` (GBNF) is applied from `trigger` on, without one from the first token on; `barred` texts may not be begun at all;
    behind one of the texts `ends`, nothing more is written.
    """

    id: int
    messages: tuple[Message, ...]
    date: str
    max_tokens: int
    temperature: float
    top_p: float
    seed: int
    prefix: tuple[int, ...] = ()
    grammar: str = ""
    trigger: str = ""
    barred: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()


class Warm(msgspec.Struct, frozen=True, kw_only=True, tag="warm"):
    """Decodes ahead of time what every continuation of a conversation begins with, and answers nothing.

    Afterwards the foreground context holds exactly that, or – when something urgent came in between – its beginning. A
    system message alone stands for every new conversation.
    """

    id: int
    messages: tuple[Message, ...]
    date: str


class Embed(msgspec.Struct, frozen=True, kw_only=True, tag="embed"):
    """Embeds texts. Queries go before everything but control; passages after everything."""

    id: int
    texts: tuple[str, ...]
    kind: Literal["query", "passage"]


class Judge(msgspec.Struct, frozen=True, kw_only=True, tag="judge"):
    """Reads each candidate with the query behind it, in the background context.

    The prompt is a conversation: `head` (the same for all, kept in the KV cache), then one user message of `before`, candidate,
    `between`, query and `after`; every part is tokenised on its own, as content. `blank` stands for a candidate that says nothing,
    `yes` and `no` are what the model may answer.
    """

    id: int
    head: tuple[Message, ...]
    before: str
    between: str
    after: str
    blank: str
    yes: str
    no: str
    query: str
    candidates: tuple[str, ...]


class Write(msgspec.Struct, frozen=True, kw_only=True, tag="write"):
    """Writes a short text in the background context, by a grammar (GBNF, rule `root`) from its first token on; greedily at temperature 0."""

    id: int
    messages: tuple[Message, ...]
    max_tokens: int
    grammar: str
    temperature: float = 0.0


class SaveKv(msgspec.Struct, frozen=True, kw_only=True, tag="save_kv"):
    """Saves the foreground sequence to a file (temp, fsync, rename)."""

    id: int
    path: str


class RestoreKv(msgspec.Struct, frozen=True, kw_only=True, tag="restore_kv"):
    """Restores the foreground sequence; a wrong fingerprint or checksum means cold, not an error."""

    id: int
    path: str


class Stats(msgspec.Struct, frozen=True, kw_only=True, tag="stats"):
    """Asks for figures."""

    id: int


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag="cancel"):
    """Cancels request `target`, running or waiting. Has no answer of its own."""

    target: int


class Shutdown(msgspec.Struct, frozen=True, kw_only=True, tag="shutdown"):
    """Ends the process. Has no answer."""


Request: TypeAlias = (
    Load
    | Count
    | Measure
    | Chat
    | Warm
    | Embed
    | Judge
    | Write
    | SaveKv
    | RestoreKv
    | Stats
    | Cancel
    | Shutdown
)


class LoadProgress(msgspec.Struct, frozen=True, kw_only=True, tag="load_progress"):
    """Share of the weights read, 0..1."""

    id: int
    share: float


class PrefillProgress(msgspec.Struct, frozen=True, kw_only=True, tag="prefill"):
    """Prompt tokens decoded so far of those that had to be; `rate` in tokens per second."""

    id: int
    done: int
    total: int
    rate: float


class Delta(msgspec.Struct, frozen=True, kw_only=True, tag="delta"):
    """More of the answer. `text` never splits a character; `ids` are all ids sampled since the last delta."""

    id: int
    text: str
    ids: tuple[int, ...]


class DoneLoad(msgspec.Struct, frozen=True, kw_only=True, tag="done_load"):
    """The models are ready.

    `tokenizer` is the fingerprint that sampled ids belong to, `kv` the one that saved images belong to. The overheads are the template's tokens around one message;
    `base_overhead` includes the generation prompt. `prefix_stable` is False when the template rewrites history: this costs
    speed, not correctness.
    """

    id: int
    name: str
    context_tokens: int
    tokenizer: str
    kv: str
    base_overhead: int
    user_overhead: int
    assistant_overhead: int
    prefix_stable: bool
    seconds: float


class DoneCount(msgspec.Struct, frozen=True, kw_only=True, tag="done_count"):
    """Token counts, in order."""

    id: int
    counts: tuple[int, ...]


class DoneMeasure(msgspec.Struct, frozen=True, kw_only=True, tag="done_measure"):
    """Tokens of the whole rendered prompt, generation prompt included; and the length of the prefix now in the KV cache."""

    id: int
    total: int
    cached: int


class DoneChat(msgspec.Struct, frozen=True, kw_only=True, tag="done_chat"):
    """The end of an answer. `reason`: stop | length | cancelled | loop. Times in seconds.

    A server that answered instead of the engine is named by `answered_by`; `reuse_known` False: it does not say what it reused.
    """

    id: int
    reason: Literal["stop", "length", "cancelled", "loop"]
    prompt_tokens: int
    reused_tokens: int
    answer_tokens: int
    prefill_s: float
    decode_s: float
    first_token_s: float
    reuse_known: bool = True
    answered_by: str = ""


class DoneWarm(msgspec.Struct, frozen=True, kw_only=True, tag="done_warm"):
    """What was decoded now and what the cache had, of `total` tokens; less than it in sum when the work was cut short."""

    id: int
    prefilled: int
    reused: int
    total: int


class DoneEmbed(msgspec.Struct, frozen=True, kw_only=True, tag="done_embed"):
    """Row-major float32[rows, dimension], L2-normalised."""

    id: int
    rows: int
    dimension: int
    vectors: bytes


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What the model made of one candidate: log P(yes) − log P(no), and log P of each token of the query."""

    margin: float
    query: tuple[float, ...]


class DoneJudge(msgspec.Struct, frozen=True, kw_only=True, tag="done_judge"):
    """One reading for each candidate, None where it does not fit the context; `blank` is that of no candidate at all."""

    id: int
    blank: Reading
    readings: tuple[Reading | None, ...]


class DoneWrite(msgspec.Struct, frozen=True, kw_only=True, tag="done_write"):
    """What was written; `complete` is False where it ran into `max_tokens`."""

    id: int
    text: str
    complete: bool


class DoneKv(msgspec.Struct, frozen=True, kw_only=True, tag="done_kv"):
    """Tokens saved or restored (0: cold) and the file's size."""

    id: int
    tokens: int
    bytes: int


class DoneStats(msgspec.Struct, frozen=True, kw_only=True, tag="done_stats"):
    """Figures of the process."""

    id: int
    rss_bytes: int
    cached_tokens: int
    threads: int
    variant: str
    waiting: int


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """A request failed. `code` is an `api.ProblemCode` value, or `cancelled`."""

    id: int
    code: str
    fields: dict[str, str] = {}
    detail: str = ""


Answer: TypeAlias = (
    LoadProgress
    | PrefillProgress
    | Delta
    | DoneLoad
    | DoneCount
    | DoneMeasure
    | DoneChat
    | DoneWarm
    | DoneEmbed
    | DoneJudge
    | DoneWrite
    | DoneKv
    | DoneStats
    | Failed
)

encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_answer = msgspec.msgpack.Decoder(Answer).decode


class EngineFault(Exception):
    """A known fault inside the engine process; becomes `Failed`."""

    def __init__(self, code: str, detail: str = "", **fields: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.fields = fields
