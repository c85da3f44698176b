"""Which one, and why: the pick in one sentence with its evidence, or the reason why there is none.

A loss is the ln PPL ratio where closeness was measured, else the paired difference of pass rate, each by its
one-sided 95 % bound.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from liob_core import stats
from liob_core.analysis import closeness, words
from liob_core.analysis.closeness_pick import checks_note, closeness_note, descend, is_bounded
from liob_core.analysis.deltas import BETTER, NOT_COMPARABLE, SAME
from liob_core.errors import UsageError
from liob_core.store import database

# The most pass rate that may be lost, as a share: 5 points.
MARGIN = 0.05

Row = dict[str, Any]

_VARIANTS = """
    SELECT
        results.variant, results.is_reference, results.bpw, results.position, results.peak_memory_bytes,
        results.file_bytes, results.decode_tps, results.n_samples, results.n_checked, variants.file_name,
        variants.n_ctx, variants.threads, variants.engine, variants.engine_model
    FROM main.results AS results JOIN raw.variants AS variants USING (run_id, variant)
    WHERE run_id = ? ORDER BY results.bpw DESC NULLS LAST, results.position
"""
_DELTAS = """
    SELECT variant, metric, estimate, n, verdict, reason, loss_bound
    FROM raw.paired_deltas WHERE run_id = ? AND metric IN ('decode_tps', 'pass_rate', 'ln_ratio')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The answer of a run. `kind`: pick, nothing meets it, too few prompts, not checked, nothing to compare.

    `loss_bound` and `margin` are shares (0 to 1); `command` runs the pick in llama.cpp's own server.
    """

    kind: str
    sentence: str
    detail: str
    pick: str | None = None
    reference: str | None = None
    loss_bound: float | None = None
    n_prompts: int | None = None
    ln_ratio_bound: float | None = None  # in nats, where closeness decided
    margin: float = MARGIN
    command: str | None = None
    evidence: tuple[str, ...] = field(default=())


def headline(db: Path, run_id: str) -> Headline:
    """The pick of a run by the rule of the metrics page, without limits on speed and memory.

    Variants are tried from many bits to few, and the first that may lose more than the margin ends it.
    """
    with database.read(db) as con:
        variants = _rows(con, _VARIANTS, run_id)
        deltas = {(row["variant"], row["metric"]): row for row in _rows(con, _DELTAS, run_id)}
    reference = next((row for row in variants if row["is_reference"]), None)
    if reference is None:
        raise UsageError(f"There is no run {run_id!r} in {db}. `list` shows the runs there are.")
    ladder = _ladder(variants, reference)
    if not ladder:
        return _nothing_to_compare(variants, reference)
    if is_bounded(deltas):
        return _by_closeness(ladder, reference, deltas)
    checks = {row["variant"]: deltas.get((row["variant"], "pass_rate"), {}) for row in ladder}
    n_prompts = max(check.get("n") or 0 for check in checks.values())
    if n_prompts == 0:
        return _not_checked(ladder, reference, deltas)
    if stats.no_flip_bound(n_prompts) > MARGIN:
        return _too_few(ladder, reference, deltas, n_prompts)
    pick, evidence = _descend(ladder, checks)
    if pick is None:
        return _nothing_meets_it(ladder, reference, deltas, evidence)
    return _pick(pick, reference, deltas, evidence)


def needed_prompts(margin: float = MARGIN) -> int:
    """The fewest checked prompts that can bound a loss by `margin` (a share) where nothing flips."""
    n = 1
    while stats.no_flip_bound(n) > margin:
        n += 1
    return n


def _rows(con: duckdb.DuckDBPyConnection, sql: str, run_id: str) -> list[Row]:
    cursor = con.execute(sql, [run_id])
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _ladder(variants: list[Row], reference: Row) -> list[Row]:
    """The variants below the reference, many bits first; unknown bits come last."""
    limit = reference["bpw"]
    return [
        row
        for row in variants
        if not row["is_reference"] and (limit is None or row["bpw"] is None or row["bpw"] <= limit)
    ]


def _descend(ladder: list[Row], checks: dict[str, Row]) -> tuple[Row | None, tuple[str, ...]]:
    """The last variant that holds the margin before the first that does not, and a line for each tried."""
    pick, evidence = None, []
    for row in ladder:
        check = checks[row["variant"]]
        bound = check.get("loss_bound")
        if bound is None or check.get("verdict") == NOT_COMPARABLE:
            evidence.append(f"{row['variant']}: not comparable, {check.get('reason') or 'not checked'}")
            break
        evidence.append(f"{row['variant']}: {_loss(check)}")
        if stats.no_flip_bound(check["n"]) > MARGIN:
            evidence[-1] += ", too few prompts"
            break
        if bound > MARGIN:
            break
        pick = row
    return pick, tuple(evidence)


def _loss(check: Row) -> str:
    return f"loses at most {words.at_most_points(check['loss_bound'])} on {check['n']} prompts (95 %)"


def _by_closeness(ladder: list[Row], reference: Row, deltas: dict[tuple[str, str], Row]) -> Headline:
    """The pick by the ln PPL ratio, or why nothing meets its margin."""
    found, name = descend(ladder, deltas, MARGIN), reference["variant"]
    allowed = words.percent(math.expm1(closeness.MARGIN))
    if found.pick is None:
        return Headline(
            kind="nothing meets it",
            sentence=f"Nothing below {name} is shown to raise perplexity by at most {allowed}: "
            f"{found.stopped_by}.",
            detail=_fastest(ladder, reference, deltas).strip(),
            reference=name,
            evidence=found.evidence,
        )
    pick = found.pick
    ratio, check = deltas[pick["variant"], "ln_ratio"], deltas.get((pick["variant"], "pass_rate"), {})
    held = closeness.at_most_higher(ratio["loss_bound"])
    return Headline(
        kind="pick",
        sentence=f"{pick['variant']}: {_cost(pick, reference, deltas)}; {held} (95 %).",
        detail=f"On {ratio['n']} windows of text; {allowed} more is allowed; {checks_note(check, MARGIN)}.",
        pick=pick["variant"],
        reference=name,
        loss_bound=check.get("loss_bound"),
        n_prompts=check.get("n"),
        ln_ratio_bound=ratio["loss_bound"],
        command=_command(pick),
        evidence=found.evidence,
    )


def _pick(
    pick: Row, reference: Row, deltas: dict[tuple[str, str], Row], evidence: tuple[str, ...]
) -> Headline:
    check = deltas[pick["variant"], "pass_rate"]
    return Headline(
        kind="pick",
        sentence=f"{pick['variant']}: {_cost(pick, reference, deltas)}; {_loss(check)}.",
        detail=f"{closeness_note(deltas)}; the loss is in checks passed, and "
        f"{words.at_most_points(MARGIN)} are allowed.",
        pick=pick["variant"],
        reference=reference["variant"],
        loss_bound=check["loss_bound"],
        n_prompts=check["n"],
        command=_command(pick),
        evidence=evidence,
    )


def _nothing_meets_it(
    ladder: list[Row], reference: Row, deltas: dict[tuple[str, str], Row], evidence: tuple[str, ...]
) -> Headline:
    first = ladder[0]
    check = deltas.get((first["variant"], "pass_rate"), {})
    if check.get("loss_bound") is None or check.get("verdict") == NOT_COMPARABLE:
        why = f"{first['variant']} is not comparable: {check.get('reason') or 'not checked'}"
    else:
        bound = words.at_most_points(check["loss_bound"])
        why = f"{first['variant']} may lose up to {bound} on {check['n']} prompts (95 %)"
    allowed = words.at_most_points(MARGIN)
    return Headline(
        kind="nothing meets it",
        sentence=f"Nothing below {reference['variant']} is shown to lose at most {allowed}: {why}.",
        detail=f"{_fastest(ladder, reference, deltas)}{closeness_note(deltas)}.",
        reference=reference["variant"],
        loss_bound=check.get("loss_bound"),
        n_prompts=check.get("n"),
        evidence=evidence,
    )


def _too_few(
    ladder: list[Row], reference: Row, deltas: dict[tuple[str, str], Row], n_prompts: int
) -> Headline:
    open_loss = words.at_most_points(stats.no_flip_bound(n_prompts))
    evidence = tuple(
        f"{row['variant']}: {_loss(check)}"
        for row in ladder
        if (check := deltas.get((row["variant"], "pass_rate"), {})).get("loss_bound") is not None
    )
    return Headline(
        kind="too few prompts",
        sentence=f"Too few prompts to pick: {n_prompts} checked ones leave a loss of {open_loss} open even "
        f"without a flip; {needed_prompts()} can rule out {words.at_most_points(MARGIN)}.",
        detail=f"{_fastest(ladder, reference, deltas)}{closeness_note(deltas)}.",
        reference=reference["variant"],
        n_prompts=n_prompts,
        evidence=evidence,
    )


def _not_checked(ladder: list[Row], reference: Row, deltas: dict[tuple[str, str], Row]) -> Headline:
    return Headline(
        kind="not checked",
        sentence="No pick: no prompt was checked for the reference and a smaller variant, so what is lost is "
        "not known.",
        detail=f"{_fastest(ladder, reference, deltas)}{closeness_note(deltas)}.",
        reference=reference["variant"],
        n_prompts=0,
    )


def _nothing_to_compare(variants: list[Row], reference: Row) -> Headline:
    why = "every other variant has more bits" if len(variants) > 1 else "it is the only variant of this run"
    facts = []
    if reference["decode_tps"]:
        facts.append(words.value("decode_tps", reference["decode_tps"]))
    if reference["peak_memory_bytes"]:
        facts.append(f"{words.memory(reference['peak_memory_bytes'])} of memory")
    return Headline(
        kind="nothing to compare",
        sentence=f"{reference['variant']}: {', '.join([*facts, why])}, so there is nothing to choose from.",
        detail="Add a smaller variant to compare it with.",
        reference=reference["variant"],
    )


def _cost(row: Row, reference: Row, deltas: dict[tuple[str, str], Row]) -> str:
    """Speed and memory against the reference in words: "2.1 times as fast as F16 in 39 % of its memory"."""
    delta, label = deltas.get((row["variant"], "decode_tps"), {}), reference["variant"]
    share, what = _size(row, reference)
    estimate, verdict = delta.get("estimate"), delta.get("verdict")
    if verdict == SAME:
        speed = f"no difference in speed from {label} was found"
    elif estimate is None and verdict is None:
        speed = "its speed was not measured"
    elif estimate is None or verdict == NOT_COMPARABLE:
        speed = f"its speed cannot be compared with {label}'s ({delta.get('reason') or 'not measured'})"
    else:
        shown = words.effect("decode_tps", estimate)
        speed = f"{shown} {'as' if ' times as ' in shown else 'than'} {label}"
        if verdict is None:
            speed += f" (n = {delta['n']}, no verdict)"
        return f"{speed} in {share} of its {what}" if share else speed
    return f"{speed}; it takes {share} of {label}'s {what}" if share else speed


def _size(row: Row, reference: Row) -> tuple[str | None, str]:
    """The share of the reference's memory, or of its file where memory was not measured, in words."""
    for name, what in (("peak_memory_bytes", "memory"), ("file_bytes", "file size")):
        if row[name] and reference[name]:
            return words.percent(row[name] / reference[name]), what
    return None, ""


def _fastest(ladder: list[Row], reference: Row, deltas: dict[tuple[str, str], Row]) -> str:
    """A sentence on the fastest variant that is really faster, or nothing."""
    faster = [
        row for row in ladder if deltas.get((row["variant"], "decode_tps"), {}).get("verdict") == BETTER
    ]
    if not faster:
        return ""
    best = max(faster, key=lambda row: deltas[row["variant"], "decode_tps"]["estimate"])
    return f"{best['variant']} is {_cost(best, reference, deltas)}. "


def _command(row: Row) -> str | None:
    if row["engine"] == "ollama":
        return f"ollama run {row['engine_model']}"
    if not row["file_name"]:
        return None
    return f"llama-server --model {row['file_name']} --ctx-size {row['n_ctx']} --threads {row['threads']}"
