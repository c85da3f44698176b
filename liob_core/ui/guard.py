"""What a person sees when something cannot be done: one sentence. Bugs stay loud."""

import functools
import logging
from collections.abc import Callable
from typing import ParamSpec

import streamlit as st

from liob_core.config import load_settings
from liob_core.errors import BusyError, LiobError, MissingError
from liob_core.ui.text import literal

P = ParamSpec("P")

log = logging.getLogger("liob.ui")


def show_error(error: LiobError) -> None:
    """A box with the error's sentence, which already says what to do."""
    if isinstance(error, BusyError):
        st.warning(literal(str(error)), icon=":material/hourglass_top:")
    elif isinstance(error, MissingError):
        st.warning(literal(str(error)), icon=":material/extension:")
    else:
        st.error(literal(str(error)), icon=":material/error:")


def guarded(show: Callable[P, None]) -> Callable[P, None]:
    """`show` with LIOB's own errors shown as a sentence; visitors of a hosted app see nothing else either.

    A fragment needs a guard of its own: Streamlit runs it later, outside the page's call.
    """

    @functools.wraps(show)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            show(*args, **kwargs)
        except Exception as error:
            if load_settings().share is not None:
                _show_to_visitor(error)
            elif isinstance(error, LiobError):
                show_error(error)
            else:
                raise

    return run


def _show_to_visitor(error: Exception) -> None:
    """A sentence that tells nothing of the server; what happened is in its log."""
    log.error("A page could not be shown to a visitor.", exc_info=error)
    if isinstance(error, BusyError):
        st.warning(
            "These results are being replaced. Try again in a moment.", icon=":material/hourglass_top:"
        )
    else:
        st.error(
            "This cannot be shown. Whoever shares these results finds the reason in the server's log.",
            icon=":material/error:",
        )
