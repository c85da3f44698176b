"""What is chosen, kept in the address so that a page can be bookmarked and shared.

Streamlit empties the address when the reader changes pages, so the choice is remembered for the session.
"""

from collections.abc import Callable, Collection, Mapping

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


def never_chosen(name: str, options: Collection[str]) -> str | None:
    """What the address asks for that is not among `options`, unless it was chosen here before; else None."""
    asked = st.query_params.get(name)
    is_own = asked == st.session_state.get(_PREFIX + name)
    return None if asked is None or asked in options or is_own else asked


def put(name: str, value: str) -> None:
    """Write the choice called `name` into the address and remember it."""
    st.session_state[_PREFIX + name] = value
    if st.query_params.get(name) != value:
        st.query_params[name] = value


def pick(
    name: str,
    label: str,
    options: Mapping[str, str],
    *,
    widget: Callable[..., str] = st.selectbox,
    default: str | None = None,
    help_: str | None = None,
) -> str:
    """The choice made in a select box, or another `widget`, over `options` (value -> shown name).

    It is kept in the address. The widget starts with the choice in the address, else with `default` or the
    first option, and follows an address that another page opened.
    """
    key = _key(name)
    asked = st.query_params.get(name)
    if asked in options and asked != st.session_state.get(_PREFIX + name):
        st.session_state[key] = asked
    if st.session_state.get(key) not in options:
        wanted = get(name)
        first = default if default in options else next(iter(options))
        st.session_state[key] = wanted if wanted in options else first
    chosen = widget(label, list(options), format_func=options.__getitem__, key=key, help=help_)
    put(name, chosen)
    return chosen


def preset(name: str, value: str) -> None:
    """Make `value` the choice of the next `pick` called `name`; for a button's callback."""
    st.session_state[_key(name)] = value
    put(name, value)


def _key(name: str) -> str:
    return f"liob_pick_{name}"
