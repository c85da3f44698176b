"""What is chosen, kept in the address so that a page can be bookmarked and shared.

Streamlit empties the address when the reader changes pages, so the choice is remembered for the session.
"""

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


def drop(name: str) -> None:
    """Forget the choice called `name`."""
    st.session_state.pop(_PREFIX + name, None)
    st.query_params.pop(name, None)
