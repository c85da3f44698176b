"""Each variant against the reference by category of prompts: descriptive, so without verdicts.

A difference is clear where its own 95 % interval leaves 0 out; with so many cells some do by chance.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from liob_core import stats
from liob_core.analysis.deltas import BOOTSTRAP_SEED, NOT_COMPARABLE
from liob_core.analysis.graded import read_answers
from liob_core.analysis.judged import cells_of, judges_of
from liob_core.store import database
from liob_core.types import JudgeMode

ALL = "All prompts"
NO_CATEGORY = "no category"
_COLUMNS = (
    "category", "variant", "bpw", "n", "n_prompts", "delta", "delta_low", "delta_high", "n_gained", "n_lost",
    "is_clear", "reason",
)  # fmt: skip

_PROMPTS = "SELECT prompt_id, category FROM raw.prompts WHERE run_id = ? ORDER BY position, prompt_id"
_VARIANTS = """
    SELECT variant, is_reference, bpw FROM raw.variants WHERE run_id = ?
    ORDER BY is_reference DESC, bpw DESC NULLS LAST, position
"""

Row = dict[str, Any]
Values = Mapping[str, Mapping[str, Any]]  # variant -> prompt -> what is compared
Effect = Callable[[Sequence[tuple[Any, Any]]], Row]


def check_categories(db: Path, run_id: str) -> pd.DataFrame:
    """One row a category and variant but the reference: the paired difference in checks passed.

    Columns: category, variant, bpw, n (prompts checked for both), n_prompts (of the category), delta (share,
    -1 to 1), delta_low, delta_high (Tango, 95 %), n_gained, n_lost, is_clear, reason (why there is no
    number). Categories as in the suite, then all prompts together; empty without checks.
    """
    with database.read(db) as con:
        values = {
            variant: {
                prompt: answer.check_result for prompt, answer in answers.items() if answer.check_result
            }
            for variant, answers in read_answers(con, run_id).items()
        }
        return _frame(con, run_id, values, _of_checks, "no prompt was checked for both")


def score_categories(db: Path, run_id: str, judge_key: str) -> pd.DataFrame:
    """As `check_categories`, with differences of one judge's scores, -9 to 9; empty without a verdict of it.

    The interval is that of a paired t, from 50 prompts on a bootstrap; n_gained and n_lost count scores that
    are higher and lower.
    """
    with database.read(db) as con:
        asked = (judge_key, JudgeMode.SINGLE)
        judge = next((one for one in judges_of(con, run_id) if (one.judge_key, one.mode) == asked), None)
        if judge is None or not judge.gives_verdict:
            return pd.DataFrame(columns=list(_COLUMNS))
        values = {
            variant: {prompt: cell.score for prompt, cell in cells.items() if cell.score is not None}
            for variant, cells in cells_of(con, run_id, judge).items()
        }
        return _frame(con, run_id, values, _of_scores, "no prompt was scored for both")


def not_comparable(db: Path, run_id: str, metric: str) -> list[str]:
    """A sentence for each variant whose `metric` must not be ranked against the reference's."""
    found = database.query(
        db,
        "SELECT variant, reason FROM raw.paired_deltas WHERE run_id = ? AND metric = ? AND verdict = ?",
        [run_id, metric, NOT_COMPARABLE],
    )
    return [
        f"{row['variant']} is not comparable as a whole: {row['reason']}." for row in found.to_dict("records")
    ]


def _frame(
    con: duckdb.DuckDBPyConnection, run_id: str, values: Values, effect: Effect, missing: str
) -> pd.DataFrame:
    variants = con.execute(_VARIANTS, [run_id]).fetchall()
    prompts = con.execute(_PROMPTS, [run_id]).fetchall()
    base = next((values.get(label, {}) for label, is_reference, _ in variants if is_reference), {})
    groups: dict[str, list[str]] = {}
    for prompt_id, category in prompts:
        groups.setdefault(category or NO_CATEGORY, []).append(prompt_id)
    if len(groups) > 1:
        groups[ALL] = [prompt_id for prompt_id, _ in prompts]
    # A category that nothing decides anywhere is no row: there is no check, or no rubric, to score it by.
    decided = {prompt_id for known in values.values() for prompt_id in known}
    rows = []
    for category, members in groups.items():
        if decided.isdisjoint(members):
            continue
        for label, is_reference, bpw in variants:
            if is_reference:
                continue
            pairs = list(_pairs(values.get(label, {}), base, members))
            row = effect(pairs) if pairs else {"reason": missing}
            about = {"category": category, "variant": label, "bpw": bpw}
            rows.append({**about, "n": len(pairs), "n_prompts": len(members), **row})
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    return frame.assign(is_clear=[_is_clear(row) for row in frame.to_dict("records")])


def _pairs(
    mine: Mapping[str, Any], base: Mapping[str, Any], members: Iterable[str]
) -> Iterable[tuple[Any, Any]]:
    return ((mine[prompt], base[prompt]) for prompt in members if prompt in mine and prompt in base)


def _of_checks(pairs: Sequence[tuple[str, str]]) -> Row:
    n_gained, n_lost = pairs.count(("pass", "fail")), pairs.count(("fail", "pass"))
    interval = stats.paired_share_interval(n_gained, n_lost, len(pairs))
    return _row((n_gained - n_lost) / len(pairs), interval, n_gained, n_lost)


def _of_scores(pairs: Sequence[tuple[int, int]]) -> Row:
    differences = [float(mine - base) for mine, base in pairs]
    paired = stats.paired_difference(differences, seed=BOOTSTRAP_SEED)
    n_gained, n_lost = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    # A few equal differences have no spread, which is no reason to be sure of the next one.
    return _row(paired.estimate, paired.interval if paired.sd else None, n_gained, n_lost)


def _row(delta: float, interval: stats.Interval | None, n_gained: int, n_lost: int) -> Row:
    return {
        "delta": delta,
        "delta_low": interval.low if interval else None,
        "delta_high": interval.high if interval else None,
        "n_gained": n_gained,
        "n_lost": n_lost,
    }


def _is_clear(row: Mapping[Any, Any]) -> bool:
    if pd.isna(row["delta_low"]):
        return False
    return bool(row["delta_low"] > 0 or row["delta_high"] < 0)
