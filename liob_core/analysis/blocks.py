"""Which samples speed figures rest on, and each block's rates from them."""

from dataclasses import dataclass

import duckdb

# Warm-ups, replies that did not complete as asked, and samples beside a busy neighbour are counted
# elsewhere and never averaged. An unknown neighbour is no reason to drop a sample.
USABLE = "NOT warmup AND outcome IN ('ok', 'length') AND contended IS NOT TRUE"

# A rate times its own time is its tokens, so this is the sum of tokens over the sum of time, and every
# sample that has no rate of its own is left out of both sums. Results of others, whose requests LIOB did not
# time, keep their own aggregation: the plain mean over prompts.
BLOCK_RATES = f"""
    SELECT
        variant, block, task, shape,
        if(
            count(e2e_ms) = 0,
            avg(decode_tps),
            sum(decode_tps * engine_eval_ms)
                / nullif(sum(engine_eval_ms) FILTER (decode_tps IS NOT NULL), 0)
        ) AS decode_tps,
        sum(prefill_tps * engine_prompt_ms)
            / nullif(sum(engine_prompt_ms) FILTER (prefill_tps IS NOT NULL), 0) AS prefill_tps,
        median(ttft_ms) AS ttft_ms,
        count(*) AS n_samples
    FROM raw.samples
    WHERE run_id = ? AND {USABLE}
    GROUP BY variant, block, task, shape
    ORDER BY variant, block, task, shape
"""  # noqa: S608 - no text from outside

HEADLINE_SHAPE = {"decode_tps": "chat512", "ttft_ms": "chat512", "prefill_tps": "pp512"}


@dataclass(frozen=True, slots=True)
class Block:
    """The rates (tokens/s) and the median TTFT (ms) of one block of one variant, task and shape."""

    variant: str
    block: int
    task: str
    shape: str | None
    decode_tps: float | None
    prefill_tps: float | None
    ttft_ms: float | None
    n_samples: int


def read_blocks(con: duckdb.DuckDBPyConnection, run_id: str) -> list[Block]:
    """Every block of a run with its rates in tokens/s."""
    return [Block(*row) for row in con.execute(BLOCK_RATES, [run_id]).fetchall()]


def timing_task(con: duckdb.DuckDBPyConnection, run_id: str) -> str | None:
    """Where the timing figures of a run come from: speed where it ran, else suite; one for all variants."""
    row = con.execute(
        "SELECT max(task = 'speed'), max(task = 'suite') FROM raw.samples WHERE run_id = ? AND NOT warmup",
        [run_id],
    ).fetchone()
    if row is None or row[0] is None:
        return None
    return "speed" if row[0] else "suite"


def values_by_block(
    blocks: list[Block], variant: str, metric: str, task: str | None, shape: str | None = None
) -> dict[int, float]:
    """One variant's value of `metric` per block, in the metric's unit; blocks without one are absent.

    Without `shape`, the one that the metric's headline is taken from (none for the suite).
    """
    if shape is None and task == "speed":
        shape = HEADLINE_SHAPE[metric]
    return {
        block.block: value
        for block in blocks
        if (block.variant, block.task, block.shape) == (variant, task, shape)
        and (value := getattr(block, metric)) is not None
    }
