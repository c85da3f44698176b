"""What could make a run's figures wrong, in sentences: one rule a function, the gravest first."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import duckdb

from liob_core import stats
from liob_core.analysis import engine_caveats, words
from liob_core.analysis.closeness import closeness_failures
from liob_core.analysis.deltas import NOT_COMPARABLE
from liob_core.analysis.offload import offload_of
from liob_core.store.kinds import STUDY

Row = dict[str, Any]
Rule = Callable[[Row, list[Row]], Iterator[str]]

# Below this a cut-off answer here and there says nothing about the rest.
_NOTEWORTHY_CUT_OFF = 0.05

_RUN = """
    SELECT
        runs.*, machines.logical_cores, machines.physical_cores, machines.gpus AS machine_gpus,
        (SELECT count(*) FROM raw.prompts AS prompts WHERE prompts.run_id = runs.run_id AND NOT templated)
            AS n_untemplated,
        (SELECT count(*) FROM raw.prompts AS prompts WHERE prompts.run_id = runs.run_id AND templated
            AND template_sha256 IS NULL) AS n_engine_templated,
        (SELECT count(*) FILTER (n_bytes > 1) FROM (
            SELECT count(DISTINCT prompt_sha256) AS n_bytes FROM raw.samples AS samples
            WHERE samples.run_id = runs.run_id AND task = 'suite' AND NOT warmup GROUP BY prompt_id))
            AS n_other_bytes,
        (SELECT count(*) FILTER (n_counts > 1) FROM (
            SELECT count(DISTINCT prompt_tokens) AS n_counts FROM raw.samples AS samples
            WHERE samples.run_id = runs.run_id AND task = 'suite' AND NOT warmup
            AND outcome IN ('ok', 'length') GROUP BY prompt_id))
            AS n_other_counts,
        (SELECT count(*) FROM raw.samples AS samples WHERE samples.run_id = runs.run_id
            AND NOT warmup AND contended IS NULL) AS n_untold,
        (SELECT count(*) FROM raw.samples AS samples WHERE samples.run_id = runs.run_id
            AND overhead_ms < 0) AS n_negative_overhead,
        (SELECT count(*) FROM raw.samples AS samples WHERE samples.run_id = runs.run_id
            AND NOT warmup AND reason LIKE 'metrics_missing%') AS n_metrics_missing,
        (SELECT count(DISTINCT route) FROM (
            SELECT CASE WHEN engine_model LIKE 'liob/%' THEN 'file'
                WHEN engine_model LIKE 'hf.co/%' THEN 'hub' ELSE 'library' END AS route
            FROM raw.variants AS variants WHERE variants.run_id = runs.run_id AND variants.engine = 'ollama'))
            AS n_routes,
        (SELECT count(DISTINCT concat_ws('/', architecture, n_layers, model->>'$.n_embd',
                model->>'$.vocab_size'))
            FROM raw.variants AS variants WHERE variants.run_id = runs.run_id AND architecture IS NOT NULL)
            AS n_models
    FROM raw.runs AS runs LEFT JOIN raw.machines AS machines USING (machine_id)
    WHERE runs.run_id = ?
"""

_VARIANTS = """
    WITH outcomes AS (
        SELECT variant, outcome, count(*) AS n FROM raw.samples
        WHERE run_id = $run_id AND NOT warmup AND outcome NOT IN ('ok', 'length') GROUP BY ALL
    )
    SELECT
        results.*, variants.threads, variants.gpu_layers, variants.label_warning, variants.fallback_warning,
        (SELECT string_agg(DISTINCT json_extract(effective, '$.warnings')::VARCHAR, chr(10))
            FROM raw.loads AS loads WHERE loads.run_id = $run_id AND loads.variant = results.variant)
            AS load_warnings,
        (SELECT string_agg(n || ' ' || outcome, ', ' ORDER BY n DESC) FROM outcomes
            WHERE outcomes.variant = results.variant) AS failures,
        (SELECT any_value(reason) FROM raw.paired_deltas AS deltas WHERE deltas.run_id = $run_id
            AND deltas.variant = results.variant AND metric = 'pass_rate' AND verdict = $not_comparable)
            AS quality_reason,
        (SELECT arg_max(prefill_tps, block) / arg_min(prefill_tps, block) FROM raw.samples AS samples
            WHERE samples.run_id = $run_id AND samples.variant = results.variant AND shape = 'pp512'
            AND NOT warmup AND outcome IN ('ok', 'length') AND prefill_tps > 0) AS prefill_rise
    FROM main.results AS results JOIN raw.variants AS variants USING (run_id, variant)
    WHERE run_id = $run_id
    ORDER BY results.is_reference DESC, results.bpw DESC NULLS LAST, results.position
