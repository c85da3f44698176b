"""What did they say: the prompts by disagreement, and the variants' answers to one of them."""

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from liob_core.errors import UsageError
from liob_core.store import database, schema

# One answer a prompt and variant: the one of the first block in which the suite ran.
_GRADED = """
    SELECT * FROM raw.samples
    WHERE run_id = $run_id AND task = 'suite' AND NOT warmup AND block = (
        SELECT min(block) FROM raw.samples WHERE run_id = $run_id AND task = 'suite' AND NOT warmup
    )
"""

# Disagreement: how many variants were checked otherwise than the reference, then how many a judge or people
# found better or worse, then how many wrote other text. A point is no difference: judges waver by as much.
_PROMPTS = f"""
    WITH graded AS ({_GRADED}), base AS (
        SELECT prompt_id, any_value(check_result) AS check_result, any_value(hash(response)) AS text
        FROM graded
        WHERE variant = (SELECT variant FROM raw.variants WHERE run_id = $run_id AND is_reference)
        GROUP BY prompt_id
    ), counted AS (
        SELECT
            graded.prompt_id, any_value(graded.category) AS category,
            count(DISTINCT graded.variant) AS n_variants,
            count(*) FILTER (graded.check_result = 'pass') AS n_passed,
            count(*) FILTER (graded.check_result = 'fail') AS n_failed,
            count(*) FILTER (graded.check_result = 'unchecked') AS n_unchecked,
            count(*) FILTER (graded.outcome NOT IN ('ok', 'length')) AS n_unusable,
            count(*) FILTER (
                graded.check_result IN ('pass', 'fail') AND base.check_result IN ('pass', 'fail')
                AND graded.check_result <> base.check_result
            ) AS n_flips,
            count(*) FILTER (hash(graded.response) <> base.text) AS n_other_text
        FROM graded LEFT JOIN base USING (prompt_id)
        GROUP BY graded.prompt_id
    ), opinions AS (
        SELECT * FROM raw.judgements WHERE run_id = $run_id AND state = 'scored'
        QUALIFY row_number() OVER (
            PARTITION BY sample_id, judge_key, mode, reference_sample_id
            ORDER BY judged_utc DESC, judgement_id DESC
        ) = 1
    ), judged AS (
        SELECT mine.prompt_id, count(DISTINCT mine.variant) FILTER (
            mine.result IN ('win', 'loss') OR abs(mine.score - other.score) > 1
        ) AS n_judged_otherwise
        FROM opinions AS mine LEFT JOIN opinions AS other
            ON other.prompt_id = mine.prompt_id AND other.judge_key = mine.judge_key
            AND other.mode = mine.mode AND other.variant = (
                SELECT variant FROM raw.variants WHERE run_id = $run_id AND is_reference
            )
        GROUP BY mine.prompt_id
    )
    SELECT
        counted.prompt_id, counted.category, prompts.messages->>'$[#-1].content' AS question,
        prompts.check_kind, counted.* EXCLUDE (prompt_id, category),
        counted.n_flips / greatest(counted.n_variants - 1, 1) AS flip_share,
        counted.n_other_text / greatest(counted.n_variants - 1, 1) AS other_text_share,
        coalesce(judged.n_judged_otherwise, 0) AS n_judged_otherwise
    FROM counted LEFT JOIN raw.prompts AS prompts
        ON prompts.run_id = $run_id AND prompts.prompt_id = counted.prompt_id
    LEFT JOIN judged ON judged.prompt_id = counted.prompt_id
    ORDER BY
        n_flips DESC, n_judged_otherwise DESC, n_other_text DESC, n_unusable DESC, prompts.position,
        counted.prompt_id
    LIMIT 2000
"""  # noqa: S608 - no text from outside

# The answers to one prompt with one seed, of the first block that has it; without several seeds that is the
# graded block.
_ASKED = """
    SELECT * FROM raw.samples
    WHERE run_id = $run_id AND prompt_id = $prompt_id AND task = 'suite' AND NOT warmup AND block = (
        SELECT min(block) FROM raw.samples
        WHERE run_id = $run_id AND task = 'suite' AND NOT warmup AND ($seed IS NULL OR seed = $seed)
    )
"""
_ANSWERS = f"""
    WITH graded AS ({_ASKED})
    SELECT
        variants.variant, variants.is_reference, variants.bpw, variants.quant, graded.sample_id,
        graded.outcome, graded.reason, graded.response, graded.thinking, graded.check_result,
        graded.check_reason, graded.check_score, graded.check_extracted, graded.prompt_tokens,
        graded.output_tokens,
        graded.ttft_ms, graded.e2e_ms, graded.decode_tps, graded.contended, graded.unknown, graded.seed,
        graded.response = any_value(graded.response) FILTER (variants.is_reference) OVER () AS same_text
    FROM raw.variants AS variants LEFT JOIN graded USING (run_id, variant)
    WHERE variants.run_id = $run_id
    QUALIFY row_number() OVER (PARTITION BY variants.variant ORDER BY graded.started_utc DESC) = 1
    ORDER BY variants.is_reference DESC, variants.bpw DESC NULLS LAST, variants.position
"""  # noqa: S608 - no text from outside

