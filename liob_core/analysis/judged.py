"""What judges say of a run: scores and comparisons with their coverage, and verdicts where they hold.

Opinions are appended: the latest of a judge on a sample counts.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from liob_core.analysis.judge_verdicts import (
    Cell,
    JudgeFacts,
    Row,
    RowMaker,
    pair_row,
    score_row,
    with_verdicts,
)
from liob_core.store import database, schema
from liob_core.types import JudgeMode

# Databases of share mode are opened as they are; one from before judges has no opinions.
_SCHEMA_WITH_JUDGES = 2

_LATEST = """
    SELECT * FROM raw.judgements WHERE run_id = $run_id
        -- people also compare two variants of which neither is the reference
        AND (reference_sample_id IS NULL OR reference_sample_id IN (
            SELECT sample_id FROM raw.samples JOIN raw.variants USING (run_id, variant)
            WHERE run_id = $run_id AND is_reference
        ))
    QUALIFY row_number() OVER (
        PARTITION BY sample_id, judge_key, mode ORDER BY judged_utc DESC, judgement_id DESC
    ) = 1
"""
_JUDGES = f"""
    WITH latest AS ({_LATEST}), asked AS (
        SELECT * FROM raw.calibrations WHERE run_id = $run_id
        QUALIFY row_number() OVER (
            PARTITION BY judge_key, mode, item_id ORDER BY judged_utc DESC, calibration_id DESC
        ) = 1
    ), calibrated AS (
        SELECT judge_key, mode, any_value(judge) AS judge, count(*) AS n_items,
            count(*) FILTER (is_right) AS n_right, max(judged_utc) AS judged_utc
        FROM asked GROUP BY judge_key, mode
    ), judged AS (
        SELECT judge_key, mode, any_value(judge) AS judge, count(*) AS n_judged,
            count(*) FILTER (state = 'scored') AS n_scored, max(judged_utc) AS judged_utc
        FROM latest GROUP BY judge_key, mode
    )
    SELECT coalesce(judged.judge, calibrated.judge) AS judge, judge_key, mode,
        coalesce(n_judged, 0) AS n_judged, coalesce(n_scored, 0) AS n_scored,
        coalesce(n_right, 0) AS n_right, coalesce(n_items, 0) AS n_items,
        coalesce(judged.judged_utc, calibrated.judged_utc) AS judged_utc
    FROM judged FULL JOIN calibrated USING (judge_key, mode)
    ORDER BY judged_utc DESC, judge, mode
"""  # noqa: S608 - no text from outside
_CELLS = f"""
    WITH latest AS (SELECT * FROM ({_LATEST}) WHERE judge_key = $judge_key AND mode = $mode),
    graded AS (
        SELECT * FROM raw.samples
        WHERE run_id = $run_id AND task = 'suite' AND NOT warmup AND outcome <> 'cancelled' AND block = (
            SELECT min(block) FROM raw.samples WHERE run_id = $run_id AND task = 'suite' AND NOT warmup
        )
        QUALIFY row_number() OVER (PARTITION BY variant, prompt_id ORDER BY started_utc DESC) = 1
    ), scope AS (
        SELECT prompt_id FROM raw.prompts WHERE run_id = $run_id AND rubric IS NOT NULL
        UNION SELECT prompt_id FROM latest
    )
    SELECT graded.variant, graded.prompt_id, graded.outcome, latest.state, latest.score, latest.result,
        latest.lengths_differ, latest.is_self, latest.preferred_first, latest.preferred_second
    FROM graded JOIN scope USING (prompt_id) LEFT JOIN latest USING (sample_id)
    ORDER BY graded.variant, graded.prompt_id
"""  # noqa: S608 - no text from outside
_VARIANTS = """
    SELECT variant, is_reference, bpw FROM raw.variants WHERE run_id = ?
    ORDER BY is_reference DESC, bpw DESC NULLS LAST, position
"""
_OPINIONS = f"""
    SELECT variant, judge, mode, state, score, result, reason, lengths_differ, is_self, calibration_share,
        attempts, raw_reply, raw_reply_second, judged_utc, sample_id
    FROM ({_LATEST}) WHERE prompt_id = $prompt_id ORDER BY judge, mode, variant
