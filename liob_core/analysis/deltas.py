"""Each variant against the reference of its run: paired effects, their intervals, and verdicts.

A verdict needs an interval: `better` or `worse` where Holm's p is below 5 %, else `not distinguishable`;
`not comparable` where the two were not measured alike. Never a winner inside the noise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from liob_core import stats
from liob_core.analysis.blocks import read_blocks, timing_task, values_by_block
from liob_core.analysis.closeness import ln_ratio_fields
from liob_core.analysis.graded import Answer, Answers, flips, read_answers, shared
from liob_core.analysis.seeds import PassesByPrompt, differences, has_seeds, read_passes
from liob_core.metrics import METRICS

BETTER, WORSE = "better", "worse"
SAME, NOT_COMPARABLE = "not distinguishable", "not comparable"
ALPHA = 0.05
BOOTSTRAP_SEED = 1
# Cut-off shares differ clearly where chance does not explain it and it is not a trifle.
CLEAR_CUT_OFF_DIFFERENCE = 0.10

_SPEED_SETTINGS = ("engine", "n_ctx", "threads", "gpu_layers")
_SETTINGS: Mapping[str, Sequence[str]] = {
    "decode_tps": _SPEED_SETTINGS,
    "prefill_tps": _SPEED_SETTINGS,
    "ttft_ms": _SPEED_SETTINGS,
    "load_ms": _SPEED_SETTINGS,
    "answer_s": _SPEED_SETTINGS,
    "peak_memory_bytes": ("engine", "n_ctx", "gpu_layers"),
    "pass_rate": ("engine", "n_ctx"),
    "seed_pass_rate": ("engine", "n_ctx"),
    "ln_ratio": (),  # evaluated by one build, at one window size
}
_SETTING_WORDS = {
    "engine": "other engine",
    "n_ctx": "other context length",
    "threads": "other number of threads",
    "gpu_layers": "other number of layers on the GPU",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """One row of `paired_deltas`; `estimate` is a ratio or a difference, as `kind` says."""

    run_id: str
    variant: str
    reference: str
    metric: str
    kind: str  # ratio | difference
    estimate: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    n: int = 0
    p_value: float | None = None
    p_holm: float | None = None
    verdict: str | None = None
    reason: str | None = None
    n_gained: int | None = None
    n_lost: int | None = None
    loss_bound: float | None = None
    method: str | None = None


def paired_deltas(con: duckdb.DuckDBPyConnection, run_id: str) -> list[Delta]:
    """All effects of a run against its reference, one a metric and variant, verdicts included."""
    cursor = con.execute(
        "SELECT variant, is_reference, engine, n_ctx, threads, gpu_layers FROM raw.variants "
        "WHERE run_id = ? ORDER BY position",
        [run_id],
    )
    names = [column[0] for column in cursor.description]
    variants = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    reference = next((row for row in variants if row["is_reference"]), None)
    others = [row for row in variants if not row["is_reference"]]
    if reference is None or not others:
        return []
    make = _makers(con, run_id, str(reference["variant"]))
    deltas: list[Delta] = []
    for metric, effect in make.items():
        family = []
        for row in others:
            delta = effect(str(row["variant"]))
            reason = _settings_difference(row, reference, _SETTINGS[metric])
            family.append(delta if reason is None else _not_comparable(delta, reason))
        deltas += _with_verdicts(family)
    return deltas


def _makers(con: duckdb.DuckDBPyConnection, run_id: str, reference: str) -> dict[str, Callable[[str], Delta]]:
    """Per metric, the function from a variant's label to its effect; data is read once for all."""
    blocks, task = read_blocks(con, run_id), timing_task(con, run_id)
    loads, peaks, answers = _loads(con, run_id), _peaks(con, run_id), read_answers(con, run_id)
    ratios, own = ln_ratio_fields(con, run_id), _own_references(con, run_id)

    def of_rate(metric: str) -> Callable[[str], Delta]:
        base = values_by_block(blocks, reference, metric, task)
        return lambda variant: _ratio(
            Delta(run_id=run_id, variant=variant, reference=reference, metric=metric, kind="ratio"),
            values_by_block(blocks, variant, metric, task),
            base,
        )

    def of_load(variant: str) -> Delta:
        empty = Delta(run_id=run_id, variant=variant, reference=reference, metric="load_ms", kind="ratio")
        return _ratio(empty, loads.get(variant, {}), loads.get(reference, {}))

    passes = read_passes(con, run_id) if has_seeds(con, run_id) else {}

    def blank(variant: str, metric: str) -> Delta:
        return Delta(run_id=run_id, variant=variant, reference=reference, metric=metric, kind="difference")

    def of_seeds(variant: str) -> Delta:
        return _seed_pass_rate(blank(variant, "seed_pass_rate"), passes)

    return {
        "decode_tps": of_rate("decode_tps"),
        "prefill_tps": of_rate("prefill_tps"),
        "ttft_ms": of_rate("ttft_ms"),
        "load_ms": of_load,
        "answer_s": lambda variant: _answer_time(blank(variant, "answer_s"), answers),
        "peak_memory_bytes": lambda variant: _memory(blank(variant, "peak_memory_bytes"), peaks),
        "pass_rate": lambda variant: _pass_rate(blank(variant, "pass_rate"), answers),
        **({"seed_pass_rate": of_seeds} if passes else {}),
        "ln_ratio": lambda variant: _ln_ratio(blank(variant, "ln_ratio"), ratios, own),
    }