_SEEDS = """
    SELECT DISTINCT seed FROM raw.samples
    WHERE run_id = ? AND prompt_id = ? AND task = 'suite' AND NOT warmup AND seed IS NOT NULL ORDER BY seed
"""
# Databases of share mode are opened as they are; one from before seeds has one answer a prompt.
_SCHEMA_WITH_SEEDS = 8
_SCHEMA_WITH_KINDS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFacts:
    """One prompt of a run: its turns as (role, text), the exact text sent, and how it is graded."""

    prompt_id: str
    category: str | None
    turns: tuple[tuple[str, str], ...]
    prompt: str | None
    check_kind: str | None
    check_params: str | None
    rubric: str | None
    reference_answer: str | None
    templated: bool | None


def prompts(db: Path, run_id: str) -> pd.DataFrame:
    """The prompts that were answered, those with the most disagreement first, at most 2,000.

    Columns: prompt_id, category, question (the last turn's text), check_kind, n_variants, n_passed,
    n_failed, n_unchecked, n_unusable (ended neither ok nor length), n_flips (variants checked otherwise
    than the reference), n_other_text, flip_share, other_text_share (both 0 to 1, of the other variants),
    n_judged_otherwise (variants that a judge preferred or not, or scored more than a point apart).
    """
    with database.read(db) as con:
        return con.execute(_PROMPTS, {"run_id": run_id}).df()


def left_out(db: Path, run_id: str) -> str | None:
    """What of a run was left out before it came here; None where nothing was."""
    with database.read(db) as con:
        if schema.current_version(con) < _SCHEMA_WITH_KINDS:
            return None
        row = con.execute("SELECT left_out FROM raw.runs WHERE run_id = ?", [run_id]).fetchone()
    return None if row is None else row[0]


def answers(db: Path, run_id: str, prompt_id: str, seed: int | None = None) -> pd.DataFrame:
    """Each variant's answer to one prompt, the reference first; no answer leaves NULLs.

    The graded answer, or with a `seed` the one to that.

    Columns: variant, is_reference, bpw, quant, sample_id, outcome, reason, response, thinking, check_result,
    check_reason, check_score (0 to 1), check_extracted, prompt_tokens, output_tokens, ttft_ms, e2e_ms,
    decode_tps, contended, unknown (JSON: metric -> why NULL), seed, same_text (as the reference's).
    """
    with database.read(db) as con:
        return con.execute(_ANSWERS, {"run_id": run_id, "prompt_id": prompt_id, "seed": seed}).df()


def prompt_seeds(db: Path, run_id: str, prompt_id: str) -> pd.DataFrame:
    """The seeds with which one prompt was answered, the graded one first; one column, seed."""
    return database.query(db, _SEEDS, [run_id, prompt_id])


def answer_seeds(db: Path, run_id: str, prompt_id: str) -> pd.DataFrame:
    """How many answers of each variant to one prompt passed; empty where it had one seed.

    Columns: those of the view `seeds` without run_id and prompt_id.
    """
    with database.read(db) as con:
        if schema.current_version(con) < _SCHEMA_WITH_SEEDS:
            return pd.DataFrame()
        return con.execute(
            "SELECT * EXCLUDE (run_id, prompt_id) FROM main.seeds WHERE run_id = ? AND prompt_id = ?",
            [run_id, prompt_id],
        ).df()


def prompt_facts(db: Path, run_id: str, prompt_id: str) -> PromptFacts:
    """One prompt as it was asked; raises UsageError where the run has no such prompt."""
    with database.read(db) as con:
        row = con.execute(
            "SELECT category, messages, prompt, check_kind, check_params, rubric, reference_answer, "
            "templated FROM raw.prompts WHERE run_id = ? AND prompt_id = ?",
            [run_id, prompt_id],
        ).fetchone()
    if row is None:
        raise UsageError(f"Run {run_id!r} has no prompt {prompt_id!r}. Choose one from the list.")
    category, messages, prompt, kind, params, rubric, reference_answer, templated = row
    return PromptFacts(
        prompt_id=prompt_id,
        category=category,
        turns=tuple((turn["role"], turn["content"]) for turn in json.loads(messages or "[]")),
        prompt=prompt,
        check_kind=kind,
        check_params=params,
        rubric=rubric,
        reference_answer=reference_answer,
        templated=templated,
    )
