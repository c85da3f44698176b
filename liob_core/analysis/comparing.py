"""Is run B worse than run A? Each shared variant by speed and checks, with a margin for what may be lost.

A regression is shown where the whole 95 % interval lies beyond the margin, none where the whole interval
lies inside it; between the two the runs cannot tell. Blocks of two runs are not paired, so speed is
compared by Welch's t over the logarithms of the blocks' rates; the same prompts are, so checks are paired.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from liob_core import stats
from liob_core.analysis.blocks import Block, read_blocks, timing_task, values_by_block
from liob_core.analysis.deltas import NOT_COMPARABLE
from liob_core.errors import UsageError
from liob_core.store import database

REGRESSION, NO_REGRESSION, INCONCLUSIVE = "regression", "no regression", "inconclusive"
_RATES = ("decode_tps", "prefill_tps")
# What changes speed or answers; other weights under the same label are what a gate is for.
_RUN_SETTINGS: Mapping[str, str] = {
    "machine_id": "other machine",
    "engine": "other engine",
    "engine_version": "other engine version",
    "suite_sha256": "other suite",
    "prompt_mode": "other way of making prompts",
    "sampling": "other sampling",
    "timing_task": "other task timed",
}

_VARIANTS = """
    SELECT variant, load_settings, weights_sha256 FROM raw.variants WHERE run_id = ?
    ORDER BY is_reference DESC, bpw DESC NULLS LAST, position
