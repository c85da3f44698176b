"""The table that people expect: one row a variant, the reference first, every number with its company."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from liob_core.analysis import words
from liob_core.charts.pictures import NOT_MEASURED
from liob_core.charts.theme import Look, variant_colours
from liob_core.metrics import METRICS
from liob_core.monitor.energy import SCOPES
from liob_core.rendering.table import Cell, Column, Note

Row = Mapping[Any, Any]
_LOOKS = {"better": "better", "worse": "worse", "not distinguishable": "same", "not comparable": "unknown"}


@dataclass(frozen=True, slots=True)
class Measure:
    """One numeric column: the metric's column, its delta's column, and a shorter heading where needed."""

    metric: str
    delta: str | None = None
    label: str = ""


MEASURES = (
    Measure("decode_tps", "decode_tps", "Decode, tok/s"),
    Measure("prefill_tps", "prefill_tps", "Prefill, tok/s"),
    Measure("ttft_ms_p50", "ttft_ms", "TTFT"),
    Measure("answer_s", "answer_s", "Answer time"),
    Measure("peak_memory_bytes", "peak_memory_bytes", "Memory"),
    Measure("pass_rate", "pass_rate", "Checks"),
    Measure("judge_score", "judge_score", "Judge"),
    Measure("kld_mean", "ln_ratio", "Closeness, KLD"),
)
# Beside them where the engine's own memory is not known.
_WHOLE_MACHINE = (
    Measure("peak_system_ram_bytes", label="System memory"),
    Measure("cpu_peak_pct_mean", label="CPU peaks"),
)


# Where the run has windows of energy, maybe ones that tell why there is no figure.
_ENERGY = Measure("j_per_output_token", label="J/token")

_COUNTED_BY = {"judge_score": "judge_score_n", "j_per_output_token": "energy_n_blocks"}


def measures_of(table: pd.DataFrame) -> tuple[Measure, ...]:
    """The numeric columns that a run's table has something to say in, and those that people expect."""
    energy = (_ENERGY,) if table["energy_scope"].notna().any() else ()
    if table["peak_memory_bytes"].notna().any():
        return (*MEASURES, *energy)
    return (*MEASURES, *energy, *(one for one in _WHOLE_MACHINE if table[one.metric].notna().any()))


def results_columns(table: pd.DataFrame) -> list[Column]:
    """The headings, with the metrics' explanations and formulas."""
    return [
        Column(label="Variant", is_number=False),
        Column(label="True bits", hint=_explained("bpw")),
        *(Column(label=measure.label, hint=_explained(measure.metric)) for measure in measures_of(table)),
    ]


def _explained(metric: str) -> str:
    known = METRICS[metric]
    return f"{known.label}: {known.explanation} Formula: {known.formula}"


def results_rows(table: pd.DataFrame, ordered: pd.DataFrame, look: Look) -> list[list[Cell]]:
    """The rows of `ordered`, whose variants have the colours that `table` (the whole run) gives them."""
    ladder = table.sort_values("bpw", ascending=False, kind="stable", na_position="last")
    reference = next((str(row["variant"]) for row in ladder.to_dict("records") if row["is_reference"]), None)
    colours = variant_colours([str(label) for label in ladder["variant"]], reference, look)
    rows = []
    for row in ordered.to_dict("records"):
        unknown = json.loads(row["unknown"]) if isinstance(row["unknown"], str) else {}
        is_reference = bool(row["is_reference"])
        first = Cell(
            text=row["variant"],
            notes=(Note("reference"),) if is_reference else (),
            swatch=colours[row["variant"]],
            diamond=is_reference,
        )
        rows.append(
            [first, _bits(row), *(_measured(row, measure, unknown) for measure in measures_of(table))]
        )
    return rows


def _bits(row: Row) -> Cell:
    if pd.isna(row["bpw"]):
        return Cell(text=words.UNKNOWN, hint="the file's header was not read")
    return Cell(
        text=f"{row['bpw']:.2f}",
        notes=(Note(words.memory(row["file_bytes"])),),
        hint=f"{row['bpw']!r} bits per weight, {row['file_bytes']:,.0f} bytes",
    )


def _measured(row: Row, measure: Measure, unknown: Mapping[str, str]) -> Cell:
    value = row[measure.metric]
    if pd.isna(value):
        if measure.metric == "kld_mean" and row["is_reference"] and not pd.isna(row["ppl"]):
            return Cell(text=words.UNKNOWN, hint="0 by construction: it is the reference")
        why = row.get(f"{measure.metric}_unknown")
        hint = why if isinstance(why, str) else unknown.get(measure.metric, NOT_MEASURED)
        return Cell(text=words.UNKNOWN, hint=hint)
    shown = words.value(measure.metric, value).removesuffix(" nats").removesuffix(" points")
    notes = [Note(text) for text in _interval(row, measure.metric)]
    if measure.delta and not row["is_reference"]:
        notes += _delta(row, measure.delta)
    hint = f"{value!r} ({measure.metric})"
    if measure.metric == _ENERGY.metric:
        notes += _scope_and_net(row)
        why = unknown.get("net_j_per_output_token")
        hint += f"; net unknown: {why}" if why else ""
    shown = shown.removesuffix(" tok/s").removesuffix(" J/token")
    return Cell(text=shown, notes=tuple(notes), hint=hint)


def _scope_and_net(row: Row) -> list[Note]:
    """What the energy is of, what told it, and what of it the work took beyond the model at rest."""
    scope, net = SCOPES.get(row["energy_scope"], row["energy_scope"]), row["net_j_per_output_token"]
    return [
        Note(f"{scope}, {row['energy_source']}"),
        Note("net unknown" if pd.isna(net) else f"net {words.three_digits(net)}"),
    ]


def _interval(row: Row, metric: str) -> list[str]:
    """What stands beside the value: its interval, or how many units there are where there is none."""
    if metric == "pass_rate":
        counted = f"{row['n_passed']:.0f} of {row['n_checked']:.0f}"
        between = words.interval(metric, row["pass_rate_ci_low"], row["pass_rate_ci_high"])
        return [counted, between] if between else [counted]
    if f"{metric}_ci_low" not in row:
        return []
    between = words.interval(metric, row[f"{metric}_ci_low"], row[f"{metric}_ci_high"])
    if between:
        return [between.removesuffix(" tok/s").removesuffix(" points").removesuffix(" J/token")]
    n = row[_COUNTED_BY.get(metric, "n_blocks")]
    return [f"n = {0 if pd.isna(n) else n:.0f}, no interval"]


def _delta(row: Row, metric: str) -> list[Note]:
    text = row.get(f"{metric}_words")
    if not isinstance(text, str) or text == words.UNKNOWN:
        return []
    verdict = row.get(f"{metric}_verdict")
    look = _LOOKS.get(verdict, "") if isinstance(verdict, str) else ""
    return [Note(text, look)]
