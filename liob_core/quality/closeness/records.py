"""What is asked of a closeness evaluation, and what each window of it gives back."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liob_core.errors import UsageError
from liob_core.quality.closeness.windows import MIN_CONTEXT
from liob_core.types import JsonValue

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
UNQUANTIZED_KV = ("f32", "f16", "bf16")


class Ending(StrEnum):
    """Why a variant's evaluation ended; exactly one each."""

    DONE = "done"  # every window that was planned
    STOPPED = "stopped"  # early, because its interval was narrow enough
    CANCELLED = "cancelled"
    BAD_FILE = "bad_file"  # the model could not be loaded
    OTHER_VOCABULARY = "other_vocabulary"
    ILLEGAL_INSTRUCTION = "illegal_instruction"
    DIED = "died"  # the process that evaluated it crashed or was killed
    NOT_FINITE = "not_finite"  # logits that are no numbers
    ENGINE_ERROR = "engine_error"
    DISK_FULL = "disk_full"
    NO_REFERENCE = "no_reference"  # the reference itself could not be evaluated


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text by its name and the digest of its bytes; figures are of this text alone."""

    name: str
    path: str
    sha256: str
    n_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One model file with one KV-cache setting: a variant of its own."""

    label: str
    path: str
    kv_type_k: str = "f16"
    kv_type_v: str = "f16"
    gpu_layers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosenessSpec:
    """What to evaluate. `n_windows` None means all there are; lengths are in tokens.

    `stop_half_width`: stop when the 95 % interval of every variant's ln ratio (of ln PPL where there is
    one file alone) is at most this far to each side; None never stops early.
    """

    reference: Candidate
    variants: tuple[Candidate, ...]
    text: Text
    n_ctx: int = 512
    n_windows: int | None = 32
    from_start: bool = False
    threads: int = 1
    stop_half_width: float | None = None

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The reference and the variants after it."""
        return (self.reference, *self.variants)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowScore:
    """One window of one variant: a value a scored token, in nats, and the time its prefill took in ns.

    `kld` and `same_top` compare with the reference; None for the reference itself.
    """

    variant: str
    window: int
    n_ctx: int
    prefill_ns: int
    nll: NDArray[np.float32]
    kld: NDArray[np.float32] | None = None
    same_top: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Which llama.cpp made the figures: results of two builds are never compared."""

    version: str
    cpu_features: str


def check_spec(spec: ClosenessSpec) -> None:
    """Nothing where the request can be carried out; else UsageError with what to change."""
    if spec.n_ctx < MIN_CONTEXT:
        raise UsageError(f"A window of {spec.n_ctx} tokens is too short: use at least {MIN_CONTEXT}.")
    if spec.n_windows is not None and spec.n_windows < 1:
        raise UsageError("The number of windows must be at least 1.")
    labels = [one.label for one in spec.candidates]
    if len(set(labels)) < len(labels):
        raise UsageError("Two variants have the same label: every label must be its own.")
    for one in spec.candidates:
        for kv_type in (one.kv_type_k, one.kv_type_v):
            if kv_type not in KV_TYPES:
                raise UsageError(
                    f"{kv_type!r} is not a type of the KV cache. Known are {', '.join(KV_TYPES)}."
                )


def score_to_json(score: WindowScore) -> dict[str, JsonValue]:
    """A window as plain JSON: float32 values and packed bits in base64, 2.8 kB a window of 255 tokens."""
    return {
        "variant": score.variant,
        "window": score.window,
        "n_ctx": score.n_ctx,
        "prefill_ns": score.prefill_ns,
        "n_tokens": len(score.nll),
        "nll": _encode(score.nll.astype("<f4")),
        "kld": None if score.kld is None else _encode(score.kld.astype("<f4")),
        "same_top": None if score.same_top is None else _encode(np.packbits(score.same_top)),
    }


def score_from_json(data: Mapping[str, Any]) -> WindowScore:
    """The window that `score_to_json` wrote."""
    kld, same_top = data["kld"], data["same_top"]
    bits = None if same_top is None else np.unpackbits(_decode(same_top, "u1"), count=data["n_tokens"])
    return WindowScore(
        variant=data["variant"],
        window=data["window"],
        n_ctx=data["n_ctx"],
        prefill_ns=data["prefill_ns"],
        nll=_decode(data["nll"], "<f4"),
        kld=None if kld is None else _decode(kld, "<f4"),
        same_top=None if bits is None else bits.astype(np.bool_),
    )


def _encode(values: NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode("ascii")


def _decode(text: str, dtype: str) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), dtype=dtype)
