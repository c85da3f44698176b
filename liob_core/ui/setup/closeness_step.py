"""What task closeness is asked for: text, windows, when to stop, and types of KV cache to compare."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from liob_core.bench.closeness import make_ask
from liob_core.config import Settings
from liob_core.errors import LiobError
from liob_core.models.memory import memory_need
from liob_core.models.variant import order_by_bits, unique_labels, variant_key
from liob_core.quality.closeness.corpora import BUNDLED, WIKITEXT
from liob_core.types import ClosenessAsk, LoadSettings, Variant
from liob_core.ui.guard import show_error
from liob_core.ui.setup.limits_step import KV_KEY, KV_TYPES

_OWN_TEXT = "a file of mine"
_TEXTS = {BUNDLED: "Bundled book (English, 1892)", WIKITEXT: "WikiText-2, 0.7 MB from the Hub"}
_CACHES = "liob_new_caches"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosenessChoice:
    """What is asked of the task, None where it is left out or has no text, and the caches to compare."""

    ask: ClosenessAsk | None = None
    kv_types: tuple[str, ...] = ()


def pick_closeness(settings: Settings) -> ClosenessChoice:
    """The text and the windows of the task closeness, when it ends early, and the types of cache."""
    left, middle, right = st.columns(3)
    chosen = left.selectbox(
        "Text",
        [*_TEXTS, _OWN_TEXT],
        format_func=lambda name: _TEXTS.get(name, name.capitalize()),
        key="liob_new_text",
        help="Closeness is closeness on this text: for code or another language take a file of that kind.",
    )
    n_ctx = middle.number_input("Window, tokens", 32, 1_000_000, 512, step=128, key="liob_new_window")
    n_windows = right.number_input(
        "Windows",
        0,
        100_000,
        32,
        key="liob_new_windows",
        help="Spread over the text; below 8 no verdict, 0 takes all there are.",
    )
    name = chosen
    if chosen == _OWN_TEXT:
        name = st.text_input("Its path", key="liob_new_text_path", placeholder="/home/me/notes.txt").strip()
    narrow, wide = st.columns([1, 2])
    with narrow:
        stop_at = _pick_stop()
    with wide:
        kv_types = _pick_caches()
    try:
        with st.spinner("Reading the text"):
            ask = _ask(name, settings, n_ctx, n_windows, stop_at) if name else None
    except LiobError as error:
        show_error(error)
        ask = None
    return ClosenessChoice(ask=ask, kv_types=kv_types)


def with_caches(variants: Sequence[Variant], kv_types: Sequence[str]) -> list[Variant]:
    """Each variant with each type of KV cache, as variants of their own; without types, as they are."""
    if not kv_types:
        return list(variants)
    # A quantized cache needs flash attention, and what else differs between them would be compared too.
    flash_attn = "auto" if set(kv_types) <= {"f16"} else "on"
    made = [_with_cache(variant, kv_type, flash_attn) for variant in variants for kv_type in kv_types]
    return unique_labels(order_by_bits(made))


def reference_name(variants: Sequence[Variant], label: str | None) -> str | None:
    """What a reference is called whatever its cache: its file, since labels change with the caches."""
    return next((variant.engine_model for variant in variants if variant.label == label), label)


def _ask(
    name: str, settings: Settings, n_ctx: int, n_windows: int, stop_half_width: float | None
) -> ClosenessAsk:
    return make_ask(
        name, settings.cache_dir, n_ctx=n_ctx, n_windows=n_windows or None, stop_half_width=stop_half_width
    )


def _pick_stop() -> float | None:
    percent = st.number_input(
        "Stop early at ± % of perplexity",
        0.0,
        50.0,
        0.0,
        step=0.1,
        format="%.1f",
        key="liob_new_stop",
        help="The task ends once the 95 % interval of every variant's perplexity ratio is this narrow to "
        "each side. 0: all windows.",
    )
    return percent / 100 or None


def _pick_caches() -> tuple[str, ...]:
    asked = str(st.session_state.get(KV_KEY, KV_TYPES[0]))
    chosen = st.pills(
        "KV cache, each type a variant of its own",
        KV_TYPES,
        selection_mode="multi",
        default=[asked],
        key=_CACHES,
        help="The same weights with a compressed cache: memory saved, closeness lost. Every other task "
        "measures them too, and the advanced setting below does not count.",
    )
    return tuple(kv_type for kv_type in KV_TYPES if kv_type in chosen)


def _with_cache(variant: Variant, kv_type: str, flash_attn: str) -> Variant:
    settings: LoadSettings = replace(
        variant.load_settings, kv_type_k=kv_type, kv_type_v=kv_type, flash_attn=flash_attn
    )
    if settings == variant.load_settings:
        return variant
    # A file that was not read whole yet is known by its path; its settings tell its variants apart.
    known = variant.weights_sha256 or variant.key
    return replace(
        variant,
        key=variant_key(known, variant.engine, settings),
        load_settings=settings,
        need=memory_need(variant.model, settings) if variant.model else variant.need,
    )
