"""What a load on Ollama became, told with the reason for everything that cannot be told."""

from collections.abc import Mapping, Sequence

from liob_core.engines.nvidia import has_nvidia_card
from liob_core.engines.ollama_models import LoadedModel, ShownModel
from liob_core.engines.ollama_process import Runner, server_environment
from liob_core.types import JsonValue, LoadSettings

NO_GPU_KNOWN = "no GPU is known to exist where the server runs, and Ollama counts other memory as VRAM"


def effective(
    shown: ShownModel,
    entry: LoadedModel | None,
    runner: Runner | None,
    *,
    is_local: bool,
    body: Mapping[str, JsonValue],
    warnings: Sequence[str],
) -> dict[str, JsonValue]:
    """What became effective, as the server and its runner's command line tell; bytes are its estimates."""
    share, share_reason = gpu_share(entry, is_local=is_local)
    facts: dict[str, JsonValue] = {
        "n_ctx": entry.context_length if entry else None,
        "request": dict(body),
        "can_think": shown.can_think,
        "template": shown.template,
        "parameters": shown.parameters,
        "blob_sha256": shown.blob_digest,
        "manifest_digest": entry.digest if entry else None,
        "engine_memory_bytes": entry.size if entry else None,
        "engine_vram_bytes": entry.size_vram if entry else None,
        "gpu_share": share,
        "gpu_share_reason": share_reason,
        "runner": runner.settings() if runner else None,
        "server_environment": server_environment(runner) if runner else None,
        "process_reason": None if runner else ("not_found" if is_local else "remote"),
        "warnings": list(warnings),
    }
    return {name: value for name, value in facts.items() if value is not None}


def load_warnings(
    settings: LoadSettings, entry: LoadedModel | None, others: Sequence[str], *, was_gone: bool
) -> list[str]:
    """What makes this load hard to compare, one sentence each."""
    warnings = []
    n_ctx = entry.context_length if entry else None
    if n_ctx is not None and n_ctx != settings.n_ctx:
        warnings.append(f"Ollama took a context of {n_ctx} tokens instead of {settings.n_ctx}")
    if others:
        warnings.append(f"other models were in memory too: {', '.join(others)}")
    if not was_gone:
        warnings.append("the model would not leave memory before, so no load was measured")
    return warnings


def gpu_share(entry: LoadedModel | None, *, is_local: bool) -> tuple[float | None, str | None]:
    """The share of the model, 0 to 1, that the server counts as on a GPU, or why that says nothing."""
    if entry is None or not entry.size or entry.size_vram is None:
        return None, "the server does not tell"
    if not is_local or not has_nvidia_card():
        return None, NO_GPU_KNOWN
    return entry.size_vram / entry.size, None
