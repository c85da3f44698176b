from dataclasses import replace
from pathlib import Path

import pytest

from liob_core.models import memory
from liob_core.models.memory import (
    Fit,
    available_bytes,
    compute_bytes,
    fits,
    kv_bytes,
    memory_need,
    slot_context,
    token_read_bytes,
)
from liob_core.models.variant import fake_variant
from liob_core.types import LoadSettings, MemoryNeed, ModelFile

MIB = 2**20


def _model(architecture: str, n_layers: int, n_kv_heads: int, head_dim: int, **sizes: object) -> ModelFile:
    base = fake_variant("x", bpw=8).model
    assert base is not None
    shape = {"n_embd": 1024, "n_heads": 8, "n_ff": 4096, "vocab_size": 32000, **sizes}
    return replace(
        base,
        architecture=architecture,
        n_layers=n_layers,
        n_kv_heads=(n_kv_heads,) * n_layers,
        head_dim_k=head_dim,
        head_dim_v=head_dim,
        **shape,
    )


# Layers, heads and widths as the headers of the two models have them. The expected sizes are what
# llama.cpp's server printed for these settings ("KV buffer size", "compute buffer size").
SMOLLM2 = _model("llama", 30, 3, 64, n_embd=576, n_heads=9, n_ff=1536, vocab_size=49152)
GEMMA3 = _model("gemma3", 18, 1, 256, n_embd=640, n_heads=4, n_ff=2048, vocab_size=262144, sliding_window=512)


@pytest.mark.parametrize(
    ("model", "settings", "kv_mib"),
    [
        (SMOLLM2, {}, 90.0),
        (SMOLLM2, {"n_ctx": 8192}, 180.0),
        (SMOLLM2, {"n_ctx": 8192, "n_parallel": 4}, 180.0),
        (SMOLLM2, {"n_ctx": 1000}, 22.5),
        (SMOLLM2, {"kv_type_k": "q8_0", "kv_type_v": "q8_0"}, 47.81),
        (SMOLLM2, {"kv_type_k": "q4_0", "kv_type_v": "q4_0"}, 25.31),
        (GEMMA3, {}, 12 + 15),
        (GEMMA3, {"n_ctx": 8192}, 24 + 15),
        (GEMMA3, {"n_ctx": 8192, "n_parallel": 2}, 24 + 30),
        (GEMMA3, {"n_ctx": 8192, "n_parallel": 4}, 24 + 60),
        (GEMMA3, {"n_ctx": 1000}, 3 + 15),
        (GEMMA3, {"n_ubatch": 256}, 12 + 11.25),
        (GEMMA3, {"n_ubatch": 2048}, 12 + 37.5),
        (GEMMA3, {"kv_type_k": "q8_0", "kv_type_v": "q8_0"}, 6.38 + 7.97),
    ],
)
def test_kv_is_what_the_engine_allocates(model: ModelFile, settings: dict, kv_mib: float) -> None:
    assert kv_bytes(model, LoadSettings(**settings)) / MIB == pytest.approx(kv_mib, abs=0.011)


@pytest.mark.parametrize(
    ("model", "settings", "compute_mib", "output_mib"),
    [
        (SMOLLM2, {}, 18.64, 0.19),
        (SMOLLM2, {"n_ctx": 8192, "n_parallel": 4}, 16.64, 0.75),
        (SMOLLM2, {"n_ubatch": 128, "n_ctx": 16384}, 7.66, 0.19),
        (SMOLLM2, {"n_ubatch": 2048}, 74.57, 0.19),
        (GEMMA3, {}, 23.28, 1.0),
        (GEMMA3, {"n_ctx": 8192}, 27.28, 1.0),
        (GEMMA3, {"n_ubatch": 128, "n_ctx": 16384}, 8.76, 1.0),
    ],
)
def test_compute_is_near_what_the_engine_allocates(
    model: ModelFile, settings: dict, compute_mib: float, output_mib: float
) -> None:
    predicted = compute_bytes(model, LoadSettings(**settings)) / MIB
    assert predicted == pytest.approx(compute_mib + output_mib, rel=0.01)


@pytest.mark.parametrize(("model", "compute_mib"), [(SMOLLM2, 87.51 + 0.19), (GEMMA3, 54.27 + 1.0)])
def test_compute_without_flash_attention_is_bounded(model: ModelFile, compute_mib: float) -> None:
    predicted = compute_bytes(model, LoadSettings(flash_attn="off")) / MIB
    assert compute_mib <= predicted <= 1.15 * compute_mib


def test_kv_of_layers_with_different_heads() -> None:
    model = replace(SMOLLM2, n_layers=3, n_kv_heads=(1, 0, 2))
    # 256 tokens x (1 + 0 + 2) heads x 64 x 2 bytes, keys and values.
    assert kv_bytes(model, LoadSettings(n_ctx=256)) == 2 * 256 * 3 * 64 * 2


