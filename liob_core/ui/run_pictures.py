"""The pictures of a run by name, each drawn from the run, the look and its own keys, and nothing else."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from liob_core.charts import resources
from liob_core.charts.flips import flip_bars, flip_counts
from liob_core.charts.pictures import (
    Picture,
    latency_pictures,
    memory_picture,
    rate_pictures,
    tradeoff_picture,
)
from liob_core.charts.quality_pictures import (
    cache_picture,
    check_map,
    judge_picture,
    ladder_picture,
    score_map,
)
from liob_core.charts.theme import Look
from liob_core.charts.tradeoff import Bound
from liob_core.types import JudgeMode
from liob_core.ui import reads
from liob_core.ui.run_view import RunView

TIMELINE = "Memory, processor and devices over time"
_REFERENCE = "the reference"


def _tradeoff(
    view: RunView,
    look: Look,
    axes: tuple[str, ...],
    rings: tuple[str | None, str | None],
    bounds: tuple[tuple[str, float, bool], ...],
) -> list[Picture]:
    """Cost against benefit; `rings` are pick and runner-up, `bounds` axes with the fields of a `Bound`."""
    pick, runner_up = rings
    picture = tradeoff_picture(
        view.frame("results"),
        view.frame("tradeoff", *axes),
        look,
        pick=pick,
        runner_up=runner_up,
        bounds={axis: Bound(value, is_least) for axis, value, is_least in bounds},
        origin=view.origin,
    )
    return [picture]


def _rates(view: RunView, look: Look) -> list[Picture]:
    tasks = view.facts.tasks
    return rate_pictures(view.frame("results"), view.frame("blocks"), tasks, look, origin=view.origin)


def _latencies(view: RunView, look: Look) -> list[Picture]:
    return latency_pictures(view.frame("results"), view.frame("latencies"), look, origin=view.origin)


def _memory(view: RunView, look: Look) -> list[Picture]:
    return [memory_picture(view.frame("results"), view.frame("memory"), look, origin=view.origin)]


def _closeness(view: RunView, look: Look) -> list[Picture]:
    facts = reads.closeness(view.database, view.run_id) or {}
    return [ladder_picture(view.frame("closeness"), facts, look, origin=view.origin)]


def _caches(view: RunView, look: Look) -> list[Picture]:
    return [cache_picture(view.frame("cache_costs"), look, origin=view.origin)]


def _checks(view: RunView, look: Look) -> list[Picture]:
    reference = view.facts.reference or _REFERENCE
    return [check_map(view.frame("check_categories"), reference, look, origin=view.origin)]


def _judge(view: RunView, look: Look, judge_key: str, mode: str) -> list[Picture]:
    table = view.frame("judge_scores" if mode == JudgeMode.SINGLE else "judge_pairs", judge_key)
    return [judge_picture(table, _judge_row(view, judge_key, mode), look, origin=view.origin)]


def _scores(view: RunView, look: Look, judge_key: str, mode: str) -> list[Picture]:
    cells, judge = view.frame("score_categories", judge_key), _judge_row(view, judge_key, mode)["judge"]
    return [score_map(cells, view.facts.reference or _REFERENCE, judge, look, origin=view.origin)]


def _judge_row(view: RunView, judge_key: str, mode: str) -> Mapping[Any, Any]:
    rows = view.frame("judges").to_dict("records")
    return next(row for row in rows if (row["judge_key"], row["mode"]) == (judge_key, mode))


def _flips(view: RunView, look: Look) -> list[Picture]:
    table, facts = view.frame("flips"), reads.flips(view.database, view.run_id) or {}
    noise = facts["noise_flips"]
    if noise is None:
        notes = [f"Graded answers to {facts['n_prompts']} prompts; the reference's own flips are not known"]
    else:
        notes = [
            f"Mean over pairs of answers with different seeds: {facts['n_seeds']} seeds, "
            f"{facts['n_prompts']} prompts",
            f"Grey: as many flips as {facts['reference']} has against itself",
        ]
    picture = Picture(
        name="flips",
        title="Flips against the reference",
        alt_text="Prompts that each variant lost and gained against the reference",
        data=flip_counts(table, is_mean=noise is not None),
        chart=flip_bars(table, noise, look, caption=view.caption(*notes)),
    )
    return [picture]


def _timeline(view: RunView, look: Look, start_ns: int, window: tuple[float, float]) -> list[Picture]:
    """What the machine did in a `window` of seconds since `start_ns`, when the run's first reading began."""
    moments = [start_ns + round(second * 1e9) for second in window]
    lines = view.frame("resource_lines", *moments, start_ns)
    ladder = view.frame("results").sort_values("bpw", ascending=False, kind="stable", na_position="last")
    chart = resources.timeline(
        lines,
        view.frame("resource_requests", *moments, start_ns),
        look,
        window_s=window,
        labels=[str(label) for label in ladder["variant"]],
        reference=next((str(row.variant) for row in ladder.itertuples() if row.is_reference), None),
        caption=view.caption(_resolution(lines), "Grey: nothing was read. Drag to see a part closer"),
    )
    alt_text = f"{TIMELINE} above the requests of each variant"
    return [Picture(name="resources", title=TIMELINE, alt_text=alt_text, data=lines, chart=chart)]


def _resolution(lines: pd.DataFrame) -> str:
    """What a point of the lines stands for."""
    n = int(lines["n"].max()) if len(lines) else 0
    if n <= 1:
        return "Each point is one reading"
    return f"A point is the mean of up to {n:,} readings; bands: extremes"


PICTURES: Mapping[str, Callable[..., Sequence[Picture]]] = {
    "tradeoff": _tradeoff,
    "rates": _rates,
    "latencies": _latencies,
    "memory": _memory,
    "closeness": _closeness,
    "caches": _caches,
    "checks": _checks,
    "judge": _judge,
    "scores": _scores,
    "flips": _flips,
    "timeline": _timeline,
}
