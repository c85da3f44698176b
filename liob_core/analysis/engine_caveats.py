"""What engines do that could make a run's figures wrong, in sentences: one rule a function."""

import json
from collections.abc import Iterator
from typing import Any

from liob_core.analysis.offload import UNTOLD

Row = dict[str, Any]

# Nothing but a cache makes the same work so much faster from one block to a later one.
_SUSPICIOUS_RISE = 2.0


def prompt_cache(_: Row, variants: list[Row]) -> Iterator[str]:
    """Where the prompt rate of a variant rises over the blocks."""
    for row in variants:
        if (row["prefill_rise"] or 0) > _SUSPICIOUS_RISE:
            yield (
                f"{row['variant']}: its prompt rate rose to {row['prefill_rise']:.1f} times that of the "
                "first block, as it does where a cache serves prompts: the rate is in doubt."
            )


def engines(run: Row, variants: list[Row]) -> Iterator[str]:
    """What several engines, or one with a template of its own, do to a comparison."""
    names = list(dict.fromkeys(row["engine"] for row in variants))
    if len(names) > 1:
        yield (
            f"Variants ran on different engines ({', '.join(names)}): a difference between two can be the "
            "engine's. Compare within one, or the same weights across them."
        )
    if run["prompt_mode"] == "engine":
        yield (
            "Each engine applied its own template to the prompts, so the variants need not have got the same "
            "text; the prompts that are shown are what was expected."
        )
        if run["n_other_bytes"]:
            yield (
                f"{run['n_other_bytes']} prompts became other text on some variants than on others (their "
                "hashes differ): their answers compare the templates too."
            )
        if run["n_routes"] > 1:
            yield (
                "Some variants were registered from files and others pulled, and Ollama chooses a template "
                "by that: take one way for all."
            )
        return
    if run["n_engine_templated"] and "ollama" in names:
        yield (
            "Ollama rendered the prompts with a template of its own, which need not be the one in the file: "
            "answers are comparable within this run."
        )
    if run["n_models"] > 1:
        yield (
            f"The {run['n_models']} models of this run were each prompted with their own template, and a "
            "token of one is not as long a text as one of another: tokens a second do not compare them fully."
        )
    elif run["n_other_bytes"] and run["prompt_mode"] != "own":
        yield f"{run['n_other_bytes']} prompts did not reach every variant with the same bytes."
    elif run["n_other_counts"] and len(names) > 1:
        yield (
            f"The engines counted different numbers of tokens in {run['n_other_counts']} prompts of the same "
            "bytes: one of them adds or leaves out a token, such as a second BOS."
        )


def loads(_: Row, variants: list[Row]) -> Iterator[str]:
    """What an engine said of a load that makes it hard to compare, once a variant."""
    for row in variants:
        told = [one for line in (row["load_warnings"] or "").splitlines() for one in json.loads(line) or []]
        for sentence in dict.fromkeys(told):
            yield f"{row['variant']}: {sentence.rstrip('.')}."


def offload(run: Row, _: list[Row]) -> Iterator[str]:
    """Where variants, or the loads of one, were not offloaded to the graphics device alike."""
    known = {variant: where for variant, where in run["offload"].items() if UNTOLD not in where}
    if len(set(known.values())) > 1 or any(" to " in where for where in known.values()):
        told = ", ".join(f"{variant} {where}" for variant, where in known.items())
        yield f"Not all loads were offloaded alike ({told}): a part of a difference is that."


def device_memory(run: Row, variants: list[Row]) -> Iterator[str]:
    """Where memory on the graphics device is not known."""
    has_device = bool(json.loads(run["machine_gpus"] or "[]"))
    for row in variants:
        if row["peak_vram_bytes"] is None and (has_device or row["gpu_layers"]) and row["n_samples"]:
            reason = json.loads(row["unknown"] or "{}").get("peak_vram_bytes", "not measured")
            yield f"{row['variant']}: device memory is unknown ({reason}), so the peak may be too low."
