"""How an evaluation is carried out on this machine, and what it will cost in time, memory and disk."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from liob_core.errors import MissingError
from liob_core.models.memory import memory_need
from liob_core.quality.closeness.records import Candidate, ClosenessSpec
from liob_core.quality.closeness.windows import n_scored_tokens, pieces
from liob_core.types import LoadSettings, ModelFile

# Tokens evaluated at once. llama.cpp's tool takes as many, so the same kernels see the same shapes; more
# is no faster on a CPU and makes the buffer of logits larger.
N_BATCH = 512
_BYTES_PER_TOKEN = 4.2  # English text; only for the estimate before the text is cut
_FLOPS_PER_THREAD = 60e9  # a recent AVX2 core on these kernels; only until the first window was timed
_LOGIT_BYTES = 4
_MEMORY_SHARE = 0.85  # of what is free; the rest is for what the prediction leaves out
_DISK_SHARE = 0.8
_LOAD_S_PER_GB = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which variants are loaded beside the reference at once, batch after batch, and the cost.

    `spill_bytes` is how much of the reference's logits may lie on disk at once, one model in memory at a
    time; None: nothing is stored. `memory_bytes` is the largest need at any time, `seconds` a rough guess.
    """

    batches: tuple[tuple[Candidate, ...], ...]
    spill_bytes: int | None
    memory_bytes: int
    disk_bytes: int
    n_windows: int
    seconds: float

    @property
    def sentence(self) -> str:
        """The cost in words."""
        minutes = max(1, round(self.seconds / 60))
        time = "under a minute" if self.seconds < 60 else f"about {minutes} min"
        disk = (
            "nothing on disk" if self.spill_bytes is None else f"up to {self.disk_bytes / 1e9:.1f} GB on disk"
        )
        return f"{self.n_windows} windows: {time}, {self.memory_bytes / 1e9:.1f} GB of memory, {disk}."


def make_plan(
    spec: ClosenessSpec,
    models: Mapping[str, ModelFile],
    *,
    available_bytes: int,
    free_disk_bytes: int,
    prefill_tps: Mapping[str, float] | None = None,
    one_at_a_time: bool = False,
) -> Plan:
    """The plan for this much free memory and disk; MissingError where not even one model and window fit.

    `prefill_tps` are rates in tokens/s known from earlier runs, by label; `one_at_a_time` keeps to one
    model in memory whatever is predicted.
    """
    needs = {one.label: _need_bytes(spec, one, models[one.label]) for one in spec.candidates}
    budget = int(available_bytes * _MEMORY_SHARE)
    n_windows = planned_windows(spec.text.n_bytes, spec.n_ctx, spec.n_windows)
    batches = None if one_at_a_time else _pack(spec, needs, budget)
    if batches is not None:
        reference = needs[spec.reference.label]
        return Plan(
            batches=batches,
            spill_bytes=None,
            memory_bytes=max(reference + sum(needs[one.label] for one in batch) for batch in batches),
            disk_bytes=0,
            n_windows=n_windows,
            seconds=_seconds(spec, models, n_windows, prefill_tps or {}, n_reference=len(batches), n_loads=1),
        )
    window = n_scored_tokens(spec.n_ctx) * _vocabulary(models[spec.reference.label]) * _LOGIT_BYTES
    spill = int(free_disk_bytes * _DISK_SHARE)
    if spill < window:
        raise MissingError(
            f"Closeness needs {window / 1e9:.1f} GB of disk for one window, because memory does not hold the "
            f"reference and a variant together. Free some space, or choose fewer tokens than {spec.n_ctx}."
        )
    n_groups = -(-n_windows * window // (spill // window * window))
    return Plan(
        batches=(spec.variants,),
        spill_bytes=spill,
        memory_bytes=max(needs.values()),
        disk_bytes=min(spill // window, n_windows) * window,
        n_windows=n_windows,
        seconds=_seconds(spec, models, n_windows, prefill_tps or {}, n_reference=1, n_loads=n_groups),
    )


def planned_windows(n_bytes: int, n_ctx: int, n_windows: int | None) -> int:
    """How many windows a text of so many bytes will give, before it is cut into tokens."""
    available = max(1, int(n_bytes / _BYTES_PER_TOKEN / n_ctx))
    return available if n_windows is None else min(n_windows, available)


def free_disk_bytes(folder: Path) -> int:
    """Bytes free where `folder` is or will be."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def _pack(
    spec: ClosenessSpec, needs: Mapping[str, int], budget: int
) -> tuple[tuple[Candidate, ...], ...] | None:
    """The variants in as few batches as fit beside the reference; None where one does not fit."""
    room = budget - needs[spec.reference.label]
    if spec.variants and max(needs[one.label] for one in spec.variants) > room:
        return None
    batches: list[list[Candidate]] = [[]]
    used = 0
    for one in spec.variants:
        if batches[-1] and used + needs[one.label] > room:
            batches.append([])
            used = 0
        batches[-1].append(one)
        used += needs[one.label]
    return tuple(tuple(batch) for batch in batches)


def _need_bytes(spec: ClosenessSpec, candidate: Candidate, model: ModelFile) -> int:
    """Bytes of one model while it is evaluated; its logits lie twice, in the graph and in the output."""
    n_batch = min(N_BATCH, spec.n_ctx)
    settings = LoadSettings(
        n_ctx=spec.n_ctx,
        n_batch=n_batch,
        n_ubatch=n_batch,
        threads=spec.threads,
        kv_type_k=candidate.kv_type_k,
        kv_type_v=candidate.kv_type_v,
    )
    need = memory_need(model, settings).need_bytes
    n_outputs = max(piece.n_scored for piece in pieces(spec.n_ctx, n_batch))
    logits = 2 * n_outputs * _vocabulary(model) * _LOGIT_BYTES
    # An architecture that LIOB cannot predict: the weights and a tenth for cache and buffers.
    return (need if need is not None else int(model.tensor_bytes * 1.1)) + logits


def _vocabulary(model: ModelFile) -> int:
    return model.vocab_size or 0


def _seconds(
    spec: ClosenessSpec,
    models: Mapping[str, ModelFile],
    n_windows: int,
    prefill_tps: Mapping[str, float],
    *,
    n_reference: int,
    n_loads: int,
) -> float:
    """Seconds of prefill and loading; scoring is small beside them."""
    labels: Sequence[str] = [
        *([spec.reference.label] * n_reference),
        *(one.label for one in spec.variants),
    ]
    total = 0.0
    for label in labels:
        model = models[label]
        rate = prefill_tps.get(label) or spec.threads * _FLOPS_PER_THREAD / (2 * max(1, _active(model)))
        total += n_windows * spec.n_ctx / rate + n_loads * _LOAD_S_PER_GB * model.tensor_bytes / 1e9
    return total


def _active(model: ModelFile) -> int:
    """Parameters that one token goes through: of a mixture of experts, about the share of experts used."""
    if model.n_experts and model.n_experts_used:
        return model.n_params * model.n_experts_used // model.n_experts
    return model.n_params
