"""A ladder of the real model: its files are those of llama.cpp's own quantizer, to the byte."""

import hashlib
import importlib.util
import time
from pathlib import Path

import pytest
from gguf import GGUFReader

from liob_core.models.digests import weights_sha256
from liob_core.models.gguf import read_model
from liob_core.models.header import read_header
from liob_core.models.quantize import LadderProgress, make_ladder

pytestmark = pytest.mark.model

# Made with llama.cpp's quantizer on another machine: F16 from the Q4_1 file, the others from that F16.
REFERENCE = {
    "F16": (270_885_952, 16.00, 0, "a269e3181fcbb25046f99f64ba8d3c159165b211c2ff4ffca7ba1bb219d2ccd0"),
    "Q8_0": (144_811_072, 8.51, 0, "f7933c716a5b5334c54b997d1f6db3f38a0786c9046ac5f46311b396a3f1fe54"),
    "Q4_K_M": (105_454_144, 6.17, 180, "27e1496775b07d69415cc5b6658f448ded3829cd2d769473cf2781e77d020b19"),
    "Q2_K": (88_201_792, 5.14, 180, "c7c9a27bc9b5004eaa297bc6ed0296f70a2783d0680f02315d9ec262362b6f44"),
}


def _check(path: Path, name: str) -> None:
    n_bytes, bpw, n_fallback, digest = REFERENCE[name]
    model = read_model(path)
    assert (model.file_bytes, model.n_tensors) == (n_bytes, 272)
    assert round(model.bpw, 2) == bpw
    assert model.fallback_tensors == n_fallback
    assert (model.fallback_warning is not None) == (n_fallback > 0)
    assert (model.published_label, model.content_label, model.label_warning) == (name, name, None)
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == digest


def test_ladder_without_a_compiler_is_that_of_llama_cpp(model_path: Path, tmp_path: Path) -> None:
    told: list[LadderProgress] = []
    f16, q8_0 = make_ladder(model_path, ["F16", "Q8_0"], tmp_path, on_progress=told.append)
    _check(f16, "F16")
    _check(q8_0, "Q8_0")
    assert [p.event for p in told if p.event != "working"] == ["warning", "done", "done"]


def test_ladder_sizes_of_other_types(model_path: Path, tmp_path: Path) -> None:
    paths = make_ladder(model_path, ["BF16", "Q4_0"], tmp_path, on_progress=lambda _: None)
    assert [read_model(path).content_label for path in paths] == ["BF16", "Q4_0"]
    # 18 bytes per block of 32; the output matrix of the quantized one is Q8_0, 34 bytes per block.
    body, output, small = 106_168_320, 28_311_552, 35_136
    assert [read_model(path).tensor_bytes for path in paths] == [
        2 * (body + output) + 4 * small,
        body // 32 * 18 + output // 32 * 34 + 4 * small,
    ]


@pytest.mark.ladder
@pytest.mark.skipif(importlib.util.find_spec("llama_cpp") is None, reason="needs llama-cpp-python")
def test_ladder_with_the_add_on_is_that_of_llama_cpp(model_path: Path, tmp_path: Path) -> None:
    told: list[LadderProgress] = []
    _, *k_types = make_ladder(model_path, ["F16", "Q4_K_M", "Q2_K"], tmp_path, on_progress=told.append)
    for path, name in zip(k_types, ["Q4_K_M", "Q2_K"], strict=True):
        _check(path, name)
    shares = [p.share for p in told if p.type_name == "Q2_K" and p.event == "working"]
    assert len(shares) > 100
    assert shares == sorted(shares)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".gguf"] * 3


def test_header_of_the_real_model(model_path: Path, tmp_path: Path) -> None:
    model = read_model(model_path)
    assert (model.n_params, model.n_tensors, model.vocab_size) == (134_515_008, 272, 49152)
    assert (model.n_layers, model.n_heads, model.n_kv_heads, model.head_dim_k) == (30, 9, (3,) * 30, 64)
    assert model.has_chat_template
    assert model.adds_bos is False
    assert model.fallback_tensors == 0
    assert len(weights_sha256(model_path, tmp_path)) == 64


def test_header_is_read_much_faster_than_by_the_library(model_path: Path) -> None:
    def seconds(read: object) -> float:
        start = time.perf_counter()
        read(model_path)  # type: ignore[operator]
        return time.perf_counter() - start

    fast = min(seconds(read_header) for _ in range(3))
    assert fast < seconds(GGUFReader) / 5
