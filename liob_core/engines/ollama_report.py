"""What was sent to Ollama to the letter, and what a load became, with the reason where that is not told."""

import json
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from liob_core.engines.nvidia import has_nvidia_card
from liob_core.engines.ollama_models import LoadedModel, ShownModel
from liob_core.engines.ollama_process import Runner, server_environment
from liob_core.types import JsonValue, LoadSettings

NO_GPU_KNOWN = "no GPU is known to exist where the server runs, and Ollama counts other memory as VRAM"


def log_sent(path: Path, endpoint: str, body: Mapping[str, JsonValue]) -> None:
    """Keep what is sent, to the letter: one JSON line a request."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as log:
        log.write(json.dumps({"path": endpoint, "body": body}) + "\n")


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
    layers = gpu_layers(shown, runner)
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
        "gpu_layers": layers,
        "gpu_share": 0.0 if layers == 0 else share,
        "gpu_share_reason": None if layers == 0 else share_reason,
        "runner": runner.settings() if runner else None,
        "server_environment": server_environment(runner) if runner else None,
        "process_reason": None if runner else ("not_found" if is_local else "remote"),
        "warnings": list(warnings),
    }
    return {name: value for name, value in facts.items() if value is not None}


def load_warnings(
    settings: LoadSettings,
    entry: LoadedModel | None,
    others: Sequence[str],
    *,
    parameters: str,
    was_gone: bool,
) -> list[str]:
    """What makes this load hard to compare, one sentence each; `parameters` are the registration's."""
    warnings = []
    n_ctx = entry.context_length if entry else None
    if n_ctx is not None and n_ctx != settings.n_ctx:
        warnings.append(f"Ollama took a context of {n_ctx} tokens instead of {settings.n_ctx}")
    if settings.gpu_layers is None and "num_gpu" in parameters:
        warnings.append("the model's registration sets num_gpu, which automatic offload leaves in force")
    if others:
        warnings.append(f"other models were in memory too: {', '.join(others)}")
    if not was_gone:
        warnings.append("the model would not leave memory before, so no load was measured")
    return warnings


def gpu_share(entry: LoadedModel | None, *, is_local: bool) -> tuple[float | None, str | None]:
    """The share of the model, 0 to 1, that the server counts as on a GPU, or why that says nothing."""
    if entry is None or not entry.size or entry.size_vram is None:
        return None, "the server does not tell"
    if entry.size_vram == 0:
        return 0.0, None  # it counts too much as VRAM, never too little
    if not is_local or not _has_known_gpu():
        return None, NO_GPU_KNOWN
    return min(1.0, entry.size_vram / entry.size), None


def gpu_layers(shown: ShownModel, runner: Runner | None) -> int | None:
    """The layers that the runner was told to put on a GPU; None where it fits them itself, or is not seen.

    A number beyond what the model has means all of them: its blocks and the output layer.
    """
    told = runner.settings().get("gpu_layers", "") if runner else ""
    if not told.isdecimal():
        return None
    if int(told) > 0 and not _has_known_gpu():
        return None
    blocks = shown.facts.get(f"{shown.facts.get('general.architecture')}.block_count")
    return min(int(told), blocks + 1) if isinstance(blocks, int) else int(told)


def _has_known_gpu() -> bool:
    """Whether this machine is known to have a GPU that Ollama uses: an NVIDIA card, or Apple's own."""
    return has_nvidia_card() or (sys.platform == "darwin" and platform.machine() == "arm64")
