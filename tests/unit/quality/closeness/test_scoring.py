"""Scores against hand computation, float64 arithmetic and what must hold for any logits."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from liob_core.quality.closeness import scoring
from liob_core.quality.closeness.scoring import Scores


def score(logits: np.ndarray, targets: np.ndarray, reference: np.ndarray | None = None, **how: Any) -> Scores:
    """The last model's scores, against the reference where there is one."""
    return scoring.score([logits] if reference is None else [reference, logits], targets, **how)[-1]


def _logits(*rows: list[float]) -> np.ndarray:
    return np.log(np.array(rows)).astype(np.float32)


def _targets(*tokens: int) -> np.ndarray:
    return np.array(tokens, dtype=np.int32)


def test_one_token_by_hand() -> None:
    reference, own = _logits([0.25, 0.25, 0.5]), _logits([0.5, 0.25, 0.25])
    scores = score(own, _targets(1), reference)
    assert scores.nll[0] == pytest.approx(math.log(4), abs=1e-7)
    # 0.25 ln(0.25/0.5) + 0.25 ln 1 + 0.5 ln(0.5/0.25) = 0.25 ln 2
    assert scores.kld is not None
    assert scores.kld[0] == pytest.approx(0.25 * math.log(2), abs=1e-7)
    assert scores.same_top is not None
    assert scores.same_top.tolist() == [False]


def test_logits_need_no_normalization_and_do_not_overflow() -> None:
    reference, own = _logits([0.25, 0.25, 0.5]) + 5000, _logits([0.5, 0.25, 0.25]) - 5000
    scores = score(own, _targets(1), reference)
    assert scores.nll[0] == pytest.approx(math.log(4), abs=1e-3)  # float32 at 5000 has steps of 5e-4
    assert scores.kld is not None
    assert scores.kld[0] == pytest.approx(0.25 * math.log(2), abs=1e-3)


def test_a_forbidden_token_adds_nothing() -> None:
    forbidden = np.array([[0.0, 0.0, -np.inf]], dtype=np.float32)
    own = np.array([[math.log(3), 0.0, -np.inf]], dtype=np.float32)
    scores = score(own, _targets(0), forbidden)
    assert scores.kld is not None
    assert scores.kld[0] == pytest.approx(0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25), abs=1e-7)


def test_a_token_only_the_variant_forbids_diverges_without_bound() -> None:
    scores = score(np.array([[0.0, -np.inf]], dtype=np.float32), _targets(0), _logits([0.5, 0.5]))
    assert scores.kld is not None
    assert scores.kld[0] == np.inf


def test_without_reference_only_likelihoods() -> None:
    scores = score(_logits([0.5, 0.5]), _targets(0))
    assert (scores.kld, scores.same_top) == (None, None)


def test_no_rows_give_no_scores() -> None:
    assert len(score(np.empty((0, 5), dtype=np.float32), _targets()).nll) == 0


def test_long_vocabulary_agrees_with_float64() -> None:
    rng = np.random.default_rng(1)
    reference = (rng.standard_normal((9, 150_001)) * 3).astype(np.float32)  # more than one block of rows
    own = reference + (rng.standard_normal(reference.shape) * 0.05).astype(np.float32)
    targets = rng.integers(0, 150_001, 9).astype(np.int32)
    ln_p, ln_q = (x - np.log(np.exp(x).sum(1, keepdims=True)) for x in map(np.float64, (reference, own)))
    scores = score(own, targets, reference)
    assert scores.kld is not None
    assert scores.same_top is not None
    assert scores.nll == pytest.approx(-ln_q[np.arange(9), targets], abs=1e-6)
    assert scores.kld == pytest.approx((np.exp(ln_p) * (ln_p - ln_q)).sum(1), abs=1e-7)
    assert scores.same_top.tolist() == (ln_p.argmax(1) == ln_q.argmax(1)).tolist()


rows = st.lists(st.floats(-30, 30, width=32), min_size=4, max_size=4)


@settings(deadline=None)
@given(reference=rows, own=rows, shift=st.integers(-64, 64), target=st.integers(0, 3))
def test_any_logits(reference: list[float], own: list[float], shift: int, target: int) -> None:
    theirs, ours = (np.array([row], dtype=np.float32) for row in (reference, own))
    scores = score(ours, _targets(target), theirs)
    moved = score(ours + np.float32(shift), _targets(target), theirs)
    assert scores.kld is not None
    assert moved.kld is not None
    assert scores.kld[0] >= -1e-5  # zero but for rounding at the least
    assert scores.nll[0] >= -1e-6
    assert moved.kld[0] == pytest.approx(scores.kld[0], abs=1e-4)
    assert moved.nll[0] == pytest.approx(scores.nll[0], abs=1e-4)


@settings(deadline=None)
@given(own=rows)
def test_a_model_does_not_diverge_from_itself(own: list[float]) -> None:
    logits = np.array([own], dtype=np.float32)
    scores = score(logits, _targets(0), logits)
    assert scores.kld is not None
    assert scores.same_top is not None
    assert (scores.kld[0], scores.same_top[0]) == (0.0, True)


def test_variants_together_have_the_scores_they_have_alone() -> None:
    rng = np.random.default_rng(3)
    reference, *variants = (rng.standard_normal((5, 33)).astype(np.float32) for _ in range(4))
    targets = rng.integers(0, 33, 5).astype(np.int32)
    its_own, *together = scoring.score([reference, *variants], targets)
    assert (its_own.nll == score(reference, targets).nll).all()
    assert (its_own.kld, its_own.same_top) == (None, None)
    for own, scores in zip(variants, together, strict=True):
        alone = score(own, targets, reference)
        for name in ("nll", "kld", "same_top"):
            assert (getattr(scores, name) == getattr(alone, name)).all()


def test_workers_change_nothing() -> None:
    rng = np.random.default_rng(2)
    own, reference = (rng.standard_normal((7, 33)).astype(np.float32) for _ in range(2))
    targets = rng.integers(0, 33, 7).astype(np.int32)
    alone = score(own, targets, reference)
    with ThreadPoolExecutor(3) as pool:
        shared = score(own, targets, reference, pool=pool, n_workers=3)
    assert (alone.nll == shared.nll).all()
    assert alone.kld is not None
    assert shared.kld is not None
    assert (alone.kld == shared.kld).all()
