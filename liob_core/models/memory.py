"""How much memory a load will take, predicted from the header, and whether that fits this machine.

The rules are llama.cpp's own. A slot's context is a multiple of 256 tokens; a sliding-window layer keeps
its window and one micro-batch; the compute buffer is reserved for one full micro-batch.
"""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import psutil
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from liob_core.models.gguf import layers_of_period
from liob_core.types import LoadSettings, MemoryNeed, ModelFile

_CELLS = 256  # the cache grows in steps of so many tokens

# Every layer keeps keys and values of the whole context.
# fmt: off
_FULL_ATTENTION = frozenset({
    "arcee", "chatglm", "command-r", "ernie4_5", "exaone", "falcon", "gemma", "glm4", "gpt2",
    "gptneox", "granite", "granitemoe", "internlm2", "llama", "minicpm", "olmo", "olmo2", "olmoe",
    "phi2", "phi3", "qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen3moe", "smollm3", "stablelm",
    "starcoder2",
})
# fmt: on
# Every n-th layer keeps the whole context, the others a window.
_WINDOW_PERIOD = {"cohere2": 4, "gemma2": 2, "gemma3": 6, "gpt-oss": 2}
# Their headers name a window that the engine does not use.
_IGNORES_WINDOW = frozenset({"phi3"})

# Floats per token of a micro-batch that the compute buffer holds at its widest point, in units of the
# embedding and of the feed-forward width. Fitted to the engine's own "compute buffer size": within 1 % on
# Llama and Gemma 3, within 4 % on mixtures of experts; above it by up to 15 % without flash attention.
_EMBEDDINGS_PER_TOKEN = 5
_FEED_FORWARDS_PER_TOKEN = 3

_TIGHT_SHARE = 0.85


class Fit(StrEnum):
    """Whether a predicted need fits the memory that is free."""

    FITS = "fits"
    TIGHT = "tight"
    DOES_NOT_FIT = "does not fit"
    UNKNOWN = "unknown"


def memory_need(model: ModelFile, settings: LoadSettings) -> MemoryNeed:
    """The predicted bytes of one load: weights, KV cache of all slots and compute buffers."""
    reason = _unknown_because(model, settings)
    if reason is not None:
        return MemoryNeed(
            weights_bytes=model.tensor_bytes,
            kv_bytes=None,
            compute_bytes=None,
            need_bytes=None,
            reason=reason,
        )
    kv = kv_bytes(model, settings)
    compute = compute_bytes(model, settings)
    return MemoryNeed(
        weights_bytes=model.tensor_bytes,
        kv_bytes=kv,
        compute_bytes=compute,
        need_bytes=model.tensor_bytes + kv + compute,
    )


def kv_bytes(model: ModelFile, settings: LoadSettings) -> int:
    """Bytes of the KV cache, layer by layer, of all slots. Only for models whose need is known."""
    return _cache_bytes(model, settings, _tokens_per_layer(model, settings)) * settings.n_parallel


def token_read_bytes(model: ModelFile, settings: LoadSettings, depth: int) -> int | None:
    """Bytes that one output token reads after `depth` others: weights and KV cache; None where unknown."""
    if model.read_bytes is None or _unknown_because(model, settings) is not None:
        return None
    window = model.sliding_window or depth
    windowed = _windowed_layers(model) or (False,) * (model.n_layers or 0)
    kept = [min(depth, window) if is_windowed else depth for is_windowed in windowed]
    return model.read_bytes + _cache_bytes(model, settings, kept)


def _cache_bytes(model: ModelFile, settings: LoadSettings, tokens_per_layer: Sequence[int]) -> int:
    """Bytes of one slot's KV cache with so many tokens in each layer."""
    return sum(
        n_tokens
        * (
            _row_bytes(settings.kv_type_k, n_heads * (model.head_dim_k or 0))
            + _row_bytes(settings.kv_type_v, n_heads * (model.head_dim_v or 0))
        )
        for n_tokens, n_heads in zip(tokens_per_layer, model.n_kv_heads or (), strict=True)
    )


