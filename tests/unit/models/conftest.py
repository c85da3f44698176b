"""Small GGUF files, made with the library that real converters use."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType as T
from gguf import GGUFWriter, quants

LLAMA = {
    "block_count": 2,
    "context_length": 256,
    "embedding_length": 64,
    "feed_forward_length": 128,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
}
TEMPLATE = "{% for m in messages %}{{ m.content }}\n{% endfor %}\n"


def default_tensors() -> dict[str, tuple[tuple[int, ...], T]]:
    """Two layers of 64 wide; shapes as numpy sees them, rows last."""
    tensors: dict[str, tuple[tuple[int, ...], T]] = {"token_embd.weight": ((96, 64), T.Q8_0)}
    for layer in range(2):
        tensors[f"blk.{layer}.attn_norm.weight"] = ((64,), T.F32)
        tensors[f"blk.{layer}.attn_q.weight"] = ((64, 64), T.Q4_0)
        tensors[f"blk.{layer}.ffn_down.weight"] = ((64, 128), T.Q4_1)
    return tensors


def tensor_data(name: str, shape: tuple[int, ...], tensor_type: T, zeros: bool) -> np.ndarray:
    """The same bytes for the same tensor, whatever file it is in."""
    if zeros:
        return quants.quantize(np.zeros(shape, dtype=np.float32), tensor_type)
    seed = sum(name.encode()) + len(name)
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return quants.quantize(values, tensor_type)


def write_gguf(
    path: Path,
    *,
    arch: str | None = "llama",
    sizes: Mapping[str, Any] = LLAMA,
    metadata: Mapping[str, Any] | None = None,
    tensors: Mapping[str, tuple[tuple[int, ...], T]] | None = None,
    tokens: int = 96,
    file_type: int | None = 2,
    names: Sequence[str] | None = None,
    alignment: int | None = None,
    zeros: bool = False,
) -> Path:
    """Write a small model; `names` picks and orders its tensors."""
    writer = GGUFWriter(path, arch or "")
    if arch is None:
        writer.kv_data[0].clear()
    if alignment:
        writer.add_custom_alignment(alignment)
    for key, value in {**{f"{arch}.{k}": v for k, v in sizes.items()}, **(metadata or {})}.items():
        _add(writer, key, value)
    if file_type is not None:
        writer.add_file_type(file_type)
    if tokens:
        writer.add_token_list([f"t{i}" for i in range(tokens)])
    chosen = default_tensors() if tensors is None else tensors
    for name in chosen if names is None else names:
        shape, tensor_type = chosen[name]
        writer.add_tensor(name, tensor_data(name, shape, tensor_type, zeros), raw_dtype=tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


@pytest.fixture
def gguf(tmp_path: Path) -> Callable[..., Path]:
    """Writes a small GGUF file of the given name and contents."""

    def write(name: str = "tiny-Q4_0.gguf", **contents: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return write_gguf(path, **contents)

    return write


@pytest.fixture(scope="session")
def write_model() -> Callable[..., Path]:
    """`write_gguf`, for files that are not one test's own."""
    return write_gguf
