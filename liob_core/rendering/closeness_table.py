"""The table of closeness: each mean with both of its errors, and what may be said of it."""

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from liob_core.analysis import words
from liob_core.analysis.cache_costs import cache_type
from liob_core.charts.theme import Look, variant_colours
from liob_core.metrics import METRICS
from liob_core.rendering.table import Cell, Column, Note

Row = dict[Any, Any]
_LOOKS = {"better": "better", "worse": "worse", "not distinguishable": "same"}
TWO_ERRORS = (
    "The first error is clustered by window and counts for verdicts; the one in brackets takes tokens as "
    "independent, as llama.cpp's own tool prints it."
)


def closeness_columns(table: pd.DataFrame) -> list[Column]:
    """The headings, with the metrics' explanations and formulas."""
    return [
        Column(label="Variant", is_number=False),
        Column(label="True bits", hint=METRICS["bpw"].explanation),
        *(
            [Column(label="KV cache", hint="Its type, and the memory predicted for it")]
            if _has_caches(table)
            else []
        ),
        _column("ppl", "Perplexity"),
        _column("ln_ratio", "ln PPL ratio"),
        _column("kld_mean", "KLD, nats"),
        Column(label="KLD tail", hint="The divergence that 99 % of the tokens stay below, and the largest"),
        _column("same_top", "Same top"),
        Column(label="Change of p", hint="Mean and RMS change of the correct token's probability"),
        Column(label="Prefill, tok/s", hint="Of these very passes at this window size"),
    ]


def closeness_rows(table: pd.DataFrame, look: Look) -> list[Sequence[Cell]]:
    """One row a variant of `analysis.closeness.closeness_table`, the reference first."""
    rows = table.to_dict("records")
    ladder = table.sort_values("bpw", ascending=False, kind="stable", na_position="last")
    reference = next((str(row["variant"]) for row in rows if row["is_reference"]), None)
    colours = variant_colours([str(label) for label in ladder["variant"]], reference, look)
    return [_row(row, colours[row["variant"]], has_caches=_has_caches(table)) for row in rows]


def _has_caches(table: pd.DataFrame) -> bool:
    return bool(table["kv_type_k"].nunique() > 1 or table["kv_type_v"].nunique() > 1)


def _column(metric: str, label: str) -> Column:
    known = METRICS[metric]
    return Column(label=label, hint=f"{known.label}: {known.explanation} Formula: {known.formula}")


def _row(row: Row, colour: str, *, has_caches: bool) -> list[Cell]:
    is_reference = bool(row["is_reference"])
    notes = [Note("reference")] if is_reference else []
    if row["ending"] not in {"done", "stopped"}:
        notes.append(Note(str(row["ending"]), "worse"))
    first = Cell(
        text=row["variant"],
        notes=tuple(notes),
        hint=row["reason"] if isinstance(row["reason"], str) else "",
        swatch=colour,
        diamond=is_reference,
    )
    bits = Cell(text=words.UNKNOWN if pd.isna(row["bpw"]) else f"{row['bpw']:.2f}")
    verdict = Note(row["words"], _LOOKS.get(row["verdict"], "")) if not is_reference else None
    return [
        first,
        bits,
        *([_cache(row)] if has_caches else []),
        _estimate(row, "ppl", "ppl"),
        _estimate(row, "ln_ratio", "ln_ratio", verdict),
        _estimate(row, "kld_mean", "kld"),
        _pair(row, "kld_p99", "kld_max", "99 %", "largest"),
        _estimate(row, "same_top", "same_top", is_share=True),
        _pair(row, "delta_p_mean", "delta_p_rms", "mean", "RMS", is_share=True),
        _rate(row),
    ]


def _rate(row: Row) -> Cell:
    if pd.isna(row["prefill_tps"]):
        return Cell(text=words.UNKNOWN, hint=_why(row, "prefill_tps"))
    return Cell(text=words.three_digits(row["prefill_tps"]), hint=f"{row['prefill_tps']!r}")


def _cache(row: Row) -> Cell:
    return Cell(text=cache_type(row), notes=(Note(words.memory(row["need_kv_bytes"])),))


def _estimate(
    row: Row, metric: str, error: str, verdict: Note | None = None, *, is_share: bool = False
) -> Cell:
    """A mean, both of its errors under it, and what may be said of it."""
    value = row[metric]
    if pd.isna(value):
        return Cell(text=words.UNKNOWN, hint=_why(row, metric))
    shown = _percent if is_share else words.three_digits
    clustered, iid = row[f"{error}_se"], row[f"{error}_se_iid"]
    errors = f"± {shown(clustered)} ({shown(iid)})" if not pd.isna(clustered) else f"± — ({shown(iid)})"
    notes = (Note(errors), verdict) if verdict is not None else (Note(errors),)
    return Cell(text=shown(value), notes=notes, hint=f"{value!r} ({metric})")


def _pair(row: Row, first: str, second: str, name: str, other: str, *, is_share: bool = False) -> Cell:
    if pd.isna(row[second]):
        return Cell(text=words.UNKNOWN, hint=_why(row, second))
    shown = _percent if is_share else words.three_digits
    hint = f"{name} {row[first]!r}, {other} {row[second]!r}"
    return Cell(text=shown(row[first]), notes=(Note(f"{other} {shown(row[second])}"),), hint=hint)


def _percent(share: float) -> str:
    return words.UNKNOWN if pd.isna(share) else f"{share * 100:.2f} %"


def _why(row: Row, metric: str) -> str:
    """Why a figure is unknown, as it was stored."""
    reasons = json.loads(row["unknown"]) if isinstance(row["unknown"], str) else {}
    reason = reasons.get(metric) or row["reason"]
    return reason if isinstance(reason, str) else "not measured"
