"""Step 1: the engine and the variants to compare."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st

from liob_core.analysis.words import memory
from liob_core.config import Settings
from liob_core.engines.registry import describe_engines
from liob_core.errors import LiobError
from liob_core.models.memory import available_bytes
from liob_core.types import LoadSettings, Variant
from liob_core.ui.blocks import show_step
from liob_core.ui.guard import show_error
from liob_core.ui.setup.candidates import Candidate, find_candidates
from liob_core.ui.setup.sample_step import offer_sample
from liob_core.ui.text import literal

PATHS_KEY = "liob_new_paths"
_ENGINE_NAMES = {"embedded": "Embedded llama.cpp", "llama-server": "Your llama-server"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is to be compared: the engine, the chosen variants, most bits first, and the reference."""

    engine: str
    url: str | None
    variants: tuple[Variant, ...]
    reference: str | None


def pick_variants(settings: Settings, asked: LoadSettings) -> Choice:
    """The engine and variants chosen, shown with what each needs."""
    with st.container(border=True):
        show_step(1, "What to compare", "an engine and the variants of one model")
        engine, url = _pick_engine()
        paths = _pick_paths(settings)
        if not paths:
            return Choice(engine=engine, url=url, variants=(), reference=None)
        available = available_bytes()
        with st.spinner("Reading the model files"):
            found = find_candidates(paths, engine, asked, available, settings.cache_dir)
        for problem in found.problems:
            st.error(literal(problem), icon=":material/error:")
        chosen = _pick_from_table(found.candidates, available) if found.candidates else []
        reference = _pick_reference(chosen)
        return Choice(engine=engine, url=url, variants=tuple(chosen), reference=reference)


@st.cache_data(ttl=600, max_entries=8, show_spinner="Looking at the engine")
def _engine_states(url: str | None) -> dict[str, tuple[bool, str]]:
    """Availability and sentence of each engine by name; the probe starts a child, so it is kept a while."""
    return {engine.name: (engine.available, engine.sentence) for engine in describe_engines(url=url)}


def _pick_engine() -> tuple[str, str | None]:
    """The engine's name and, for a server of the user's own, its address."""
    names = list(_ENGINE_NAMES)
    engine = st.segmented_control(
        "Engine", names, default=names[0], format_func=_ENGINE_NAMES.__getitem__, key="liob_new_engine"
    )
    engine = engine or names[0]
    url = None
    if engine == "llama-server":
        url = st.text_input("Its address", key="liob_new_url", placeholder="http://127.0.0.1:8080") or None
        if url is None:
            return engine, None
    is_available, sentence = _engine_states(url)[engine]
    icon = ":material/check_circle:" if is_available else ":material/block:"
    st.caption(f"{icon} {literal(sentence)}")
    return engine, url


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
    )
    return [line.strip().strip("'\"") for line in text.splitlines() if line.strip()]


def _pick_from_table(candidates: Sequence[Candidate], available: int) -> list[Variant]:
    """The variants whose boxes are ticked; those that do not fit start without a tick."""
    models = [candidate.variant.model for candidate in candidates]
    needs = [
        candidate.variant.need.need_bytes if candidate.variant.need else None for candidate in candidates
    ]
    frame = pd.DataFrame(
        {
            "use": [candidate.fit != "does not fit" for candidate in candidates],
            "variant": [candidate.variant.label for candidate in candidates],
            "bits": [model.bpw if model else None for model in models],
            "size": [memory(model.file_bytes) if model else None for model in models],
            "need": [need / 2**30 if need is not None else None for need in needs],
            "verdict": [_verdict(candidate) for candidate in candidates],
            "file": [Path(candidate.variant.engine_model).name for candidate in candidates],
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
        "file": st.column_config.TextColumn("File"),
    }
    edited = st.data_editor(
        frame,
        hide_index=True,
        disabled=[name for name in frame.columns if name != "use"],
        column_config=config,
        key="liob_new_table_" + "|".join(frame["file"]),
    )
    for candidate in candidates:
        model = candidate.variant.model
        for warning in (model.label_warning, model.fallback_warning) if model else ():
            if warning:
                st.caption(f":material/warning: {literal(candidate.variant.label)}: {literal(warning)}")
    used = list(edited["use"])
    return [candidate.variant for candidate, use in zip(candidates, used, strict=True) if use]


def _verdict(candidate: Candidate) -> str:
    need = candidate.variant.need
    if candidate.fit == "unknown" and need is not None and need.reason:
        return f"— {need.reason}"
    return str(candidate.fit)


def _pick_reference(variants: Sequence[Variant]) -> str | None:
    """The label all others are compared with: the most bits, unless the user wants another."""
    if len(variants) < 2:
        return None
    labels = [variant.label for variant in variants]
    return st.selectbox(
        "Reference",
        labels,
        help="Every other variant is compared with it. The most bits is the usual choice.",
    )
