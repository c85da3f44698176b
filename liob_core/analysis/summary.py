"""One row per run and variant, and the paired deltas, computed from the raw tables at each ingest.

Rules: warm-ups are stored and never counted; failures are counted and never averaged; a sample beside a
busy neighbour is counted and kept out of every time, but its text is graded: a neighbour does not change it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields
from datetime import UTC, datetime
from typing import Any

import duckdb

from liob_core import stats
from liob_core.analysis.blocks import (
    HEADLINE_SHAPE,
    USABLE,
    Block,
    read_blocks,
    timing_task,
    values_by_block,
)
from liob_core.analysis.deltas import Delta, paired_deltas
from liob_core.analysis.energy import energy_columns
from liob_core.analysis.judge_deltas import judge_deltas
from liob_core.analysis.roofline import BELOW_THE_RATE, ceiling_columns, ceilings
from liob_core.analysis.seeds import (
    SEED_COLUMNS,
    PassesByPrompt,
    has_seeds,
    pass_rate,
    read_passes,
    seed_rows,
)
from liob_core.store.connection import transaction

Row = dict[str, Any]

_SHAPE_RATES = (("pp512", "prefill_tps"), ("tg128", "decode_tps"), ("chat512", "decode_tps"))

# The graded pass is the first block in which the suite ran.
_SAMPLE_AGGREGATES = f"""
    WITH counted AS (
        SELECT
            *, task = 'suite' AND block = min(block) FILTER (task = 'suite') OVER () AS graded,
            outcome IN ('ok', 'length') AS is_ok,
            outcome IN ('ok', 'length') OR e2e_ms IS NOT NULL AS is_complete
        FROM raw.samples
        -- a cancelled cell is not done: it is asked again when the run is resumed
        WHERE run_id = $run_id AND NOT warmup AND outcome <> 'cancelled'
    )
    SELECT
        variant,
        count(*) AS n_samples,
        count(*) FILTER (is_ok) AS n_ok,
        count(*) FILTER (NOT is_ok) AS n_failed,
        count(*) FILTER (contended) AS n_contended,
        median(ttft_ms) FILTER ({USABLE} AND task = $task AND (task = 'suite' OR shape = $ttft_shape))
            AS ttft_ms_p50,
        median(output_tokens) FILTER (is_ok AND graded) AS answer_tokens,
        median(e2e_ms) FILTER ({USABLE} AND graded) / 1000 AS answer_s,
        count(*) FILTER (graded AND is_complete AND outcome IN ('length', 'truncated_thinking', 'repetition'))
            / nullif(count(*) FILTER (graded AND is_complete), 0) AS truncated_share,
        count(*) FILTER (graded AND check_result = 'pass') AS n_passed,
        count(*) FILTER (graded AND check_result IN ('pass', 'fail')) AS n_checked,
        count(*) FILTER (graded AND check_result = 'unchecked') AS n_unchecked,
        count(*) FILTER (task = $task) AS n_timed,
        count(*) FILTER (task = $task AND contended) AS n_timed_contended,
        count(*) FILTER (graded) AS n_graded,
        mode(unknown->>'$.decode_tps') FILTER (task = $task AND (task = 'suite' OR shape = $decode_shape))
            AS decode_reason,
        mode(unknown->>'$.prefill_tps') FILTER (task = $task AND (task = 'suite' OR shape = $prefill_shape))
            AS prefill_reason
    FROM counted GROUP BY variant
"""  # noqa: S608 - no text from outside

# Mean over prompts: repeats of one prompt are averaged first; over shapes only where no suite ran.
_CPU_PEAKS = f"""
    WITH prompts AS (
        SELECT variant, avg(cpu_peak_pct) AS peak
        FROM raw.samples
        WHERE run_id = $run_id AND {USABLE} AND cpu_peak_pct IS NOT NULL
            AND task = (
                SELECT if(bool_or(task = 'suite'), 'suite', 'speed')
                FROM raw.samples WHERE run_id = $run_id AND NOT warmup
            )
        GROUP BY variant, coalesce(prompt_id, shape)
    )
    SELECT variant, avg(peak) AS cpu_peak_pct_mean FROM prompts GROUP BY variant
