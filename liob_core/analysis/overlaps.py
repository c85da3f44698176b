"""How much of a reference text the answers share, per variant: ROUGE-L, BLEU and token F1."""

from pathlib import Path

import pandas as pd

from liob_core import stats
from liob_core.analysis.deltas import BOOTSTRAP_SEED
from liob_core.store import database

NAMES = {"rouge_l": "ROUGE-L", "bleu": "BLEU", "token_f1": "token F1"}

# One answer a prompt and variant: the latest of the first block in which the suite ran.
_SCORES = """
    WITH graded AS (
        SELECT variant, prompt_id, check_score FROM raw.samples
        WHERE run_id = ? AND task = 'suite' AND NOT warmup AND outcome <> 'cancelled' AND block = (
            SELECT min(block) FROM raw.samples WHERE run_id = ? AND task = 'suite' AND NOT warmup
        )
        QUALIFY row_number() OVER (PARTITION BY variant, prompt_id ORDER BY started_utc DESC) = 1
    )
    SELECT prompts.check_kind AS kind, variants.variant, variants.is_reference, variants.bpw,
        graded.prompt_id, graded.check_score AS score
    FROM graded
    JOIN raw.prompts AS prompts ON prompts.run_id = ? AND prompts.prompt_id = graded.prompt_id
    JOIN raw.variants AS variants ON variants.run_id = ? AND variants.variant = graded.variant
    WHERE prompts.check_kind IN ('rouge_l', 'bleu', 'token_f1') AND graded.check_score IS NOT NULL
    ORDER BY kind, variants.is_reference DESC, variants.bpw DESC NULLS LAST, variants.position, prompt_id
"""


def overlaps(db: Path, run_id: str) -> pd.DataFrame:
    """One row a measure and variant; empty where no check compares with a reference text.

    Columns: kind (rouge_l, bleu, token_f1), variant, is_reference, bpw, mean_score (0 to 1, over prompts),
    ci_low, ci_high, n, delta (to the reference, over the prompts that both have), delta_low, delta_high,
    n_pairs; intervals are 95 %.
    """
    scores = database.query(db, _SCORES, [run_id] * 4)
    rows = []
    for kind, of_kind in scores.groupby("kind", sort=False):
        base = of_kind[of_kind["is_reference"]].set_index("prompt_id")["score"]
        for variant, of_variant in of_kind.groupby("variant", sort=False):
            mine = of_variant.set_index("prompt_id")["score"]
            mean = stats.mean_interval(mine.tolist())
            first = of_variant.iloc[0]
            about = {
                "kind": kind,
                "variant": variant,
                "is_reference": bool(first["is_reference"]),
                "bpw": first["bpw"],
                "mean_score": mean.mean,
                "ci_low": max(0.0, mean.interval.low) if mean.interval else None,
                "ci_high": min(1.0, mean.interval.high) if mean.interval else None,
                "n": len(mine),
            }
            rows.append({**about, **_difference(mine, base, is_reference=about["is_reference"])})
    return pd.DataFrame(rows)


def _difference(
    mine: "pd.Series[float]", base: "pd.Series[float]", *, is_reference: bool
) -> dict[str, object]:
    differences = (mine - base).dropna()
    none: dict[str, object] = {
        "delta": None,
        "delta_low": None,
        "delta_high": None,
        "n_pairs": len(differences),
    }
    if is_reference or differences.empty:
        return none
    paired = stats.paired_difference(differences.tolist(), seed=BOOTSTRAP_SEED)
    ends = paired.interval if paired.sd else None
    return {
        **none,
        "delta": paired.estimate,
        "delta_low": ends.low if ends else None,
        "delta_high": ends.high if ends else None,
    }
