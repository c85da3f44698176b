"""Several seeds: each prompt answered more than once, to see what of a difference is chance."""

from dataclasses import dataclass

import streamlit as st

from liob_core.bench.spec import MOST_SEEDS, SEEDS_TEMPERATURE

_SEEDS, _TEMPERATURE = "liob_new_n_seeds", "liob_new_temperature"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedsChoice:
    """Over how many seeds each prompt is repeated, and at which temperature; None: one greedy answer."""

    n_seeds: int = 1
    temperature: float | None = None


def pick_seeds() -> SeedsChoice:
    """The number of seeds and their temperature, told in a line while folded."""
    state = st.session_state
    n_asked = int(state.get(_SEEDS, 1))
    told = "one greedy answer a prompt"
    if n_asked > 1:
        told = f"{n_asked} answers a prompt at temperature {state.get(_TEMPERATURE, SEEDS_TEMPERATURE):g}"
    with st.expander(f"Seeds: {told}", key="liob_new_seeds"):
        left, right = st.columns(2)
        n_seeds = left.number_input(
            "Answers a prompt, each with a seed of its own",
            1,
            MOST_SEEDS,
            1,
            key=_SEEDS,
            help="Shows how often a model flips against itself, and so whether a surprise is real. "
            "The suite takes as many times longer; each seed is a block with a load of its own.",
        )
        temperature = right.number_input(
            "Temperature",
            0.05,
            2.0,
            SEEDS_TEMPERATURE,
            step=0.05,
            key=_TEMPERATURE,
            disabled=n_seeds == 1,
            help="Of several seeds: greedy answers to one prompt are all alike.",
        )
    return SeedsChoice(n_seeds=n_seeds, temperature=temperature if n_seeds > 1 else None)
