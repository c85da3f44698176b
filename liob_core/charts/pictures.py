"""The pictures of one run, with their titles and notes, the same on pages and in files.

Frames are those of the analysis room; where there is nothing to draw, a picture says why instead.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from liob_core.analysis import roofline, words
from liob_core.charts.memory import memory_bars
from liob_core.charts.speed import CEILING_OF, latency_strip, rate_dots
from liob_core.charts.theme import Caption, Look
from liob_core.charts.tradeoff import Bound, scatter
from liob_core.metrics import METRICS

NOT_MEASURED = "not measured in this run"
_TIMED = {"speed": ("chat512", "pp512"), "suite": ("suite", "suite")}

Origin = tuple[str, ...]  # the lines that tell where a picture comes from


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One picture: its chart, or None and the `reason`; `data` is what it draws, `name` goes into files."""

    name: str
    title: str
    alt_text: str
    data: pd.DataFrame
    chart: Any | None = None
    reason: str = ""


def why_unknown(table: pd.DataFrame, metric: str) -> str:
    """The reason that the first variant without that metric gives."""
    for text in table.loc[table[metric].isna(), "unknown"]:
        reason = json.loads(text).get(metric) if isinstance(text, str) else None
        if reason:
            return str(reason)
    return NOT_MEASURED


def tradeoff_picture(
    table: pd.DataFrame,
    points: pd.DataFrame,
    look: Look,
    *,
    pick: str | None,
    origin: Origin,
    runner_up: str | None = None,
    bounds: Mapping[str, Bound] | None = None,
) -> Picture:
    """What a variant costs against what it keeps, on the axes that `points` names; the pick has a ring."""
    x, y = (str(points[axis].iloc[0]) for axis in ("x", "y"))
    picture = Picture(
        name="trade-off",
        title="The trade-off",
        alt_text=f"{METRICS[x].label} of each variant against {words.in_a_sentence(METRICS[y].label)}",
        data=points,
    )
    if points[[x, y]].isna().any(axis=1).all():
        return replace(picture, reason=why_unknown(table, x if points[x].isna().all() else y))
    notes = ["Lines are 95 % intervals; a larger mark is faster", "Dashes join what nothing beats on both"]
    if y == "kld_mean":
        notes.append("Upwards is closer to the reference, which is at 0")
    marks = [
        f"{ring} is the {what}, {label}"
        for ring, what, label in (("The ring", "pick", pick), ("the dashed one", "runner-up", runner_up))
        if label
    ]
    if marks:
        notes.append(", ".join(marks))
    if any(axis in (bounds or {}) for axis in (x, y)):
        notes.append("Shaded is what the limits forbid")
    chart = scatter(
        points,
        look,
        pick=pick,
        runner_up=runner_up,
        bounds=bounds,
        caption=Caption(notes=tuple(notes), origin=origin),
    )
    return replace(picture, chart=chart)


def rate_pictures(
    table: pd.DataFrame, blocks: pd.DataFrame, tasks: Sequence[str], look: Look, *, origin: Origin
) -> list[Picture]:
    """Decode and prompt rates with their intervals, from the speed task where it ran."""
    decode, prefill = _TIMED["speed" if "speed" in tasks else "suite"]
    meaning = "Mean over blocks with its 95 % interval; ticks: blocks"
    pictures = []
    for metric, shape in (("decode_tps", decode), ("prefill_tps", prefill)):
        notes = (meaning, *_ceiling_note(table)) if (metric, shape) == CEILING_OF else (meaning,)
        caption = Caption(notes=notes, origin=origin)
        label = METRICS[metric].label
        picture = Picture(
            name=metric,
            title=label,
            alt_text=f"{label} of each variant with its interval",
            data=blocks[["variant", "bpw", "block", "task", "shape", metric, "n_samples"]],
        )
        if table[metric].isna().all():
            pictures.append(replace(picture, reason=why_unknown(table, metric)))
        else:
            chart = rate_dots(table, blocks, look, metric=metric, shape=shape, caption=caption)
            pictures.append(replace(picture, chart=chart))
    return pictures


def _ceiling_note(table: pd.DataFrame) -> tuple[str, ...]:
    """What the long marks are, or why there are none; nothing where nobody measured what they need."""
    if table["ceiling_tps"].notna().any():
        return ("Long grey mark: the most that memory's speed allows",)
    reason = why_unknown(table, "ceiling_tps")
    is_told = reason not in {NOT_MEASURED, roofline.NOT_MEASURED}
    return (f"No memory-bandwidth ceiling: {reason}",) if is_told else ()


def latency_pictures(
    table: pd.DataFrame, samples: pd.DataFrame, look: Look, *, origin: Origin
) -> list[Picture]:
    """Time to first token and time per token of single requests."""
    shown, total = len(samples), int(samples.drop_duplicates("variant")["n_samples"].sum())
    n = f"All {total} requests" if shown == total else f"{shown} of {total} requests, an even random share"
    pictures = []
    for metric in ("ttft_ms", "tpot_ms"):
        label = METRICS[metric].label
        notes = (f"{n}; the mark is the median (p50)", *_left_out(samples, metric))
        caption = Caption(notes=notes, origin=origin)
        picture = Picture(
            name=metric,
            title=label,
            alt_text=f"{label} of every request per variant",
            data=samples[["variant", "bpw", "task", "shape", "prompt_id", "block", metric]],
        )
        if samples[metric].isna().all():
            pictures.append(replace(picture, reason=why_unknown(table, "ttft_ms_p50")))
        else:
            chart = latency_strip(table, samples, look, metric=metric, caption=caption)
            pictures.append(replace(picture, chart=chart))
    return pictures


def _left_out(samples: pd.DataFrame, metric: str) -> tuple[str, ...]:
    """What a percentile that is not told would want: from fewer requests it has no upper bound."""
    is_known = [samples[f"{metric}_{name}"].notna().all() for name in ("p90", "p99")]
    return () if all(is_known) else ("p90 wants 29 requests, p99 wants 299",)


def memory_picture(table: pd.DataFrame, parts: pd.DataFrame, look: Look, *, origin: Origin) -> Picture:
    """What the memory was used for, beside what was predicted."""
    picture = Picture(
        name="memory",
        title="Memory",
        alt_text="Memory of each variant by part, beside the predicted need",
        data=parts,
    )
    if parts.empty:
        return replace(picture, reason=why_unknown(table, "peak_memory_bytes"))
    caption = Caption(
        notes=(
            "Other: the measured peak less what the engine reports",
            "The upright tick is what was predicted before the load",
        ),
        origin=origin,
    )
    return replace(picture, chart=memory_bars(table, parts, look, caption=caption))
