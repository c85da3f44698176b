"""What the variants said, prompt by prompt, those with the most disagreement first and open."""

from pathlib import Path
from typing import Any

from liob_core.analysis.answers import PromptFacts, answers, left_out, prompt_facts, prompts
from liob_core.charts.theme import LIGHT, variant_colours
from liob_core.rendering.answer import body_html, head_html, text_of
from liob_core.rendering.text import as_html

MOST_PROMPTS = 300
_N_OPEN = 3
_LONGEST_QUESTION = 110


def answers_html(db: Path, run_id: str) -> str:
    """Every prompt with the answers to it side by side, the reference first; at most MOST_PROMPTS."""
    asked = prompts(db, run_id)
    if asked.empty:
        return '<p class="quiet">This run asked no prompts.</p>'
    missing = left_out(db, run_id)
    if missing:
        told = f"{len(asked)} prompts were answered; the {missing} were left out before this run came here."
        return f'<p class="quiet">{as_html(told)}</p>'
    shown = asked.head(MOST_PROMPTS)
    parts = [
        _prompt_html(db, run_id, row, is_open=place < _N_OPEN)
        for place, row in enumerate(shown.to_dict("records"))
    ]
    n = f"{len(shown)} prompts" if len(shown) == len(asked) else f"{len(shown)} of {len(asked)} prompts"
    note = f"{n}, those with the most disagreement first. Marked words differ from the reference's answer."
    return f'<p class="quiet">{note}</p>{"".join(parts)}'


def _prompt_html(db: Path, run_id: str, row: dict[Any, Any], *, is_open: bool) -> str:
    facts = prompt_facts(db, run_id, str(row["prompt_id"]))
    question = " ".join(text_of(row["question"]).split())[:_LONGEST_QUESTION]
    flips, other = int(row["n_flips"]), int(row["n_other_text"])
    told = f"{flips} checked otherwise" if flips else f"{other} worded otherwise" if other else "all the same"
    return (
        f"<details{' open' if is_open else ''}><summary>{as_html(facts.prompt_id)} · {told} · "
        f"{as_html(question)}</summary>{_turns_html(facts)}"
        f'<div class="answers">{_columns_html(db, run_id, facts.prompt_id)}</div></details>'
    )


def _turns_html(facts: PromptFacts) -> str:
    turns = "".join(
        f'<div class="liob-turn"><span>{as_html(role)}</span>'
        f'<div class="liob-text">{as_html(text)}</div></div>'
        for role, text in facts.turns
    )
    check = f"Check: {facts.check_kind} {facts.check_params or ''}" if facts.check_kind else "No check"
    line = " · ".join(part for part in (facts.category, check) if part)
    return f'{turns}<p class="quiet">{as_html(line)}</p>'


def _columns_html(db: Path, run_id: str, prompt_id: str) -> str:
    frame = answers(db, run_id, prompt_id)
    rows = frame.to_dict("records")
    reference = next((row for row in rows if row["is_reference"]), None)
    ladder = frame.sort_values("bpw", ascending=False, kind="stable", na_position="last")
    name = str(reference["variant"]) if reference else None
    colours = variant_colours([str(label) for label in ladder["variant"]], name, LIGHT)
    said = text_of(reference["response"]) if reference else ""
    return "".join(
        f"<div>{head_html(row, colours[str(row['variant'])])}{body_html(row, said)}"
        f"{_thinking_html(row)}</div>"
        for row in rows
    )


def _thinking_html(row: dict[Any, Any]) -> str:
    thinking = text_of(row["thinking"])
    if not thinking.strip():
        return ""
    return f'<details><summary>Thinking</summary><div class="liob-text">{as_html(thinking)}</div></details>'
