"""A box for one question in SQL, examples that show what can be asked, and the answer as a table."""

from pathlib import Path

import streamlit as st

from liob_core.rendering.csv import as_csv
from liob_core.store.ask import MAX_ROWS, TIMEOUT_S, Answer, ask

_KEY = "liob_sql"
_ASKED = "liob_sql_asked"
EXAMPLES = {
    "Speed and memory of every variant": (
        "SELECT run_id, variant, bpw, decode_tps, decode_tps_ci_low, decode_tps_ci_high,\n"
        "       peak_memory_bytes / 1048576 AS peak_mib, pass_rate\n"
        "FROM results\nORDER BY run_id DESC, bpw DESC"
    ),
    "Verdicts against the reference": (
        "SELECT variant, metric, kind, estimate, ci_low, ci_high, p_holm, verdict, reason\n"
        "FROM paired_deltas\nORDER BY run_id DESC, metric, variant"
    ),
    "How close, and what judges say": (
        "SELECT variant, metric, estimate, ci_low, ci_high, n, verdict, reason\n"
        "FROM paired_deltas\nWHERE metric IN ('ln_ratio', 'judge_score', 'judge_win_share')\n"
        "ORDER BY run_id DESC, metric, variant"
    ),
    "Machines and who measured": (
        "SELECT cpu_name, kind, engine, count(*) AS n_runs, sum(n_samples) AS n_samples\n"
        "FROM runs LEFT JOIN machines USING (machine_id)\nGROUP BY ALL\nORDER BY n_samples DESC"
    ),
    "How requests ended": (
        "SELECT run_id, variant, outcome, count(*) AS n, any_value(reason) AS an_example\n"
        "FROM samples\nWHERE NOT warmup\nGROUP BY ALL\nORDER BY run_id DESC, variant, n DESC"
    ),
    "Slowest answers": (
        "SELECT variant, prompt_id, round(e2e_ms / 1000, 1) AS seconds, output_tokens, outcome, response\n"
        "FROM samples\nWHERE task = 'suite' AND NOT warmup\nORDER BY e2e_ms DESC\nLIMIT 20"
    ),
    "Prompts on which variants disagree": (
        "SELECT run_id, prompt_id, category, count(DISTINCT check_result) AS n_results,\n"
        "       string_agg(DISTINCT variant, ', ') FILTER (check_result = 'fail') AS failed\n"
        "FROM samples\nWHERE check_result IN ('pass', 'fail') AND NOT warmup\n"
        "GROUP BY ALL\nHAVING n_results > 1\nORDER BY run_id DESC, prompt_id"
    ),
    "The machine, minute by minute": (
        "SELECT run_id, time_bucket(INTERVAL 1 minute, read_utc) AS minute,\n"
        "       max(rss_bytes) / 1048576 AS engine_mib, avg(system_cpu_pct) AS cpu_pct\n"
        "FROM readings\nGROUP BY ALL\nORDER BY run_id DESC, minute"
    ),
    "Why a number is unknown": (
        "SELECT variant, unnest(json_keys(unknown)) AS metric, unknown\nFROM results\n"
        "WHERE json_array_length(json_keys(unknown)) > 0"
    ),
}


def show_sql_box(database: Path) -> None:
    """The examples, the box, and what the last question gave."""
    st.session_state.setdefault(_KEY, next(iter(EXAMPLES.values())))
    st.selectbox(
        "Example",
        list(EXAMPLES),
        key="liob_sql_example",
        on_change=_take_example,
    )
    with st.form("liob_sql_form", border=False):
        sql = st.text_area(
            "SQL",
            key=_KEY,
            height=170,
            help=f"One SELECT; read only. It is stopped after {TIMEOUT_S:g} seconds and shows at most "
            f"{MAX_ROWS:,} rows.",
        )
        if st.form_submit_button("Ask", icon=":material/play_arrow:", type="primary"):
            st.session_state[_ASKED] = sql
    asked = st.session_state.get(_ASKED)
    if asked:
        _show_answer(ask(database, asked))


def _take_example() -> None:
    st.session_state[_KEY] = EXAMPLES[st.session_state["liob_sql_example"]]


def _show_answer(answer: Answer) -> None:
    n = len(answer.frame)
    told = f"The first {n:,} rows; there are more" if answer.is_cut else f"{n:,} row{'s' if n != 1 else ''}"
    st.caption(f"{told} · {answer.seconds:.2f} s")
    st.dataframe(answer.frame, hide_index=True)
    st.download_button(
        "Download as CSV",
        lambda: as_csv(answer.frame),
        file_name="liob-query.csv",
        mime="text/csv",
        icon=":material/download:",
        key="liob_sql_csv",
    )
