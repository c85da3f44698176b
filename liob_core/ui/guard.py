"""What a person sees when something cannot be done: one sentence. Bugs stay loud."""

import functools
from collections.abc import Callable
from typing import ParamSpec

import streamlit as st

from liob_core.errors import BusyError, LiobError, MissingError
from liob_core.ui.text import literal

P = ParamSpec("P")


def show_error(error: LiobError) -> None:
    """A box with the error's sentence, which already says what to do."""
    if isinstance(error, BusyError):
        st.warning(literal(str(error)), icon=":material/hourglass_top:")
    elif isinstance(error, MissingError):
        st.warning(literal(str(error)), icon=":material/extension:")
    else:
        st.error(literal(str(error)), icon=":material/error:")


def guarded(show: Callable[P, None]) -> Callable[P, None]:
    """`show` with LIOB's own errors shown as a sentence.

    A fragment needs a guard of its own: Streamlit runs it later, outside the page's call.
    """

    @functools.wraps(show)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            show(*args, **kwargs)
        except LiobError as error:
            show_error(error)

    return run
