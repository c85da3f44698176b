"""What judges say: calibration first, then scores or pairs with coverage, and verdicts where they hold."""

from typing import Any

import pandas as pd
import streamlit as st

from liob_core.rendering.judge_tables import (
    MODES,
    calibration_table,
    calibration_words,
    pairs_table,
    reliability,
    scores_table,
)
from liob_core.types import JudgeMode
from liob_core.ui import selection
from liob_core.ui.blocks import show_unknown
from liob_core.ui.pictures import draw, show_picture
from liob_core.ui.run_view import RunView
from liob_core.ui.style import current_look
from liob_core.ui.table import show_table
from liob_core.ui.text import literal


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
    return f"{row['judge']} · {MODES[row['mode']]}{verdict}"


def _show_judge(view: RunView, judge: dict[Any, Any]) -> None:
    is_single = judge["mode"] == JudgeMode.SINGLE
    st.markdown(f"**{literal(judge['judge'])}**: {MODES[judge['mode']]}")
    _say_calibration(judge)
    _show_calibration(view.frame("calibration", judge["judge_key"], judge["mode"]))
    table = view.frame("judge_scores" if is_single else "judge_pairs", judge["judge_key"])
    if table.empty or not judge["n_judged"]:
        show_unknown("Opinions", "the judging ended before the first answer; judge again to do the rest")
        return
    look = current_look()
    (picture,) = draw(view, "judge", judge["judge_key"], judge["mode"])
    show_picture(picture, file_stem=view.file_stem)
    if is_single:
        show_table(*scores_table(table, look), caption="Judge scores per variant")
    else:
        show_table(*pairs_table(table, look), caption="Pairs against the reference per variant")
    st.caption(literal(reliability(judge, table)))
    if is_single and judge["gives_verdict"]:
        (picture,) = draw(view, "scores", judge["judge_key"], judge["mode"])
        show_picture(picture, file_stem=view.file_stem)


def _say_calibration(judge: dict[Any, Any]) -> None:
    """Whether its verdicts count, before anything that it says."""
    told = literal(calibration_words(judge))
    if judge["gives_verdict"]:
        st.markdown(f":material/verified: {told}")
    else:
        st.warning(told, icon=":material/gavel:")


def _show_calibration(items: pd.DataFrame) -> None:
    """How many questions with a known answer were right, by kind, and each of them folded."""
    if items.empty:
        return
    show_table(*calibration_table(items), caption="Calibration of the judge")
    with st.expander("Every calibration question", icon=":material/quiz:"):
        st.dataframe(
            items[["item_id", "item_kind", "expected", "got", "is_right", "state"]],
            hide_index=True,
            column_config={
                "item_id": "Question",
                "item_kind": "Kind",
                "expected": "Right answer",
                "got": "The judge said",
                "is_right": "Right",
                "state": "State",
            },
        )
