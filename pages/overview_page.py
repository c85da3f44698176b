"""Overview: which one, and why?"""

import streamlit as st

from liob_core.ui import reads
from liob_core.ui.blocks import OWN_BENCHMARK, show_heading
from liob_core.ui.nav import button_to
from liob_core.ui.pictures import draw, show_picture
from liob_core.ui.results_table import show_results_table
from liob_core.ui.run_view import open_run, show_caveats
from liob_core.ui.style import current_look
from liob_core.ui.text import literal


def show() -> None:
    """The pick, the picture behind it, the table, and what could make it wrong."""
    view = open_run("Which quantization should I run here?")
    if view is None:
        return
    answer = reads.headline(view.database, view.run_id)
    heading, action = st.columns([13, 5], gap="medium")
    with heading:
        show_heading(view.kicker, answer["sentence"])
        st.markdown(literal(answer["detail"]))
    with action:
        button_to("new", OWN_BENCHMARK, icon=":material/add_circle:", primary=True)
    (picture,) = draw(view, "tradeoff", (), (answer["pick"], None), ())
    show_picture(picture, file_stem=view.file_stem)
    _show_evidence(answer)
    look = current_look()
    show_results_table(view.frame("results"), look, key="overview")
    show_caveats(view)


def _show_evidence(answer: dict[str, object]) -> None:
    """How the pick came about, and the command that uses it."""
    evidence = answer["evidence"]
    if not evidence and not answer["command"]:
        return
    with st.expander("How this was decided, and how to use it", icon=":material/rule:"):
        for line in evidence if isinstance(evidence, list | tuple) else ():
            st.markdown(f"- {literal(str(line))}")
        if answer["command"]:
            st.code(str(answer["command"]), language=None, wrap_lines=True)
