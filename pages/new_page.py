"""New benchmark: what to compare, what to ask, how far to go; one button."""

import streamlit as st

from liob_core.config import load_settings
from liob_core.ui.blocks import show_heading
from liob_core.ui.setup.limits_step import load_settings_asked, pick_limits
from liob_core.ui.setup.summary import show_summary
from liob_core.ui.setup.variants_step import pick_variants
from liob_core.ui.setup.work_step import pick_work


def show() -> None:
    """Three steps beside their estimate."""
    settings = load_settings()
    show_heading("Which quantization should I run here?", "New benchmark")
    steps, summary = st.columns([7, 3], gap="medium")
    with steps:
        choice = pick_variants(settings, load_settings_asked(settings))
        work = pick_work(settings)
        limits = pick_limits(settings)
    with summary:
        show_summary(settings, choice, work, limits)
