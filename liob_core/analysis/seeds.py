"""Prompts answered several times: how often each passed, and how often two answers to it disagree.

The prompt is the unit of evidence: its answers are averaged first, and intervals are over prompts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import duckdb

from liob_core import stats

_ANSWERS = """
    SELECT variant, prompt_id, block, any_value(check_result ORDER BY started_utc DESC) AS check_result
    FROM raw.samples
    WHERE run_id = ? AND task = 'suite' AND NOT warmup AND outcome <> 'cancelled'
    GROUP BY variant, prompt_id, block ORDER BY variant, prompt_id, block
"""
SEED_COLUMNS = (
    *("run_id", "variant", "prompt_id", "n_answers", "n_checked", "n_passed", "pass_share"),
    *("pass_share_ci_low", "pass_share_ci_high"),
)


@dataclass(frozen=True, slots=True)
class Passes:
    """The answers of one variant to one prompt by block: passed, failed, or None where not checked."""

    by_block: Mapping[int, bool | None]

    @property
    def checked(self) -> dict[int, bool]:
        """The blocks whose answer was checked, and whether it passed."""
        return {block: passed for block, passed in self.by_block.items() if passed is not None}

    @property
    def n_passed(self) -> int:
        """How many of the checked answers passed."""
        return sum(self.checked.values())

    @property
    def share(self) -> float | None:
        """Passed / checked, 0 to 1; None where none was checked."""
        return self.n_passed / len(self.checked) if self.checked else None


PassesByPrompt = Mapping[str, Passes]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """How often two answers to one prompt differ, as shares of prompts: `lost` + `gained` are flips."""

    n_prompts: int
    lost: float  # the second passed where the first failed
    gained: float

    @property
    def flips(self) -> float:
        """The share of prompts on which the two differ, 0 to 1."""
        return self.lost + self.gained


def read_passes(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, dict[str, Passes]]:
    """Every variant's answers to every prompt of a run, by variant and prompt."""
    known = {"pass": True, "fail": False}
    found: dict[str, dict[str, dict[int, bool | None]]] = {}
    for variant, prompt_id, block, result in con.execute(_ANSWERS, [run_id]).fetchall():
        found.setdefault(variant, {}).setdefault(prompt_id, {})[block] = known.get(result)
    return {
        variant: {prompt: Passes(blocks) for prompt, blocks in prompts.items()}
        for variant, prompts in found.items()
    }


def has_seeds(con: duckdb.DuckDBPyConnection, run_id: str) -> bool:
    """Whether the run's prompts were repeated over several seeds."""
    row = con.execute("SELECT n_seeds FROM raw.runs WHERE run_id = ?", [run_id]).fetchone()
    return row is not None and (row[0] or 1) > 1


def pass_rate(passes: PassesByPrompt) -> stats.Mean | None:
    """The mean over prompts of the share that passed, with its interval over prompts; None without any."""
    shares = [one.share for one in passes.values() if one.share is not None]
    if not shares:
        return None
    mean = stats.mean_interval(shares)
    interval = mean.interval
    if not mean.sd:
        # All prompts alike leave no spread, and an interval of no width would be too sure.
        interval = stats.wilson(round(mean.mean * mean.n), mean.n)
    elif interval is not None:
        interval = stats.Interval(max(0.0, interval.low), min(1.0, interval.high))
    return stats.Mean(mean.n, mean.mean, mean.sd, mean.cv, interval)


def differences(mine: PassesByPrompt, base: PassesByPrompt) -> list[float]:
    """Per prompt that both had checked, the difference of the shares that passed."""
    pairs = [(mine[prompt].share, base[prompt].share) for prompt in sorted(mine.keys() & base.keys())]
    return [own - other for own, other in pairs if own is not None and other is not None]


def disagreement(mine: PassesByPrompt, base: PassesByPrompt) -> Disagreement | None:
    """How often an answer of the one differs from one of the other; None where no prompt has such a pair.

    Pairs are of two blocks, so of two seeds, in both cases: the answers of two variants to one seed begin
    alike, and would differ less often than those of one variant to two seeds.
    """
    shares = [pair for prompt in mine.keys() & base.keys() if (pair := _shares(mine[prompt], base[prompt]))]
    if not shares:
        return None
    n = len(shares)
    return Disagreement(n, sum(lost for lost, _ in shares) / n, sum(gained for _, gained in shares) / n)


def _shares(mine: Passes, base: Passes) -> tuple[float, float] | None:
    """Of all pairs of answers to one prompt from two blocks: the share lost and the share gained."""
    own, other = mine.checked, base.checked
    blocks: Sequence[int] = sorted(own.keys() | other.keys())
    pairs = [(own[a], other[b]) for a, b in permutations(blocks, 2) if a in own and b in other]
    if not pairs:
        return None
    return pairs.count((False, True)) / len(pairs), pairs.count((True, False)) / len(pairs)


def seed_rows(run_id: str, passes: Mapping[str, PassesByPrompt]) -> list[tuple[object, ...]]:
    """The rows of raw.seeds, in the order of SEED_COLUMNS; the interval is of one prompt, over its seeds."""
    rows: list[tuple[object, ...]] = []
    for variant, prompts in passes.items():
        for prompt_id, one in prompts.items():
            n_checked = len(one.checked)
            low, high = stats.wilson(one.n_passed, n_checked) or (None, None)
            counts = (len(one.by_block), n_checked, one.n_passed, one.share)
            rows.append((run_id, variant, prompt_id, *counts, low, high))
    return rows
