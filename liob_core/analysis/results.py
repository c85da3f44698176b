"""How fast, how big: the frames behind the Results page, all aggregated in SQL to at most 2,000 rows."""

from pathlib import Path

import duckdb
import pandas as pd

from liob_core.analysis import caveats, words
from liob_core.analysis.blocks import BLOCK_RATES, USABLE, timing_task
from liob_core.analysis.closeness import closeness_columns
from liob_core.analysis.judge_deltas import judge_columns
from liob_core.store import database

MAX_ROWS = 2_000

DELTA_METRICS = (
    "decode_tps",
    "prefill_tps",
    "ttft_ms",
    "load_ms",
    "answer_s",
    "peak_memory_bytes",
    "pass_rate",
    "ln_ratio",
)

# Many bits to few, and the reference before all: the order of every table and legend.
LADDER = "is_reference DESC, bpw DESC NULLS LAST, position"

# A percentile near the end has no upper bound below some number of values; then it is not known.
_PERCENTILE_FROM = {"p50": 1, "p90": 29, "p99": 299}


def _percentiles(metric: str) -> str:
    """Columns of SQL: how many values of `metric` a variant has, and its percentiles, in its unit."""
    columns = [f"count({metric}) AS {metric}_n"]
    columns += [
        f"if(count({metric}) >= {n}, quantile_cont({metric}, {int(name[1:]) / 100}), NULL) AS {metric}_{name}"
        for name, n in _PERCENTILE_FROM.items()
    ]
    return ", ".join(columns)


_LATENCIES = f"""
    WITH timed AS (
        SELECT variant, task, shape, prompt_id, block, ttft_ms, tpot_ms, e2e_ms, output_tokens, sample_id
        FROM raw.samples
        WHERE run_id = $run_id AND task = $task AND (task = 'suite' OR shape = 'chat512') AND {USABLE}
    ), drawn AS (
        SELECT *, row_number() OVER (PARTITION BY variant ORDER BY hash(sample_id)) AS place FROM timed
    ), whole AS (
        SELECT variant, count(*) AS n_samples, {_percentiles("ttft_ms")}, {_percentiles("tpot_ms")}
        FROM timed GROUP BY variant
    )
    SELECT
        variants.variant, variants.is_reference, variants.bpw,
        drawn.* EXCLUDE (variant, place, sample_id), whole.* EXCLUDE (variant)
    FROM drawn JOIN whole USING (variant) JOIN raw.variants AS variants USING (variant)
    WHERE variants.run_id = $run_id
        AND place <= {MAX_ROWS} // (SELECT count(*) FROM raw.variants WHERE run_id = $run_id)
    ORDER BY {LADDER}, block, prompt_id
"""  # noqa: S608 - no text from outside

# The engine says where the memory went; what it does not name of the measured peak is `other`.
_MEMORY_PARTS = f"""
    WITH engine AS (
        SELECT
            variant, max(weights_bytes) AS weights, max(kv_bytes) AS kv_cache, max(compute_bytes) AS compute,
            max(output_bytes) AS output, max(peak_memory_bytes) AS peak
        FROM raw.loads WHERE run_id = $run_id GROUP BY variant
    ), parts AS (
        SELECT variant, 'measured' AS kind, unnest([
            {{'part': 'weights', 'bytes': weights, 'source': 'reported by the engine'}},
            {{'part': 'KV cache', 'bytes': kv_cache, 'source': 'reported by the engine'}},
            {{'part': 'compute', 'bytes': compute + coalesce(output, 0), 'source': 'reported by the engine'}},
            {{'part': 'other', 'bytes': if(
                weights IS NULL, peak,
                peak - weights - coalesce(kv_cache, 0) - coalesce(compute, 0) - coalesce(output, 0)
            ), 'source': 'measured peak less the other parts'}}
        ], recursive := true)
        FROM engine
        UNION ALL
        SELECT variant, 'predicted' AS kind, unnest([
            {{'part': 'weights', 'bytes': need_weights_bytes, 'source': 'estimated from the file'}},
            {{'part': 'KV cache', 'bytes': need_kv_bytes, 'source': 'estimated from the file'}},
            {{'part': 'compute', 'bytes': need_compute_bytes, 'source': 'estimated from the file'}}
        ], recursive := true)
        FROM raw.variants WHERE run_id = $run_id
    )
    SELECT
        variants.variant, variants.is_reference, variants.bpw, parts.kind, parts.part,
        -- mapped weights that were never touched can leave the peak below the sum of the parts
        greatest(parts.bytes, 0)::BIGINT AS bytes, parts.source, engine.peak AS peak_memory_bytes,
        variants.need_bytes
    FROM parts
    JOIN raw.variants AS variants USING (variant)
    LEFT JOIN engine USING (variant)
    WHERE variants.run_id = $run_id AND parts.bytes IS NOT NULL
    ORDER BY {LADDER}, parts.kind, list_position(['weights', 'KV cache', 'compute', 'other'], parts.part)
"""  # noqa: S608 - no text from outside

