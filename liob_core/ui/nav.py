"""The pages of the app and the ways between them. What is chosen travels in the address.

A page's address differs from its file's name: on a fresh server Streamlit matches the first address
with the files under `pages/`, and would run that file alone, without the frame.
"""

import gc
import importlib
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from liob_core.config import load_settings
from liob_core.ui.guard import guarded

Show = Callable[[], None]

# Until the frame has run once, Streamlit goes by the files under `pages/`, and tells a visitor who comes by
# the address of another page than the first that there is none. Asked again, it knows the page.
_RUNS = itertools.count()


@dataclass(frozen=True, slots=True)
class Screen:
    """One page: its name in the address, its title, its icon, and the heading it stands under.

    `is_shared`: visitors of a hosted app see it too.
    """

    name: str
    title: str
    icon: str
    section: str
    is_shared: bool = False


SCREENS = (
    Screen("overview", "Overview", ":material/insights:", "", is_shared=True),
    Screen("new", "New benchmark", ":material/add_circle:", "Measure"),
    Screen("run", "Run", ":material/play_circle:", "Measure"),
    Screen("models", "Models", ":material/deployed_code:", "Measure"),
    Screen("results", "Results", ":material/speed:", "Read", is_shared=True),
    Screen("answers", "Answers", ":material/forum:", "Read", is_shared=True),
    Screen("quality", "Quality", ":material/stairs:", "Read", is_shared=True),
    Screen("tradeoffs", "Trade-offs", ":material/tune:", "Read", is_shared=True),
    Screen("resources", "Resources", ":material/monitoring:", "Read", is_shared=True),
    Screen("runs", "Runs", ":material/history:", "Keep"),
    Screen("data", "Data", ":material/database:", "Keep"),
    Screen("settings", "Settings", ":material/settings:", "Keep"),
)


def navigate() -> Show:
    """The function that runs the page at the current address; the first screen is the default."""
    sections: dict[str, list[st.Page]] = {}
    for screen in _open_screens():
        sections.setdefault(screen.section, []).append(_page(screen, _shower(screen)))
    # The first page has the bare address and no other; its name shall lead there too.
    first = SCREENS[0]
    by_name = st.Page(_shower(first), title=first.title, url_path=first.name, visibility="hidden")
    sections[first.section].append(by_name)
    page = st.navigation(sections)
    if next(_RUNS) == 0 and page.url_path and st.context.url:
        return _ask_again
    return page.run


def _open_screens() -> tuple[Screen, ...]:
    """The pages there are: all, or those with results where one file is shown to visitors."""
    if load_settings().share is None:
        return SCREENS
    return tuple(screen for screen in SCREENS if screen.is_shared)


def _shower(screen: Screen) -> Show:
    """What shows a screen; its file is imported only then, so that the frame appears at once."""

    def show() -> None:
        name = f"pages.{screen.name}_page"
        is_first = name not in sys.modules
        page = importlib.import_module(name)
        try:
            guarded(page.show)()
        finally:
            if is_first:
                _keep_what_is_loaded()

    return show


def _keep_what_is_loaded() -> None:
    """Take modules and schemas out of the search for garbage, which Streamlit makes after every script."""
    gc.collect()
    gc.freeze()


def open_page(name: str, **selection: str) -> None:
    """Leave for the page `name` with `selection` in its address."""
    st.switch_page(_page(_screen(name), _unused), query_params=selection)


def button_to(name: str, label: str, *, icon: str, primary: bool = False, **selection: str) -> None:
    """A button that leaves for the page `name`; nothing where visitors have no such page."""
    if _screen(name) not in _open_screens():
        return
    if st.button(label, icon=icon, type="primary" if primary else "secondary", key=f"go_{name}_{label}"):
        open_page(name, **selection)


def _screen(name: str) -> Screen:
    return next(screen for screen in SCREENS if screen.name == name)


def _page(screen: Screen, show: Show) -> st.Page:
    is_first = screen is SCREENS[0]
    # Streamlit keeps a path for the first page too, though it serves it at none.
    path = "start" if is_first else screen.name
    return st.Page(show, title=screen.title, icon=screen.icon, url_path=path, default=is_first)


def _ask_again() -> None:
    st.html("<script>window.location.reload()</script>", unsafe_allow_javascript=True)


def _unused() -> None:
    """Stands for a registered page: Streamlit knows a page by its address alone."""
