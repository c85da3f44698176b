"""Which variant meets the limits that a user sets: one rule, for every page and for the command line.

Speed, memory and energy must meet their limit by the bad end of the interval. A loss is tried down the
ladder from many bits to few, and the first failure stops it, so that no further correction is needed; of
those that meet everything the one with the fewest bits is the pick.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from liob_core import stats
from liob_core.analysis import recommend_words as told
from liob_core.analysis.deltas import ALPHA
from liob_core.analysis.graded import flips, read_answers
from liob_core.analysis.limits import MET, Evidence, Limits, resources
from liob_core.analysis.loss import Ladder, ladders, losses, no_loss
from liob_core.analysis.recommend_words import NOTHING, PICK, REFERENCE
from liob_core.analysis.using import command
from liob_core.errors import UsageError
from liob_core.store import database

Row = dict[str, Any]

_VARIANTS = """
    SELECT
        results.*, variants.file_name, variants.n_ctx, variants.threads, variants.gpu_layers,
        variants.kv_type_k, variants.kv_type_v, variants.engine_model, variants.architecture,
        variants.n_layers, (variants.model->>'$.n_embd')::BIGINT AS n_embd,
        (variants.model->>'$.vocab_size')::BIGINT AS vocab_size
    FROM main.results AS results JOIN raw.variants AS variants USING (run_id, variant)
    WHERE run_id = ? ORDER BY results.bpw DESC NULLS LAST, results.position
