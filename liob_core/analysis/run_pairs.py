"""Two runs side by side: what makes them hard to compare, and what changed per variant.

Blocks of two runs are not pairs, so speed is compared by Welch's t over the logarithms; checks are paired
by prompt where both runs asked the same suite. Every interval is 95 % by itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from liob_core import stats
from liob_core.analysis import words
from liob_core.analysis.blocks import Block, read_blocks, timing_task, values_by_block
from liob_core.analysis.deltas import BETTER, SAME, WORSE
from liob_core.analysis.run_pair_warnings import pair_warnings
from liob_core.errors import UsageError
from liob_core.metrics import METRICS
from liob_core.store import database

Row = dict[str, Any]
_ONE_ONLY = "measured in one of the two runs only"
RATES = ("decode_tps", "prefill_tps", "ttft_ms")
METRIC_COLUMNS = (*RATES, "peak_memory_bytes", "pass_rate")

_RUN = """
    SELECT
        runs.*, machines.cpu_name, machines.ram_bytes, machines.os_version, machines.gpus
    FROM main.runs AS runs LEFT JOIN raw.machines AS machines USING (machine_id) WHERE run_id = ?
"""
_VARIANTS = """
    SELECT
        variants.* REPLACE (coalesce(
            (SELECT max(TRY_CAST(effective->>'gpu_layers' AS INTEGER)) FROM raw.loads AS loads
                WHERE loads.run_id = variants.run_id AND loads.variant = variants.variant),
            variants.gpu_layers) AS gpu_layers),
        (SELECT max(try_cast(effective->>'gpu_share' AS DOUBLE)) FROM raw.loads AS loads
            WHERE loads.run_id = variants.run_id AND loads.variant = variants.variant) AS gpu_share,
        (SELECT max(TRY_CAST(effective->>'$.request.options.num_batch' AS INTEGER)) FROM raw.loads AS loads
            WHERE loads.run_id = variants.run_id AND loads.variant = variants.variant) AS n_batch,
        (SELECT max(effective->>'$.server_environment.OLLAMA_KV_CACHE_TYPE') FROM raw.loads AS loads
            WHERE loads.run_id = variants.run_id AND loads.variant = variants.variant) AS server_kv_type,
        results.peak_memory_bytes, results.pass_rate, results.n_checked
    FROM raw.variants AS variants
    LEFT JOIN raw.summary AS results USING (run_id, variant)
    WHERE run_id = ? ORDER BY variants.bpw DESC NULLS LAST, variants.position
"""
_CHECKS = """
    SELECT
        variant, prompt_id,
        arg_min(check_result = 'pass', coalesce(block, 0) * 1000 + coalesce(repeat, 0)) AS has_passed
    FROM raw.samples
    WHERE run_id = ? AND task = 'suite' AND NOT warmup AND check_result IN ('pass', 'fail')
    GROUP BY variant, prompt_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs: what speaks against comparing them, and one row per variant and metric that both have.

    `rows` has variant, bpw, metric, before and after (in the metric's unit), estimate (a ratio for rates,
    else a difference), ci_low, ci_high, n_before, n_after, verdict, words and reason.
    """

    warnings: tuple[str, ...]
    rows: pd.DataFrame
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two runs, read."""

    run: Row
    variants: list[Row]
    blocks: list[Block]
    task: str | None
    checks: Mapping[str, Mapping[str, bool]]


def compare(db: Path, before_id: str, after_id: str) -> Comparison:
    """The second run against the first; raises UsageError where the database lacks one of them."""
    with database.read(db) as con:
        before, after = _read(con, before_id), _read(con, after_id)
    pairs = list(_pairs(before, after))
    rows = [row for pair in pairs for row in _effects(before, after, *pair)]
    matched_before = {pair[0]["variant"] for pair in pairs}
    matched_after = {pair[1]["variant"] for pair in pairs}
    return Comparison(
        warnings=tuple(pair_warnings((before.run, after.run), pairs, (before.task, after.task))),
        rows=pd.DataFrame(rows),
        only_before=tuple(v["variant"] for v in before.variants if v["variant"] not in matched_before),
        only_after=tuple(v["variant"] for v in after.variants if v["variant"] not in matched_after),
    )


