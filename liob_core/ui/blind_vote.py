"""A blind vote: two answers to one prompt without names, in random order; whose they are is told afterwards.

Until then nothing that is sent to the browser tells them apart: no label, colour, check, cost or mark, and
the two are drawn by a generator that nobody can foretell.
"""

import secrets
from typing import Any

import pandas as pd
import streamlit as st

from liob_core.analysis import words
from liob_core.bench.voting import cast_vote
from liob_core.config import load_settings
from liob_core.errors import LiobError
from liob_core.quality.judge.people import BlindPair, Choice
from liob_core.rendering.answer import text_of
from liob_core.rendering.text import as_html, markdown_html
from liob_core.ui import reads
from liob_core.ui.answer_columns import show_thinking, show_turns
from liob_core.ui.blocks import show_unknown
from liob_core.ui.guard import guarded
from liob_core.ui.run_view import RunView
from liob_core.ui.table import Cell, Column, Note, show_table
from liob_core.ui.text import literal

Row = dict[Any, Any]
_ANY, _REFERENCE = "any two variants", "the reference and another variant"
# In session_state: the pair on show, what was just said of it, and the pairs done since the page was loaded.
_PAIR, _SAID, _DONE = "liob_vote_pair", "liob_vote_said", "liob_vote_done"
_REFUSED = "liob_vote_refused"
# Digits, since arrow keys move within whatever control has the focus.
_BUTTONS = (
    (Choice.LEFT, "Left is better", ":material/arrow_back:", "1"),
    (Choice.TIE, "Tie", ":material/drag_handle:", "t"),
    (Choice.BOTH_BAD, "Both bad", ":material/thumb_down:", "b"),
    (Choice.SKIP, "Skip", ":material/skip_next:", "s"),
    (Choice.RIGHT, "Right is better", ":material/arrow_forward:", "2"),
)
_LOOKS = {"better": "better", "worse": "worse", "not distinguishable": "same"}
_SAID_WORDS = {
    Choice.LEFT: "You preferred the left one",
    Choice.RIGHT: "You preferred the right one",
    Choice.TIE: "You called it a tie",
    Choice.BOTH_BAD: "You called both bad, which counts as a tie",
    Choice.SKIP: "You skipped it; it comes again after the others",
}


def show_blind_vote(view: RunView) -> None:
    """The vote, and what the votes so far say, folded so that it sways nobody."""
    pairs = view.frame("vote_pairs")
    votable = pairs[~pairs["is_same_text"]] if not pairs.empty else pairs
    if votable.empty:
        show_unknown("Nothing to vote on", "no two variants gave whole answers with different texts")
        return
    by_name = {f"{base} and {variant}": (base, variant) for base, variant in _pairs_of(votable)}
    chosen = st.selectbox("Compare", [_REFERENCE, _ANY, *by_name], key="liob_vote_which")
    if chosen == _REFERENCE:
        votable = votable[votable["has_reference"]]
    elif chosen in by_name:
        base, variant = by_name[chosen]
        votable = votable[(votable["base"] == base) & (votable["variant"] == variant)]
    _vote(view, votable.drop(columns=["result", "reason", "vote"]))
    with st.expander("What the votes say so far", icon=":material/how_to_vote:"):
        # Outside of the fragment: the whole page is drawn anew, which has new votes stored first.
        st.button("Count new votes", icon=":material/refresh:", key="liob_vote_count")
        _show_results(view.frame("vote_results"))


def _pairs_of(pairs: pd.DataFrame) -> list[tuple[str, str]]:
    return list(dict.fromkeys(zip(pairs["base"], pairs["variant"], strict=True)))


@st.fragment
@guarded
def _vote(view: RunView, pairs: pd.DataFrame) -> None:
    """One pair: to vote on, or just voted on and named."""
    if _REFUSED in st.session_state:
        st.error(literal(st.session_state.pop(_REFUSED)), icon=":material/error:")
    said = st.session_state.get(_SAID)
    if said is not None and said["run_id"] == view.run_id:
        _show_reveal(view, said)
        return
    pair = _pair_on_show(view.run_id, pairs)
    if pair is None:
        st.success("There is a vote on every pair.", icon=":material/check_circle:")
        return
    _show_pair(view, pair, heads=("Left", "Right"))
    with st.container(horizontal=True, horizontal_alignment="center"):
        for choice, label, icon, shortcut in _BUTTONS:
            key = f"liob_vote_{choice.name.lower()}"
            st.button(label, icon=icon, shortcut=shortcut, key=key, on_click=_cast, args=(pair, choice))


