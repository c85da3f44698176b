"""Energy of an output token: one scope for a whole run, one value a block, the interval over blocks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb

from liob_core import stats
from liob_core.monitor.energy import GPU, NOT_MEASURED, PACKAGE

# Where the run has it, the device that did the work; scopes are never compared, so all variants have one.
HEADLINE_SCOPES = (GPU, PACKAGE)
_BUSY = "every window ran beside a busy neighbour"

# A window beside a busy neighbour counts that neighbour too.
_WINDOWS = """
    SELECT
        variant, scope, source, block, contended IS TRUE AS is_busy, j_per_output_token,
        net_j / nullif(output_tokens, 0) AS net_j_per_output_token, reason, net_reason
    FROM main.energy WHERE run_id = ? AND shape = 'tg128' ORDER BY variant, block
"""
_WHY_NONE = """
    SELECT detail FROM raw.events WHERE run_id = ? AND event = ? ORDER BY journal_offset DESC LIMIT 1
"""


@dataclass(slots=True)
class _Own:
    """One variant's windows of the chosen scope."""

    gross: dict[int, float] = field(default_factory=dict)
    net: list[float] = field(default_factory=list)
    sources: dict[str, None] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    net_reasons: list[str] = field(default_factory=list)


def energy_by_block(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, dict[int, float]]:
    """J per output token of each block, by variant, all of the run's one scope."""
    return {variant: own.gross for variant, own in _read(con, run_id)[1].items()}


def energy_columns(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, dict[str, Any]]:
    """What the summary says of each variant's energy, reasons included; of every variant of the run."""
    scope, found = _read(con, run_id)
    names = con.execute("SELECT variant FROM raw.variants WHERE run_id = ?", [run_id]).fetchall()
    told = con.execute(_WHY_NONE, [run_id, NOT_MEASURED]).fetchone()
    why_none = (told[0] if told else None) or "not measured"
    return {
        variant: _columns(scope, found[variant]) if variant in found else {"energy_reason": why_none}
        for (variant,) in names
    }


def _read(con: duckdb.DuckDBPyConnection, run_id: str) -> tuple[str | None, Mapping[str, _Own]]:
    """The scope that speaks for the run, None where there is no window, and each variant's windows of it."""
    cursor = con.execute(_WINDOWS, [run_id])
    columns = [column[0] for column in cursor.description]
    rows = [dict(zip(columns, values, strict=True)) for values in cursor.fetchall()]
    known = {row["scope"] for row in rows if row["j_per_output_token"] is not None and not row["is_busy"]}
    tried = {row["scope"] for row in rows}
    scope = next((one for scopes in (known, tried) for one in HEADLINE_SCOPES if one in scopes), None)
    found: dict[str, _Own] = {}
    for row in rows:
        if row["scope"] == scope:
            _add(found.setdefault(row["variant"], _Own()), row)
    return scope, found


def _add(own: _Own, row: Mapping[str, Any]) -> None:
    own.sources[row["source"]] = None
    if row["j_per_output_token"] is None:
        own.reasons.append(row["reason"] or "not measured")
        return
    if row["is_busy"]:
        own.reasons.append(_BUSY)
        return
    own.gross[row["block"]] = row["j_per_output_token"]
    if row["net_j_per_output_token"] is None:
        own.net_reasons.append(row["net_reason"] or "not measured")
    else:
        own.net.append(row["net_j_per_output_token"])


def _columns(scope: str | None, own: _Own) -> dict[str, Any]:
    mean = stats.mean_interval(list(own.gross.values())) if own.gross else None
    interval = mean.interval if mean else None
    reason = next(iter(own.reasons), "not measured").splitlines()[0]
    return {
        "j_per_output_token": mean.mean if mean else None,
        # Less than nothing is not spent, so cutting the interval there loses no coverage.
        "j_per_output_token_ci_low": max(0.0, interval.low) if interval else None,
        "j_per_output_token_ci_high": interval.high if interval else None,
        "net_j_per_output_token": sum(own.net) / len(own.net) if own.net else None,
        "energy_scope": scope,
        "energy_source": ", ".join(own.sources),
        "energy_n_blocks": mean.n if mean else 0,
        "energy_reason": reason,
        "net_energy_reason": next(iter(own.net_reasons), reason),
    }
