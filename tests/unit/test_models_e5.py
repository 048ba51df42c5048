"""The e5 repacker: layout and determinism on a tiny packed file; the shipped file against golden vectors."""

from __future__ import annotations

import asyncio
import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from growbox_app.engine import entry as entry_module
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineClient
from growbox_app.models.catalogue import embedder
from growbox_app.models.e5_repack import NotPackedE5, repack
from growbox_app.models.gguf_header import read_header
from tests.real_models import LIGHT, real_load

HIDDEN, LAYERS, FEED_FORWARD, POSITIONS, PIECES, ROWS = 32, 2, 64, 8, 6, 9


def packed() -> bytes:
    """A packed e5 of two tiny layers; every tensor's bytes come from its name, so a swapped one shows."""
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁树", "<mask>"]
    blob = "".join(pieces).encode()
    offsets = np.cumsum([0, *(len(piece.encode()) for piece in pieces)]).tolist()
    content = b"E5S1" + struct.pack(
        "<I7ifi", 1, HIDDEN, LAYERS, 4, FEED_FORWARD, ROWS, POSITIONS, 2, 1e-12, 32
    )
    content += struct.pack("<5iQ", PIECES, 0, 2, 1, 3, len(blob))
    content += (
        struct.pack(f"<{PIECES + 1}I", *offsets) + struct.pack(f"<{PIECES}f", *range(PIECES)) + blob
    )
    content += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 0xFF01, 1, 0x21)
    tensors = sizes()
    directory_size = 4 + sum(2 + len(name) + 21 for name in tensors)
    offset = len(content) + directory_size
    directory, data = struct.pack("<i", len(tensors)), b""
    for name, (quantised, elements) in tensors.items():
        body = tensor_bytes(name, quantised, elements)
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", quantised, elements, offset + len(data), len(body))
        data += body
    return content + directory + data


def sizes() -> dict[str, tuple[bool, int]]:
    found = {
        "emb.word": (True, ROWS * HIDDEN),
        "emb.pos": (False, POSITIONS * HIDDEN),
        "emb.type": (False, 2 * HIDDEN),
        "emb.ln.w": (False, HIDDEN),
        "emb.ln.b": (False, HIDDEN),
    }
    for layer in range(LAYERS):
        for name in ("q", "k", "v", "ao"):
            found[f"l{layer}.{name}.w"] = (True, HIDDEN * HIDDEN)
            found[f"l{layer}.{name}.b"] = (False, HIDDEN)
        for name in ("fi", "fo"):
            found[f"l{layer}.{name}.w"] = (True, HIDDEN * FEED_FORWARD)
            found[f"l{layer}.{name}.b"] = (False, FEED_FORWARD if name == "fi" else HIDDEN)
        for name in ("aln", "oln"):
            found[f"l{layer}.{name}.w"] = (False, HIDDEN)
            found[f"l{layer}.{name}.b"] = (False, HIDDEN)
    return found


def tensor_bytes(name: str, quantised: bool, elements: int) -> bytes:
    size = elements // 32 * 18 if quantised else elements * 4
    seed = hashlib.sha256(name.encode()).digest()
    return (seed * (size // len(seed) + 1))[:size]


def repacked(folder: Path, name: str = "out.gguf") -> Path:
    source = folder / "packed.bin"
    source.write_bytes(packed())
    repack(source, folder / name)
    return folder / name


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    assert (
        repacked(tmp_path, "one.gguf").read_bytes() == repacked(tmp_path, "two.gguf").read_bytes()
    )


def test_the_header_says_bert_with_mean_pooling_and_unigrams(tmp_path: Path) -> None:
    header = read_header(repacked(tmp_path))
    assert header.architecture == "bert"
    assert header.values["bert.pooling_type"] == 1
    assert header.values["bert.attention.causal"] is False
    assert header.values["tokenizer.ggml.model"] == "t5"
    assert header.values["tokenizer.ggml.mask_token_id"] == PIECES - 1
    assert header.array_lengths["tokenizer.ggml.tokens"] == PIECES
    assert header.tensors == 5 + LAYERS * 16


def test_weights_are_copied_block_for_block(tmp_path: Path) -> None:
    import gguf

    reader = gguf.GGUFReader(repacked(tmp_path))
    found = {tensor.name: tensor for tensor in reader.tensors}
    pairs = {
        "token_embd.weight": ("emb.word", PIECES * HIDDEN),
        "token_types.weight": ("emb.type", HIDDEN),
        "blk.1.attn_output.weight": ("l1.ao.w", HIDDEN * HIDDEN),
        "blk.0.ffn_down.weight": ("l0.fo.w", HIDDEN * FEED_FORWARD),
        "blk.0.ffn_up.bias": ("l0.fi.b", FEED_FORWARD),
        "blk.1.layer_output_norm.bias": ("l1.oln.b", HIDDEN),
    }
    for target, (name, elements) in pairs.items():
        quantised = sizes()[name][0]
        expected = tensor_bytes(name, quantised, elements)
        assert found[target].data.tobytes() == expected, target
    assert found["blk.0.ffn_down.weight"].shape.tolist() == [FEED_FORWARD, HIDDEN]


@pytest.mark.parametrize(
    "spoil", [b"", b"E5S1", b"GGUF" + b"\0" * 400, packed()[:300], packed()[:-1]]
)
def test_another_file_is_refused(tmp_path: Path, spoil: bytes) -> None:
    source = tmp_path / "packed.bin"
    source.write_bytes(spoil)
    with pytest.raises(NotPackedE5):
        repack(source, tmp_path / "out.gguf")
    assert not (tmp_path / "out.gguf").exists()


@pytest.mark.model
def test_the_shipped_embedder_gives_the_golden_vectors(root: Path) -> None:
    golden = json.loads((root / "tests" / "data" / "e5_golden.json").read_text(encoding="utf-8"))
    assert golden["model"] == embedder().id
    kinds = [entry["kind"] for entry in golden["vectors"]]
    assert set(kinds) == {"query", "passage"}
    found = asyncio.run(embed([(entry["kind"], entry["text"]) for entry in golden["vectors"]]))
    for vector, entry in zip(found, golden["vectors"], strict=True):
        expected = np.asarray(entry["vector"])
        cosine = float(vector @ expected / np.linalg.norm(vector) / np.linalg.norm(expected))
        assert cosine >= 0.9995, entry["text"]


async def embed(texts: list[tuple[str, str]]) -> list[np.ndarray]:
    """Vectors from the real engine process."""
    client = EngineClient(entry_module.run, on_death=lambda _code: None)
    try:
        load = real_load(client.next_id(), LIGHT.parent / ".cpu_variant.json")
        await client.request(load, p.DoneLoad)
        vectors = []
        for kind, text in texts:
            request = p.Embed(id=client.next_id(), texts=(text,), kind=kind)  # type: ignore[arg-type]
            done = await client.request(request, p.DoneEmbed)
            vectors.append(np.frombuffer(done.vectors, dtype="<f4"))
        return vectors
    finally:
        await client.close()
