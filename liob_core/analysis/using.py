"""How to run a variant: the command that a user can paste."""

import shlex
from collections.abc import Mapping
from typing import Any


def command(row: Mapping[str, Any]) -> str | None:
    """The command that runs a variant as it was measured; None where neither file nor model is named.

    `row` has engine, engine_model, file_name and the load settings of raw.variants.
    """
    if row["engine"] == "ollama":
        return f"ollama run {shlex.quote(str(row['engine_model']))}"
    if not row["file_name"]:
        return None
    parts = ["llama-server", "--model", str(row["file_name"])]
    for option, name in (("--ctx-size", "n_ctx"), ("--threads", "threads")):
        if row[name] is not None:
            parts += [option, str(row[name])]
    if row["gpu_layers"]:
        parts += ["--n-gpu-layers", str(row["gpu_layers"])]
    types = (row["kv_type_k"] or "f16", row["kv_type_v"] or "f16")
    if types != ("f16", "f16"):
        parts += ["--cache-type-k", types[0], "--cache-type-v", types[1], "--flash-attn", "on"]
    return shlex.join(parts)