def _ln_ratio(delta: Delta, ratios: Mapping[str, Mapping[str, Any]], own: Mapping[str, str | None]) -> Delta:
    """The ln PPL ratio to the reference of the variant's own model: across models it means nothing."""
    found = ratios.get(delta.variant)
    if found is None:
        return replace(delta, reason="closeness was not measured")
    if delta.variant in own and own[delta.variant] is None:
        return replace(delta, reason="closeness is to its own model's reference, and this is it")
    return replace(delta, reference=own.get(delta.variant) or delta.reference, **found)


def _own_references(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, str | None]:
    """What the closeness of each evaluated variant is to; None for one that is such a reference itself."""
    sql = "SELECT variant, reference FROM raw.fidelities WHERE run_id = ? AND ppl IS NOT NULL"
    return dict(con.execute(sql, [run_id]).fetchall())


def _ratio(delta: Delta, values: Mapping[int, float], base: Mapping[int, float]) -> Delta:
    shared = sorted(block for block in values.keys() & base.keys() if values[block] > 0 < base[block])
    if not shared:
        return replace(delta, reason="no block was measured for both")
    paired = stats.paired_ratio([values[b] for b in shared], [base[b] for b in shared])
    reason = "one block, no interval" if paired.interval is None else None
    return replace(_from_paired(delta, paired), reason=reason)


def _from_paired(delta: Delta, paired: stats.Paired) -> Delta:
    return replace(
        delta,
        estimate=paired.estimate,
        ci_low=paired.interval.low if paired.interval else None,
        ci_high=paired.interval.high if paired.interval else None,
        n=paired.n,
        p_value=paired.p_value,
        method=paired.method,
    )


def _answer_time(delta: Delta, answers: Answers) -> Delta:
    pairs = shared(answers, delta.variant, delta.reference)
    timed = [(a, b) for a, b in pairs if a.seconds is not None and b.seconds is not None]
    if not timed:
        return replace(delta, reason="no prompt was timed for both")
    differences = [a.seconds - b.seconds for a, b in timed if a.seconds is not None and b.seconds is not None]
    delta = _from_paired(delta, stats.paired_difference(differences, seed=BOOTSTRAP_SEED))
    if min(min(a.n_blocks, b.n_blocks) for a, b in timed) < 2:
        # The prompts of one load share whatever that load was like, so they cannot speak for the next.
        return replace(delta, p_value=None, reason="one block, so no verdict on time")
    return delta


def _pass_rate(delta: Delta, answers: Answers) -> Delta:
    found = flips(answers, delta.variant, delta.reference)
    gained, lost, n = found.n_gained, found.n_lost, found.n
    interval = stats.paired_share_interval(gained, lost, n)
    if interval is None:
        return replace(delta, reason="no prompt was checked for both")
    delta = replace(
        delta,
        estimate=(gained - lost) / n,
        ci_low=interval.low,
        ci_high=interval.high,
        n=n,
        p_value=found.p_value,
        n_gained=gained,
        n_lost=lost,
        loss_bound=stats.loss_bound(gained, lost, n),
        method="exact McNemar, paired score interval (Tango)",
    )
    reason = _cut_off_difference(shared(answers, delta.variant, delta.reference))
    return delta if reason is None else _not_comparable(delta, reason)


