"""How many bytes of a model's weights one output token reads."""

from collections.abc import Sequence

from liob_core.models.header import TensorInfo

_EMBEDDINGS, _OUTPUT = "token_embd.weight", "output.weight"
_ONE_ROW = ("per_layer_token_embd",)  # tables of which a token reads its own row


def read_bytes(
    tensors: Sequence[TensorInfo], n_experts: int | None, n_experts_used: int | None
) -> int | None:
    """Bytes of the tensors read for one token; None where it is not known how many experts are.

    Of the token embeddings a token reads one row, unless they are the output matrix too.
    """
    names = {tensor.name for tensor in tensors}
    total = 0.0
    for tensor in tensors:
        if tensor.name.startswith(_ONE_ROW) or (tensor.name == _EMBEDDINGS and _OUTPUT in names):
            continue
        if "_exps." in tensor.name:
            if not n_experts or not n_experts_used:
                return None
            total += tensor.n_bytes * n_experts_used / n_experts
        else:
            total += tensor.n_bytes
    return round(total)
