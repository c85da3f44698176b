"""Step 3: limits, and the settings that only some people change."""

from dataclasses import dataclass

import psutil
import streamlit as st

from liob_core.bench.spec import DEFAULT_CTX, DEFAULT_MAX_TOKENS, default_threads
from liob_core.config import Settings
from liob_core.types import LoadSettings
from liob_core.ui.blocks import show_step
from liob_core.ui.setup.seeds_step import SeedsChoice, pick_seeds

_CTX, _THREADS, KV_KEY, _MMAP = "liob_new_ctx", "liob_new_threads", "liob_new_kv", "liob_new_mmap"
KV_TYPES = ("f16", "q8_0", "q4_0")
_MODE = "liob_new_prompt_mode"
_GPU = "liob_new_gpu_layers"
_PROMPTS = {
    "reference": "One template for all",
    "own": "Each file's own template",
    "engine": "Each engine's own template",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """How long an answer may be, the sampler's seed, and whose chat template renders the prompts."""

    max_tokens: int
    seed: int
    prompt_mode: str
    seeds: SeedsChoice


def load_settings_asked(settings: Settings) -> LoadSettings:
    """The load settings as the fields of step 3 stand, which are drawn after step 1 needs them."""
    state = st.session_state
    kv_type = str(state.get(KV_KEY, KV_TYPES[0]))
    return LoadSettings(
        n_ctx=int(state.get(_CTX, DEFAULT_CTX)),
        threads=int(state.get(_THREADS, settings.threads or default_threads())),
        gpu_layers=state.get(_GPU),
        kv_type_k=kv_type,
        kv_type_v=kv_type,
        flash_attn="auto" if kv_type == "f16" else "on",
        load_mode="mmap" if state.get(_MMAP, False) else "none",
    )


def pick_limits(settings: Settings) -> RunLimits:
    """The limits chosen; the advanced ones are told in a line while folded."""
    with st.container(border=True):
        show_step(3, "How far to go", "limits of each request")
        tokens, context, threads = st.columns(3)
        max_tokens = tokens.number_input(
            "Longest answer, tokens", 1, 1_000_000, DEFAULT_MAX_TOKENS, step=128, key="liob_new_max_tokens"
        )
        context.number_input("Context, tokens", 256, 10_000_000, DEFAULT_CTX, step=1024, key=_CTX)
        cores = psutil.cpu_count() or 1
        threads.number_input(
            f"Threads (of {cores})", 1, 1024, settings.threads or default_threads(), key=_THREADS
        )
        seed, prompt_mode = _pick_advanced()
        return RunLimits(max_tokens=max_tokens, seed=seed, prompt_mode=prompt_mode, seeds=pick_seeds())


def _pick_advanced() -> tuple[int, str]:
    state = st.session_state
    values = (
        f"KV cache {state.get(KV_KEY, 'f16')} · seed {state.get('liob_new_seed', 1)} · "
        f"GPU layers {'automatic' if state.get(_GPU) is None else state[_GPU]} · "
        f"{'mapped file' if state.get(_MMAP) else 'weights read into memory'} · "
        f"{_PROMPTS[state.get(_MODE, 'reference')].lower()}"
    )
    with st.expander(f"Advanced: {values}", key="liob_new_advanced"):
        left, right = st.columns(2)
        left.selectbox("KV cache type", KV_TYPES, key=KV_KEY, help="A smaller type is another variant.")
        seed = right.number_input("Seed", 0, 2**32 - 2, 1, key="liob_new_seed")
        st.number_input(
            "Layers on the GPU",
            0,
            9999,
            None,
            key=_GPU,
            placeholder="automatic",
            help="Empty: as many as there is room for. 0: the processor alone. Results say what was used.",
        )
        st.toggle("Map the file instead of reading it into memory", key=_MMAP)
        mode = st.selectbox(
            "Prompts",
            list(_PROMPTS),
            format_func=_PROMPTS.__getitem__,
            key=_MODE,
            help="One template: every variant gets the same bytes. The others show what a difference in "
            "templates does, and their answers are not comparable word by word.",
        )
    return seed, mode
