"""The predicted memory against what the embedded engine allocates, as its log tells it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFValueType, GGUFWriter

from liob_core.engines.embedded import EmbeddedEngine
from liob_core.models.header import read_header
from liob_core.models.variant import make_variant
from liob_core.types import LoadSettings

pytestmark = pytest.mark.model

# The engine prints each of up to two caches with two decimals of a MiB.
ROUNDING_BYTES = 0.0101 * 2**20
N_LAYERS, N_EMBD, N_FF, N_VOCAB = 8, 64, 128, 49152
N_HEADS, N_KV_HEADS, HEAD_DIM = 4, 2, 32
WINDOW = 256


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EmbeddedEngine]:
    """The embedded engine, closed afterwards."""
    engine = EmbeddedEngine(tmp_path / "machine")
    yield engine
    engine.close()


def _check(
    engine: EmbeddedEngine, path: Path, settings: LoadSettings, folder: Path, compute_rel: float
) -> None:
    variant = make_variant(path, "embedded", settings, folder / "cache")
    assert variant.need is not None
    report = engine.load(variant, settings, log_path=folder / "engine.log", load_s=120)
    assert None not in (report.weights_bytes, report.kv_bytes, report.compute_bytes, report.output_bytes)
    assert variant.need.kv_bytes == pytest.approx(report.kv_bytes, abs=ROUNDING_BYTES)
    buffers = (report.compute_bytes or 0) + (report.output_bytes or 0)
    assert variant.need.compute_bytes == pytest.approx(buffers, rel=compute_rel)
    assert variant.need.weights_bytes == pytest.approx(report.weights_bytes, rel=0.01)


@pytest.mark.parametrize(
    "settings",
    [
        LoadSettings(),
        LoadSettings(n_ctx=1000),
        LoadSettings(n_ctx=2048, n_parallel=2, n_ubatch=256),
        LoadSettings(n_ctx=2048, kv_type_k="q8_0", kv_type_v="q4_0", flash_attn="on"),
    ],
)
def test_need_of_the_real_model(
    engine: EmbeddedEngine, model_path: Path, tmp_path: Path, settings: LoadSettings
) -> None:
    _check(engine, model_path, settings, tmp_path, compute_rel=0.02)


@pytest.mark.parametrize("architecture", ["gemma2", "gemma3", "gpt-oss"])
@pytest.mark.parametrize("settings", [LoadSettings(), LoadSettings(n_ctx=8192, n_parallel=2, n_ubatch=256)])
def test_need_with_sliding_windows(
    engine: EmbeddedEngine, model_path: Path, tmp_path: Path, architecture: str, settings: LoadSettings
) -> None:
    path = _random_model(tmp_path / f"{architecture}-F32.gguf", architecture, model_path)
    _check(engine, path, settings, tmp_path, compute_rel=0.05)


def _random_model(path: Path, architecture: str, vocabulary: Path) -> Path:
    """A small model that the engine loads: random weights, the vocabulary of a real model."""
    writer = GGUFWriter(path, architecture)
    writer.add_block_count(N_LAYERS)
    writer.add_context_length(8192)
    writer.add_embedding_length(N_EMBD)
    writer.add_feed_forward_length(N_FF)
    writer.add_head_count(N_HEADS)
    writer.add_head_count_kv(N_KV_HEADS)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_sliding_window(WINDOW)
    if architecture == "gpt-oss":
        writer.add_expert_count(4)
        writer.add_expert_used_count(2)
        writer.add_expert_feed_forward_length(N_FF)
    _copy_vocabulary(vocabulary, writer)
    random = np.random.default_rng(0)
    for name, shape in _tensors(architecture).items():
        writer.add_tensor(name, (0.02 * random.normal(size=shape)).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _copy_vocabulary(source: Path, writer: GGUFWriter) -> None:
    header = read_header(source)
    for key in header:
        if not key.startswith("tokenizer.ggml."):
            continue
        kind, *item = header.types(key)
        if kind is GGUFValueType.ARRAY:
            writer.add_key_value(key, header.array(key), kind, sub_type=item[0])
        else:
            value = header.text(key) if kind is GGUFValueType.STRING else header.number(key)
            writer.add_key_value(key, value, kind)


def _tensors(architecture: str) -> dict[str, tuple[int, ...]]:
    q, kv = N_HEADS * HEAD_DIM, N_KV_HEADS * HEAD_DIM
    layer: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (N_EMBD,),
        "attn_q.weight": (q, N_EMBD),
        "attn_k.weight": (kv, N_EMBD),
        "attn_v.weight": (kv, N_EMBD),
        "attn_output.weight": (N_EMBD, q),
        "post_attention_norm.weight": (N_EMBD,),
    }
    top: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (N_VOCAB, N_EMBD),
        "output_norm.weight": (N_EMBD,),
    }
    if architecture == "gpt-oss":
        top["output.weight"] = (N_VOCAB, N_EMBD)
        layer |= {
            "attn_q.bias": (q,),
            "attn_k.bias": (kv,),
            "attn_v.bias": (kv,),
            "attn_output.bias": (N_EMBD,),
        }
        layer |= {
            "attn_sinks.weight": (N_HEADS,),
            "ffn_gate_inp.weight": (4, N_EMBD),
            "ffn_gate_inp.bias": (4,),
        }
        for part, shape in {"gate": (N_FF, N_EMBD), "up": (N_FF, N_EMBD), "down": (N_EMBD, N_FF)}.items():
            layer |= {f"ffn_{part}_exps.weight": (4, *shape), f"ffn_{part}_exps.bias": (4, shape[0])}
    else:
        layer |= {"ffn_norm.weight": (N_EMBD,), "post_ffw_norm.weight": (N_EMBD,)}
        layer |= {"ffn_gate.weight": (N_FF, N_EMBD), "ffn_up.weight": (N_FF, N_EMBD)}
        layer |= {"ffn_down.weight": (N_EMBD, N_FF)}
    if architecture == "gemma3":
        layer |= {"attn_q_norm.weight": (HEAD_DIM,), "attn_k_norm.weight": (HEAD_DIM,)}
    return top | {f"blk.{i}.{name}": shape for i in range(N_LAYERS) for name, shape in layer.items()}