"""  # noqa: S608 - no text from outside

_LOAD_AGGREGATES = """
    SELECT
        variant,
        median(load_ms) FILTER (outcome = 'ok') AS load_ms,
        max(peak_memory_bytes) AS peak_memory_bytes,
        max(greatest(peak_rss_load_bytes, peak_rss_run_bytes)) AS peak_rss_bytes,
        max(peak_anon_bytes) AS peak_anon_bytes,
        max(peak_vram_bytes) AS peak_vram_bytes,
        max(peak_vram_reason) AS vram_reason
    FROM raw.loads WHERE run_id = $run_id GROUP BY variant
"""

_SYSTEM_RAM = """
    SELECT variant, max(peak_system_ram_bytes) AS peak_system_ram_bytes
    FROM raw.samples WHERE run_id = $run_id GROUP BY variant
"""


def summarize(con: duckdb.DuckDBPyConnection, run_id: str) -> None:
    """Nothing; `raw.summary`, `raw.paired_deltas` and `raw.seeds` hold the run's rows, all or none."""
    passes = read_passes(con, run_id) if has_seeds(con, run_id) else {}
    rows = [row | _seed_columns(passes.get(row["variant"], {})) for row in _summary_rows(con, run_id)]
    deltas = paired_deltas(con, run_id) + judge_deltas(con, run_id)
    with transaction(con):
        con.execute("DELETE FROM raw.summary WHERE run_id = ?", [run_id])
        con.execute("DELETE FROM raw.paired_deltas WHERE run_id = ?", [run_id])
        con.execute("DELETE FROM raw.seeds WHERE run_id = ?", [run_id])
        for row in rows:
            _insert(con, "raw.summary", list(row), [tuple(row.values())])
        columns = [field.name for field in fields(Delta)]
        _insert(con, "raw.paired_deltas", columns, [astuple(delta) for delta in deltas])
        _insert(con, "raw.seeds", SEED_COLUMNS, seed_rows(run_id, passes))


def _insert(
    con: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    if rows:
        marks = ", ".join("?" * len(columns))
        con.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)  # noqa: S608


def _summary_rows(con: duckdb.DuckDBPyConnection, run_id: str) -> list[Row]:
    task, blocks = timing_task(con, run_id), read_blocks(con, run_id)
    parameters = {
        "run_id": run_id,
        "task": task,
        "ttft_shape": HEADLINE_SHAPE["ttft_ms"],
        "decode_shape": HEADLINE_SHAPE["decode_tps"],
        "prefill_shape": HEADLINE_SHAPE["prefill_tps"],
    }
    samples = _by_variant(con, _SAMPLE_AGGREGATES, parameters)
    parts = [_by_variant(con, sql, {"run_id": run_id}) for sql in (_CPU_PEAKS, _LOAD_AGGREGATES, _SYSTEM_RAM)]
    parts.append(ceilings(con, run_id))
    parts.append(energy_columns(con, run_id))
    order = "SELECT variant FROM raw.variants WHERE run_id = ? ORDER BY position"
    now = datetime.now(UTC).replace(tzinfo=None)
    rows = []
    for (variant,) in con.execute(order, [run_id]).fetchall():
        known = dict(samples.get(variant, {}))
        for part in parts:
            known |= part.get(variant, {})
        row = _row(variant, known, blocks, task)
        rows.append({"run_id": run_id, "variant": variant, **row, "summarized_utc": now})
    return rows


def _by_variant(con: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any]) -> dict[str, Row]:
    cursor = con.execute(sql, parameters)
    names = [column[0] for column in cursor.description][1:]
    return {variant: dict(zip(names, values, strict=True)) for variant, *values in cursor.fetchall()}


def _row(variant: str, known: Row, blocks: list[Block], task: str | None) -> Row:
    """The columns of one variant's summary, NULLs with their reasons in `unknown`."""
    row: Row = {name: known.get(name, 0) for name in _COUNTS}
    row |= {name: known.get(name) for name in _PLAIN}
    row["timing_task"] = task
    decode = _rate(blocks, variant, "decode_tps", task)
    row |= _rate_columns("decode_tps", decode)
    row |= _rate_columns("prefill_tps", _rate(blocks, variant, "prefill_tps", task))
    row["n_blocks"] = decode.n if decode else 0
    for shape, metric in _SHAPE_RATES:
        rate = _rate(blocks, variant, metric, "speed", shape)
        row |= _rate_columns(f"{shape}_{metric}", rate)
        row[f"{shape}_n_blocks"] = rate.n if rate else 0
    row |= ceiling_columns(known.get("ceiling_tps"), row["chat512_decode_tps"])
    n_passed, n_checked = row["n_passed"], row["n_checked"]
    interval = stats.wilson(n_passed, n_checked)
    row["pass_rate"] = n_passed / n_checked if n_checked else None
    row["pass_rate_ci_low"] = interval.low if interval else None
    row["pass_rate_ci_high"] = interval.high if interval else None
    row["unknown"] = json.dumps(_reasons(row, known, task))
    return row


