"""A model's header with only what a closeness plan reads."""

from typing import Any

from liob_core.types import ModelFile


def header(
    *, tensor_bytes: int = 10**6, vocab_size: int = 1000, n_params: int = 10**6, **changes: Any
) -> ModelFile:
    """The header of a model whose memory need LIOB cannot predict: weights and a tenth."""
    fields: dict[str, Any] = dict.fromkeys(ModelFile.__dataclass_fields__)
    known = {
        "paths": ("a.gguf",),
        "architecture": "unheard-of",
        "tensor_groups": (),
        "tensor_bytes": tensor_bytes,
        "vocab_size": vocab_size,
        "n_params": n_params,
    }
    return ModelFile(**{**fields, **known})
