"""What each variant costs against what it keeps: one point a variant, and who is beaten on both axes.

A variant is called dominated only where another is shown to be at least as good on every axis and better on
one: each axis is tested one-sided, the weakest test counts, and Holm corrects for the pairs. Sizes have no
noise and are compared as they are; what only the estimates say is said to be inside the noise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from liob_core import stats
from liob_core.analysis import judged, words
from liob_core.analysis.blocks import read_blocks, timing_task, values_by_block
from liob_core.analysis.deltas import ALPHA, BETTER, WORSE
from liob_core.analysis.energy import energy_by_block
from liob_core.analysis.graded import Answers, flips, read_answers
from liob_core.metrics import METRICS
from liob_core.quality.closeness.fidelity import MIN_WINDOWS, Estimate, interval
from liob_core.store import database
from liob_core.types import JudgeMode

FRONT, DOMINATED, NOISE, UNPLACED = "front", "dominated", "inside the noise", "unknown"
SIZES = ("peak_memory_bytes", "file_bytes")
CLOSENESS = ("kld_mean", "ln_ratio")
AXES = (
    *("peak_memory_bytes", "file_bytes", "decode_tps", "pass_rate", *CLOSENESS, "judge_score"),
    "j_per_output_token",
)

_POINTS = """
    SELECT
        results.variant, results.is_reference, results.quant, results.engine, results.bpw, results.model_name,
        results.need_bytes, results.n_checked, results.peak_memory_bytes, results.file_bytes,
        results.decode_tps, results.decode_tps_ci_low AS decode_tps_low,
        results.decode_tps_ci_high AS decode_tps_high, results.pass_rate,
        results.pass_rate_ci_low AS pass_rate_low, results.pass_rate_ci_high AS pass_rate_high,
        results.j_per_output_token, results.j_per_output_token_ci_low AS j_per_output_token_low,
        results.j_per_output_token_ci_high AS j_per_output_token_high,
        deltas.verdict AS pass_rate_verdict
    FROM main.results AS results
    LEFT JOIN raw.paired_deltas AS deltas ON deltas.run_id = results.run_id
        AND deltas.variant = results.variant AND deltas.metric = 'pass_rate'
    WHERE results.run_id = ?
    ORDER BY results.is_reference DESC, results.bpw DESC NULLS LAST, results.position
"""
# The reference's distance from itself is 0 by construction, and no window can change it.
_CLOSENESS = """
    SELECT
        variant, coalesce(reference, variant) AS closeness_reference, n_windows,
        if(reference IS NULL, 0, kld_mean) AS kld_mean, if(reference IS NULL, 0, kld_se) AS kld_mean_se,
        if(reference IS NULL, 0, ln_ratio) AS ln_ratio, if(reference IS NULL, 0, ln_ratio_se) AS ln_ratio_se
    FROM main.closeness WHERE run_id = ? AND ppl IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class _Measured:
    """What pairs of variants are compared by."""

    points: Mapping[str, Mapping[Any, Any]]
    blocks: Mapping[str, Mapping[str, Mapping[int, float]]]  # axis, variant, block
    answers: Answers


def tradeoff(db: Path, run_id: str, x: str | None = None, y: str | None = None) -> pd.DataFrame:
    """One row a variant: its figure on each of AXES with its 95 % interval, and its standing on two of them.

    Columns: variant, is_reference, quant, engine, bpw, model_name, need_bytes, n_checked; for each axis its
    value, `<axis>_low` and `<axis>_high` (NULL where there is none, and closeness where the run has several
    models); x and y (the axes drawn, by default
    those that say most), standing (front, dominated, inside the noise, unknown) and beaten_by (labels).
    """
    with database.read(db) as con:
        frame = con.execute(_POINTS, [run_id]).df()
        close = con.execute(_CLOSENESS, [run_id]).df()
        blocks = {"decode_tps": _rates(con, run_id), "j_per_output_token": energy_by_block(con, run_id)}
        answers = read_answers(con, run_id)
    frame = _with_closeness(frame, close)
    frame = _with_judge(frame, db, run_id)
    for name in SIZES:
        frame[f"{name}_low"] = frame[f"{name}_high"] = np.nan
    known = axes_of(frame)
    across, up = x if x in known else _default_x(frame), y if y in known else _default_y(frame)
    measured = _Measured({row["variant"]: row for row in frame.to_dict("records")}, blocks, answers)
    standing = _standings(measured, (across, up))
    return frame.assign(
        x=across,
        y=up,
        standing=[standing[name][0] for name in frame["variant"]],
        beaten_by=[", ".join(standing[name][1]) for name in frame["variant"]],
    )