def _read(con: duckdb.DuckDBPyConnection, run_id: str) -> _Side:
    runs = _rows(con, _RUN, run_id)
    if not runs:
        raise UsageError(f"There is no run {run_id!r} in this database.")
    checks: dict[str, dict[str, bool]] = {}
    for variant, prompt_id, has_passed in con.execute(_CHECKS, [run_id]).fetchall():
        checks.setdefault(variant, {})[prompt_id] = has_passed
    return _Side(
        run=runs[0],
        variants=_rows(con, _VARIANTS, run_id),
        blocks=read_blocks(con, run_id),
        task=timing_task(con, run_id),
        checks=checks,
    )


def _rows(con: duckdb.DuckDBPyConnection, sql: str, run_id: str) -> list[Row]:
    cursor = con.execute(sql, [run_id])
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _pairs(before: _Side, after: _Side) -> Iterator[tuple[Row, Row]]:
    """Variants with the same label, or with the same weights where a label differs."""
    free = list(after.variants)
    for first in before.variants:
        second = next((row for row in free if row["variant"] == first["variant"]), None)
        if second is None and first["weights_sha256"]:
            second = next((row for row in free if row["weights_sha256"] == first["weights_sha256"]), None)
        if second is not None:
            free.remove(second)
            yield first, second


def _effects(before: _Side, after: _Side, first: Row, second: Row) -> Iterator[Row]:
    """What changed of one variant, a row a metric that at least one run has."""
    for metric in RATES:
        one = values_by_block(before.blocks, first["variant"], metric, before.task)
        other = values_by_block(after.blocks, second["variant"], metric, after.task)
        if one or other:
            yield _row(first, metric, **_rate(metric, list(one.values()), list(other.values())))
    memory = first["peak_memory_bytes"], second["peak_memory_bytes"]
    if memory != (None, None):
        change = None if None in memory else float(memory[1] - memory[0])
        reason = _ONE_ONLY if change is None else None
        yield _row(
            first, "peak_memory_bytes", before=memory[0], after=memory[1], estimate=change, reason=reason
        )
    if before.checks.get(first["variant"]) or after.checks.get(second["variant"]):
        yield _row(first, "pass_rate", **_checks(before, after, first, second))


def _row(first: Row, metric: str, **found: Any) -> Row:
    blank = dict.fromkeys(("before", "after", "estimate", "ci_low", "ci_high", "verdict", "reason"))
    row: Row = {
        "variant": first["variant"],
        "bpw": first["bpw"],
        "metric": metric,
        "n_before": 0,
        "n_after": 0,
    }
    row |= {**blank, **found}
    shown = words.verdict(metric, row["estimate"], row["verdict"], row["reason"])
    # A run that lacks the metric leaves nothing to say about a change.
    return {**row, "words": shown if row["estimate"] is not None else row["reason"] or words.UNKNOWN}


def _rate(metric: str, before: list[float], after: list[float]) -> Row:
    found: Row = {
        "before": stats.geometric_mean(before) if before else None,
        "after": stats.geometric_mean(after) if after else None,
        "n_before": len(before),
        "n_after": len(after),
    }
    if not before or not after:
        return {**found, "reason": _ONE_ONLY}
    ratio = stats.unpaired_ratio(after, before)
    found |= {"estimate": ratio.estimate, "reason": "one block only" if ratio.interval is None else None}
    if ratio.interval is None:
        return found
    low, high = ratio.interval
    return {**found, "ci_low": low, "ci_high": high, "verdict": _verdict(metric, low, high, 1.0)}


def _verdict(metric: str, low: float, high: float, none: float) -> str:
    """Better or worse where the interval leaves "no change" out."""
    if low <= none <= high:
        return SAME
    return BETTER if (low > none) == (METRICS[metric].direction == "higher") else WORSE


def _checks(before: _Side, after: _Side, first: Row, second: Row) -> Row:
    one, other = before.checks.get(first["variant"], {}), after.checks.get(second["variant"], {})
    found: Row = {
        "before": sum(one.values()) / len(one) if one else None,
        "after": sum(other.values()) / len(other) if other else None,
        "n_before": len(one),
        "n_after": len(other),
    }
    if before.run["suite_sha256"] != after.run["suite_sha256"]:
        return {**found, "reason": "other prompts"}
    both = one.keys() & other.keys()
    gained = sum(other[prompt] and not one[prompt] for prompt in both)
    lost = sum(one[prompt] and not other[prompt] for prompt in both)
    interval = stats.paired_share_interval(gained, lost, len(both))
    if interval is None:
        return {**found, "reason": "no prompt was checked in both"}
    return {
        **found,
        "estimate": (gained - lost) / len(both),
        "ci_low": interval.low,
        "ci_high": interval.high,
        "verdict": _verdict("pass_rate", interval.low, interval.high, 0.0),
    }
