"""Is it real? Whether a smaller variant's win survives its own noise, in words, a picture and a table."""

from typing import Any

import pandas as pd
import streamlit as st

from liob_core.analysis import words
from liob_core.charts.theme import variant_colours
from liob_core.ui import reads
from liob_core.ui.blocks import show_unknown
from liob_core.ui.pictures import draw, show_picture
from liob_core.ui.run_view import RunView
from liob_core.ui.style import current_look
from liob_core.ui.table import Cell, Column, Note, show_table
from liob_core.ui.text import literal

Row = dict[Any, Any]
_TITLE = "Is it real?"
_MOST_NAMES = 5
_LOOKS = {"better": "better", "worse": "worse", "not distinguishable": "same", "not comparable": "unknown"}


def show_is_it_real(view: RunView) -> None:
    """The section: the answer, the flips against the reference's own, what each says, what is missing."""
    st.subheader(_TITLE, anchor=False)
    facts = reads.flips(view.database, view.run_id)
    if facts is None:
        show_unknown(_TITLE, "needs checked answers of two variants; add a suite with checks to a benchmark")
        return
    st.markdown(f"**{literal(facts['sentence'])}**")
    told = [facts["noise"], facts["reference_rate"]]
    st.caption(literal("".join(f"{sentence}. " for sentence in told if sentence)))
    (picture,) = draw(view, "flips")
    show_picture(picture, file_stem=view.file_stem)
    _show_table(view.frame("flips"), is_seeded=facts["noise_flips"] is not None)
    if facts["missing"]:
        st.caption(literal(facts["missing"]))
        st.code(facts["command"], language="bash", wrap_lines=True)


def _show_table(table: pd.DataFrame, *, is_seeded: bool) -> None:
    columns = [
        Column(label="Variant", is_number=False),
        Column(label="Lost", hint="Prompts that the reference passed and the variant failed"),
        Column(label="Gained", hint="Prompts that the variant passed and the reference failed"),
        Column(label="McNemar p", hint="Exact and two-sided, corrected for the number of variants (Holm)"),
        *(
            [
                Column(label="Against itself", hint="Prompts that flip between two answers of the variant"),
                Column(
                    label="Over all seeds",
                    hint="Mean pass rate with its interval over prompts; the difference is paired by prompt",
                ),
            ]
            if is_seeded
            else []
        ),
        Column(label="What that says", is_number=False),
    ]
    # The table goes from many bits to few and leaves the reference out.
    colours = variant_colours([str(label) for label in table["variant"]], None, current_look())
    rows = [_row(row, colours[str(row["variant"])], is_seeded=is_seeded) for row in table.to_dict("records")]
    show_table(columns, rows, caption="Flips per variant")


def _row(row: Row, colour: str, *, is_seeded: bool) -> list[Cell]:
    look = _LOOKS.get(row["seed_verdict"] if is_seeded else row["verdict"], "unknown")
    p_value: str = words.UNKNOWN if pd.isna(row["p_holm"]) else f"{row['p_holm']:.3f}"
    cells = [
        Cell(text=str(row["variant"]), swatch=colour),
        Cell(text=str(row["n_lost"]), hint=row["lost_prompts"]),
        Cell(text=str(row["n_gained"]), hint=row["gained_prompts"]),
        Cell(text=p_value, notes=(Note(f"n = {row['n']}"),)),
    ]
    if is_seeded:
        own: str = words.UNKNOWN if pd.isna(row["own_flips"]) else words.three_digits(row["own_flips"])
        cells += [Cell(text=own), _over_seeds(row)]
    verdict = row["seed_verdict"] if is_seeded else row["verdict"]
    said = verdict if isinstance(verdict, str) else "no verdict"
    notes = [Note(said, look), Note(row["sentence"])]
    notes += [
        Note(f"{direction.capitalize()}: {_names(row[f'{direction}_prompts'])}")
        for direction in ("lost", "gained")
        if row[f"{direction}_prompts"]
    ]
    return [*cells, Cell(text="", notes=tuple(notes))]


def _over_seeds(row: Row) -> Cell:
    if pd.isna(row["seed_estimate"]):
        return Cell(text=words.UNKNOWN, hint="no prompt was checked for both")
    between = "no interval"
    if not pd.isna(row["seed_low"]):
        between = f"{100 * row['seed_low']:+.1f} to {100 * row['seed_high']:+.1f}"
    rate = f"{words.percent(row['seed_rate_low'])} to {words.percent(row['seed_rate_high'])}"
    change = f"{100 * row['seed_estimate']:+.1f} points ({between})"
    return Cell(text=words.percent(row["seed_rate"]), notes=(Note(rate), Note(change)))


def _names(prompts: str) -> str:
    """The first prompts by name; hovering over their number tells the rest."""
    names = prompts.split(", ")
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"
