"""What judges say: calibration first, then scores or pairs with coverage, and verdicts where they hold."""

from typing import Any

import pandas as pd
import streamlit as st

from liob_core.charts.quality_pictures import judge_picture, score_map
from liob_core.quality.judge.people import PEOPLE
from liob_core.types import JudgeMode
from liob_core.ui import selection
from liob_core.ui.blocks import show_unknown
from liob_core.ui.pictures import show_picture
from liob_core.ui.quality.judge_tables import show_calibration, show_pairs, show_scores
from liob_core.ui.run_view import RunView
from liob_core.ui.style import current_look
from liob_core.ui.text import literal

_MODES = {JudgeMode.SINGLE: "scores from 1 to 10", JudgeMode.PAIRWISE: "pairs against the reference"}


def show_judges(view: RunView) -> None:
    """One judge of the run, chosen where there are several; without one, how to get one."""
    st.subheader("What a judge says", anchor=False)
    judges = view.frame("judges")
    if judges.empty:
        show_unknown("Judge", _why_missing(view))
        return
    rows = {f"{row['judge_key']}-{row['mode']}": row for row in judges.to_dict("records")}
    chosen = next(iter(rows))
    if len(rows) > 1:
        chosen = selection.pick("judge", "Judge", {key: _name(row) for key, row in rows.items()})
    _show_judge(view, rows[chosen])


def _why_missing(view: RunView) -> str:
    if view.facts.suite is None:
        return "this run asked no prompts, so there is nothing to judge"
    return "no judge has looked at this run's answers; it would grade what no check can"


def _name(row: dict[Any, Any]) -> str:
    verdict = "" if row["gives_verdict"] else " · no verdict"
    return f"{row['judge']} · {_MODES[row['mode']]}{verdict}"


def _show_judge(view: RunView, judge: dict[Any, Any]) -> None:
    is_single = judge["mode"] == JudgeMode.SINGLE
    st.markdown(f"**{literal(judge['judge'])}**: {_MODES[judge['mode']]}")
    _say_calibration(judge)
    show_calibration(view.frame("calibration", judge["judge_key"], judge["mode"]))
    table = view.frame("judge_scores" if is_single else "judge_pairs", judge["judge_key"])
    if table.empty or not judge["n_judged"]:
        show_unknown("Opinions", "the judging ended before the first answer; judge again to do the rest")
        return
    look = current_look()
    show_picture(judge_picture(table, judge, look, origin=view.origin), file_stem=view.file_stem)
    (show_scores if is_single else show_pairs)(table, look)
    st.caption(literal(_reliability(judge, table)))
    if is_single and judge["gives_verdict"]:
        _show_categories(view, judge)


def _say_calibration(judge: dict[Any, Any]) -> None:
    """Whether its verdicts count, before anything that it says."""
    if judge["gives_verdict"]:
        st.markdown(f":material/verified: {literal(judge['sentence'].capitalize())}.")
        return
    st.warning(
        f"This judge gives no verdict because it failed its calibration: {literal(judge['sentence'])}."
        if judge["n_items"]
        else f"This judge gives no verdict: it was {literal(judge['sentence'].split(',', maxsplit=1)[0])}.",
        icon=":material/gavel:",
    )


def _reliability(judge: dict[Any, Any], table: pd.DataFrame) -> str:
    """The judge's own failures and, of pairs, how often the order decided."""
    n_failed = judge["n_judged"] - judge["n_scored"]
    if judge["judge_key"] == PEOPLE:
        return f"People skipped {n_failed} of {judge['n_judged']} pairs; each vote is on two unnamed answers."
    parts = [f"The judge failed on {n_failed} of {judge['n_judged']} answers; such an answer has no score"]
    if judge["mode"] == JudgeMode.PAIRWISE:
        n_asked, n_same = int(table["n_asked"].sum()), int(table["n_same_order"].sum())
        if n_asked:
            parts.append(f"it said the same in both orders on {n_same} of {n_asked} pairs")
    parts.append("answers that failed by themselves (empty, cut off, a loop) were not shown to it")
    return "; ".join(parts) + "."


def _show_categories(view: RunView, judge: dict[Any, Any]) -> None:
    cells = view.frame("score_categories", judge["judge_key"])
    reference = view.facts.reference or "the reference"
    picture = score_map(cells, reference, judge["judge"], current_look(), origin=view.origin)
    show_picture(picture, file_stem=view.file_stem)
