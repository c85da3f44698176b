"""The memory-bandwidth ceiling of a decode rate: no token comes faster than its bytes can be read."""

from collections.abc import Mapping
from typing import Any

import duckdb

from liob_core.analysis.offload import PROCESSOR, offload_of

# Below so many times the last-level cache a good part of what a token reads comes from there.
BYTES_PER_CACHE = 2
BELOW_THE_RATE = "memory was read more slowly before the run than the model then did"
NOT_MEASURED = "the memory's speed was not measured before this run"

_FACTS = """
    SELECT
        variants.variant, variants.threads, variants.token_read_bytes, runs.read_bytes_per_s,
        runs.read_threads, runs.cache_bytes, runs.read_reason,
        (SELECT count(peak_rss_bytes) > 0 FROM (
            SELECT greatest(peak_rss_load_bytes, peak_rss_run_bytes) AS peak_rss_bytes FROM raw.loads
            WHERE loads.run_id = variants.run_id AND loads.variant = variants.variant
        )) AS is_here
    FROM raw.variants AS variants JOIN raw.runs AS runs USING (run_id)
    WHERE variants.run_id = ?
"""


def ceilings(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, dict[str, Any]]:
    """By variant the most tokens/s that memory allows (`ceiling_tps`), or why not known (`ceiling_reason`).

    At the mean depth of the shape chat512, whose rate is the headline.
    """
    where = offload_of(con, run_id)
    cursor = con.execute(_FACTS, [run_id])
    names = [column[0] for column in cursor.description]
    found = {}
    for row in cursor.fetchall():
        facts = dict(zip(names, row, strict=True))
        reason = _why_unknown(facts, where.get(facts["variant"]))
        ceiling = None if reason else facts["read_bytes_per_s"] / facts["token_read_bytes"]
        found[facts["variant"]] = {"ceiling_tps": ceiling, "ceiling_reason": reason}
    return found


def ceiling_columns(ceiling_tps: float | None, rate_tps: float | None) -> dict[str, float | None]:
    """`ceiling_tps` and the share of it that a rate reaches; a ceiling below the rate is none."""
    if ceiling_tps is None or (rate_tps is not None and rate_tps > ceiling_tps):
        return {"ceiling_tps": None, "roofline_share": None}
    share = None if rate_tps is None else rate_tps / ceiling_tps
    return {"ceiling_tps": ceiling_tps, "roofline_share": share}


def _why_unknown(facts: Mapping[str, Any], where: str | None) -> str | None:
    """The first thing that is missing for the ceiling, or None where nothing is."""
    speed, token, cache = (facts[name] for name in ("read_bytes_per_s", "token_read_bytes", "cache_bytes"))
    problems = (
        (speed is None, facts["read_reason"] or NOT_MEASURED),
        (
            not facts["is_here"],
            "no process of the engine was watched where memory was measured",
        ),
        (where != PROCESSOR, f"it holds for the processor alone, and the model ran elsewhere ({where})"),
        (
            facts["threads"] != facts["read_threads"],
            f"memory was read with {facts['read_threads']} threads, and the variant ran with others",
        ),
        (token is None, "what a token reads of this model is not known"),
        (
            None not in (token, cache) and token < BYTES_PER_CACHE * cache,
            f"what a token reads ({_mb(token)}) nearly fits the last-level cache ({_mb(cache)})",
        ),
    )
    return next((reason for is_problem, reason in problems if is_problem), None)


def _mb(n_bytes: int | None) -> str:
    return "unknown" if n_bytes is None else f"{n_bytes / 1e6:.0f} MB"