@pytest.mark.parametrize(
    ("architecture", "full_layers"), [("gemma2", 4), ("gemma3", 1), ("gpt-oss", 4), ("cohere2", 2)]
)
def test_windowed_architectures_keep_the_whole_context_in_some_layers(
    architecture: str, full_layers: int
) -> None:
    model = _model(architecture, 8, 1, 64, sliding_window=256)
    settings = LoadSettings(n_ctx=8192, n_ubatch=256, kv_type_k="f16", kv_type_v="f16")
    per_token = 2 * 64 * 2
    assert kv_bytes(model, settings) == per_token * (full_layers * 8192 + (8 - full_layers) * 512)


def test_header_overrides_which_layers_are_windowed() -> None:
    model = replace(
        _model("gemma3", 4, 1, 64, sliding_window=256), windowed_layers=(True, True, False, False)
    )
    assert kv_bytes(model, LoadSettings(n_ctx=8192, n_ubatch=256)) == 2 * 64 * 2 * (2 * 8192 + 2 * 512)


def test_phi3_names_a_window_that_is_not_used() -> None:
    model = _model("phi3", 2, 1, 64, sliding_window=2047)
    assert memory_need(model, LoadSettings(n_ctx=8192)).kv_bytes == 2 * 2 * 64 * 2 * 8192


def test_slot_context_is_a_multiple_of_256() -> None:
    assert [slot_context(100, 1), slot_context(4096, 1), slot_context(4096, 3)] == [256, 4096, 1536]


def test_need_is_the_sum_of_its_parts() -> None:
    need = memory_need(SMOLLM2, LoadSettings())
    assert need.reason is None
    assert need.weights_bytes == SMOLLM2.tensor_bytes
    assert need.need_bytes == need.weights_bytes + (need.kv_bytes or 0) + (need.compute_bytes or 0)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (replace(SMOLLM2, architecture="mamba"), "architecture 'mamba'"),
        (replace(SMOLLM2, sliding_window=1024), "sliding window"),
        (replace(SMOLLM2, n_kv_heads=None), "sizes of layers"),
        (replace(SMOLLM2, n_ff=None), "sizes of layers"),
    ],
)
def test_need_unknown_has_a_reason(model: ModelFile, said: str) -> None:
    need = memory_need(model, LoadSettings())
    assert (need.kv_bytes, need.compute_bytes, need.need_bytes) == (None, None, None)
    assert need.weights_bytes == model.tensor_bytes
    assert said in (need.reason or "")


def test_need_unknown_cache_type() -> None:
    assert "cache type 'q99'" in (memory_need(SMOLLM2, LoadSettings(kv_type_v="q99")).reason or "")


def test_fits_verdicts() -> None:
    def need(n_bytes: int | None) -> MemoryNeed:
        return MemoryNeed(weights_bytes=1, kv_bytes=1, compute_bytes=1, need_bytes=n_bytes)

    assert [fits(need(n), 1000) for n in (850, 851, 1000, 1001)] == [
        Fit.FITS,
        Fit.TIGHT,
        Fit.TIGHT,
        Fit.DOES_NOT_FIT,
    ]
    assert fits(need(None), 1000) == fits(None, 1000) == "unknown"


def test_available_bytes_respects_the_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 150\n")
    assert memory._container_headroom(tmp_path) == 450
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._container_headroom(tmp_path) is None
    assert memory._container_headroom(tmp_path / "none") is None
    monkeypatch.setattr(memory, "_container_headroom", lambda: 123)
    assert available_bytes() == 123
    monkeypatch.setattr(memory, "_container_headroom", lambda: None)
    assert available_bytes() > 2**20


def test_a_token_reads_the_weights_and_the_cache_so_far() -> None:
    model = replace(SMOLLM2, read_bytes=100 * MIB)
    # 30 layers, keys and values of 3 heads of 64 in F16
    assert token_read_bytes(model, LoadSettings(), 576) == 100 * MIB + 576 * 30 * 2 * 3 * 64 * 2
    halved = token_read_bytes(model, LoadSettings(kv_type_k="q8_0", kv_type_v="q8_0"), 576)
    assert halved == 100 * MIB + 576 * 30 * 2 * 3 * 64 * 34 // 32


def test_a_window_caps_what_is_read_of_the_cache() -> None:
    model = replace(GEMMA3, read_bytes=0)
    # every sixth of 18 layers reads all 2000 tokens, the others their window of 512
    assert token_read_bytes(model, LoadSettings(), 2000) == (3 * 2000 + 15 * 512) * 2 * 256 * 2


def test_what_a_token_reads_is_unknown_where_the_header_does_not_tell() -> None:
    assert token_read_bytes(SMOLLM2, LoadSettings(), 576) is None
    assert token_read_bytes(replace(SMOLLM2, architecture="mamba", read_bytes=1), LoadSettings(), 576) is None
