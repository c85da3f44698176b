"""The limits on the left of the Trade-offs page: presets and sliders, kept in the address."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from liob_core.analysis import words
from liob_core.analysis.limits import Limits
from liob_core.ui import selection

ANY = "any"
_TPS, _GIB, _JOULES, _LOSS, _LN = "tps", "gib", "joules", "loss", "ln"
_LOSSES = ("1", "2", "3", "5", "10", "15", "20")
_RISES = ("0.5", "1", "2", "3", "5", "10", "20")
_DEFAULTS = {_TPS: ANY, _GIB: ANY, _JOULES: ANY, _LOSS: "5", _LN: "3"}
_FAST, _SMALL = 1.5, 0.5  # times the reference's speed, and its memory
_N_STEPS = 20


@dataclass(frozen=True, slots=True)
class _Preset:
    """A button: its name, what it sets beside the defaults, and what hovering tells."""

    label: str
    values: Mapping[str, str]
    help: str


def pick_limits(table: pd.DataFrame, *, has_closeness: bool) -> Limits:
    """The limits as they stand; `table` is `results_table`, and only what was measured can be limited."""
    rates, peaks = (table[name].dropna().astype(float) for name in ("decode_tps", "peak_memory_bytes"))
    _show_presets(_presets(table))
    tps = _slide(_TPS, "Decode rate, at least", _rates(rates)) if len(rates) else ANY
    gib = _slide(_GIB, "Peak memory, at most", _sizes(peaks)) if len(peaks) else ANY
    energies = table["j_per_output_token"].dropna().astype(float)
    joules = _slide(_JOULES, "Energy of a token, at most", _energies(energies)) if len(energies) else ANY
    loss = _slide(_LOSS, "Checks that may be lost, at most", _named(_LOSS, _LOSSES, "points"))
    rise = _DEFAULTS[_LN]
    if has_closeness:
        rise = _slide(_LN, "Rise of perplexity, at most", _named(_LN, _RISES, "%"))
    return Limits(
        min_tps=_number(tps),
        max_bytes=None if _number(gib) is None else float(gib) * 2**30,
        max_joules=_number(joules),
        max_loss=float(loss) / 100,
        max_ln_ratio=float(rise) / 100,
    )


def _slide(name: str, label: str, options: Mapping[str, str]) -> str:
    return selection.pick(
        name, label, options, widget=st.select_slider, default=_DEFAULTS[name], help_=_HELP[name]
    )


_HELP = {
    _TPS: "Tokens per second while an answer is written; the lower end of the interval must reach it.",
    _GIB: "What the model takes while it runs, at its peak.",
    _JOULES: "Energy of one output token; the upper end of the interval must stay below it.",
    _LOSS: "The one-sided 95 % bound of the loss against the reference must stay below it.",
    _LN: "The one-sided 95 % bound of the ln PPL ratio, times 100, must stay below it.",
}


def _show_presets(presets: tuple[_Preset, ...]) -> None:
    with st.container(horizontal=True):
        for preset in presets:
            st.button(
                preset.label,
                key=f"liob_preset_{preset.label}",
                help=preset.help,
                on_click=_apply,
                args=(dict(preset.values),),
            )


def _apply(values: Mapping[str, str]) -> None:
    for name, value in (_DEFAULTS | dict(values)).items():
        selection.preset(name, value)


def _presets(table: pd.DataFrame) -> tuple[_Preset, ...]:
    reference = table[table["is_reference"]].iloc[0]
    rate, peak = reference["decode_tps"], reference["peak_memory_bytes"]
    fast = ANY if pd.isna(rate) else _text(_round(float(rate) * _FAST))
    small = ANY if pd.isna(peak) else _text(float(peak) * _SMALL / 2**30)
    label = str(reference["variant"])
    return (
        _Preset("Fast answers", {_TPS: fast}, f"At least {_FAST:g} times the decode rate of {label}."),
        _Preset("Small memory", {_GIB: small}, f"At most half of the memory of {label}."),
        _Preset("Highest accuracy", {_LOSS: "3", _LN: "1"}, "Loses at most 3 points, or 1 % of perplexity."),
        _Preset("No limits", {}, "Only the usual margins of a loss: 5 points, or 3 % of perplexity."),
    )


def _rates(rates: pd.Series) -> dict[str, str]:
    """Steps of the decode rate up to the fastest, "any" first."""
    numbers = _with_asked(_TPS, _steps(float(rates.max()), 1.0))
    return {ANY: ANY} | {_text(one): f"{words.three_digits(one)} tok/s" for one in numbers}


def _sizes(peaks: pd.Series) -> dict[str, str]:
    """Steps of the memory up to the largest, "any" last; values are in GiB."""
    unit = 2**30 if peaks.max() >= 2**31 else 2**20
    numbers = _with_asked(_GIB, [one * unit / 2**30 for one in _steps(float(peaks.max()), unit)])
    return {_text(one): words.memory(one * 2**30) for one in numbers} | {ANY: ANY}


def _energies(energies: pd.Series) -> dict[str, str]:
    """Steps of the energy of a token up to the largest, "any" last; values are in J."""
    numbers = _with_asked(_JOULES, _steps(float(energies.max()), 1.0))
    return {_text(one): f"{words.three_digits(one)} J" for one in numbers} | {ANY: ANY}


def _named(name: str, values: tuple[str, ...], unit: str) -> dict[str, str]:
    numbers = _with_asked(name, [float(one) for one in values])
    return {_text(one): f"{one:g} {unit}".replace("1 points", "1 point") for one in numbers if one <= 100}


def _steps(largest: float, unit: float) -> list[float]:
    """Round numbers of `unit` from the first step to just above `largest`."""
    step = _round(largest / unit / _N_STEPS)
    return [step * number for number in range(1, math.ceil(largest / unit / step) + 1)]


def _round(value: float) -> float:
    """`value` as 1, 2 or 5 times a power of ten, upwards."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= value * (1 - 1e-9))


def _with_asked(name: str, numbers: list[float]) -> list[float]:
    """The steps, and the value that a link asks for among them."""
    asked = _number(selection.get(name))
    given = [] if asked is None or _text(asked) in {_text(one) for one in numbers} else [asked]
    return sorted([*numbers, *given])


def _number(text: str | None) -> float | None:
    """The number that a value of the address stands for; None where it is none that could limit anything."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def _text(value: float) -> str:
    return f"{value:.4g}"