def _seed_pass_rate(delta: Delta, passes: Mapping[str, PassesByPrompt]) -> Delta:
    """The difference of the mean pass rates over seeds, paired by prompt."""
    pairs = differences(passes.get(delta.variant, {}), passes.get(delta.reference, {}))
    if not pairs:
        return replace(delta, reason="no prompt was checked for both")
    if not any(pairs):
        # That bounds the loss, and gives no interval of width 0.
        bound, why = stats.no_flip_bound(len(pairs)), "no prompt differs, no interval"
        return replace(delta, estimate=0.0, n=len(pairs), p_value=1.0, loss_bound=bound, reason=why)
    found = _from_paired(delta, stats.paired_difference(pairs, seed=BOOTSTRAP_SEED))
    return found if found.ci_low is not None else replace(found, reason="one prompt, no interval")


def _cut_off_difference(pairs: Sequence[tuple[Answer, Answer]]) -> str | None:
    """Why quality is not comparable: answers were cut off clearly more often on one side."""
    ended = [(a.is_cut_off, b.is_cut_off) for a, b in pairs if None not in (a.is_cut_off, b.is_cut_off)]
    if not ended:
        return None
    share, base = (sum(bool(pair[side]) for pair in ended) / len(ended) for side in (0, 1))
    p_value = stats.mcnemar_exact(ended.count((True, False)), ended.count((False, True)))
    if p_value >= ALPHA or abs(share - base) < CLEAR_CUT_OFF_DIFFERENCE:
        return None
    return f"answers cut off differ clearly ({share:.0%} against {base:.0%})".replace("%", " %")


def _memory(delta: Delta, peaks: Mapping[str, float]) -> Delta:
    if delta.variant not in peaks or delta.reference not in peaks:
        return replace(delta, reason="peak memory was not measured for both")
    estimate = peaks[delta.variant] - peaks[delta.reference]
    return replace(delta, estimate=estimate, n=1, reason="a maximum has no interval")


def _loads(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, dict[int, float]]:
    """Load time in ms per variant and block."""
    found: dict[str, dict[int, float]] = {}
    rows = con.execute(
        "SELECT variant, block, median(load_ms) FROM raw.loads "
        "WHERE run_id = ? AND outcome = 'ok' AND load_ms IS NOT NULL GROUP BY variant, block",
        [run_id],
    ).fetchall()
    for variant, block, load_ms in rows:
        found.setdefault(variant, {})[block] = load_ms
    return found


def _peaks(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, float]:
    rows = con.execute(
        "SELECT variant, max(peak_memory_bytes) FROM raw.loads "
        "WHERE run_id = ? AND peak_memory_bytes IS NOT NULL GROUP BY variant",
        [run_id],
    ).fetchall()
    return {variant: float(peak) for variant, peak in rows}


def _settings_difference(
    row: Mapping[str, Any], reference: Mapping[str, Any], keys: Sequence[str]
) -> str | None:
    for key in keys:
        mine, base = row[key], reference[key]
        if mine is not None and base is not None and mine != base:
            return f"{_SETTING_WORDS[key]} ({mine} against {base})"
    return None


def _not_comparable(delta: Delta, reason: str) -> Delta:
    return replace(delta, verdict=NOT_COMPARABLE, reason=reason)


def _with_verdicts(family: Sequence[Delta]) -> list[Delta]:
    """One metric's effects with Holm's p and a verdict each, where they have a p and are comparable."""
    tested = [i for i, delta in enumerate(family) if delta.p_value is not None and delta.verdict is None]
    adjusted = dict(zip(tested, stats.holm([family[i].p_value or 0.0 for i in tested]), strict=True))
    return [
        replace(delta, p_holm=adjusted[i], verdict=_verdict(delta, adjusted[i])) if i in adjusted else delta
        for i, delta in enumerate(family)
    ]


def _verdict(delta: Delta, p_holm: float) -> str:
    if p_holm >= ALPHA or delta.estimate is None:
        return SAME
    is_higher = delta.estimate > (1 if delta.kind == "ratio" else 0)
    return BETTER if is_higher == (METRICS[delta.metric].direction == "higher") else WORSE
