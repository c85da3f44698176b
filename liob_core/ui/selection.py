"""What is chosen, kept in the address so that a page can be bookmarked and shared.

Streamlit empties the address when the reader changes pages, so the choice is remembered for the session.
"""

from collections.abc import Mapping

import streamlit as st

_PREFIX = "liob_choice_"


def get(name: str) -> str | None:
    """The choice called `name`: from the address, else from earlier in this session."""
    value = st.query_params.get(name)
    if value is None:
        remembered = st.session_state.get(_PREFIX + name)
        return None if remembered is None else str(remembered)
    st.session_state[_PREFIX + name] = value
    return value


def put(name: str, value: str) -> None:
    """Write the choice called `name` into the address and remember it."""
    st.session_state[_PREFIX + name] = value
    if st.query_params.get(name) != value:
        st.query_params[name] = value


def pick(name: str, label: str, options: Mapping[str, str]) -> str:
    """The choice made in a select box over `options` (value -> shown name), kept in the address.

    The box starts with the choice in the address, else with the first option, and follows an address
    that another page opened.
    """
    key = f"liob_pick_{name}"
    asked = st.query_params.get(name)
    if asked in options and asked != st.session_state.get(_PREFIX + name):
        st.session_state[key] = asked
    if st.session_state.get(key) not in options:
        wanted = get(name)
        st.session_state[key] = wanted if wanted in options else next(iter(options))
    chosen = st.selectbox(label, list(options), format_func=options.__getitem__, key=key)
    put(name, chosen)
    return chosen
