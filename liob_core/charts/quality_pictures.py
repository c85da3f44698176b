"""The pictures of a run's quality, with their titles and notes, the same on pages and in files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from liob_core.charts.cache import cache_scatter
from liob_core.charts.closeness import GUIDES_NOTE, closeness_ladder, floor_note
from liob_core.charts.heatmap import CLEAR_NOTE, HATCH_NOTE, POINTS, SCORES, Unit, difference_map
from liob_core.charts.judge import result_bars, score_dots
from liob_core.charts.pictures import Origin, Picture
from liob_core.charts.theme import Caption, Look
from liob_core.types import JudgeMode


def ladder_picture(table: pd.DataFrame, facts: Mapping[str, Any], look: Look, *, origin: Origin) -> Picture:
    """KL divergence against true bits; `table` and `facts` are those of `analysis.closeness`."""
    picture = Picture(
        name="closeness",
        title="Closeness to the reference",
        alt_text="KL divergence of each variant from the reference against its true bits",
        data=table,
    )
    if table.empty or not table["kld_mean"].notna().any():
        return replace(picture, reason="nothing was compared with a reference in this run")
    if not (table["kld_mean"].notna() & ~table["is_compressed"]).any():
        return replace(picture, reason="only KV caches differ in this run; they have a picture of their own")
    notes = [f"Lines are 95 % intervals over {facts['basis']}", GUIDES_NOTE, f"Build: {facts['build']}"]
    notes += floor_note(table)
    if table["is_compressed"].any():
        notes.append("Compressed KV caches have a picture of their own")
    chart = closeness_ladder(table, look, caption=Caption(notes=tuple(notes), origin=origin))
    return replace(picture, chart=chart)


def cache_picture(costs: pd.DataFrame, look: Look, *, origin: Origin) -> Picture:
    """Memory against divergence where weights ran with several types of KV cache."""
    picture = Picture(
        name="kv-cache",
        title="What a compressed cache saves and costs",
        alt_text="KL divergence of each variant against the memory it needs, by type of KV cache",
        data=costs,
    )
    if costs.empty or not (costs["kld_mean"] > 0).any() or costs["memory_bytes"].isna().all():
        return replace(picture, reason="no weights were evaluated with several types of KV cache")
    notes = (
        f"Memory is predicted: weights and cache at a context of {costs['n_ctx'].iloc[0]:,.0f} tokens",
        "Dashes join the same weights; shapes are types of cache; lines are 95 % intervals over windows",
    )
    chart = cache_scatter(costs, look, caption=Caption(notes=notes, origin=origin))
    return replace(picture, chart=chart)


def check_map(cells: pd.DataFrame, reference: str, look: Look, *, origin: Origin) -> Picture:
    """Categories by variants: the difference in checks passed."""
    picture = Picture(
        name="categories",
        title=f"Checks passed, against {reference}",
        alt_text=f"Difference of the pass rate from {reference} by category and variant",
        data=cells,
    )
    return _map(picture, look, POINTS, reference, Caption(origin=origin))


def score_map(cells: pd.DataFrame, reference: str, judge: str, look: Look, *, origin: Origin) -> Picture:
    """Categories by variants: the difference of a judge's scores."""
    picture = Picture(
        name="judge-categories",
        title=f"Judge scores, against {reference}",
        alt_text=f"Difference of the scores by {judge} from {reference} by category and variant",
        data=cells,
    )
    return _map(picture, look, SCORES, reference, Caption(notes=(f"Judge: {judge}",), origin=origin))


def judge_picture(table: pd.DataFrame, judge: Mapping[Any, Any], look: Look, *, origin: Origin) -> Picture:
    """Mean scores or wins, ties and losses; `table` is `judged.scores` or `judged.pairs`."""
    is_single = judge["mode"] == JudgeMode.SINGLE
    picture = Picture(
        name=f"judge-{judge['mode']}",
        title="Mean judge score" if is_single else "Pairs against the reference",
        alt_text=f"What {judge['judge']} said of each variant",
        data=table,
    )
    has_any = not table.empty and bool((table["n_scored"] > 0).any())
    if not has_any:
        return replace(picture, reason="no answer was scored")
    notes = [f"Judge: {judge['judge']}; {judge['sentence']}"]
    if is_single:
        notes.append("Lines are 95 % intervals over prompts")
    caption = Caption(notes=tuple(notes), origin=origin)
    draw = score_dots if is_single else result_bars
    return replace(picture, chart=draw(table, look, caption=caption))


def _map(picture: Picture, look: Look, unit: Unit, reference: str, caption: Caption) -> Picture:
    """The map of `picture.data`; the caption's own notes come last."""
    cells = picture.data
    if cells.empty or cells["delta"].isna().all():
        return replace(picture, reason="nothing was graded for a variant and the reference both")
    notes: Sequence[str] = (
        f"Difference in {unit.name}, paired by prompt; in brackets: prompts",
        CLEAR_NOTE,
        *([HATCH_NOTE] if cells["delta"].isna().any() else []),
        *caption.notes,
    )
    caption = Caption(notes=tuple(notes), origin=caption.origin)
    chart = difference_map(cells, look, unit=unit, title=picture.title, caption=caption)
    return replace(picture, chart=chart)
