"""What of each variant was on the graphics device, as its engine told it, in words."""

from collections.abc import Mapping
from typing import Any

import duckdb

from liob_core.analysis import words

_OFFLOAD = """
    SELECT
        variants.variant, any_value(variants.gpu_layers) AS asked,
        min(try_cast(loads.effective->>'gpu_layers' AS INTEGER)) AS layers,
        min(try_cast(loads.effective->>'gpu_share' AS DOUBLE)) AS least,
        max(try_cast(loads.effective->>'gpu_share' AS DOUBLE)) AS most
    FROM raw.variants AS variants
    JOIN raw.loads AS loads ON loads.run_id = variants.run_id AND loads.variant = variants.variant
    WHERE variants.run_id = ? AND loads.outcome = 'ok'
    GROUP BY variants.variant, variants.position ORDER BY variants.position
"""
PROCESSOR, UNTOLD = "on the processor", "offload not known"


def offload_of(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, str]:
    """By variant that was loaded, where it ran: the processor, a share or layers on the GPU, or not known."""
    cursor = con.execute(_OFFLOAD, [run_id])
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return {row["variant"]: _where(row) for row in rows}


def offload_line(con: duckdb.DuckDBPyConnection, run_id: str) -> str | None:
    """Where the variants of a run ran, in a few words; None where nothing was loaded."""
    found = offload_of(con, run_id)
    if len(set(found.values())) <= 1:
        return next(iter(found.values()), None)
    return ", ".join(f"{variant} {where}" for variant, where in found.items())


def _where(row: Mapping[str, Any]) -> str:
    least, most = row["least"], row["most"]
    if row["layers"] == 0 or most == 0:
        return PROCESSOR
    if most is not None:
        share = words.percent(most) if least == most else f"{words.percent(least)} to {words.percent(most)}"
        return f"{share} on the GPU"
    if row["layers"] is not None:
        return f"{row['layers']} layers on the GPU"
    if row["asked"] == 0:
        return PROCESSOR
    if row["asked"]:
        return f"{row['asked']} layers asked for on the GPU, {UNTOLD}"
    return UNTOLD
