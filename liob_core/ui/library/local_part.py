"""What is on this machine, what it takes on disk, and its removal once that is confirmed."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import streamlit as st

from liob_core.analysis.words import UNKNOWN, memory
from liob_core.bench import ollama_transfers
from liob_core.config import Settings
from liob_core.engines.registry import describe_ollama
from liob_core.errors import LiobError
from liob_core.models.gguf import read_model
from liob_core.models.inventory import HeldModel, held_models, remove_held
from liob_core.models.ollama_files import open_registry
from liob_core.models.ollama_variant import OllamaModel, open_server
from liob_core.ui.guard import show_error
from liob_core.ui.table import Cell, Column, Note, show_table
from liob_core.ui.text import literal

# What removes one model and gives a sentence on what that did.
Remove = Callable[[], str]


def show_local(settings: Settings) -> None:
    """LIOB's files, the Hub's cache and Ollama's models in one table, and what can be removed."""
    held = held_models(settings.models_dir)
    installed, sentence = _installed()
    if not held and not installed:
        st.caption(literal(f"No model is here yet. {sentence}"))
        return
    rows = [_held_row(one) for one in held] + [_ollama_row(one) for one in installed]
    columns = [
        Column(label="Model", is_number=False),
        Column(label="Where", is_number=False),
        Column(label="True bits", hint="8 x tensor bytes / parameters"),
        Column(label="Disk"),
    ]
    show_table(columns, rows, caption="Models on this machine")
    total = sum(one.file_bytes for one in held) + sum(one.size_bytes or 0 for one in installed)
    st.caption(literal(f"{memory(total)} in all. {sentence}"))
    if has_ollama() and held:
        _offer_registering(held, settings)
    _offer_removal({**_held_names(held), **_ollama_names(installed)})


def _offer_registering(held: list[HeldModel], settings: Settings) -> None:
    """Give one of the files to Ollama; the name it gets stands among the downloads and in the table."""
    with st.expander("Use a file on Ollama", icon=":material/output:"):
        files = {f"{_name_of(one)} {one.label}, {memory(one.file_bytes)}": one for one in held}
        chosen = st.selectbox("Register", list(files), index=None, key="liob_register_what")
        st.caption(
            "The same weights always get the same name, which begins with liob/. Ollama keeps a copy; it can "
            "be removed below. A run that needs the file on Ollama registers it by itself."
        )
        if st.button(
            "Register with Ollama", icon=":material/output:", disabled=chosen is None, key="liob_register"
        ):
            one = files[str(chosen)]
            ollama_transfers.start_register(one.path, one.file_bytes, settings)
            st.rerun()


def _name_of(held: HeldModel) -> str:
    return held.repo.repo_id if held.repo else held.path.name


@st.cache_data(ttl=10, max_entries=1, show_spinner="Looking for Ollama")
def has_ollama() -> bool:
    """Whether Ollama answers at OLLAMA_HOST; kept for the few clicks that follow one another."""
    return describe_ollama().available


def _installed() -> tuple[list[OllamaModel], str]:
    """What Ollama has, and one sentence on whether it answers."""
    state = describe_ollama()
    if not state.available:
        return [], state.sentence
    try:
        with open_server() as server:
            return [server.look(entry) for entry in server.installed()], state.sentence
    except LiobError as error:
        return [], str(error)


def _held_row(held: HeldModel) -> list[Cell]:
    where = "Hub cache" if held.repo else "LIOB's folder"
    return [
        Cell(text=held.label, notes=(Note(_name_of(held)),), hint=str(held.path)),
        Cell(text=where),
        _bits_cell(held),
        Cell(text=memory(held.file_bytes)),
    ]


def _bits_cell(held: HeldModel) -> Cell:
    try:
        bits = _bits(str(held.path), held.path.stat().st_mtime_ns)
    except (LiobError, OSError) as error:
        return Cell(text=UNKNOWN, hint=str(error))
    return Cell(text=f"{bits:.2f}", hint=f"{bits!r} bits per weight")


@st.cache_data(ttl=3600, max_entries=512, show_spinner=False)
def _bits(path: str, mtime_ns: int) -> float:
    """The true bits per weight of a file; the same as long as the file is."""
    return read_model(Path(path)).bpw


def _ollama_row(found: OllamaModel) -> list[Cell]:
    bits = f"{found.model.bpw:.2f}" if found.model else UNKNOWN
    made = (Note("registered by LIOB"),) if found.is_ours else ()
    return [
        Cell(text=found.quant or UNKNOWN, notes=(Note(found.name),), hint=f"blob {found.blob_digest}"),
        Cell(text="Ollama", notes=made),
        Cell(text=bits, hint="" if found.model else "the server does not tell its tensors"),
        Cell(text=memory(found.size_bytes)),
    ]


def _held_names(held: list[HeldModel]) -> dict[str, Remove]:
    return {
        f"{_name_of(one)} {one.label}, {memory(one.file_bytes)}": partial(_remove_held, one) for one in held
    }


def _ollama_names(installed: list[OllamaModel]) -> dict[str, Remove]:
    """Only what LIOB made; the user's own models are theirs to remove."""
    return {
        f"Ollama: {one.name}, {memory(one.size_bytes)}": partial(_remove_from_ollama, one.name)
        for one in installed
        if one.is_ours
    }


def _remove_held(held: HeldModel) -> str:
    return f"{memory(remove_held(held))} are free again."


def _remove_from_ollama(name: str) -> str:
    with open_registry() as registry:
        registry.remove(name)
    return f"{name} is removed from Ollama."


def _offer_removal(names: Mapping[str, Remove]) -> None:
    """One model at a time, and only once the box is ticked."""
    if not names:
        return
    with st.expander("Free some disk", icon=":material/delete:"):
        chosen = st.selectbox("Remove", list(names), index=None, key="liob_remove_what")
        st.caption(
            "Files in the Hub's cache are shared with every program that uses it. Of Ollama's models only "
            "those that LIOB registered can be removed here."
        )
        is_sure = st.checkbox("Yes, delete it from this disk", key=f"liob_remove_sure_{chosen}")
        if st.button(
            "Remove", icon=":material/delete:", disabled=not (chosen and is_sure), key="liob_remove"
        ):
            try:
                st.toast(literal(names[str(chosen)]()))
            except LiobError as error:
                show_error(error)
                return
            st.rerun()
