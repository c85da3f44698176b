"""Logits -> what each token tells: negative log-likelihood, KL divergence, same top token.

Exponentials and differences are taken in float32, as the logits are; every sum over the vocabulary is
in float64. Natural logarithms throughout, so likelihoods and divergences are in nats.
"""

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

    `kld` and `same_top` are None where there was no reference.
    """

    nll: Values
    kld: Values | None = None
    same_top: NDArray[np.bool_] | None = None


def score(
    logits: Logits,
    targets: NDArray[np.int32],
    reference: Logits | None = None,
    *,
    pool: Executor | None = None,
    n_workers: int = 1,
) -> Scores:
    """Scores of rows of logits, one row a token, against the tokens that came and the reference's rows."""
    n_rows = len(logits)
    parts = np.array_split(np.arange(n_rows), min(n_workers, n_rows) if pool and n_rows else 1)
    out = Scores(
        nll=np.empty(n_rows),
        kld=None if reference is None else np.empty(n_rows),
        same_top=None if reference is None else np.empty(n_rows, dtype=np.bool_),
    )

    def work(part: NDArray[np.intp]) -> None:
        if len(part):
            _score_rows(logits, targets, reference, slice(int(part[0]), int(part[-1]) + 1), out)

    if pool is None or len(parts) == 1:
        for part in parts:
            work(part)
    else:
        list(pool.map(work, parts))
    return out


def _score_rows(
    logits: Logits, targets: NDArray[np.int32], reference: Logits | None, rows: slice, out: Scores
) -> None:
    """Fill `out` for some rows, block by block, with buffers that stay in the cache."""
    step = max(1, _BLOCK_ELEMENTS // logits.shape[1])
    work = np.empty((step, logits.shape[1]), dtype=np.float32)
    exps = np.empty_like(work)
    for start in range(rows.start, rows.stop, step):
        block = slice(start, min(start + step, rows.stop))
        ours = logits[block]
        n = len(ours)
        norm = _normalize(ours, work[:n], exps[:n])
        out.nll[block] = norm.lse - ours[np.arange(n), targets[block]]
        if reference is None or out.kld is None or out.same_top is None:
            continue
        theirs = reference[block]
        their_norm = _normalize(theirs, work[:n], exps[:n])
        out.same_top[block] = norm.top == their_norm.top
        mean_difference = _expected_difference(theirs, ours, work[:n], exps[:n]) / their_norm.total
        out.kld[block] = mean_difference - (their_norm.lse - norm.lse)


class _Norm(NamedTuple):
    """Of each row: where the largest entry is, sum of exp(row - largest), ln of sum of exp(row)."""

    top: NDArray[np.intp]
    total: Values
    lse: Values


def _normalize(logits: Logits, work: Logits, exps: Logits) -> _Norm:
    """The norms of each row; leaves exp(row - largest) in `exps`."""
    top = logits.argmax(axis=1)
    largest = logits[np.arange(len(logits)), top]
    np.subtract(logits, largest[:, None], out=work)
    np.exp(work, out=exps)
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
