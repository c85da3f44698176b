"""Before a run: the smallest differences it can tell, with 80 % power, and what that assumes."""

from dataclasses import dataclass
from math import expm1, sqrt
from pathlib import Path

import duckdb

from liob_core import stats
from liob_core.analysis import words
from liob_core.analysis.blocks import read_blocks, timing_task, values_by_block
from liob_core.errors import LiobError
from liob_core.store import database

_POWER = "80 % power"
# The newest run of that engine on that machine whose blocks show how much a ratio varies.
_EARLIER = """
    SELECT runs.run_id, runs.reference
    FROM main.runs AS runs JOIN raw.summary AS summary
        ON summary.run_id = runs.run_id AND summary.variant = runs.reference
    WHERE runs.engine = ? AND runs.machine_id = ? AND runs.deleted_utc IS NULL AND summary.n_blocks >= 2
    ORDER BY runs.created_utc DESC LIMIT 20
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detectable:
    """What a run can tell: `points` of pass rate (a share) and `speed` (a share of the decode rate).

    None where it is not known; `sentences` say both with what was assumed.
    """

    points: float | None
    speed: float | None
    speed_sd: float | None  # of ln ratios over blocks, from an earlier run here
    sentences: tuple[str, ...]


def detectable(db: Path, *, n_checked: int, n_blocks: int | None, engine: str, machine_id: str) -> Detectable:
    """What a run with so many checked prompts and blocks of speed (None: it is not timed) can tell."""
    told = []
    points = stats.minimum_detectable_share(n_checked) if n_checked else None
    if points is not None:
        flips = words.percent(stats.ASSUMED_FLIP_SHARE)
        least = words.at_most_points(min(points, 1.0))
        told.append(
            f"With {n_checked} checked prompt{'s' if n_checked > 1 else ''} this run can tell a difference "
            f"of {least} in checks passed ({_POWER}, if {flips} of the answers flip)."
        )
    speed, sd = None, None
    if n_blocks == 1:
        told.append("One block gives no interval, so that no difference in speed can be told.")
    elif n_blocks is not None:
        sd = _spread(db, engine, machine_id)
        speed = None if sd is None else expm1(stats.minimum_detectable(sd, n_blocks))
        told.append(_of_speed(n_blocks, speed, sd))
    return Detectable(points=points, speed=speed, speed_sd=sd, sentences=tuple(told))


def _of_speed(n_blocks: int, speed: float | None, sd: float | None) -> str:
    if speed is None or sd is None:
        return (
            f"Which difference in speed {n_blocks} blocks can tell is not known before a first run here "
            "shows how much blocks vary."
        )
    return (
        f"With {n_blocks} blocks this run can tell a difference of {words.percent(speed)} in decode rate "
        f"({_POWER}, if blocks vary by {words.percent(sd)} as in the last run here)."
    )


def _spread(db: Path, engine: str, machine_id: str) -> float | None:
    """The standard deviation of ln(rate / rate of the reference) over blocks, in the newest run that has one.

    Pooled over its variants.
    """
    if not db.exists():
        return None
    try:
        with database.read(db) as con:
            for run_id, reference in con.execute(_EARLIER, [engine, machine_id]).fetchall():
                found = _spread_of(con, run_id, reference)
                if found is not None:
                    return found
    except LiobError:  # a busy database only leaves this unknown
        return None
    return None


def _spread_of(con: duckdb.DuckDBPyConnection, run_id: str, reference: str) -> float | None:
    blocks, task = read_blocks(con, run_id), timing_task(con, run_id)
    base = values_by_block(blocks, reference, "decode_tps", task)
    weighted, freedom = 0.0, 0
    for variant in {block.variant for block in blocks} - {reference}:
        rates = values_by_block(blocks, variant, "decode_tps", task)
        shared = sorted(block for block in rates.keys() & base.keys() if rates[block] > 0 < base[block])
        if len(shared) < 2:
            continue
        paired = stats.paired_ratio([rates[block] for block in shared], [base[block] for block in shared])
        if paired.sd is not None:
            weighted, freedom = weighted + (len(shared) - 1) * paired.sd**2, freedom + len(shared) - 1
    return sqrt(weighted / freedom) if freedom else None
