"""Speed against memory against quality: one point a variant, and who is beaten on every axis."""

from pathlib import Path

import pandas as pd

from liob_core.store import database

# A point is dominated where another is at least as good on every axis that both have, and better on one.
_TRADEOFF = """
    WITH points AS (
        SELECT
            variant, is_reference, position, quant, engine, bpw, file_bytes, peak_memory_bytes, need_bytes,
            coalesce(peak_memory_bytes, file_bytes) AS size_bytes,
            peak_memory_bytes IS NOT NULL AS size_is_measured,
            decode_tps, decode_tps_ci_low, decode_tps_ci_high, pass_rate, pass_rate_ci_low,
            pass_rate_ci_high, n_checked
        FROM main.results WHERE run_id = ?
    ), beaten AS (
        SELECT a.variant, string_agg(b.variant, ', ' ORDER BY b.bpw DESC NULLS LAST) AS dominated_by
        FROM points AS a JOIN points AS b ON
            b.size_bytes <= a.size_bytes AND b.size_is_measured = a.size_is_measured
            AND coalesce(b.decode_tps >= a.decode_tps, a.decode_tps IS NULL)
            AND coalesce(b.pass_rate >= a.pass_rate, a.pass_rate IS NULL)
            AND (
                b.size_bytes < a.size_bytes OR coalesce(b.decode_tps > a.decode_tps, false)
                OR coalesce(b.pass_rate > a.pass_rate, false)
            )
        GROUP BY a.variant
    )
    SELECT points.* EXCLUDE (position), beaten.variant IS NULL AS on_front, beaten.dominated_by
    FROM points LEFT JOIN beaten USING (variant)
    ORDER BY is_reference DESC, bpw DESC NULLS LAST, position
"""


def tradeoff(db: Path, run_id: str) -> pd.DataFrame:
    """One row a variant for the trade-off picture; the front is drawn by estimates, not by verdicts.

    Columns: variant, is_reference, quant, engine, bpw, file_bytes, peak_memory_bytes, need_bytes, size_bytes
    (the peak, or the file where it was not measured), size_is_measured, decode_tps with _ci_low and _ci_high,
    pass_rate with _ci_low and _ci_high, n_checked, on_front, dominated_by (labels).
    """
    return database.query(db, _TRADEOFF, [run_id])
