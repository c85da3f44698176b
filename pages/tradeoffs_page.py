"""Trade-offs: what if I need...?"""

import pandas as pd
import streamlit as st

from liob_core.analysis.limits import Limits
from liob_core.analysis.tradeoff import axes_of, in_words
from liob_core.charts.pictures import tradeoff_picture
from liob_core.charts.theme import variant_colours
from liob_core.charts.tradeoff import Bound
from liob_core.metrics import METRICS
from liob_core.ui import reads, selection
from liob_core.ui.blocks import show_heading
from liob_core.ui.pictures import show_picture
from liob_core.ui.run_view import RunView, open_run
from liob_core.ui.style import current_look
from liob_core.ui.text import literal
from liob_core.ui.tradeoffs.answer_part import Found, show_evidence, show_use
from liob_core.ui.tradeoffs.limits_part import pick_limits


def show() -> None:
    """Limits on the left; the answer, its picture, its evidence and its command beside them."""
    view = open_run("What if I need...?")
    if view is None:
        return
    top = st.container()
    table, points = view.frame("results"), view.frame("tradeoff")
    left, right = st.columns([3, 7], gap="large")
    with left:
        limits = pick_limits(table, has_closeness=bool(table["ln_ratio"].notna().any()))
        x, y = _pick_axes(points)
    found = reads.recommendation(view.database, view.run_id, limits)
    with top:
        show_heading(view.kicker, found["sentence"])
        st.markdown(literal(found["detail"]))
    with right:
        drawn = view.frame("tradeoff", x, y)
        _show_picture(view, drawn, found, _bounds(table, limits))
        for sentence in in_words(drawn):
            st.markdown(f"- {literal(sentence)}")
    show_use(found)
    st.subheader("Why", anchor=False)
    look = current_look()
    ladder = table.sort_values("bpw", ascending=False, kind="stable", na_position="last")
    show_evidence(found, variant_colours([str(name) for name in ladder["variant"]], found["reference"], look))


def _pick_axes(points: pd.DataFrame) -> tuple[str, str]:
    """The two axes of the picture; those that say most come first."""
    names = {axis: METRICS[axis].label for axis in axes_of(points)}
    across, up = (str(points[axis].iloc[0]) for axis in ("x", "y"))
    x = selection.pick("x", "Across", names, default=across)
    others = {axis: label for axis, label in names.items() if axis != x} or names
    return x, selection.pick("y", "Upwards", others, default=up)


def _bounds(table: pd.DataFrame, limits: Limits) -> dict[str, Bound]:
    """Where the limits lie in the picture; a loss of checks is counted from the reference's own rate."""
    rate = table.loc[table["is_reference"], "pass_rate"].iloc[0]
    bounds = {"ln_ratio": Bound(limits.max_ln_ratio, is_least=False)}
    if pd.notna(rate) and rate > limits.max_loss:
        bounds["pass_rate"] = Bound(float(rate) - limits.max_loss, is_least=True)
    if limits.min_tps is not None:
        bounds["decode_tps"] = Bound(limits.min_tps, is_least=True)
    if limits.max_bytes is not None:
        bounds["peak_memory_bytes"] = Bound(limits.max_bytes, is_least=False)
    if limits.max_joules is not None:
        bounds["j_per_output_token"] = Bound(limits.max_joules, is_least=False)
    return bounds


def _show_picture(view: RunView, points: pd.DataFrame, found: Found, bounds: dict[str, Bound]) -> None:
    picture = tradeoff_picture(
        view.frame("results"),
        points,
        current_look(),
        pick=found["pick"],
        runner_up=found["runner_up"],
        bounds=bounds,
        origin=view.origin,
    )
    show_picture(picture, file_stem=view.file_stem)
