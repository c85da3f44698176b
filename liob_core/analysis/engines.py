"""The same weights on several engines: what each took, and whether both were really asked the same."""

from pathlib import Path

import pandas as pd

from liob_core.store import database

# The first block grades the suite and so has every prompt once.
_SAME_WEIGHTS = """
    WITH shared AS (
        SELECT weights_sha256 FROM raw.variants
        WHERE run_id = $run_id AND weights_sha256 IS NOT NULL
        GROUP BY weights_sha256 HAVING count(DISTINCT engine) > 1
    ), rows AS (
        SELECT
            variants.*,
            first_value(variants.variant) OVER (
                PARTITION BY variants.weights_sha256 ORDER BY variants.is_reference DESC, variants.position
            ) AS compared_with
        FROM raw.variants AS variants JOIN shared USING (weights_sha256) WHERE run_id = $run_id
    ), asked AS (
        SELECT
            variant, prompt_id, any_value(prompt_sha256) AS prompt_sha256,
            any_value(prompt_tokens) AS prompt_tokens, any_value(response) AS response
        FROM raw.samples
        WHERE run_id = $run_id AND task = 'suite' AND NOT warmup AND block = 0
            AND outcome IN ('ok', 'length')
        GROUP BY variant, prompt_id
    ), pairs AS (
        SELECT
            rows.variant,
            count(*) AS n_prompts,
            count(*) FILTER (mine.prompt_sha256 = theirs.prompt_sha256) AS n_same_bytes,
            count(*) FILTER (mine.prompt_tokens = theirs.prompt_tokens) AS n_same_tokens,
            count(*) FILTER (mine.response = theirs.response) AS n_same_answers
        FROM rows
        JOIN asked AS mine ON mine.variant = rows.variant
        JOIN asked AS theirs ON theirs.variant = rows.compared_with AND theirs.prompt_id = mine.prompt_id
        WHERE rows.variant <> rows.compared_with
        GROUP BY rows.variant
    )
    SELECT
        rows.weights_sha256, rows.variant, rows.engine, rows.compared_with, rows.is_reference, rows.bpw,
        (SELECT max(engine_version) FROM raw.loads AS loads
            WHERE loads.run_id = $run_id AND loads.variant = rows.variant) AS engine_version,
        results.decode_tps, results.prefill_tps, results.ttft_ms_p50, results.load_ms,
        results.peak_memory_bytes, results.pass_rate,
        pairs.n_prompts, pairs.n_same_bytes, pairs.n_same_tokens, pairs.n_same_answers
    FROM rows
    JOIN main.results AS results ON results.run_id = $run_id AND results.variant = rows.variant
    LEFT JOIN pairs ON pairs.variant = rows.variant
    ORDER BY rows.bpw DESC NULLS LAST, rows.weights_sha256, rows.variant <> rows.compared_with, rows.position
"""


def same_weights(db: Path, run_id: str) -> pd.DataFrame:
    """One row a variant whose weights ran on more than one engine of the run; empty where none did.

    Columns: weights_sha256, variant, engine, compared_with (the variant whose row comes first), is_reference,
    bpw, engine_version, decode_tps, prefill_tps, ttft_ms_p50, load_ms, peak_memory_bytes, pass_rate, and
    against compared_with n_prompts (answered by both), n_same_bytes, n_same_tokens, n_same_answers.
    """
    with database.read(db) as con:
        return con.execute(_SAME_WEIGHTS, {"run_id": run_id}).df()