_DELTAS = f"""
    SELECT deltas.*, variants.bpw
    FROM main.paired_deltas AS deltas JOIN raw.variants AS variants USING (run_id, variant)
    WHERE run_id = ? ORDER BY metric, {LADDER}
"""  # noqa: S608 - no text from outside


def results_table(db: Path, run_id: str) -> pd.DataFrame:
    """One row a variant, the reference first, then by true bits per weight from many to few.

    All columns of the view `results`, ppl, ln_ratio, kld_mean, same_top and broken of the view
    `closeness`, those of `judge_columns`, and for each metric of DELTA_METRICS: `<metric>_delta` (the ratio
    or the difference), `_delta_low`, `_delta_high`, `_delta_n`, `_verdict`, `_words` and `_reason`; NULL
    where unknown and on the reference's own row.
    """
    with database.read(db) as con:
        table = con.execute(
            f"SELECT * FROM main.results WHERE run_id = ? ORDER BY {LADDER}",  # noqa: S608
            [run_id],
        ).df()
        effects = _effects(con, run_id)
        found = closeness_columns(con, run_id) | judge_columns(con, run_id)
    columns: dict[str, dict[str, object]] = {}
    for (variant, metric), effect in effects.items():
        for name, value in effect.items():
            columns.setdefault(f"{metric}_{name}", {})[variant] = value
    added = pd.DataFrame({name: table["variant"].map(values) for name, values in (columns | found).items()})
    return pd.concat([table, added], axis=1)


def deltas(db: Path, run_id: str) -> pd.DataFrame:
    """Every paired effect of a run: the columns of the view `paired_deltas`, bpw, and `words`."""
    with database.read(db) as con:
        frame = con.execute(_DELTAS, [run_id]).df()
        effects = _effects(con, run_id)
    keys = zip(frame["variant"], frame["metric"], strict=True)
    return frame.assign(words=[str(effects[key]["words"]) for key in keys])


def _effects(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[tuple[str, str], dict[str, object]]:
    """What `results_table` adds, by variant and metric."""
    rows = con.execute(
        "SELECT variant, metric, estimate, ci_low, ci_high, n, verdict, reason FROM raw.paired_deltas "
        "WHERE run_id = ?",
        [run_id],
    ).fetchall()
    return {
        (variant, metric): {
            "delta": estimate,
            "delta_low": low,
            "delta_high": high,
            "delta_n": n,
            "verdict": verdict,
            "words": words.verdict(metric, estimate, verdict, reason, n),
            "reason": reason,
        }
        for variant, metric, estimate, low, high, n, verdict, reason in rows
    }


def block_rates(db: Path, run_id: str) -> pd.DataFrame:
    """Each block's rates (tokens/s) and median TTFT (ms), by variant, task and shape.

    Columns: variant, is_reference, bpw, block, task, shape, decode_tps, prefill_tps, ttft_ms, n_samples.
    """
    return database.query(
        db,
        f"WITH blocks AS ({BLOCK_RATES}) "  # noqa: S608
        "SELECT blocks.variant, variants.is_reference, variants.bpw, blocks.* EXCLUDE (variant) "
        "FROM blocks JOIN raw.variants AS variants USING (variant) WHERE variants.run_id = ? "
        f"ORDER BY {LADDER}, task, shape, block LIMIT {MAX_ROWS}",
        [run_id, run_id],
    )


def latencies(db: Path, run_id: str) -> pd.DataFrame:
    """Single requests of the timing task, an even random share of each variant's, at most 2,000 rows.

    Columns: variant, is_reference, bpw, task, shape, prompt_id, block, ttft_ms, tpot_ms, e2e_ms,
    output_tokens, n_samples (how many the variant has in all); of all of them, for ttft_ms and tpot_ms:
    `<metric>_n` values and `<metric>_p50`, `_p90` (from 29 values on), `_p99` (from 299), NULL below.
    """
    with database.read(db) as con:
        parameters = {"run_id": run_id, "task": timing_task(con, run_id)}
        return con.execute(_LATENCIES, parameters).df()


def memory_parts(db: Path, run_id: str) -> pd.DataFrame:
    """What the memory was used for (measured) beside what was predicted, in bytes, one row a part.

    Columns: variant, is_reference, bpw, kind (measured, predicted), part (weights, KV cache, compute,
    other), bytes, source, peak_memory_bytes, need_bytes.
    """
    with database.read(db) as con:
        return con.execute(_MEMORY_PARTS, {"run_id": run_id}).df()


def warnings(db: Path, run_id: str) -> list[str]:
    """What could make this run's figures wrong, one sentence each, the gravest first."""
    with database.read(db) as con:
        return caveats.find(con, run_id)
