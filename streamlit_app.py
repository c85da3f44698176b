"""The frame of LIOB's app: page configuration, navigation, style. Run it with `streamlit run`."""

import streamlit as st

from liob_core.ui.guard import guarded
from liob_core.ui.nav import navigate
from liob_core.ui.style import apply_style
from pages import answers_page, new_page, overview_page, results_page, run_page

st.set_page_config(page_title="LIOB", page_icon=":material/insights:", layout="wide")
apply_style()
show = navigate(
    {
        "overview": guarded(overview_page.show),
        "new": guarded(new_page.show),
        "run": guarded(run_page.show),
        "results": guarded(results_page.show),
        "answers": guarded(answers_page.show),
    }
)
show()