"""
_DELTAS = """
    SELECT variant, metric, estimate, ci_low, ci_high, n, verdict, reason, loss_bound
    FROM raw.paired_deltas WHERE run_id = ? AND metric IN ('decode_tps', 'pass_rate', 'ln_ratio')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One variant with the evidence for every limit; `model` is named where the run has several."""

    variant: str
    model: str | None
    is_reference: bool
    bpw: float | None
    evidence: tuple[Evidence, ...]

    @property
    def is_met(self) -> bool:
        """Whether every limit is shown to be met."""
        return all(one.verdict == MET for one in self.evidence)

    @property
    def misses(self) -> tuple[Evidence, ...]:
        """The limits that are not shown to be met."""
        return tuple(one for one in self.evidence if one.verdict != MET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """What to run under these limits. `kind` is one of `recommend_words`: pick, reference, or why none.

    `runner_up` meets every limit too; `nearest` is, where nothing does, what misses least, with `misses` in
    words. `command` runs the pick, whose file is `file_name`; `candidates` come as they were tried.
    """

    run_id: str
    kind: str
    sentence: str
    detail: str
    limits: Limits
    reference: str
    candidates: tuple[Candidate, ...]
    pick: str | None = None
    runner_up: str | None = None
    nearest: str | None = None
    misses: tuple[str, ...] = ()
    command: str | None = None
    file_name: str | None = None
    notes: tuple[str, ...] = ()

    def of(self, variant: str | None) -> Candidate | None:
        """The candidate called `variant`."""
        return next((one for one in self.candidates if one.variant == variant), None)


def recommend(db: Path, run_id: str, limits: Limits | None = None) -> Recommendation:
    """The variant of a run to use under `limits` (by default the margins of a loss alone), or why none."""
    limits = limits or Limits()
    with database.read(db) as con:
        rows = _rows(con, _VARIANTS, run_id)
        deltas = {(row["variant"], row["metric"]): row for row in _rows(con, _DELTAS, run_id)}
        if not any(row["is_reference"] for row in rows):
            raise UsageError(f"There is no run {run_id!r} in {db}. `list` shows the runs there are.")
        found = ladders(rows)
        has_models = not all(ladder.is_own for ladder in found)
        tried = [
            _candidates(ladder, deltas, limits, is_first=ladder is found[0], has_models=has_models)
            for ladder in found
        ]
        picks = [met[-1] for one in tried if (met := [each for each in one if each.is_met])]
        chosen, notes = _one_of(con, run_id, picks, {str(row["variant"]): row for row in rows})
    facts = told.Facts(rows=rows, ladders=found, deltas=deltas, limits=limits)
    return _finished(run_id, facts, tried, chosen, notes)


def _finished(
    run_id: str,
    facts: told.Facts,
    tried: Sequence[Sequence[Candidate]],
    chosen: Candidate | None,
    notes: tuple[str, ...],
) -> Recommendation:
    candidates = tuple(one for ladder in tried for one in ladder)
    kind = _kind(chosen, facts)
    is_picked = chosen is not None and kind in {PICK, REFERENCE}
    nearest = None if is_picked else _nearest(candidates)
    runner_up = _runner_up(tried, chosen) if is_picked and chosen else None
    row = facts.row(chosen.variant) if is_picked and chosen else None
    about = (chosen if is_picked else nearest) or candidates[0]
    sentence, detail = told.words_of(kind, facts, about.variant, about.evidence)
    return Recommendation(
        run_id=run_id,
        kind=kind,
        sentence=sentence,
        detail=detail,
        limits=facts.limits,
        reference=facts.reference["variant"],
        candidates=candidates,
        pick=chosen.variant if is_picked and chosen else None,
        runner_up=runner_up.variant if runner_up else None,
        nearest=nearest.variant if nearest else None,
        misses=tuple(one.sentence for one in nearest.misses) if nearest else (),
        command=command(row) if row else None,
        file_name=row["file_name"] if row else None,
        notes=notes,
    )


def _rows(con: duckdb.DuckDBPyConnection, sql: str, run_id: str) -> list[Row]:
    cursor = con.execute(sql, [run_id])
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _candidates(
    ladder: Ladder,
    deltas: Mapping[tuple[str, str], Row],
    limits: Limits,
    *,
    is_first: bool,
    has_models: bool,
) -> list[Candidate]:
    """The rungs of a ladder, on the first one below the reference itself, with their evidence."""
    pairs = list(zip(ladder.rungs, losses(ladder, deltas, limits), strict=True))
    if is_first:
        pairs.insert(0, (ladder.reference, (no_loss(limits),)))
    return [
        Candidate(
            variant=row["variant"],
            model=row["model_name"] if has_models else None,
            is_reference=bool(row["is_reference"]),
            bpw=row["bpw"],
            evidence=(*resources(row, limits), *loss),
        )
        for row, loss in pairs
    ]


def _one_of(
    con: duckdb.DuckDBPyConnection,
    run_id: str,
    picks: Sequence[Candidate],
    rows: Mapping[str, Row],
) -> tuple[Candidate | None, tuple[str, ...]]:
    """The pick among those of several ladders, and how they were told apart.

    Whoever passes shown fewer checks than another is out; of the rest the one that takes the least memory.
    """
    if len(picks) < 2:
        return (picks[0] if picks else None), ()
    answers = read_answers(con, run_id)
    pairs = [(a, b) for a in picks for b in picks if picks.index(a) < picks.index(b)]
    counts = [flips(answers, a.variant, b.variant) for a, b in pairs]
    adjusted = stats.holm([one.p_value for one in counts])
    worse: dict[str, str] = {}
    for (a, b), count, p_value in zip(pairs, counts, adjusted, strict=True):
        if p_value < ALPHA:
            loser, winner = (a, b) if count.n_gained < count.n_lost else (b, a)
            worse[loser.variant] = winner.variant
    left = [one for one in picks if one.variant not in worse]
    notes = [f"{loser} passes fewer checks than {winner}" for loser, winner in worse.items()]
    if len(left) > 1:
        names = " and ".join(one.variant for one in left)
        notes.append(f"Checks do not tell {names} apart, so the one that takes least memory is named")
    return min(left, key=lambda one: _size(rows, one, left)), tuple(f"{note}." for note in notes)


def _size(rows: Mapping[str, Row], candidate: Candidate, among: Sequence[Candidate]) -> float:
    """Bytes of peak memory; where one of them lacks it what was predicted, else the file's size."""
    names = ("peak_memory_bytes", "need_bytes", "file_bytes")
    known = (name for name in names if all(rows[one.variant][name] is not None for one in among))
    name = next(known, None)
    return 0.0 if name is None else float(rows[candidate.variant][name])


def _kind(chosen: Candidate | None, facts: told.Facts) -> str:
    """What kind of answer this is; without limits the reference itself answers nothing."""
    if chosen is not None and not chosen.is_reference:
        return PICK
    if not facts.limits.has_resources:
        return told.why_none(facts)
    return NOTHING if chosen is None else REFERENCE


def _nearest(candidates: Sequence[Candidate]) -> Candidate | None:
    """Whoever misses fewest limits, and those by the smallest share; of variants below the reference.

    The reference counts too where it misses something: then it is no answer either.
    """
    missing = [one for one in candidates if one.misses]
    if not missing:
        return None
    return min(missing, key=lambda one: (len(one.misses), sum(each.excess for each in one.misses)))


def _runner_up(tried: Sequence[Sequence[Candidate]], chosen: Candidate) -> Candidate | None:
    """The next best: another ladder's pick, else the rung above on the same one that meets everything."""
    others = [
        met[-1] for one in tried if chosen not in one and (met := [each for each in one if each.is_met])
    ]
    if others:
        return others[0]
    own = next(one for one in tried if chosen in one)
    above = [one for one in own[: own.index(chosen)] if one.is_met]
    return above[-1] if above else None
