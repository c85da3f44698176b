"""What makes two runs hard to compare: other machines, engines, settings, files or prompts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from liob_core.analysis import words
from liob_core.store.kinds import STUDY

Row = dict[str, Any]

# What must be the same for speed and memory to compare quantizations, with its words.
_LOAD_SETTINGS = {
    "n_ctx": "context length",
    "threads": "number of threads",
    "gpu_layers": "number of layers on the GPU",
    "gpu_share": "share on the GPU",
    "n_batch": "batch",
    "server_kv_type": "type of the server's cache",
    "kv_type_k": "type of the key cache",
    "kv_type_v": "type of the value cache",
}
_RUN_SETTINGS = {
    "engine": "engine",
    "engine_version": "engine version",
    "prompt_mode": "way of prompting",
    "temperature": "temperature",
    "max_tokens": "limit of an answer's tokens",
    "liob_version": "LIOB version",
}


def pair_warnings(
    runs: tuple[Row, Row], pairs: Sequence[tuple[Row, Row]], tasks: tuple[str | None, str | None]
) -> Iterator[str]:
    """What speaks against comparing two runs, the gravest first, one sentence each.

    `runs` are rows of the view `runs` with their machines, `pairs` the variants that both have, `tasks` where
    their speed comes from.
    """
    first, second = runs
    if not pairs:
        yield "The two runs have no variant in common, so there is nothing to compare."
    if first["machine_id"] != second["machine_id"]:
        yield (
            f"Other machine: {_machine(first)} against {_machine(second)}. Speed and memory compare the "
            "machines."
        )
    yield from _origins(first, second, pairs)
    may_lack = _is_published(first) or _is_published(second)
    yield from _differences(first, second, _RUN_SETTINGS, may_lack=may_lack)
    yield from _variant_differences(pairs, may_lack=may_lack)
    if _has_suite(first) and _has_suite(second) and first["suite_sha256"] != second["suite_sha256"]:
        yield (
            f"Other prompts: {first['suite'] or 'no suite'} {first['suite_version'] or ''} against "
            f"{second['suite'] or 'no suite'} {second['suite_version'] or ''}. Checks are not comparable."
        )
    before, after = tasks
    if before != after and before and after:
        yield f"Speed comes from the {before} task in one run and the {after} task in the other."
    for run in (first, second):
        if run["state"] != "finished":
            title = run["title"] or run["run_id"]
            yield f"{title} is {run['state']}: its figures rest on the part that is there."


def _origins(first: Row, second: Row, pairs: Sequence[tuple[Row, Row]]) -> Iterator[str]:
    """What differs in who measured, and in the model."""
    for run in (first, second):
        if _is_published(run):
            yield (
                f"{run['title']} is a table that the original study published: it tells no settings, and its "
                "rate counts the first token and is a plain mean over prompts."
            )
    models = {(one["model_name"], other["model_name"]) for one, other in pairs}
    for one, other in sorted(models, key=str):
        if one and other and one != other:
            yield f"Other model: {one} against {other}."


def _variant_differences(pairs: Sequence[tuple[Row, Row]], *, may_lack: bool) -> Iterator[str]:
    """What differs in the files and in how they were loaded."""
    for one, other in pairs:
        if (
            one["weights_sha256"]
            and other["weights_sha256"]
            and one["weights_sha256"] != other["weights_sha256"]
        ):
            yield f"{one['variant']}: another file in the two runs, with other weights."
    for name, what in _LOAD_SETTINGS.items():
        told = {(one[name], other[name]) for one, other in pairs if one[name] != other[name]}
        for one, other in sorted(told, key=str):
            if may_lack and None in (one, other):
                continue
            yield f"Other {what}: {_shown(one)} against {_shown(other)}."


def _has_suite(run: Row) -> bool:
    return "suite" in (run["tasks"] or [])


def _is_published(run: Row) -> bool:
    """Whether it is another study's table, which lacks what LIOB would have written down."""
    return run.get("kind") == STUDY


def _differences(first: Row, second: Row, names: Mapping[str, str], *, may_lack: bool) -> Iterator[str]:
    """The settings that differ; where one side `may_lack` them, those that both have."""
    for name, what in names.items():
        if may_lack and None in (first[name], second[name]):
            continue
        if first[name] != second[name]:
            yield f"Other {what}: {_shown(first[name])} against {_shown(second[name])}."


def _machine(run: Row) -> str:
    parts = [
        run["cpu_name"] or "an unknown processor",
        words.memory(run["ram_bytes"]) if run["ram_bytes"] else None,
    ]
    parts += [gpu["name"] for gpu in json.loads(run["gpus"] or "[]")]
    return ", ".join(part for part in parts if part)


def _shown(value: object) -> str:
    return "unknown" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
