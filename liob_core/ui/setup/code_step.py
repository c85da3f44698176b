"""Whether checks may run code from answers, where a suite has such checks, and what is not limited here."""

import streamlit as st

from liob_core.config import Settings
from liob_core.quality.code.grade import code_note
from liob_core.types import Suite
from liob_core.ui.text import literal


def pick_code(suite: Suite | None, settings: Settings) -> bool:
    """Whether code may be run; asked only where a prompt's check needs it."""
    prompts = suite.prompts if suite else ()
    n_tested = sum(prompt.check is not None and prompt.check.kind == "unit_tests" for prompt in prompts)
    if suite is None or n_tested == 0:
        return settings.allow_code
    is_allowed = st.checkbox(
        f"Run code from answers to {n_tested} prompts, to test it",
        value=settings.allow_code,
        key="liob_new_allow_code",
        help="In a process of its own: no network, no files outside a temporary folder, little time and "
        "memory. Models write what they like, so it is off unless you allow it.",
    )
    note = _note(suite.sha256, suite, is_allowed=is_allowed)
    if note:
        st.caption(f":material/warning: {literal(note)}")
    return is_allowed


@st.cache_data(ttl=600, max_entries=8, show_spinner="Trying the limits on code")
def _note(suite_sha256: str, _suite: Suite, *, is_allowed: bool) -> str | None:
    """What to know before code is run or not run; a trial of the limits starts a process, so it is kept."""
    return code_note(_suite, allow_code=is_allowed)