"""  # noqa: S608 - no text from outside


def judges(db: Path, run_id: str) -> pd.DataFrame:
    """The judges of a run, the latest first; one row a judge and mode.

    Columns: judge, judge_key, mode, n_judged, n_scored, n_right, n_items (of the calibration), judged_utc,
    gives_verdict, sentence (how the calibration went, and what that means).
    """
    with database.read(db) as con:
        frame = _judges(con, run_id)
    if frame.empty:
        return frame
    facts = [_facts_of(row) for row in frame.to_dict("records")]
    return frame.assign(
        gives_verdict=[one.gives_verdict for one in facts],
        sentence=[one.calibration_sentence for one in facts],
    )


def judge_facts(db: Path, run_id: str, judge_key: str, mode: str) -> JudgeFacts | None:
    """One judge of a run in one mode; None where it has said nothing."""
    with database.read(db) as con:
        return _facts(con, run_id, judge_key, mode)


def calibration(db: Path, run_id: str, judge_key: str, mode: str) -> pd.DataFrame:
    """What a judge said to the questions whose answer is known, in the order asked.

    Columns: item_id, item_kind (gold, identical, damaged), expected, got, is_right, state, raw_reply.
    """
    sql = (
        "SELECT item_id, item_kind, expected, got, is_right, state, raw_reply FROM raw.calibrations "
        "WHERE run_id = $run_id AND judge_key = $judge_key AND mode = $mode "
        "QUALIFY row_number() OVER (PARTITION BY item_id ORDER BY judged_utc DESC, calibration_id DESC) = 1 "
        "ORDER BY judged_utc, calibration_id"
    )
    with database.read(db) as con:
        return _frame(con, sql, {"run_id": run_id, "judge_key": judge_key, "mode": mode})


def opinions(db: Path, run_id: str, prompt_id: str) -> pd.DataFrame:
    """Every judge's latest opinion on the answers to one prompt.

    Columns: variant, judge, mode, state, score (1 to 10), result (win, tie, loss), reason, lengths_differ,
    is_self, calibration_share, attempts, raw_reply, raw_reply_second, judged_utc, sample_id.
    """
    with database.read(db) as con:
        return _frame(con, _OPINIONS, {"run_id": run_id, "prompt_id": prompt_id})


def scores(db: Path, run_id: str, judge_key: str) -> pd.DataFrame:
    """Per variant, the reference first: mean score from 1 to 10, and the difference to the reference.

    Columns: variant, is_reference, bpw, mean_score, ci_low, ci_high (over prompts), n_scored, n_judgeable
    (answers that ended by themselves), n_total (prompts), n_own_failures, n_<state> for each other state,
    coverage (0 to 1), is_self, delta, delta_low, delta_high, n_pairs, p_value, p_holm, verdict, reason,
    words.
    """
    return _table(db, run_id, judge_key, JudgeMode.SINGLE)


def pairs(db: Path, run_id: str, judge_key: str) -> pd.DataFrame:
    """Per variant but the reference: how its answers fared against the reference's, and the sign test.

    Columns: variant, is_reference, bpw, n_wins, n_ties, n_losses, n_scored, n_judgeable, n_total,
    n_own_failures, n_<state>, coverage (0 to 1), n_lengths_differ, n_order_decided (the two orders
    contradict each other), n_asked (scored pairs that are not the same text), n_same_order (of these, said
    alike in both orders), is_self, delta ((wins - losses) / scored), delta_low, delta_high, p_value, p_holm,
    verdict, reason, words.
    """
    return _table(db, run_id, judge_key, JudgeMode.PAIRWISE)


def judges_of(con: duckdb.DuckDBPyConnection, run_id: str) -> list[JudgeFacts]:
    """The judges of a run, the latest first."""
    return [_facts_of(row) for row in _judges(con, run_id).to_dict("records")]


def cells_of(con: duckdb.DuckDBPyConnection, run_id: str, facts: JudgeFacts) -> dict[str, dict[str, Cell]]:
    """Each variant's graded answers with the judge's latest opinion, by variant and prompt."""
    cells: dict[str, dict[str, Cell]] = {}
    parameters = {"run_id": run_id, "judge_key": facts.judge_key, "mode": facts.mode}
    for variant, prompt_id, *rest in con.execute(_CELLS, parameters).fetchall():
        cells.setdefault(variant, {})[prompt_id] = Cell(*rest)
    return cells


def rows_of(con: duckdb.DuckDBPyConnection, run_id: str, facts: JudgeFacts) -> list[Row]:
    """What `scores` or `pairs` says of a run's variants, as the judge's mode is, a dict a variant."""
    is_single = facts.mode == JudgeMode.SINGLE
    make: RowMaker = score_row if is_single else pair_row
    variants = con.execute(_VARIANTS, [run_id]).fetchall()
    cells = cells_of(con, run_id, facts)
    base = next((cells.get(variant, {}) for variant, is_reference, _ in variants if is_reference), {})
    if facts.is_people:  # what they are shown is drawn at random, so they need not have seen all of it
        cells = {name: {p: one for p, one in mine.items() if one.state} for name, mine in cells.items()}
    rows = [
        {
            "variant": variant,
            "is_reference": is_reference,
            "bpw": bpw,
            **make(base if is_reference else cells.get(variant, {}), base),
        }
        for variant, is_reference, bpw in variants
        if is_single or not is_reference
    ]
    return with_verdicts(rows, facts)


def _judges(con: duckdb.DuckDBPyConnection, run_id: str) -> pd.DataFrame:
    return _frame(con, _JUDGES, {"run_id": run_id})


def _facts(con: duckdb.DuckDBPyConnection, run_id: str, judge_key: str, mode: str) -> JudgeFacts | None:
    asked = (judge_key, mode)
    return next((one for one in judges_of(con, run_id) if (one.judge_key, one.mode) == asked), None)


def _facts_of(row: Mapping[Any, Any]) -> JudgeFacts:
    counts = {name: int(row[name]) for name in ("n_judged", "n_scored", "n_right", "n_items")}
    return JudgeFacts(judge=row["judge"], judge_key=row["judge_key"], mode=row["mode"], **counts)


def _frame(con: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any]) -> pd.DataFrame:
    if schema.current_version(con) < _SCHEMA_WITH_JUDGES:
        return pd.DataFrame()
    return con.execute(sql, parameters).df()


def _table(db: Path, run_id: str, judge_key: str, mode: JudgeMode) -> pd.DataFrame:
    with database.read(db) as con:
        facts = _facts(con, run_id, judge_key, mode)
        return pd.DataFrame() if facts is None else pd.DataFrame(rows_of(con, run_id, facts))
