"""Logits -> what each token tells: negative log-likelihood, KL divergence, same top token.

Exponentials and differences are taken in float32, as the logits are; every sum over the vocabulary is
in float64. Natural logarithms throughout, so likelihoods and divergences are in nats.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]
Values = NDArray[np.float64]

# Elements worked on at once: small enough for a core's second-level cache, large enough for numpy.
_BLOCK_ELEMENTS = 2**18


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """One value a token: negative log-likelihood and, against a reference, KL divergence in nats.

    `kld` and `same_top` are None of the reference itself.
    """

    nll: Values
    kld: Values | None = None
    same_top: NDArray[np.bool_] | None = None


def score(
    models: Sequence[Logits],
    targets: NDArray[np.int32],
    *,
    pool: Executor | None = None,
    n_workers: int = 1,
) -> list[Scores]:
    """Scores of each model's logits, one row a token, against the tokens that came.

    The first model is the reference, whose scores are likelihoods alone; the others are compared with it,
    together, so that its exponentials are taken once.
    """
    n_rows = len(targets)
    parts = np.array_split(np.arange(n_rows), min(n_workers, n_rows) if pool and n_rows else 1)
    out = [_no_scores(n_rows, is_compared=index > 0) for index in range(len(models))]

    def work(part: NDArray[np.intp]) -> None:
        if len(part):
            _score_rows(models, targets, slice(int(part[0]), int(part[-1]) + 1), out)

    if pool is None or len(parts) == 1:
        for part in parts:
            work(part)
    else:
        list(pool.map(work, parts))
    return out


def _no_scores(n_rows: int, *, is_compared: bool) -> Scores:
    return Scores(
        nll=np.empty(n_rows),
        kld=np.empty(n_rows) if is_compared else None,
        same_top=np.empty(n_rows, dtype=np.bool_) if is_compared else None,
    )


def _score_rows(
    models: Sequence[Logits], targets: NDArray[np.int32], rows: slice, out: Sequence[Scores]
) -> None:
    """Fill `out` for some rows, block by block, with buffers that stay in the cache."""
    n_vocab = models[0].shape[1]
    step = max(1, _BLOCK_ELEMENTS // n_vocab)
    their_exps = np.empty((step, n_vocab), dtype=np.float32)
    work = np.empty_like(their_exps)
    for start in range(rows.start, rows.stop, step):
        block = slice(start, min(start + step, rows.stop))
        n = block.stop - start
        theirs, correct = models[0][block], (np.arange(n), targets[block])
        their_norm = _normalize(theirs, their_exps[:n])
        out[0].nll[block] = their_norm.lse - theirs[correct]
        for model, scores in zip(models[1:], out[1:], strict=True):
            ours = model[block]
            norm = _normalize(ours, work[:n])
            scores.nll[block] = norm.lse - ours[correct]
            difference = _expected_difference(theirs, ours, work[:n], their_exps[:n]) / their_norm.total
            if scores.kld is not None and scores.same_top is not None:
                scores.kld[block] = difference - (their_norm.lse - norm.lse)
                scores.same_top[block] = norm.top == their_norm.top


class _Norm(NamedTuple):
    """Of each row: where the largest entry is, sum of exp(row - largest), ln of sum of exp(row)."""

    top: NDArray[np.intp]
    total: Values
    lse: Values


def _normalize(logits: Logits, exps: Logits) -> _Norm:
    """The norms of each row; leaves exp(row - largest) in `exps`."""
    top = logits.argmax(axis=1)
    largest = logits[np.arange(len(logits)), top]
    np.subtract(logits, largest[:, None], out=exps)
    np.exp(exps, out=exps)
    total = exps.sum(axis=1, dtype=np.float64)
    return _Norm(top, total, largest + np.log(total))


def _expected_difference(theirs: Logits, ours: Logits, work: Logits, weights: Logits) -> Values:
    """The sum over each row of weight x (their logit - our logit).

    The raw logits are subtracted first: their differences are small and nearly exact in float32, where
    logarithms of probabilities would lose the digits that a close variant differs in.
    """
    with np.errstate(invalid="ignore"):
        np.subtract(theirs, ours, out=work)
        sums = np.einsum("ij,ij->i", weights, work, dtype=np.float64)
    if not np.isfinite(sums).all():
        work[weights == 0] = 0  # a token that the reference forbids (minus infinity) adds nothing
        sums = np.einsum("ij,ij->i", weights, work, dtype=np.float64)
    return np.asarray(sums, dtype=np.float64)