def axes_of(points: pd.DataFrame) -> list[str]:
    """The axes of which the run has at least one figure."""
    return [name for name in AXES if points[name].notna().any()]


def in_words(points: pd.DataFrame) -> list[str]:
    """Who is beaten by whom on the two axes, a sentence each."""
    if points.empty:
        return []
    both = " and ".join(words.in_a_sentence(METRICS[points[axis].iloc[0]].label) for axis in ("x", "y"))
    sentences = []
    for row in points.to_dict("records"):
        if row["standing"] == DOMINATED:
            sentences.append(f"{row['variant']} is beaten on {both} by {row['beaten_by']}.")
        elif row["standing"] == NOISE:
            sentences.append(
                f"{row['variant']} looks beaten on {both} by {row['beaten_by']}, but inside the noise."
            )
    return sentences


def _default_x(points: pd.DataFrame) -> str:
    """Memory where it was measured for all, else the file's size."""
    return "peak_memory_bytes" if points["peak_memory_bytes"].notna().all() else "file_bytes"


def _default_y(points: pd.DataFrame) -> str:
    """The pass rate where it tells variants apart, else closeness where there is any."""
    tells_apart = points["pass_rate_verdict"].isin([BETTER, WORSE]).any()
    has_rates = points["pass_rate"].notna().any()
    if points["kld_mean"].notna().any() and not tells_apart:
        return "kld_mean"
    return "pass_rate" if has_rates else "decode_tps"


def _with_closeness(frame: pd.DataFrame, close: pd.DataFrame) -> pd.DataFrame:
    merged = frame.merge(close, on="variant", how="left")
    if merged["closeness_reference"].nunique() > 1:
        # Several models, each with a reference of its own: their distances are not of one kind.
        for name in CLOSENESS:
            merged[name] = np.nan
    for name in CLOSENESS:
        both = [
            None
            if pd.isna(row[name]) or pd.isna(row[f"{name}_se"])
            else interval(Estimate(row[name], row[f"{name}_se"], None), int(row["n_windows"]))
            for row in merged.to_dict("records")
        ]
        merged[f"{name}_low"] = [np.nan if one is None else one.low for one in both]
        merged[f"{name}_high"] = [np.nan if one is None else one.high for one in both]
    return merged


def _with_judge(frame: pd.DataFrame, db: Path, run_id: str) -> pd.DataFrame:
    """The scores of the latest judge that passed its calibration; others rank nothing."""
    names = {"mean_score": "judge_score", "ci_low": "judge_score_low", "ci_high": "judge_score_high"}
    judges = judged.judges(db, run_id)
    if not judges.empty:
        judges = judges[judges["gives_verdict"] & (judges["mode"] == JudgeMode.SINGLE)]
    if judges.empty:
        return frame.assign(**dict.fromkeys(names.values(), np.nan))
    scores = judged.scores(db, run_id, str(judges["judge_key"].iloc[0])).rename(columns=names)
    kept = scores[["variant", *names.values()]].astype(dict.fromkeys(names.values(), float))
    return frame.merge(kept, on="variant", how="left")


def _rates(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, dict[int, float]]:
    blocks, task = read_blocks(con, run_id), timing_task(con, run_id)
    return {one.variant: values_by_block(blocks, one.variant, "decode_tps", task) for one in blocks}