"""
# One graded answer a prompt: that of the first block in which the suite ran.
_CHECKS = """
    WITH suite AS (
        SELECT *, block = min(block) OVER () AS graded
        FROM raw.samples WHERE run_id = ? AND task = 'suite' AND NOT warmup
    )
    SELECT variant, prompt_id, any_value(prompt_sha256), max(check_result)
    FROM suite WHERE graded AND check_result IN ('pass', 'fail') GROUP BY variant, prompt_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """B against A for one variant and metric: `estimate`, `low`, `high` are B/A - 1 or differences of shares.

    Values are tokens/s (geometric means over blocks) or shares; `n_a` and `n_b` count blocks or prompts.
    """

    variant: str
    metric: str
    verdict: str
    value_a: float | None = None
    value_b: float | None = None
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    n_a: int = 0
    n_b: int = 0
    margin: float
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs compared; `differences` name what makes them not comparable, `notes` what to know besides."""

    run_a: str
    run_b: str
    verdict: str
    differences: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    run_id: str
    settings: Mapping[str, Any]
    load_settings: Mapping[str, Mapping[str, Any]]
    weights: Mapping[str, str | None]
    blocks: list[Block]
    checks: Mapping[str, Mapping[str, tuple[str | None, str]]]  # variant -> prompt -> text's sha256, result


def compare_runs(
    a: tuple[Path, str], b: tuple[Path, str], *, margin_speed: float = 0.05, margin_pass: float = 0.05
) -> Comparison:
    """B against A, each a database and a run of it; margins are shares (0.05: 5 per cent, 5 points)."""
    side_a, side_b = _read(*a), _read(*b)
    shared = [name for name in side_a.weights if name in side_b.weights]
    differences = tuple(_differences(side_a, side_b, shared))
    if differences:
        return Comparison(
            run_a=side_a.run_id, run_b=side_b.run_id, verdict=NOT_COMPARABLE, differences=differences
        )
    changes = [
        change
        for name in shared
        for change in _changes(side_a, side_b, name, margin_speed=margin_speed, margin_pass=margin_pass)
    ]
    return Comparison(
        run_a=side_a.run_id,
        run_b=side_b.run_id,
        verdict=_overall(changes, is_complete=all(name in side_b.weights for name in side_a.weights)),
        changes=tuple(changes),
        notes=tuple(_notes(side_a, side_b, shared)),
    )


def _read(db: Path, run_id: str) -> _Side:
    with database.read(db) as con:
        row = con.execute(
            "SELECT machine_id, engine, engine_version, suite_sha256, prompt_mode, sampling FROM raw.runs "
            "WHERE run_id = ?",
            [run_id],
        ).fetchone()
        if row is None:
            raise UsageError(f"There is no run {run_id!r} in {db}. `list` shows the runs there are.")
        settings = dict(zip(_RUN_SETTINGS, row, strict=False))
        settings["sampling"] = json.loads(settings["sampling"] or "{}")
        settings["timing_task"] = timing_task(con, run_id)
        variants = con.execute(_VARIANTS, [run_id]).fetchall()
        return _Side(
            run_id=run_id,
            settings=settings,
            load_settings={name: json.loads(text or "{}") for name, text, _ in variants},
            weights={name: weights for name, _, weights in variants},
            blocks=read_blocks(con, run_id),
            checks=_read_checks(con, run_id),
        )


def _read_checks(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, dict[str, tuple[str | None, str]]]:
    found: dict[str, dict[str, tuple[str | None, str]]] = {}
    for variant, prompt_id, sha256, result in con.execute(_CHECKS, [run_id]).fetchall():
        found.setdefault(variant, {})[prompt_id] = (sha256, result)
    return found


def _differences(a: _Side, b: _Side, shared: list[str]) -> Iterator[str]:
    for name, words in _RUN_SETTINGS.items():
        mine, other = a.settings[name], b.settings[name]
        if name == "sampling":
            yield from _in_settings(words, mine, other)
        elif name == "machine_id" and None in (mine, other):
            yield "the machine of a run is not known"
        elif mine != other:
            yield words if name.endswith(("_id", "_sha256")) else f"{words} ({mine} against {other})"
    if not shared:
        yield "no variant of that name in both"
    for name in shared:
        yield from _in_settings(f"{name}: other load settings", a.load_settings[name], b.load_settings[name])


def _in_settings(words: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(a.keys() | b.keys()):
        if a.get(key) != b.get(key):
            yield f"{words} ({key}: {a.get(key)} against {b.get(key)})"


def _changes(
    a: _Side, b: _Side, variant: str, *, margin_speed: float, margin_pass: float
) -> Iterator[Change]:
    task = a.settings["timing_task"]
    for metric in _RATES:
        rates_a = list(values_by_block(a.blocks, variant, metric, task).values())
        rates_b = list(values_by_block(b.blocks, variant, metric, task).values())
        if rates_a or rates_b:
            yield _speed(variant, metric, rates_a, rates_b, margin_speed)
    checks_a, checks_b = a.checks.get(variant, {}), b.checks.get(variant, {})
    if checks_a or checks_b:
        pairs = [
            (checks_a[prompt][1], checks_b[prompt][1])
            for prompt in checks_a.keys() & checks_b.keys()
            if checks_a[prompt][0] == checks_b[prompt][0]
        ]
        yield _checks(variant, pairs, len(checks_a.keys() | checks_b.keys()), margin_pass)


def _speed(variant: str, metric: str, rates_a: list[float], rates_b: list[float], margin: float) -> Change:
    n_a, n_b = len(rates_a), len(rates_b)
    if not rates_a or not rates_b:
        reason = f"not measured in {'A' if not rates_a else 'B'}"
        return Change(
            variant=variant,
            metric=metric,
            verdict=INCONCLUSIVE,
            n_a=n_a,
            n_b=n_b,
            margin=margin,
            reason=reason,
        )
    found = stats.unpaired_ratio(rates_b, rates_a)
    low, high = (end - 1 for end in found.interval) if found.interval else (None, None)
    return Change(
        variant=variant,
        metric=metric,
        verdict=_verdict(low, high, margin),
        value_a=stats.geometric_mean(rates_a),
        value_b=stats.geometric_mean(rates_b),
        estimate=found.estimate - 1,
        low=low,
        high=high,
        n_a=n_a,
        n_b=n_b,
        margin=margin,
        reason="" if found.interval else "one block has no interval",
    )


def _checks(variant: str, pairs: list[tuple[str, str]], n_prompts: int, margin: float) -> Change:
    n = len(pairs)
    lost, gained = pairs.count(("pass", "fail")), pairs.count(("fail", "pass"))
    interval = stats.paired_share_interval(gained, lost, n)
    left_out = n_prompts - n
    reason = f"{left_out} prompts were not checked with the same text in both" if left_out else ""
    if interval is None:
        return Change(variant=variant, metric="pass_rate", verdict=INCONCLUSIVE, margin=margin, reason=reason)
    return Change(
        variant=variant,
        metric="pass_rate",
        verdict=_verdict(interval.low, interval.high, margin),
        value_a=sum(a == "pass" for a, _ in pairs) / n,
        value_b=sum(b == "pass" for _, b in pairs) / n,
        estimate=(gained - lost) / n,
        low=interval.low,
        high=interval.high,
        n_a=n,
        n_b=n,
        margin=margin,
        reason=reason,
    )


def _verdict(low: float | None, high: float | None, margin: float) -> str:
    if low is None or high is None:
        return INCONCLUSIVE
    if high < -margin:
        return REGRESSION
    return NO_REGRESSION if low > -margin else INCONCLUSIVE


def _overall(changes: list[Change], *, is_complete: bool) -> str:
    """The gravest verdict; a variant that B no longer has is no proof that nothing was lost."""
    verdicts = {change.verdict for change in changes}
    if REGRESSION in verdicts:
        return REGRESSION
    return NO_REGRESSION if is_complete and verdicts == {NO_REGRESSION} else INCONCLUSIVE


def _notes(a: _Side, b: _Side, shared: list[str]) -> Iterator[str]:
    for name in shared:
        if a.weights[name] != b.weights[name]:
            yield f"{name} has other weights in B than in A."
    for side, other, letter in ((a, b, "A"), (b, a, "B")):
        alone = [name for name in side.weights if name not in other.weights]
        if alone:
            yield f"Only in {letter}, so not compared: {', '.join(alone)}."