def _seed_columns(passes: PassesByPrompt) -> Row:
    rate = pass_rate(passes)
    interval = rate.interval if rate else None
    return {
        "seed_pass_rate": rate.mean if rate else None,
        "seed_pass_rate_ci_low": interval.low if interval else None,
        "seed_pass_rate_ci_high": interval.high if interval else None,
    }


_COUNTS = ("n_samples", "n_ok", "n_failed", "n_contended", "n_passed", "n_checked", "n_unchecked")
_PLAIN = (
    "ttft_ms_p50",
    "load_ms",
    "answer_tokens",
    "answer_s",
    "truncated_share",
    "peak_memory_bytes",
    "peak_rss_bytes",
    "peak_anon_bytes",
    "peak_vram_bytes",
    "peak_system_ram_bytes",
    "cpu_peak_pct_mean",
    "j_per_output_token",
    "j_per_output_token_ci_low",
    "j_per_output_token_ci_high",
    "net_j_per_output_token",
    "energy_scope",
    "energy_source",
    "energy_n_blocks",
)


def _rate(
    blocks: list[Block], variant: str, metric: str, task: str | None, shape: str | None = None
) -> stats.Mean | None:
    values = values_by_block(blocks, variant, metric, task, shape)
    return stats.mean_interval(list(values.values())) if values else None


def _rate_columns(name: str, rate: stats.Mean | None) -> Row:
    interval = rate.interval if rate else None
    return {
        name: rate.mean if rate else None,
        # A rate below 0 does not exist, so cutting the interval there loses no coverage.
        f"{name}_ci_low": max(0.0, interval.low) if interval else None,
        f"{name}_ci_high": interval.high if interval else None,
        f"{name}_cv": rate.cv if rate else None,
    }


def _reasons(row: Row, known: Row, task: str | None) -> dict[str, str]:
    """Why each column that is NULL is so, by column."""
    not_timed = _why_not_timed(known, task)
    no_suite = None if known.get("n_graded") else "no sample of a suite"
    reasons = {
        "ttft_ms_p50": not_timed or "no request of that shape showed any text",
        "decode_tps": not_timed or known.get("decode_reason") or "no usable request of the shape chat512",
        "prefill_tps": not_timed or known.get("prefill_reason") or "no usable request of the shape pp512",
        "load_ms": "no load succeeded that LIOB made",
        "answer_tokens": no_suite or "no answer ended as it should",
        "answer_s": no_suite or "no answer ended as it should with the machine to itself",
        "truncated_share": no_suite or "no answer was completed",
        "peak_vram_bytes": known.get("vram_reason") or "not measured",
        "pass_rate": no_suite or "no answer could be checked",
        "ceiling_tps": known.get("ceiling_reason") or BELOW_THE_RATE,
        "roofline_share": known.get("ceiling_reason") or _why_no_share(row),
    }
    for metric in ("decode_tps", "prefill_tps"):
        for end in ("low", "high"):
            no_mean = row[metric] is None
            reasons[f"{metric}_ci_{end}"] = reasons[metric] if no_mean else "one block, no interval"
    for name in ("peak_memory_bytes", "peak_rss_bytes", "peak_anon_bytes", "peak_system_ram_bytes"):
        reasons[name] = "not measured"
    reasons["cpu_peak_pct_mean"] = "not measured with the machine to itself"
    why = known.get("energy_reason", "not measured")
    reasons["j_per_output_token"] = why
    reasons["net_j_per_output_token"] = known.get("net_energy_reason", why)
    return {name: reason for name, reason in reasons.items() if row[name] is None}


def _why_no_share(row: Row) -> str:
    return BELOW_THE_RATE if row["chat512_decode_tps"] else "no usable request of the shape chat512"


def _why_not_timed(known: Row, task: str | None) -> str | None:
    n_timed, n_contended = known.get("n_timed", 0), known.get("n_timed_contended", 0)
    if task is None or not n_timed:
        return "no sample was timed"
    if n_contended == n_timed:
        return f"all {n_timed} samples ran beside a busy neighbour"
    return None
