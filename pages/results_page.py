"""Results: how fast, how big?"""

import streamlit as st

from liob_core.charts.memory import memory_bars
from liob_core.charts.speed import latency_strip, rate_dots
from liob_core.metrics import METRICS
from liob_core.ui.blocks import show_chart, show_heading, show_unknown
from liob_core.ui.engine_table import show_engines
from liob_core.ui.results_table import show_results_table, why_unknown
from liob_core.ui.run_view import RunView, open_run, show_caveats
from liob_core.ui.style import current_look

_TIMED = {"speed": ("chat512", "pp512"), "suite": ("suite", "suite")}


def show() -> None:
    """The table, then speed, waiting times and memory as pictures."""
    view = open_run("How fast, how big?")
    if view is None:
        return
    show_heading(view.kicker, "How fast, how big?")
    table = view.frame("results")
    show_results_table(table, current_look(), key="results")
    show_engines(view.frame("engines"))
    _show_rates(view)
    _show_latencies(view)
    _show_memory(view)
    st.download_button(
        "Download the table as CSV",
        table.to_csv(index=False),
        file_name=f"liob-{view.run_id}.csv",
        mime="text/csv",
        icon=":material/download:",
    )
    show_caveats(view)


def _show_rates(view: RunView) -> None:
    table, blocks = view.frame("results"), view.frame("blocks")
    decode, prefill = _TIMED["speed" if "speed" in view.facts.tasks else "suite"]
    caption = view.caption("Mean over blocks with its 95 % interval; ticks are single blocks")
    left, right = st.columns(2, gap="large")
    for column, metric, shape in ((left, "decode_tps", decode), (right, "prefill_tps", prefill)):
        with column:
            if table[metric].isna().all():
                show_unknown(METRICS[metric].label, why_unknown(table, metric))
                continue
            chart = rate_dots(table, blocks, current_look(), metric=metric, shape=shape, caption=caption)
            show_chart(chart, alt_text=f"{METRICS[metric].label} of each variant with its interval")


def _show_latencies(view: RunView) -> None:
    table, samples = view.frame("results"), view.frame("latencies")
    shown, total = len(samples), int(samples.drop_duplicates("variant")["n_samples"].sum())
    n = f"all {total} requests" if shown == total else f"{shown} of {total} requests, an even random share"
    caption = view.caption(f"{n[0].upper()}{n[1:]}; the mark is the median")
    left, right = st.columns(2, gap="large")
    for column, metric in ((left, "ttft_ms"), (right, "tpot_ms")):
        with column:
            if samples[metric].isna().all():
                show_unknown(METRICS[metric].label, why_unknown(table, "ttft_ms_p50"))
                continue
            chart = latency_strip(table, samples, current_look(), metric=metric, caption=caption)
            show_chart(chart, alt_text=f"{METRICS[metric].label} of every request per variant")


def _show_memory(view: RunView) -> None:
    parts = view.frame("memory")
    if parts.empty:
        show_unknown("Memory", why_unknown(view.frame("results"), "peak_memory_bytes"))
        return
    caption = view.caption(
        "Parts as the engine reports them; other is the rest of the measured peak",
        "The upright tick is what was predicted before the load",
    )
    chart = memory_bars(view.frame("results"), parts, current_look(), caption=caption)
    show_chart(chart, alt_text="Memory of each variant by part, beside the predicted need")