def _standings(measured: _Measured, axes: tuple[str, str]) -> dict[str, tuple[str, list[str]]]:
    """Where each variant stands on the axes, and who beats it."""
    known = [name for name, row in measured.points.items() if not any(pd.isna(row[axis]) for axis in axes)]
    beaten: list[tuple[str, str, float]] = []
    for loser, winner in permutations(known, 2):
        if _beats(measured, winner, loser, axes):
            p_value = max(_p_value(measured, winner, loser, axis) for axis in axes)
            beaten.append((loser, winner, p_value))
    # Every pair could have turned out so, not only those whose estimates did.
    n_pairs = len(known) * (len(known) - 1) // 2
    padding = [1.0] * (n_pairs - len(beaten))
    adjusted = stats.holm([p_value for _, _, p_value in beaten] + padding)
    found = {name: (FRONT if name in known else UNPLACED, list[str]()) for name in measured.points}
    for is_shown, standing in ((False, NOISE), (True, DOMINATED)):
        for name in known:
            by = [
                winner
                for (loser, winner, _), p_holm in zip(beaten, adjusted, strict=False)
                if loser == name and (p_holm < ALPHA) == is_shown
            ]
            if by:
                found[name] = (standing, by)
    return found


def _beats(measured: _Measured, winner: str, loser: str, axes: tuple[str, str]) -> bool:
    """Whether the estimates of one are nowhere worse, and better on one axis."""
    gains = [_gain(measured, winner, loser, axis) for axis in axes]
    return min(gains) >= 0 and max(gains) > 0


def _gain(measured: _Measured, winner: str, loser: str, axis: str) -> float:
    difference = float(measured.points[winner][axis] - measured.points[loser][axis])
    return difference if METRICS[axis].direction == "higher" else -difference


def _p_value(measured: _Measured, winner: str, loser: str, axis: str) -> float:
    """The one-sided p of "the winner is no better", 1 where nothing is known of the noise."""
    if axis in SIZES:
        return 0.0
    if _gain(measured, winner, loser, axis) <= 0:
        return 1.0
    return _TESTS[axis](measured, winner, loser, axis) / 2


def _by_blocks(measured: _Measured, winner: str, loser: str, axis: str) -> float:
    mine, base = (measured.blocks[axis].get(name, {}) for name in (winner, loser))
    shared = sorted(block for block in mine.keys() & base.keys() if mine[block] > 0 < base[block])
    if len(shared) < 2:
        return 2.0
    paired = stats.paired_ratio([mine[block] for block in shared], [base[block] for block in shared])
    return 2.0 if paired.p_value is None else paired.p_value


def _by_flips(measured: _Measured, winner: str, loser: str, _: str) -> float:
    return flips(measured.answers, winner, loser).p_value


def _by_windows(measured: _Measured, winner: str, loser: str, axis: str) -> float:
    """Two distances from one reference on the same windows; taken as unrelated, which is the safe side."""
    a, b = measured.points[winner], measured.points[loser]
    n_windows = min(a["n_windows"], b["n_windows"])
    if a["closeness_reference"] != b["closeness_reference"] or not n_windows >= MIN_WINDOWS:
        return 2.0
    return _unrelated(a, b, axis, (a[f"{axis}_se"], b[f"{axis}_se"]), int(n_windows) - 1)


def _by_scores(measured: _Measured, winner: str, loser: str, axis: str) -> float:
    """Of two means only the intervals are at hand: where those do not touch, p is 5 % at the most."""
    a, b = measured.points[winner], measured.points[loser]
    return 0.05 if a[f"{axis}_low"] > b[f"{axis}_high"] else 2.0


def _unrelated(
    a: Mapping[str, Any], b: Mapping[str, Any], axis: str, errors: tuple[float, float], df: int
) -> float:
    """The two-sided p of a difference of two means with these standard errors."""
    error = float(np.hypot(*errors))
    return stats.two_sided_p(float(a[axis] - b[axis]) / error, df) if error > 0 else 2.0


_TESTS: Mapping[str, Callable[[_Measured, str, str, str], float]] = {
    "decode_tps": _by_blocks,
    "pass_rate": _by_flips,
    "kld_mean": _by_windows,
    "ln_ratio": _by_windows,
    "judge_score": _by_scores,
    "j_per_output_token": _by_blocks,
}
