"""Judges in `paired_deltas`: score and share of wins per variant against the reference.

The latest judge in each mode that passed its calibration gives them. Where every judge failed it, a row says
so and holds no number: what such a judge says ranks nothing.
"""

from collections.abc import Mapping

import duckdb

from liob_core.analysis.deltas import NOT_COMPARABLE, Delta
from liob_core.analysis.judge_verdicts import JudgeFacts, Row
from liob_core.analysis.judged import judges_of, rows_of
from liob_core.types import JudgeMode

_METRICS: Mapping[str, str] = {JudgeMode.SINGLE: "judge_score", JudgeMode.PAIRWISE: "judge_win_share"}
_METHODS: Mapping[str, str] = {
    JudgeMode.SINGLE: "paired t over prompts, bootstrap from 50",
    JudgeMode.PAIRWISE: "exact sign test, paired score interval (Tango)",
}


def judge_deltas(con: duckdb.DuckDBPyConnection, run_id: str) -> list[Delta]:
    """What judges say of a run's variants, one a metric and variant; empty without a judge."""
    found = con.execute(
        "SELECT variant FROM raw.variants WHERE run_id = ? AND is_reference", [run_id]
    ).fetchone()
    if found is None:
        return []
    judges, deltas = judges_of(con, run_id), list[Delta]()
    for mode in _METRICS:
        asked = [judge for judge in judges if judge.mode == mode and judge.n_judged]
        if not asked:
            continue
        judge = next((one for one in asked if one.gives_verdict), asked[0])
        rows = [row for row in rows_of(con, run_id, judge) if not row["is_reference"]]
        deltas += [_delta(run_id, str(found[0]), judge, row) for row in rows]
    return deltas


def _delta(run_id: str, reference: str, judge: JudgeFacts, row: Row) -> Delta:
    empty = Delta(
        run_id=run_id,
        variant=row["variant"],
        reference=reference,
        metric=_METRICS[judge.mode],
        kind="difference",
        verdict=NOT_COMPARABLE,
        reason=f"{judge.judge}: {row['reason']}",
    )
    if not (judge.gives_verdict or judge.is_published):
        return empty
    is_pair = judge.mode == JudgeMode.PAIRWISE
    return Delta(
        run_id=run_id,
        variant=row["variant"],
        reference=reference,
        metric=empty.metric,
        kind=empty.kind,
        estimate=row["delta"],
        ci_low=row["delta_low"],
        ci_high=row["delta_high"],
        n=row["n_scored"] if is_pair else row["n_pairs"],
        p_value=row["p_value"],
        p_holm=row["p_holm"],
        verdict=row["verdict"],
        reason=_reason(judge, row),
        n_gained=row["n_wins"] if is_pair else None,
        n_lost=row["n_losses"] if is_pair else None,
        method=f"{_METHODS[judge.mode]}; judge: {judge.judge}",
    )


def _reason(judge: JudgeFacts, row: Row) -> str | None:
    """Why there is no number or no verdict; None where there is one."""
    if row["reason"] is not None:
        return f"{judge.judge}: {row['reason']}"
    if row["delta"] is None:
        return "no prompt was scored for both"
    return "one prompt, no interval" if row["delta_low"] is None else None
