"""Step 1: the engine and the variants to compare."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import pandas as pd
import streamlit as st

from liob_core.analysis.words import memory
from liob_core.config import Settings
from liob_core.errors import LiobError
from liob_core.models.family import default_reference
from liob_core.models.memory import available_bytes
from liob_core.models.ollama_variant import OllamaModel, open_server
from liob_core.models.variant import order_by_bits, unique_labels
from liob_core.store.journal import read_record
from liob_core.types import LoadSettings, Variant
from liob_core.ui.blocks import show_step
from liob_core.ui.guard import show_error
from liob_core.ui.setup.candidates import Candidate, find_candidates
from liob_core.ui.setup.engine_step import EngineChoice, pick_engines
from liob_core.ui.setup.sample_step import offer_sample
from liob_core.ui.text import literal

PATHS_KEY = "liob_new_paths"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is to be compared: the engines, the chosen variants, most bits first, and the reference."""

    engines: EngineChoice
    variants: tuple[Variant, ...]
    reference: str | None


def pick_variants(settings: Settings, asked: LoadSettings) -> Choice:
    """The engines and variants chosen, shown with what each needs."""
    with st.container(border=True):
        show_step(1, "What to compare", "an engine and the variants of a model, or of several")
        engines = pick_engines(settings)
        installed = _installed(engines)
        paths = _pick_paths(settings)
        if not paths and not installed:
            return Choice(engines=engines, variants=(), reference=None)
        available = available_bytes()
        with st.spinner("Reading the model files"):
            found = find_candidates(
                paths,
                engines.names,
                asked,
                available=available,
                cache_dir=settings.cache_dir,
                installed=installed,
            )
        for problem in found.problems:
            st.error(literal(problem), icon=":material/error:")
        chosen = _pick_from_table(found.candidates, available) if found.candidates else []
        # Labels are as short as the choice allows, so fewer variants can have other ones.
        chosen = unique_labels(order_by_bits(chosen))
        return Choice(engines=engines, variants=tuple(chosen), reference=_pick_reference(chosen))


def _installed(engines: EngineChoice) -> list[OllamaModel]:
    """What Ollama has, where it is among the engines and answers."""
    if "ollama" not in engines.names or not engines.has_ollama:
        return []
    try:
        with open_server() as server:
            entries = [(one.name, one.digest or "") for one in server.installed()]
        return [read_record(OllamaModel, _look(*entry)) for entry in entries]
    except LiobError as error:
        show_error(error)
        return []


@st.cache_data(ttl=3600, max_entries=256, show_spinner="Reading Ollama's models")
def _look(name: str, digest: str) -> str:
    """One installed model as JSON; it is the same as long as its digest is."""
    with open_server() as server:
        return json.dumps(asdict(server.find(name)), default=str)


def _pick_paths(settings: Settings) -> list[str]:
    if PATHS_KEY not in st.session_state:
        has_models = any(settings.models_dir.glob("*.gguf"))
        st.session_state[PATHS_KEY] = str(settings.models_dir) if has_models else ""
    try:
        offer_sample(settings, PATHS_KEY)
    except LiobError as error:
        show_error(error)
    text = st.text_area(
        "GGUF files or folders, one a line",
        key=PATHS_KEY,
        height=90,
        placeholder="/home/me/models/Qwen2.5-7B-Instruct-Q4_K_M.gguf\n/home/me/models",
        help="A file that runs on Ollama is registered with it when the run begins, under a name that begins "
        "with liob/.",
    )
    return [line.strip().strip("'\"") for line in text.splitlines() if line.strip()]


def _pick_from_table(candidates: Sequence[Candidate], available: int) -> list[Variant]:
    """The variants whose boxes are ticked: at first the named files, as far as they fit."""
    models = [candidate.variant.model for candidate in candidates]
    needs = [
        candidate.variant.need.need_bytes if candidate.variant.need else None for candidate in candidates
    ]
    frame = pd.DataFrame(
        {
            "use": [one.fit != "does not fit" and not one.is_installed for one in candidates],
            "variant": [candidate.variant.label for candidate in candidates],
            "bits": [model.bpw if model else None for model in models],
            "size": [memory(model.file_bytes) if model else None for model in models],
            "need": [need / 2**30 if need is not None else None for need in needs],
            "verdict": [_verdict(candidate) for candidate in candidates],
            "file": [_source(candidate) for candidate in candidates],
        }
    )
    free = available / 2**30
    config = {
        "use": st.column_config.CheckboxColumn("Use", width="small"),
        "variant": st.column_config.TextColumn("Variant"),
        "bits": st.column_config.NumberColumn(
            "True bits", format="%.2f", help="8 x tensor bytes / parameters"
        ),
        "size": st.column_config.TextColumn("File size"),
        "need": st.column_config.ProgressColumn(
            f"Need of {memory(available)} free", min_value=0.0, max_value=free, format="%.2f GiB"
        ),
        "verdict": st.column_config.TextColumn("Memory"),
        "file": st.column_config.TextColumn("From"),
    }
    edited = st.data_editor(
        frame,
        hide_index=True,
        disabled=[name for name in frame.columns if name != "use"],
        column_config=config,
        key="liob_new_table_" + "|".join(frame["file"]),
    )
    used = list(edited["use"])
    for candidate, use in zip(candidates, used, strict=True):
        model = candidate.variant.model
        for warning in (model.label_warning, model.fallback_warning) if model and use else ():
            if warning:
                st.caption(f":material/warning: {literal(candidate.variant.label)}: {literal(warning)}")
    return [candidate.variant for candidate, use in zip(candidates, used, strict=True) if use]


def _source(candidate: Candidate) -> str:
    return f"Ollama: {candidate.source}" if candidate.is_installed else candidate.source


def _verdict(candidate: Candidate) -> str:
    need = candidate.variant.need
    if candidate.fit == "unknown" and need is not None and need.reason:
        return f"— {need.reason}"
    return str(candidate.fit)


def _pick_reference(variants: Sequence[Variant]) -> str | None:
    """The label all others are compared with: the usual one, unless the user wants another."""
    if len(variants) < 2:
        return None
    labels = [variant.label for variant in variants]
    return st.selectbox(
        "Reference",
        labels,
        index=labels.index(default_reference(variants).label),
        help="Every other variant is compared with it. The most bits is the usual choice. In a run of "
        "several models each has its own for closeness; this one is for everything else.",
    )
