"""Which engine runs the variants: Ollama where it answers, and what to do where it does not."""

from dataclasses import dataclass
from typing import NamedTuple

import streamlit as st

from liob_core.config import Settings
from liob_core.engines.ollama_host import find_host
from liob_core.engines.ollama_server import find_binary, start_server, started_server, stop_server
from liob_core.engines.registry import describe_engines, describe_ollama
from liob_core.errors import LiobError
from liob_core.ui.guard import show_error
from liob_core.ui.text import literal

_ENGINE, _JUST_STARTED = "liob_new_engine", "liob_new_just_started"
OLLAMA, EMBEDDED, BOTH, OWN = "ollama", "embedded", "both", "llama-server"
_NAMES = {
    OLLAMA: "Ollama",
    EMBEDDED: "Embedded llama.cpp",
    BOTH: "Both, side by side",
    OWN: "Your llama-server",
}
_ENGINES = {
    OLLAMA: ("ollama",),
    EMBEDDED: ("embedded",),
    BOTH: ("embedded", "ollama"),
    OWN: ("llama-server",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """The engines to use, the address of a server of the user's own, and whether Ollama answers."""

    names: tuple[str, ...]
    url: str | None
    has_ollama: bool


class _State(NamedTuple):
    is_available: bool
    sentence: str


def pick_engines(settings: Settings) -> EngineChoice:
    """The engines chosen, with the state of each in a sentence; Ollama is the default where it answers."""
    ollama = _State(*_ollama_state())
    first = OLLAMA if ollama.is_available else EMBEDDED
    if st.session_state.pop(_JUST_STARTED, False):
        st.session_state[_ENGINE] = OLLAMA
    elif _ENGINE not in st.session_state:
        st.session_state[_ENGINE] = first
    chosen = st.segmented_control("Engine", list(_NAMES), format_func=_NAMES.__getitem__, key=_ENGINE)
    chosen = chosen or first
    url = None
    if chosen == OWN:
        url = st.text_input("Its address", key="liob_new_url", placeholder="http://127.0.0.1:8080") or None
    for name in _ENGINES[chosen]:
        if name == "ollama":
            _show_state(ollama)
        elif name != "llama-server" or url is not None:
            _show_state(_State(*_other_states(url)[name]))
    if chosen == EMBEDDED and not ollama.is_available:
        st.caption(literal(f"It is the default here. {ollama.sentence}"))
    if chosen != OWN:
        _offer_server(settings, ollama)
    return EngineChoice(names=_ENGINES[chosen], url=url, has_ollama=ollama.is_available)


def _show_state(state: _State) -> None:
    icon = ":material/check_circle:" if state.is_available else ":material/block:"
    st.caption(f"{icon} {literal(state.sentence)}")


def _offer_server(settings: Settings, state: _State) -> None:
    """Start Ollama where it is installed and does not run; stop it only where LIOB started it."""
    ours = started_server(settings.machine_dir)
    if ours is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption("LIOB started this server. It goes on serving until it is stopped.")
            if st.button("Stop Ollama", icon=":material/stop_circle:", key="liob_stop_ollama"):
                stop_server(settings.machine_dir)
                _ollama_state.clear()
                st.rerun()
        return
    if state.is_available or find_binary() is None:
        return
    if st.button(
        "Start Ollama",
        icon=":material/power_settings_new:",
        key="liob_start_ollama",
        help="Runs `ollama serve` until you stop it here.",
    ):
        try:
            with st.spinner("Starting `ollama serve`"):
                log_path = settings.data_dir / "ollama-serve.log"
                start_server(find_host(), settings.machine_dir, log_path)
        except LiobError as error:
            show_error(error)
            return
        _ollama_state.clear()
        st.session_state[_JUST_STARTED] = True
        st.rerun()


@st.cache_data(ttl=10, max_entries=1, show_spinner="Looking for Ollama")
def _ollama_state() -> tuple[bool, str]:
    """Whether Ollama answers, and its sentence; kept for the few clicks that follow one another."""
    found = describe_ollama()
    return found.available, found.sentence


@st.cache_data(ttl=600, max_entries=8, show_spinner="Looking at the engine")
def _other_states(url: str | None) -> dict[str, tuple[bool, str]]:
    """Availability and sentence of each other engine by name; the probe starts a child, so it is kept."""
    return {engine.name: (engine.available, engine.sentence) for engine in describe_engines(url=url)}
