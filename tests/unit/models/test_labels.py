from pathlib import Path

import pytest
from gguf import GGMLQuantizationType as T

from liob_core.models.header import TensorInfo
from liob_core.models.labels import (
    block_size_of,
    content_label,
    fallback_tensors,
    has_offset,
    label_warning,
    plain_stem,
    published_label,
    shard_of,
    shard_paths,
)


@pytest.mark.parametrize(
    ("name", "label", "stem"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "Q4_1", "SmolLM2-135M-Instruct"),
        ("qwen2.5-0.5b-instruct-q4_k_m.gguf", "Q4_K_M", "qwen2.5-0.5b-instruct"),
        ("gemma-3-4b-it-UD-Q4_K_XL.gguf", "UD-Q4_K_XL", "gemma-3-4b-it"),
        ("Llama-3-8B-IQ3_XXS.gguf", "IQ3_XXS", "Llama-3-8B"),
        ("model-bf16-00001-of-00003.gguf", "BF16", "model"),
        ("Phi-fp16.gguf", "F16", "Phi"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4", "gpt-oss-20b"),
        ("Q4_K_M-model.gguf", "Q4_K_M", "Q4_K_M-model"),
        ("plain-model-7B.gguf", None, "plain-model-7B"),
        ("Q8_0.gguf", "Q8_0", "Q8_0"),
        ("SEQ4_0rder.gguf", None, "SEQ4_0rder"),
    ],
)
def test_published_label_and_stem(name: str, label: str | None, stem: str) -> None:
    assert published_label(Path(name)) == label
    assert plain_stem(Path(name)) == stem


def test_content_label_of_file_types() -> None:
    assert content_label(15) == "Q4_K_M"
    assert content_label(0) == "F32"
    assert content_label(1024 + 7) == "Q8_0"
    assert content_label(9999) is None
    assert content_label(None) is None


@pytest.mark.parametrize(
    ("published", "content", "agrees"),
    [
        ("Q4_K_M", "Q4_K_M", True),
        ("Q4_K_M", "Q4_K_S", False),
        ("Q8_0", "F16", False),
        ("Q4_K_L", "Q4_K_M", True),
        ("UD-Q4_K_XL", "Q4_K_M", True),
        ("UD-Q4_K_XL", "Q6_K", False),
        ("UD-IQ2_M", "Q2_K", True),
        ("Q5_K", "Q5_K_M", True),
        ("Q3_K_L", "Q3_K_L", True),
        ("MXFP4", "MXFP4_MOE", True),
        (None, "Q8_0", True),
        ("Q8_0", None, True),
    ],
)
def test_label_warning(published: str | None, content: str | None, agrees: bool) -> None:
    warning = label_warning(published, content)
    assert (warning is None) is agrees
    if warning:
        assert str(published) in warning
        assert str(content) in warning


def test_offsets_of_types() -> None:
    assert [has_offset(name) for name in ("Q4_0", "Q5_0", "Q8_0", "Q3_K", "Q6_K", "IQ4_XS")] == [False] * 6
    assert [has_offset(name) for name in ("Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K")] == [True] * 5
    assert [has_offset(name) for name in ("F32", "F16", "BF16")] == [None] * 3


def test_shards_of_a_name() -> None:
    assert shard_of(Path("m-00002-of-00003.gguf")) == (2, 3)
    assert shard_of(Path("m-00004-of-00003.gguf")) is None
    assert shard_of(Path("m-00001-of-00000.gguf")) is None
    assert [path.name for path in shard_paths(Path("d/m-00002-of-00002.gguf"))] == [
        "m-00001-of-00002.gguf",
        "m-00002-of-00002.gguf",
    ]
    assert shard_paths(Path("m.gguf")) == (Path("m.gguf"),)


def test_block_sizes_that_labels_ask_for() -> None:
    assert [
        block_size_of(x) for x in ("F16", "Q8_0", "Q4_K_M", "UD-Q2_K_XL", "IQ4_NL", "IQ3_M", "MXFP4")
    ] == [
        1,
        32,
        256,
        256,
        32,
        256,
        32,
    ]
    assert block_size_of(None) is None


def _tensor(name: str, row: int, tensor_type: T, n_rows: int = 4) -> TensorInfo:
    shape = (row, n_rows) if n_rows else (row,)
    return TensorInfo(name=name, type=tensor_type, shape=shape, n_elements=row, offset=0, n_bytes=1)


def test_fallback_counts_rows_that_do_not_divide() -> None:
    tensors = [
        _tensor("token_embd.weight", 576, T.Q8_0),  # the output matrix: chosen, not fallen back
        _tensor("blk.0.attn_q.weight", 576, T.Q5_0),
        _tensor("blk.0.ffn_down.weight", 1536, T.Q4_K),
        _tensor("blk.0.ffn_up.weight", 1536, T.Q8_0),  # another type, but not because of its rows
        _tensor("blk.0.attn_norm.weight", 576, T.F32, 0),
        _tensor("blk.0.ffn_gate_inp.weight", 576, T.F32),
    ]
    found = fallback_tensors(tensors, "Q4_K_M")
    assert [tensor.name for tensor in found or []] == ["blk.0.attn_q.weight"]
    assert fallback_tensors(tensors, "Q8_0") == []
    assert fallback_tensors(tensors, None) is None


def test_fallback_counts_embeddings_that_are_not_the_output() -> None:
    tensors = [_tensor("token_embd.weight", 576, T.Q8_0), _tensor("output.weight", 576, T.Q8_0)]
    assert [tensor.name for tensor in fallback_tensors(tensors, "Q6_K") or []] == ["token_embd.weight"]
