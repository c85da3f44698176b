"""Judges in `paired_deltas`: score and share of wins per variant against the reference.

The latest judge in each mode that passed its calibration gives them. Where every judge failed it, a row says
so and holds no number: what such a judge says ranks nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

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
        judge = _judge_that_counts(judges, mode)
        if judge is None:
            continue
        rows = [row for row in rows_of(con, run_id, judge) if not row["is_reference"]]
        deltas += [_delta(run_id, str(found[0]), judge, row) for row in rows]
    return deltas


def judge_columns(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, dict[str, Any]]:
    """What a table of results shows of a judge, by column and variant; figures only of a calibrated one.

    Columns: judge_score, judge_score_ci_low, judge_score_ci_high, judge_score_n, judge_score_unknown.
    """
    names = ("judge_score", "judge_score_ci_low", "judge_score_ci_high", "judge_score_n")
    found: dict[str, dict[str, Any]] = {name: {} for name in (*names, "judge_score_unknown")}
    judge = _judge_that_counts(judges_of(con, run_id), JudgeMode.SINGLE)
    for row in rows_of(con, run_id, judge) if judge else ():
        values = (row["mean_score"], row["ci_low"], row["ci_high"], row["n_scored"])
        for name, value in zip(names, values, strict=True):
            found[name][row["variant"]] = value if judge and _may_be_shown(judge) else None
        if judge and not _may_be_shown(judge):
            found["judge_score_unknown"][row["variant"]] = f"{judge.judge}: {judge.calibration_sentence}"
    return found


def _judge_that_counts(judges: Sequence[JudgeFacts], mode: str) -> JudgeFacts | None:
    """The latest judge that may give verdicts, else the latest; None where none said anything."""
    asked = [judge for judge in judges if judge.mode == mode and judge.n_judged]
    return next((one for one in asked if one.gives_verdict), asked[0] if asked else None)


def _may_be_shown(judge: JudgeFacts) -> bool:
    """Whether its figures are; a published table's are those of others, who claim no calibration."""
    return judge.gives_verdict or judge.is_published


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
    if not _may_be_shown(judge):
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
        reason=_reason(row),
        n_gained=row["n_wins"] if is_pair else None,
        n_lost=row["n_losses"] if is_pair else None,
        method=f"{_METHODS[judge.mode]}; judge: {judge.judge}",
    )


def _reason(row: Row) -> str | None:
    """Why there is no number or no verdict; None where there is one."""
    if row["reason"] is not None:
        return str(row["reason"])
    if row["delta"] is None:
        return "no prompt was scored for both"
    return "one prompt, no interval" if row["delta_low"] is None else None