"""


def find(con: duckdb.DuckDBPyConnection, run_id: str) -> list[str]:
    """Every warning of a run, one sentence each; empty where there is nothing to warn of."""
    runs = _rows(con, _RUN, [run_id])
    if not runs:
        return []
    variants = _rows(con, _VARIANTS, {"run_id": run_id, "not_comparable": NOT_COMPARABLE})
    run = {**runs[0], "offload": offload_of(con, run_id)}
    found = [sentence for rule in _RULES for sentence in rule(run, variants)]
    return [*found, *closeness_failures(con, run_id)]


def _rows(con: duckdb.DuckDBPyConnection, sql: str, parameters: object) -> list[Row]:
    cursor = con.execute(sql, parameters)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _origin(run: Row, _: list[Row]) -> Iterator[str]:
    if run.get("kind") == STUDY:
        yield (
            "These figures are what the original study published: one load a variant, so no interval on "
            "speed; its rate counts the first token and is a plain mean over prompts; its judge was never "
            "calibrated; its models ran without their chat template."
        )
    elif run.get("left_out"):
        yield f"The {run['left_out']} of this run were left out where it was exported."


def _unfinished(run: Row, _: list[Row]) -> Iterator[str]:
    if run["state"] != "finished":
        because = f" ({run['reason'].rstrip('.')})" if run["reason"] else ""
        yield f"The run is {run['state']}{because}: its figures rest on the part that is there."
    if run["n_skipped_lines"]:
        yield f"{run['n_skipped_lines']} damaged lines of the run's folder were left out."


def _failures(run: Row, variants: list[Row]) -> Iterator[str]:
    told = [f"{row['variant']} {row['failures']}" for row in variants if row["n_failed"]]
    if told:
        yield f"Requests that did not end as they should are in no average of speed: {'; '.join(told)}."
    if run["n_metrics_missing"]:
        yield (
            f"{run['n_metrics_missing']} answers came without all of the engine's counters, so what rests on "
            "those is unknown for them."
        )


def _contention(run: Row, variants: list[Row]) -> Iterator[str]:
    n_samples = sum(row["n_samples"] or 0 for row in variants)
    told = [f"{row['variant']} {row['n_contended']}" for row in variants if row["n_contended"]]
    n_contended = sum(row["n_contended"] or 0 for row in variants)
    if n_samples and n_contended == n_samples:
        yield (
            f"All {n_samples} samples ran beside a busy program, so no time or rate is known: close other "
            "programs and measure again."
        )
    elif told:
        yield (
            f"Some of the {n_samples} samples ran beside a busy program and are left out of every time and "
            f"rate: {', '.join(told)}."
        )
    if n_samples and run["n_untold"] == n_samples:
        yield "Whether other programs were busy could not be told, so no sample was left out for it."


def _spread(run: Row, variants: list[Row]) -> Iterator[str]:
    unsteady = [row for row in variants if stats.spread_level(row["decode_tps_cv"]) != "none"]
    by_cause: dict[str, list[str]] = {}
    for row in unsteady:
        told = f"{row['variant']} by {words.percent(row['decode_tps_cv'])}"
        if stats.spread_level(row["decode_tps_cv"]) == "red":
            told += " (much)"
        by_cause.setdefault(_likely_cause(run, row), []).append(told)
    for cause, told_of in by_cause.items():
        yield f"The decode rate varies between blocks: {', '.join(told_of)}. Likely cause: {cause}."


def _likely_cause(run: Row, row: Row) -> str:
    if row["n_contended"]:
        return "other programs, as some samples ran beside a busy neighbour"
    if _leaves_no_core(run, row):
        return f"{row['threads']} threads leave no core to the rest of the machine"
    if row["timing_task"] == "suite":
        return "answers of different lengths; the speed task has fixed ones"
    return "clock or temperature of the processor changed; run more blocks"


def _threads(run: Row, variants: list[Row]) -> Iterator[str]:
    busy = [row for row in variants if _leaves_no_core(run, row)]
    if busy:
        cores = run["physical_cores"] or run["logical_cores"]
        yield (
            f"{busy[0]['threads']} threads on {cores} cores leave none for the system and the monitor, "
            "which makes times uneven; one thread fewer is often faster."
        )


def _leaves_no_core(run: Row, row: Row) -> bool:
    cores = run["physical_cores"] or run["logical_cores"]
    return bool(cores and row["threads"] and row["threads"] >= cores)


def _blocks(_: Row, variants: list[Row]) -> Iterator[str]:
    timed = [row for row in variants if row["n_blocks"]]
    if timed and max(row["n_blocks"] for row in timed) == 1:
        yield "Speed was measured in one block only: there is no interval and no verdict on it."


def _quality(_: Row, variants: list[Row]) -> Iterator[str]:
    checked = max((row["n_checked"] or 0 for row in variants), default=0)
    if checked and stats.no_flip_bound(checked) > 0.05:
        yield (
            f"{checked} checked prompts cannot bound a loss below "
            f"{words.at_most_points(stats.no_flip_bound(checked))}, even without a single flip."
        )
    for row in variants:
        if row["quality_reason"]:
            yield f"{row['variant']}: its pass rate is not comparable: {row['quality_reason']}."


def _cut_off(run: Row, variants: list[Row]) -> Iterator[str]:
    told = [
        f"{row['variant']} {words.percent(row['truncated_share'])}"
        for row in variants
        if (row["truncated_share"] or 0) > _NOTEWORTHY_CUT_OFF
    ]
    if told:
        yield f"Answers were cut off at {run['max_tokens']} tokens: {', '.join(told)}."


def _prompts(run: Row, _: list[Row]) -> Iterator[str]:
    if run["n_untemplated"]:
        yield "The reference file has no chat template, so the prompts were sent as plain text."
    if run["prompt_mode"] == "own":
        yield "Each file was prompted with its own template, so the variants did not get the same bytes."
    if run["temperature"]:
        yield (
            f"Answers were sampled at temperature {run['temperature']:g}: checks passed are those of the "
            f"first of {run['suite_repeats']} seeds, and Quality has the mean over all."
        )


def _labels(_: Row, variants: list[Row]) -> Iterator[str]:
    for row in variants:
        for name in ("label_warning", "fallback_warning"):
            if row[name]:
                yield f"{row['variant']}: {row[name].rstrip('.')}."


def _reference(_: Row, variants: list[Row]) -> Iterator[str]:
    reference = next((row for row in variants if row["is_reference"]), None)
    if reference is None or reference["bpw"] is None or len(variants) < 2:
        return
    larger = [row["variant"] for row in variants if (row["bpw"] or 0) > reference["bpw"]]
    # Below 16 bits the reference is a quantization itself, and what it lost cannot be seen.
    if larger or reference["bpw"] < 15:
        yield f"Everything is relative to {reference['variant']}, which cannot lose against itself."


def _machine(run: Row, _: list[Row]) -> Iterator[str]:
    machine = json.loads(run["machine"] or "{}")
    if machine.get("power_source") == "battery":
        yield "The machine ran on battery, which lowers and varies its speed."
    if machine.get("cpu_governor") == "powersave":
        yield "The processor's frequency policy was powersave, which can lower and vary its speed."
    if run["n_negative_overhead"]:
        yield (
            f"{run['n_negative_overhead']} requests took less time than the engine accounts for: "
            "its clock is in doubt."
        )


_RULES: tuple[Rule, ...] = (
    _origin,
    _unfinished,
    _failures,
    _contention,
    _spread,
    engine_caveats.prompt_cache,
    _quality,
    _cut_off,
    _blocks,
    _threads,
    _prompts,
    engine_caveats.engines,
    engine_caveats.loads,
    engine_caveats.offload,
    _reference,
    _labels,
    engine_caveats.device_memory,
    _machine,
)