def compute_bytes(model: ModelFile, settings: LoadSettings) -> int:
    """Bytes of the compute and output buffers, estimated. Only for models whose need is known."""
    batch = min(settings.n_ubatch, settings.n_batch)
    used = model.n_experts_used or 0
    width = (_EMBEDDINGS_PER_TOKEN + used) * (model.n_embd or 0)
    width += _FEED_FORWARDS_PER_TOKEN * (model.n_ff or 0) * max(1, used)
    # A mask of one F16 a cell for each kind of layer; without flash attention F32 and the scores too.
    cells = sorted(set(_tokens_per_layer(model, settings)))
    if settings.flash_attn == "off":
        attention = 4 * sum(cells) + 4 * (model.n_heads or 0) * max(cells)
    else:
        attention = 2 * sum(cells)
    output = 4 * (model.vocab_size or 0) * settings.n_parallel
    return batch * (4 * width + attention) + output


def slot_context(n_ctx: int, n_parallel: int) -> int:
    """Tokens that one slot can hold when `n_ctx` is shared by `n_parallel` slots."""
    return _round_up(_round_up(n_ctx) // n_parallel)


def _round_up(n_tokens: int) -> int:
    return -(-n_tokens // _CELLS) * _CELLS


def _tokens_per_layer(model: ModelFile, settings: LoadSettings) -> tuple[int, ...]:
    context = slot_context(settings.n_ctx, settings.n_parallel)
    n_layers = model.n_layers or 0
    windowed = _windowed_layers(model)
    if windowed is None or model.sliding_window is None:
        return (context,) * n_layers
    window = min(context, _round_up(model.sliding_window + min(settings.n_ubatch, settings.n_batch)))
    return tuple(window if is_windowed else context for is_windowed in windowed)


def _windowed_layers(model: ModelFile) -> Sequence[bool] | None:
    period = _WINDOW_PERIOD.get(model.architecture)
    if period is None or model.n_layers is None:
        return None
    return model.windowed_layers or layers_of_period(model.n_layers, period)


def _row_bytes(kv_type: str, n_elements: int) -> int:
    block_size, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[kv_type.upper()]]
    return n_elements // int(block_size) * int(block_bytes)


def _unknown_because(model: ModelFile, settings: LoadSettings) -> str | None:
    """Why the need cannot be told, or None where it can."""
    name = model.architecture
    if name not in _FULL_ATTENTION and name not in _WINDOW_PERIOD:
        return f"LIOB does not know how the architecture {name!r} keeps its context."
    if name in _FULL_ATTENTION - _IGNORES_WINDOW and model.sliding_window is not None:
        return f"This {name!r} model has a sliding window that LIOB does not know the layers of."
    if not all((model.n_layers, model.n_embd, model.n_heads, model.n_kv_heads, model.head_dim_k, model.n_ff)):
        return "The header does not give the sizes of layers and heads."
    for kv_type in (settings.kv_type_k, settings.kv_type_v):
        if kv_type.upper() not in GGMLQuantizationType.__members__:
            return f"LIOB does not know the cache type {kv_type!r}."
    return None


def available_bytes() -> int:
    """Bytes of memory that a new process can take now, within this container's limit where there is one."""
    available = int(psutil.virtual_memory().available)
    limit = _container_headroom()
    return available if limit is None else min(available, limit)


def _container_headroom(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    try:
        limit = (root / "memory.max").read_text().strip()
        used = int((root / "memory.current").read_text())
        stat = dict(line.split(maxsplit=1) for line in (root / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    if not limit.isdigit():  # "max": no limit
        return None
    # File pages that are not in use are given back when memory runs short.
    return max(0, int(limit) - used + int(stat.get("inactive_file", 0)))


def fits(need: MemoryNeed | None, available: int) -> Fit:
    """The verdict on a need against `available` bytes; unknown stays unknown."""
    if need is None or need.need_bytes is None:
        return Fit.UNKNOWN
    if need.need_bytes > available:
        return Fit.DOES_NOT_FIT
    return Fit.TIGHT if need.need_bytes > _TIGHT_SHARE * available else Fit.FITS
