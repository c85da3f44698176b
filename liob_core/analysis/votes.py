"""What people prefer: the pairs of answers that can be voted on blind, and what the votes say."""

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from liob_core import stats
from liob_core.analysis.deltas import ALPHA, BETTER, NOT_COMPARABLE, SAME, WORSE
from liob_core.analysis.judge_verdicts import MIN_COVERAGE
from liob_core.quality.judge.people import PEOPLE
from liob_core.store import database, schema

_SCHEMA_WITH_JUDGES = 2

# Every two answers to one prompt that ended by themselves; the base is the reference, else has more bits.
_PAIRS = """
    WITH graded AS (
        SELECT samples.prompt_id, samples.sample_id, samples.response, variants.variant,
            variants.is_reference, row_number() OVER (
                PARTITION BY samples.prompt_id
                ORDER BY variants.is_reference DESC, variants.bpw DESC NULLS LAST, variants.position
            ) AS place
        FROM raw.samples AS samples JOIN raw.variants AS variants USING (run_id, variant)
        WHERE samples.run_id = $run_id AND task = 'suite' AND NOT warmup AND outcome <> 'cancelled'
            AND block = (
                SELECT min(block) FROM raw.samples WHERE run_id = $run_id AND task = 'suite' AND NOT warmup
            )
        QUALIFY row_number() OVER (
            PARTITION BY samples.variant, samples.prompt_id ORDER BY samples.started_utc DESC
        ) = 1 AND samples.outcome = 'ok'
    ), votes AS (
        SELECT sample_id, reference_sample_id, state, result, reason, raw_reply
        FROM raw.judgements WHERE run_id = $run_id AND judge_key = $people
        QUALIFY row_number() OVER (
            PARTITION BY sample_id, reference_sample_id ORDER BY judged_utc DESC, judgement_id DESC
        ) = 1
    )
    SELECT mine.prompt_id, mine.variant, mine.sample_id, base.variant AS base,
        base.sample_id AS base_sample_id, base.is_reference AS has_reference,
        mine.response = base.response AS is_same_text, votes.state, votes.result, votes.reason,
        votes.raw_reply->>'$.vote' AS vote
    FROM graded AS mine JOIN graded AS base ON base.prompt_id = mine.prompt_id AND base.place < mine.place
    LEFT JOIN votes ON votes.sample_id = mine.sample_id AND votes.reference_sample_id = base.sample_id
    ORDER BY base.place, mine.place, mine.prompt_id
"""

Row = dict[str, Any]


def vote_pairs(db: Path, run_id: str) -> pd.DataFrame:
    """Every two answers of a run that can be compared, and the vote on them.

    Columns: prompt_id, variant, sample_id, base, base_sample_id, has_reference (the base is it),
    is_same_text, state (scored, refused where skipped, NULL where not asked), result (win, tie, loss of the
    variant), reason, vote (left, right, tie, both bad, skip).
    """
    with database.read(db) as con:
        return _pairs(con, run_id)


def vote_results(db: Path, run_id: str) -> pd.DataFrame:
    """One row a pair of variants with a vote: who is preferred, and whether that is more than chance.

    Columns: variant, base, n_wins, n_losses (of the variant), n_ties, n_both_bad (among the ties), n_skipped,
    n_votes, n_left (decided votes for the left answer), n_same_text (not asked: both wrote the same),
    win_share (wins / decided votes), ci_low, ci_high (Wilson), p_value (exact sign test), p_holm, verdict,
    words.
    """
    with database.read(db) as con:
        pairs = _pairs(con, run_id)
    if pairs.empty:
        return pd.DataFrame()
    rows = [
        _row(str(variant), str(base), group)
        for (base, variant), group in pairs.groupby(["base", "variant"], sort=False)
        if group["state"].notna().any()
    ]
    tested = [row for row in rows if row["p_value"] is not None]
    for row, p_holm in zip(tested, stats.holm([row["p_value"] for row in tested]), strict=True):
        row["p_holm"] = p_holm
        row["verdict"] = SAME if p_holm >= ALPHA else BETTER if row["win_share"] > 0.5 else WORSE
    for row in rows:
        row["words"] = _words(row)
    return pd.DataFrame(rows)


def _pairs(con: duckdb.DuckDBPyConnection, run_id: str) -> pd.DataFrame:
    if schema.current_version(con) < _SCHEMA_WITH_JUDGES:
        return pd.DataFrame()
    return con.execute(_PAIRS, {"run_id": run_id, "people": PEOPLE}).df()


def _row(variant: str, base: str, pairs: pd.DataFrame) -> Row:
    voted = pairs[pairs["state"] == "scored"]
    wins, losses, ties = (int((voted["result"] == result).sum()) for result in ("win", "loss", "tie"))
    n_skipped = int((pairs["state"] == "refused").sum())
    interval = stats.wilson(wins, wins + losses)
    is_covered = len(voted) >= MIN_COVERAGE * (len(voted) + n_skipped)
    return {
        "variant": variant,
        "base": base,
        "n_wins": wins,
        "n_losses": losses,
        "n_ties": ties,
        "n_both_bad": int((voted["vote"] == "both bad").sum()),
        "n_skipped": n_skipped,
        "n_votes": len(voted),
        "n_left": int((voted["vote"] == "left").sum()),
        "n_same_text": int(pairs["is_same_text"].sum()),
        "win_share": wins / (wins + losses) if wins + losses else None,
        "ci_low": interval.low if interval else None,
        "ci_high": interval.high if interval else None,
        "p_value": stats.mcnemar_exact(losses, wins) if is_covered and wins + losses else None,
        "p_holm": None,
        "verdict": None if is_covered else NOT_COMPARABLE,
    }


def _words(row: Row) -> str:
    variant, base = row["variant"], row["base"]
    if row["verdict"] == NOT_COMPARABLE:
        n_shown = row["n_votes"] + row["n_skipped"]
        return f"{NOT_COMPARABLE}: {row['n_skipped']} of {n_shown} pairs shown were skipped"
    if row["verdict"] == BETTER:
        return f"{variant} is preferred to {base}"
    if row["verdict"] == WORSE:
        return f"{base} is preferred to {variant}"
    return SAME if row["verdict"] == SAME else "no vote decides between them"
