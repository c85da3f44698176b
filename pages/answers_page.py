"""Answers: what did they say?"""

import pandas as pd
import streamlit as st

from liob_core.config import load_settings
from liob_core.ui import reads, selection
from liob_core.ui.answer_columns import answer_notes, show_answers, show_turns
from liob_core.ui.blocks import show_empty, show_heading
from liob_core.ui.run_view import RunView, open_run
from liob_core.ui.style import current_look
from liob_core.ui.text import literal, visible

_READ, _VOTE = "Read", "Vote blind"
# The gravest first: a prompt is named after it.
_DISAGREEMENT = {
    "n_flips": "checked otherwise",
    "n_judged_otherwise": "judged otherwise",
    "n_other_text": "worded otherwise",
}


def show() -> None:
    """One prompt and every variant's answer to it; or two answers without names, to vote on."""
    view = open_run("What did they say?")
    if view is None:
        return
    show_heading(view.kicker, "What did they say?")
    prompts = view.frame("prompts")
    if prompts.empty:
        show_empty("This run asked no prompts", "Add a suite to a new benchmark to read the answers here.")
        return
    if _pick_mode(view) == _VOTE:
        from liob_core.ui.blind_vote import show_blind_vote  # noqa: PLC0415 - no bench in a hosted app

        show_blind_vote(view)
        return
    prompt_id = _pick_prompt(prompts, is_compared=view.facts.n_variants > 1)
    _show_prompt(view, prompt_id)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        seed = _pick_seed(view, prompt_id)
        is_rendered = st.toggle(
            "Render Markdown",
            key="liob_answers_markdown",
            help="Off: the text as it was written, with what differs from the reference marked. Links and "
            "pictures are never followed.",
        )
    answers = view.frame("answers", prompt_id) if seed is None else view.frame("answers", prompt_id, seed)
    notes = answer_notes(answers, view.frame("opinions", prompt_id), view.frame("answer_seeds", prompt_id))
    show_answers(answers, current_look(), is_rendered=is_rendered, notes=notes)


def _pick_mode(view: RunView) -> str:
    """Reading, or voting where votes can be kept: not in a hosted app, not on the sample."""
    if load_settings().share is not None or view.is_sample:
        return _READ
    chosen = st.segmented_control(
        "Answers",
        [_READ, _VOTE],
        default=_READ,
        key="liob_answers_mode",
        label_visibility="collapsed",
        help="Two answers side by side without names: say which is better, then see whose they are.",
    )
    return chosen or _READ


def _pick_prompt(prompts: pd.DataFrame, *, is_compared: bool) -> str:
    """The prompt in the address, else the one with the most disagreement; one variant alone has none."""
    names = {str(row["prompt_id"]): _name(row, is_compared=is_compared) for row in prompts.to_dict("records")}
    label = "Prompt, those with the most disagreement first" if is_compared else "Prompt"
    return selection.pick("prompt", label, names)


def _pick_seed(view: RunView, prompt_id: str) -> int | None:
    """The seed whose answers are shown; None where the prompt was answered with one."""
    seeds = [str(seed) for seed in view.frame("prompt_seeds", prompt_id)["seed"]]
    if len(seeds) < 2:
        return None
    names = {seed: f"Seed {seed}" for seed in seeds} | {seeds[0]: f"Seed {seeds[0]}, graded"}
    return int(selection.pick("seed", "Answers with", names))


def _name(row: dict[object, object], *, is_compared: bool) -> str:
    told = "all the same" if is_compared else ""
    for column, words in _DISAGREEMENT.items():
        count = int(str(row[column]))
        if count:
            told = f"{count} {words}"
            break
    question = " ".join(visible(str(row["question"] or "")).split())
    return " · ".join(part for part in (str(row["prompt_id"]), told, question[:90]) if part)


def _show_prompt(view: RunView, prompt_id: str) -> None:
    facts = reads.prompt(view.database, view.run_id, prompt_id)
    show_turns(facts.turns)
    checked = f"Check: {facts.check_kind} {facts.check_params or ''}" if facts.check_kind else "No check"
    sent = "" if facts.templated is not False else " · sent as plain text: the reference has no template"
    st.caption(literal(f"{facts.category or ''} · {checked}{sent}"))
