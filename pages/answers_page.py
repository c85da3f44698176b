"""Answers: what did they say?"""

import pandas as pd
import streamlit as st

from liob_core.ui import reads, selection
from liob_core.ui.answer_columns import show_answers
from liob_core.ui.blocks import show_empty, show_heading
from liob_core.ui.run_view import RunView, open_run
from liob_core.ui.style import current_look
from liob_core.ui.text import as_html, literal, visible


def show() -> None:
    """One prompt and every variant's answer to it."""
    view = open_run("What did they say?")
    if view is None:
        return
    show_heading(view.kicker, "What did they say?")
    prompts = view.frame("prompts")
    if prompts.empty:
        show_empty("This run asked no prompts", "Add a suite to a new benchmark to read the answers here.")
        return
    prompt_id = _pick_prompt(prompts)
    _show_prompt(view, prompt_id)
    is_rendered = st.toggle(
        "Render Markdown",
        key="liob_answers_markdown",
        help="Off: the text as it was written, with what differs from the reference marked. Links and "
        "pictures are never followed.",
    )
    show_answers(view.frame("answers", prompt_id), current_look(), is_rendered=is_rendered)


def _pick_prompt(prompts: pd.DataFrame) -> str:
    """The prompt in the address, else the one with the most disagreement."""
    names = {str(row["prompt_id"]): _name(row) for row in prompts.to_dict("records")}
    return selection.pick("prompt", "Prompt, those with the most disagreement first", names)


def _name(row: dict[object, object]) -> str:
    flips, other = int(str(row["n_flips"])), int(str(row["n_other_text"]))
    told = f"{flips} checked otherwise" if flips else f"{other} worded otherwise" if other else "all the same"
    question = " ".join(visible(str(row["question"] or "")).split())
    return f"{row['prompt_id']} · {told} · {question[:90]}"


def _show_prompt(view: RunView, prompt_id: str) -> None:
    facts = reads.prompt(view.database, view.run_id, prompt_id)
    for role, text in facts.turns:
        st.html(
            f'<div class="liob-turn"><span>{as_html(role)}</span>'
            f'<div class="liob-text">{as_html(text)}</div></div>'
        )
    checked = f"Check: {facts.check_kind} {facts.check_params or ''}" if facts.check_kind else "No check"
    sent = "" if facts.templated is not False else " · sent as plain text: the reference has no template"
    st.caption(literal(f"{facts.category or ''} · {checked}{sent}"))
