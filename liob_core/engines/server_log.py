"""What llama.cpp's own log says about a load: effective settings, buffer sizes, and why it failed.

Sizes are printed in MiB with two decimals, so bytes are exact to 0.01 MiB. What is not in the log is
None, never 0.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from liob_core.types import JsonValue

HEAD_BYTES = 4 * 2**20  # a load's lines come first; what follows is one block per request
MIB = 2**20
LOADED_MARK = "listening on http"

_PREFIX = re.compile(r"^(?:\d+\.)+\d+ ([DIWE]) ?")
_BUFFER = re.compile(r"(\S+)\s+(model|KV|RS|compute|output) buffer size\s*=\s*([\d.]+) MiB")
_SETTINGS = tuple(
    (re.compile(pattern), names.split())
    for pattern, names in (
        (r"llama_context: n_seq_max\s*= (\d+)$", "n_seq_max"),
        (r"llama_context: n_ctx\s*= (\d+)$", "n_ctx"),
        (r"llama_context: n_ctx_seq\s*= (\d+)$", "n_ctx_seq"),
        (r"llama_context: n_batch\s*= (\d+)$", "n_batch"),
        (r"llama_context: n_ubatch\s*= (\d+)$", "n_ubatch"),
        (r"llama_context: flash_attn\s*= (enabled|disabled)$", "flash_attn"),
        (r"Flash Attention (?:was auto, set to )?(enabled|disabled)$", "flash_attn"),
        (r"K \((\w+)\):.*V \((\w+)\):", "kv_type_k kv_type_v"),
        (r"system_info: n_threads = (\d+) \(n_threads_batch = (\d+)\)", "threads threads_batch"),
        (r"load_mode = (\w+)\)", "load_mode"),
        (r"offloaded (\d+)/(\d+) layers to GPU", "gpu_layers n_layers"),
    )
)
_WORDS = {"enabled": "on", "disabled": "off"}
_CAUSE_NOISE = re.compile(r"^(?:\w+\s+)?\w+: (?:error loading model: )?")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """Effective settings and bytes of one load as its log tells them; None where it does not."""

    effective: Mapping[str, JsonValue] | None
    weights_bytes: int | None
    kv_bytes: int | None
    compute_bytes: int | None
    output_bytes: int | None


def read_log(path: Path, offset: int = 0) -> LogFacts:
    """Facts of the load whose lines begin at byte `offset`; all None where the file cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            head = file.read(HEAD_BYTES)
    except OSError:
        head = b""
    return parse_log(head.decode("utf-8", errors="replace"))


def parse_log(text: str) -> LogFacts:
    """Facts from the text of a log."""
    effective: dict[str, JsonValue] = {}
    buffers: list[dict[str, JsonValue]] = []
    for line in text.splitlines():
        message = _PREFIX.sub("", line).strip()
        if found := _BUFFER.search(message):
            _add_buffer(buffers, found.group(1), found.group(2), round(float(found.group(3)) * MIB))
        elif settings := _settings(message):
            effective.update(settings)
        if LOADED_MARK in message:
            break
    if buffers:
        effective["buffers"] = buffers
    return LogFacts(
        effective=effective or None,
        weights_bytes=_total(buffers, "model"),
        kv_bytes=_total(buffers, "KV", "RS"),  # recurrent state is what such layers keep instead
        compute_bytes=_total(buffers, "compute"),
        output_bytes=_total(buffers, "output"),
    )


def _settings(message: str) -> dict[str, JsonValue]:
    for pattern, names in _SETTINGS:
        if found := pattern.search(message):
            return {
                name: int(value) if value.isdecimal() else _WORDS.get(value, value)
                for name, value in zip(names, found.groups(), strict=True)
            }
    return {}


def _add_buffer(buffers: list[dict[str, JsonValue]], device: str, kind: str, size: int) -> None:
    if kind == "compute":  # reserved again when a feature is switched off: only the last one stays
        buffers[:] = [entry for entry in buffers if (entry["device"], entry["kind"]) != (device, kind)]
    buffers.append({"device": device, "kind": kind, "bytes": size})


def _total(buffers: list[dict[str, JsonValue]], *kinds: str) -> int | None:
    sizes = [entry["bytes"] for entry in buffers if entry["kind"] in kinds]
    return sum(sizes) if sizes else None


def load_error(text: str) -> str | None:
    """The cause of a failed load: the first error in the log, without prefixes; None where there is none."""
    for line in text.splitlines():
        prefix = _PREFIX.match(line)
        if prefix and prefix.group(1) == "E":
            cause = _CAUSE_NOISE.sub("", line[prefix.end() :].strip())
            return cause[:1].lower() + cause[1:] if cause else None
    return None


def tail(path: Path, n_lines: int = 20) -> str:
    """The last lines of a log; empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 16384))
            lines = file.read().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-n_lines:])
