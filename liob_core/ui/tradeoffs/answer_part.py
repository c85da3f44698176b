"""What the limits lead to: the evidence of each variant, and the command that uses the pick."""

import math
from collections.abc import Mapping
from typing import Any

import streamlit as st

from liob_core.analysis import words
from liob_core.analysis.closeness import at_most_higher
from liob_core.analysis.limits import MET, MISSED, NOT_TRIED, UNKNOWN
from liob_core.metrics import METRICS
from liob_core.ui.table import Cell, Column, Note, show_table
from liob_core.ui.text import literal

_LOOKS = {MET: "better", MISSED: "worse", UNKNOWN: "unknown", NOT_TRIED: "same"}
_HEADS = {"speed": "Decode rate", "memory": "Peak memory", "energy": "Energy", "loss": "Loss"}

Found = Mapping[str, Any]  # a Recommendation as a dict


def show_evidence(found: Found, swatches: Mapping[str, str]) -> None:
    """One row a variant, in the order tried, and a column for each limit with its verdict."""
    limits = list(dict.fromkeys(one["limit"] for row in found["candidates"] for one in row["evidence"]))
    columns = [Column(label="Variant", is_number=False)]
    columns += [Column(label=_HEADS[limit], hint=_hint(found, limit), is_number=False) for limit in limits]
    rows = [
        [_name(row, found, swatches), *(_cell(row, limit) for limit in limits)] for row in found["candidates"]
    ]
    show_table(columns, rows, caption="Each variant and each limit")


def show_use(found: Found) -> None:
    """How to run the pick, or what would be nearest."""
    if found["runner_up"]:
        st.markdown(f"Runner-up: **{literal(found['runner_up'])}**, which meets every limit too.")
    for note in found["notes"]:
        st.markdown(literal(note))
    if found["command"]:
        st.markdown(f"Use {literal(found['pick'])}:")
        st.code(found["command"], language=None, wrap_lines=True)


def _name(row: Mapping[str, Any], found: Found, swatches: Mapping[str, str]) -> Cell:
    marks = {"pick": "pick", "runner_up": "runner-up", "nearest": "nearest"}
    notes = [Note(word) for name, word in marks.items() if found[name] == row["variant"]]
    notes += [Note("reference")] if row["is_reference"] else []
    notes += [Note(row["model"])] if row["model"] else []
    return Cell(
        text=row["variant"],
        notes=tuple(notes),
        swatch=swatches.get(row["variant"], ""),
        diamond=bool(row["is_reference"]),
    )


def _cell(row: Mapping[str, Any], limit: str) -> Cell:
    own = [one for one in row["evidence"] if one["limit"] == limit]
    notes = [
        note for one in own for note in (Note(_company(one)), Note(one["verdict"], _LOOKS[one["verdict"]]))
    ]
    return Cell(
        text="; ".join(_figure(one) for one in own),
        notes=tuple(note for note in notes if note.text),
        hint="; ".join(one["sentence"] for one in own),
    )


def _figure(one: Mapping[str, Any]) -> str:
    """The figure that counts: for a loss its bound, else the value."""
    if one["verdict"] == NOT_TRIED:
        return words.UNKNOWN
    if one["limit"] != "loss":
        return words.value(one["metric"], one["value"]) if one["value"] is not None else words.UNKNOWN
    if one["bound"] is None:
        return "none" if one["verdict"] == MET else words.UNKNOWN
    if one["metric"] == "ln_ratio":
        return at_most_higher(one["bound"])
    return f"at most {words.at_most_points(one['bound'])}" if one["bound"] > 0 else "nothing"


def _company(one: Mapping[str, Any]) -> str:
    """What stands beside the figure: its interval or its n; where there is no figure, why."""
    if one["value"] is None or one["verdict"] in (NOT_TRIED, UNKNOWN):
        return str(one["sentence"]).rpartition(": ")[2]
    if one["limit"] in ("speed", "energy"):
        return words.interval(one["metric"], one["low"], one["high"]) or "one block, no interval"
    if one["limit"] == "loss":
        unit = "windows" if one["metric"] == "ln_ratio" else "prompts"
        more = str(one["sentence"]).partition("; ")[2]
        return f"on {one['n']} {unit} (95 %)" + (f"; {more}" if more else "")
    return "highest of all loads"


def _hint(found: Found, limit: str) -> str:
    asked = found["limits"]
    if limit == "loss":
        rise = words.percent(math.expm1(asked["max_ln_ratio"]))
        points = words.at_most_points(asked["max_loss"])
        return f"At most {points} of checks, or {rise} of perplexity where closeness decides (95 % bound)."
    return {
        "speed": f"{METRICS['decode_tps'].explanation} The lower end of the interval must reach the limit.",
        "memory": METRICS["peak_memory_bytes"].explanation,
        "energy": f"{METRICS['j_per_output_token'].explanation} The upper end must stay below the limit.",
    }[limit]
