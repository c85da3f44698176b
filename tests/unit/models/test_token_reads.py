"""Which bytes a token reads, by hand."""

from gguf import GGMLQuantizationType as T

from liob_core.models.header import TensorInfo
from liob_core.models.token_reads import read_bytes


def tensors(**sizes: int) -> list[TensorInfo]:
    """Tensors by name (two underscores are a dot) with so many bytes."""
    return [
        TensorInfo(
            name=name.replace("__", "."), type=T.F16, shape=(n // 2,), n_elements=n // 2, offset=0, n_bytes=n
        )
        for name, n in sizes.items()
    ]


def test_embeddings_that_are_the_output_too_are_read_whole() -> None:
    assert read_bytes(tensors(token_embd__weight=1000, blk__0__ffn_up__weight=400), None, None) == 1400


def test_embeddings_beside_an_output_matrix_are_not_read() -> None:
    own = tensors(token_embd__weight=1000, output__weight=900, blk__0__ffn_up__weight=400)
    assert read_bytes(own, None, None) == 1300


def test_of_experts_the_share_in_use_is_read() -> None:
    mixture = tensors(token_embd__weight=1000, blk__0__ffn_up_exps__weight=800, blk__0__attn_q__weight=10)
    assert read_bytes(mixture, 8, 2) == 1000 + 200 + 10
    assert read_bytes(mixture, 8, None) is None


def test_tables_of_which_one_row_is_read_do_not_count() -> None:
    assert read_bytes(tensors(per_layer_token_embd__weight=5000, output__weight=10), None, None) == 10
