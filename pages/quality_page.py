"""Quality: how close, how good?"""

import importlib

import streamlit as st

from liob_core.config import load_settings
from liob_core.ui import reads
from liob_core.ui.blocks import show_heading
from liob_core.ui.closeness_section import show_closeness
from liob_core.ui.is_it_real import show_is_it_real
from liob_core.ui.quality.cache_section import show_caches
from liob_core.ui.quality.category_section import show_categories
from liob_core.ui.quality.judge_section import show_judges
from liob_core.ui.quality.overlap_section import show_overlaps
from liob_core.ui.run_view import open_run, show_caveats
from liob_core.ui.text import literal


def show() -> None:
    """How far down the ladder the model stays what it was, what it answers, and what that rests on."""
    view = open_run("How close, how good?")
    if view is None:
        return
    facts = reads.closeness(view.database, view.run_id)
    show_heading(view.kicker, facts["sentence"] if facts else "How close, how good?")
    for sentence in reads.broken_sizes(view.database, view.run_id):
        st.warning(literal(sentence), icon=":material/broken_image:")
    st.subheader("Closeness to the reference", anchor=False)
    show_closeness(view)
    show_caches(view)
    show_categories(view)
    show_overlaps(view)
    show_judges(view)
    if load_settings().share is None and not view.is_sample:
        # Visitors start nothing, and their app imports no bench.
        importlib.import_module("liob_core.ui.quality.judge_start").offer_judging(view)
    show_is_it_real(view)
    show_caveats(view)
