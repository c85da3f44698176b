from collections.abc import Callable
from pathlib import Path

import pytest
from gguf import GGMLQuantizationType as T

from liob_core.errors import UsageError
from liob_core.models.header import TensorInfo, read_header
from liob_core.models.ladder_types import choose_types, known_types, output_name, planned_bytes, target_type


def _tensor(name: str, *shape: int, kind: T = T.F32) -> TensorInfo:
    return TensorInfo(name=name, type=kind, shape=shape, n_elements=1, offset=0, n_bytes=1)


def test_types_without_a_compiler_come_first() -> None:
    built_in = [kind.name for kind in known_types() if not kind.needs_add_on]
    assert built_in == ["F16", "BF16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0"]
    assert {"Q4_K_M", "Q2_K", "IQ4_XS"} <= {kind.name for kind in known_types() if kind.needs_add_on}
    # Numbers of `llama_ftype` in llama.h.
    numbers = {kind.name: kind.file_type for kind in known_types()}
    assert (numbers["F16"], numbers["Q8_0"], numbers["Q4_K_M"], numbers["Q2_K"]) == (1, 7, 15, 10)


def test_choose_types_takes_any_case_and_each_once() -> None:
    assert [kind.name for kind in choose_types([" q4_0", "F16", "Q4_0"])] == ["Q4_0", "F16"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["Q9_9"], "Q9_9 is not a known type. Known are F16, BF16"),
        ([""], "An empty name"),
        ([], "at least one type"),
        (["iq2_xxs"], "importance matrix"),
    ],
)
def test_choose_types_refuses(names: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        choose_types(names)


@pytest.mark.parametrize(
    ("tensor", "type_name", "expected"),
    [
        (_tensor("blk.0.attn_q.weight", 64, 64), "Q4_0", T.Q4_0),
        (_tensor("blk.0.attn_q.weight", 64, 64), "BF16", T.BF16),
        (_tensor("blk.0.attn_norm.weight", 64), "Q4_0", T.F32),
        (_tensor("blk.0.attn_q_norm.weight", 64, 2), "Q4_0", T.F32),
        (_tensor("blk.0.ffn_gate_inp.weight", 64, 8), "Q8_0", T.F32),
        (_tensor("blk.0.attn_q.bias", 64, 2), "F16", T.F32),
        (_tensor("blk.0.attn_q.weight", 48, 64), "Q4_0", T.F16),
        (_tensor("token_embd.weight", 64, 96), "Q4_0", T.Q8_0),
        (_tensor("token_embd.weight", 64, 96), "F16", T.F16),
        (_tensor("token_embd.weight", 64, 96, kind=T.Q6_K), "Q8_0", T.Q8_0),
    ],
)
def test_target_type(tensor: TensorInfo, type_name: str, expected: T) -> None:
    assert target_type(tensor, type_name, "token_embd.weight") is expected


def test_embeddings_beside_an_output_matrix_are_like_the_others() -> None:
    tensors = [_tensor("token_embd.weight", 64, 96), _tensor("output.weight", 64, 96)]
    assert output_name(tensors) == "output.weight"
    assert output_name(tensors[:1]) == "token_embd.weight"
    assert [target_type(tensor, "Q4_0", "output.weight") for tensor in tensors] == [T.Q4_0, T.Q8_0]


def test_planned_bytes(gguf: Callable[..., Path]) -> None:
    header = read_header(gguf())
    metadata = header.tensors[0].offset
    f16, q2_k = choose_types(["F16", "Q2_K"])
    n_weights = 96 * 64 + 2 * (64 * 64 + 64 * 128)
    assert planned_bytes([header], f16) == metadata + 2 * n_weights + 4 * 128
    # At most 5.25 bits a weight: more than the 5.14 of a model whose rows mostly fall back.
    assert planned_bytes([header], q2_k) == metadata + int((n_weights + 128) * 5.25 / 8)
