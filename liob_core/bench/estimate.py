"""How long a run will take, from earlier runs of the same weights here, else from the memory's bandwidth."""

import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from liob_core.analysis.detectable import detectable
from liob_core.bench.closeness import plan_closeness
from liob_core.bench.energy import windows_s
from liob_core.bench.plan import SHAPE_TOKENS, WARMUP_TOKENS, make_plan
from liob_core.errors import LiobError
from liob_core.monitor.machine import read_machine
from liob_core.store.database import query
from liob_core.types import Cell, RunSpec, Task, Variant

# Without an earlier run. A core reads about this share of what a copy shows, prefill works on many
# tokens for each pass over the weights, and short answers are the rule.
DECODE_SHARE_OF_BANDWIDTH = 0.6
PREFILL_PER_DECODE = 6.0
TYPICAL_ANSWER_TOKENS = 200
TYPICAL_PROMPT_TOKENS = 120
LOAD_OVERHEAD_S = 1.5  # starting the engine's process
COPY_BYTES = 64 * 2**20

_EARLIER = """
SELECT results.weights_sha256, median(results.decode_tps) AS decode_tps,
       median(results.prefill_tps) AS prefill_tps, median(results.answer_tokens) AS answer_tokens
FROM results JOIN variants USING (run_id, variant) JOIN runs USING (run_id)
WHERE results.engine = ? AND runs.machine_id = ? AND results.decode_tps IS NOT NULL
GROUP BY results.weights_sha256
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Seconds a run will take, and how that is known."""

    seconds: float
    is_measured: bool  # every variant was measured here before
    sentence: str
    closeness: str | None = None  # what that task takes of time, memory and disk
    detectable: tuple[str, ...] = ()  # which differences the run can tell


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rates:
    decode_tps: float
    prefill_tps: float
    answer_tokens: float


def estimate(spec: RunSpec, database: Path) -> Estimate:
    """How long the run will take on this machine."""
    earlier = _earlier_rates(spec, database)
    rates = {
        variant.label: rate
        for variant in spec.variants
        if (rate := earlier.get(variant.weights_sha256 or "")) is not None
    }
    is_measured = len(rates) == len(spec.variants)
    known = {label: rate.prefill_tps for label, rate in rates.items()}
    plan = make_plan(spec)
    if plan:  # task closeness has cells of its own, and guessing takes a third of a second
        rates |= {variant.label: _guess(variant) for variant in spec.variants if variant.label not in rates}
    seconds = 0.0
    loads = set()
    for cell in plan:
        seconds += _cell_s(cell, rates[cell.variant], spec)
        loads.add((cell.block, cell.variant))
    sizes = {variant.label: variant.model.file_bytes if variant.model else 0 for variant in spec.variants}
    seconds += sum(LOAD_OVERHEAD_S + sizes[label] / _copy_bytes_per_s() for _, label in loads)
    if spec.energy:
        seconds += sum(
            windows_s([_request_s(SHAPE_TOKENS[shape], rates[label]) for shape in spec.shapes])
            for block, label in loads
            if block < spec.n_blocks
        )
    cost = None
    if spec.closeness is not None:
        plans = plan_closeness(spec, database.parent, known)
        seconds += sum(plan.seconds for plan in plans)
        cost = " Then: ".join(plan.sentence for plan in plans)
    basis = "from earlier runs here" if is_measured else "a rough guess: not all variants ran here before"
    return Estimate(
        seconds=seconds,
        is_measured=is_measured,
        sentence=f"about {spell_duration(seconds)} ({basis})",
        closeness=cost,
        detectable=_detectable(spec, database),
    )


def _detectable(spec: RunSpec, database: Path) -> tuple[str, ...]:
    """What the run can tell of its variants, in sentences; one variant alone is compared with nothing."""
    if len(spec.variants) < 2:
        return ()
    checks = [prompt.check for prompt in spec.suite.prompts if prompt.check] if spec.suite else []
    n_checked = sum(spec.allow_code or check.kind != "unit_tests" for check in checks)
    return detectable(
        database,
        n_checked=n_checked,
        n_blocks=spec.n_blocks if Task.SPEED in spec.tasks else None,
        engine=spec.engine,
        machine_id=_machine_id(),
    ).sentences


def spell_duration(seconds: float) -> str:
    """A duration as people say it: `40 seconds`, `14 minutes`, `2 h 10 min`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    if seconds < 5400:
        return f"{round(seconds / 60)} minutes"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min"


def _cell_s(cell: Cell, rate: _Rates, spec: RunSpec) -> float:
    if cell.task is Task.SPEED or cell.warmup:
        return _request_s(SHAPE_TOKENS[cell.shape] if cell.shape else WARMUP_TOKENS, rate)
    return _request_s((TYPICAL_PROMPT_TOKENS, int(min(rate.answer_tokens, spec.sampling.max_tokens))), rate)


def _request_s(n_tokens: tuple[int, int], rate: _Rates) -> float:
    n_in, n_out = n_tokens
    return n_in / rate.prefill_tps + n_out / rate.decode_tps


@functools.cache
def _machine_id() -> str:
    return read_machine().machine_id


def _earlier_rates(spec: RunSpec, database: Path) -> Mapping[str, _Rates]:
    if not database.exists():
        return {}
    try:
        rows = query(database, _EARLIER, (spec.engine, _machine_id()))
    except LiobError:  # a busy or broken database only makes the estimate rougher
        return {}
    return {
        row["weights_sha256"]: _Rates(
            decode_tps=row["decode_tps"],
            prefill_tps=_known(row["prefill_tps"], row["decode_tps"] * PREFILL_PER_DECODE),
            answer_tokens=_known(row["answer_tokens"], TYPICAL_ANSWER_TOKENS),
        )
        for row in rows.to_dict("records")
        if row["weights_sha256"]
    }


def _known(value: float | None, otherwise: float) -> float:
    return otherwise if value is None or np.isnan(value) else float(value)


def _guess(variant: Variant) -> _Rates:
    tensor_bytes = variant.model.tensor_bytes if variant.model else 10**9
    decode_tps = DECODE_SHARE_OF_BANDWIDTH * _copy_bytes_per_s() / tensor_bytes
    return _Rates(
        decode_tps=decode_tps,
        prefill_tps=decode_tps * PREFILL_PER_DECODE,
        answer_tokens=TYPICAL_ANSWER_TOKENS,
    )


@functools.cache
def _copy_bytes_per_s() -> float:
    """Bytes per second of one large copy in memory, the best of three: read and written."""
    source = np.ones(COPY_BYTES, dtype=np.uint8)
    target = np.empty_like(source)
    best_s = float("inf")
    for _ in range(3):
        began_s = time.perf_counter()
        np.copyto(target, source)
        best_s = min(best_s, time.perf_counter() - began_s)
    return 2 * COPY_BYTES / best_s