def _pair_on_show(run_id: str, pairs: pd.DataFrame) -> BlindPair | None:
    """The pair that is on show, else one drawn from those without a vote, skipped ones last."""
    done = st.session_state.setdefault(_DONE, {})
    open_pairs = [
        row
        for row in pairs.to_dict("records")
        if done.get(_key(row), row["state"] if isinstance(row["state"], str) else "") != "scored"
    ]
    kept = st.session_state.get(_PAIR)
    if kept is not None and any(_key(row) == _key(kept) for row in open_pairs):
        return BlindPair(**kept)
    fresh = [row for row in open_pairs if done.get(_key(row), row["state"]) != "refused"]
    candidates = fresh or open_pairs
    if not candidates:
        return None
    row = secrets.choice(candidates)
    names = ("prompt_id", "variant", "sample_id", "base", "base_sample_id")
    drawn = {name: str(row[name]) for name in names} | {"run_id": run_id}
    st.session_state[_PAIR] = {**drawn, "is_base_left": bool(secrets.randbelow(2))}
    return BlindPair(**st.session_state[_PAIR])


def _key(row: Row) -> str:
    return f"{row['sample_id']}|{row['base_sample_id']}"


def _cast(pair: BlindPair, choice: Choice) -> None:
    """Store the vote, so that whose answers they were is shown; a refusal becomes a sentence."""
    kept = st.session_state.pop(_PAIR)
    try:
        vote = cast_vote(pair, choice, load_settings())
    except LiobError as error:
        st.session_state[_REFUSED] = str(error)
        return
    st.session_state[_DONE][_key(kept)] = vote.state.value
    st.session_state[_SAID] = {**kept, "choice": choice.value}


def _go_on() -> None:
    del st.session_state[_SAID]


def _show_reveal(view: RunView, said: Row) -> None:
    choice = Choice(said["choice"])
    pair = BlindPair(**{name: value for name, value in said.items() if name != "choice"})
    left, right = (pair.base, pair.variant) if pair.is_base_left else (pair.variant, pair.base)
    st.markdown(f"**{_SAID_WORDS[choice]}.** Left: {literal(left)}. Right: {literal(right)}.")
    icon = ":material/arrow_forward:"
    st.button("Next", type="primary", icon=icon, shortcut="n", key="liob_vote_next", on_click=_go_on)
    _show_pair(view, pair, heads=(left, right))


def _show_pair(view: RunView, pair: BlindPair, *, heads: tuple[str, str]) -> None:
    show_turns(reads.prompt(view.database, view.run_id, pair.prompt_id).turns)
    is_rendered = st.toggle("Render Markdown", key="liob_vote_markdown")
    answers = view.frame("answers", pair.prompt_id)
    by_variant = {str(row["variant"]): row for row in answers.to_dict("records")}
    order = (pair.base, pair.variant) if pair.is_base_left else (pair.variant, pair.base)
    for column, head, variant in zip(st.columns(2, gap="medium"), heads, order, strict=True):
        row = by_variant[variant]
        text = text_of(row["response"])
        body = markdown_html(text) if is_rendered else as_html(text)
        kind = "liob-text rendered" if is_rendered else "liob-text"
        with column:
            st.html(f'<div class="liob-answer"><div class="name">{as_html(head)}</div></div>')
            st.html(f'<div class="{kind}" tabindex="0">{body}</div>')
            show_thinking(text_of(row["thinking"]))


def _show_results(results: pd.DataFrame) -> None:
    """One row a pair of variants; nothing but a sentence before the first vote."""
    if results.empty:
        st.caption("No vote yet.")
        return
    columns = [
        Column(label="Pair", is_number=False),
        Column(label="Preferred", hint="Votes for either; ties are votes too, skipped pairs are not"),
        Column(label="Share of wins", hint="Wins / decided votes, with its 95 % Wilson interval"),
        Column(label="Sign test p", hint="Exact and two-sided, corrected for the number of pairs (Holm)"),
        Column(label="Left chosen", hint="Decided votes for the answer on the left: about half is fair"),
        Column(label="Verdict", is_number=False),
    ]
    rows = [_result_row(row) for row in results.to_dict("records")]
    show_table(columns, rows, caption="Blind votes per pair")


def _result_row(row: Row) -> list[Cell]:
    decided = row["n_wins"] + row["n_losses"]
    share, between = words.UNKNOWN, "no decided vote"
    if decided:
        share = f"{row['variant']} {words.percent(row['win_share'])}"
        between = f"{words.percent(row['ci_low'])} to {words.percent(row['ci_high'])}"
    look = _LOOKS.get(row["verdict"], "unknown")
    aside = f"{row['n_ties']} ties ({row['n_both_bad']} both bad), {row['n_skipped']} skipped"
    return [
        Cell(text=f"{row['variant']} against {row['base']}", notes=(Note(f"n = {row['n_votes']}"),)),
        Cell(text=f"{row['n_wins']} to {row['n_losses']}", notes=(Note(aside),)),
        Cell(text=share, notes=(Note(between),)),
        Cell(text=words.UNKNOWN if pd.isna(row["p_holm"]) else f"{row['p_holm']:.3f}"),
        Cell(text=f"{row['n_left']} of {decided}"),
        Cell(text="", notes=(Note(row["words"], look),)),
    ]
