"""What each variant did with each prompt of the suite, for comparisons prompt by prompt."""

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

from liob_core import stats
from liob_core.analysis.blocks import USABLE


@dataclass(frozen=True, slots=True)
class Answer:
    """What one variant did with one prompt: seconds (mean over repeats), blocks, check, cut off."""

    seconds: float | None
    n_blocks: int
    check_result: str | None
    is_cut_off: bool | None


Answers = Mapping[str, Mapping[str, Answer]]  # variant -> prompt -> answer


@dataclass(frozen=True, slots=True)
class Flips:
    """How many of `n` prompts that were checked for both passed for one of two variants alone."""

    n_gained: int
    n_lost: int
    n: int

    @property
    def p_value(self) -> float:
        """The exact two-sided p value of "as many flips down as up"."""
        return stats.mcnemar_exact(self.n_lost, self.n_gained)


def read_answers(con: duckdb.DuckDBPyConnection, run_id: str) -> Answers:
    """Per variant and prompt: time over all blocks, check and cut-off of the first block only."""
    found: dict[str, dict[str, Answer]] = {}
    rows = con.execute(
        f"""
        WITH suite AS (
            SELECT *, block = min(block) OVER () AS graded
            FROM raw.samples WHERE run_id = ? AND task = 'suite' AND NOT warmup
        )
        SELECT
            variant, prompt_id,
            avg(e2e_ms) FILTER ({USABLE}) / 1000 AS seconds,
            count(DISTINCT block) FILTER ({USABLE} AND e2e_ms IS NOT NULL) AS n_blocks,
            max(check_result) FILTER (graded AND check_result IN ('pass', 'fail')) AS check_result,
            bool_or(outcome IN ('length', 'truncated_thinking', 'repetition'))
                FILTER (graded AND e2e_ms IS NOT NULL) AS is_cut_off
        FROM suite GROUP BY variant, prompt_id
        """,  # noqa: S608 - no text from outside
        [run_id],
    ).fetchall()
    for variant, prompt_id, *rest in rows:
        found.setdefault(variant, {})[prompt_id] = Answer(*rest)
    return found


def shared(answers: Answers, variant: str, reference: str) -> list[tuple[Answer, Answer]]:
    """The answers of two variants to the prompts that both have."""
    mine, base = answers.get(variant, {}), answers.get(reference, {})
    return [(mine[prompt], base[prompt]) for prompt in sorted(mine.keys() & base.keys())]


def flips(answers: Answers, variant: str, reference: str) -> Flips:
    """The flips of a variant's checks against another's."""
    pairs = [(a.check_result, b.check_result) for a, b in shared(answers, variant, reference)]
    checked = [pair for pair in pairs if None not in pair]
    return Flips(checked.count(("pass", "fail")), checked.count(("fail", "pass")), len(checked))
