"""The frame of LIOB's app: page configuration, navigation, style. Run it with `streamlit run`."""

import streamlit as st

from liob_core.ui.nav import navigate
from liob_core.ui.style import apply_style

st.set_page_config(page_title="LIOB", page_icon="liob_core/ui/icon.svg", layout="wide")
show = navigate()
apply_style()
show()
