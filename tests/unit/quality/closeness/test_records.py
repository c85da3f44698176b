"""Windows survive being written as JSON; a request that cannot be carried out says why."""

import json
from dataclasses import replace

import numpy as np
import pytest

from liob_core.errors import UsageError
from liob_core.quality.closeness.records import (
    Candidate,
    ClosenessSpec,
    Text,
    WindowScore,
    check_spec,
    score_from_json,
    score_to_json,
)

TEXT = Text(name="t", path="t.txt", sha256="0" * 64, n_bytes=10)
SPEC = ClosenessSpec(
    reference=Candidate(label="F16", path="a"), variants=(Candidate(label="Q8_0", path="b"),), text=TEXT
)


def test_window_survives_json() -> None:
    rng = np.random.default_rng(0)
    score = WindowScore(
        variant="Q8_0",
        window=7,
        n_ctx=512,
        prefill_ns=123,
        nll=rng.standard_normal(255).astype(np.float32),
        kld=rng.standard_normal(255).astype(np.float32),
        same_top=rng.random(255) > 0.5,
    )
    text = json.dumps(score_to_json(score))
    back = score_from_json(json.loads(text))
    assert (back.variant, back.window, back.n_ctx, back.prefill_ns) == ("Q8_0", 7, 512, 123)
    assert (back.nll == score.nll).all()
    assert back.kld is not None
    assert back.same_top is not None
    assert (back.kld == score.kld).all()
    assert (back.same_top == score.same_top).all()
    assert len(text) < 3000


def test_reference_window_has_nothing_to_compare() -> None:
    score = WindowScore(variant="F16", window=0, n_ctx=8, prefill_ns=1, nll=np.ones(3, dtype=np.float32))
    back = score_from_json(score_to_json(score))
    assert (back.kld, back.same_top) == (None, None)


def test_a_good_request_passes() -> None:
    check_spec(SPEC)


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        (replace(SPEC, n_ctx=4), "at least 8"),
        (replace(SPEC, n_windows=0), "at least 1"),
        (replace(SPEC, variants=(Candidate(label="F16", path="b"),)), "same label"),
        (replace(SPEC, variants=(Candidate(label="x", path="b", kv_type_v="q3"),)), "q8_0"),
    ],
)
def test_a_request_that_cannot_be_carried_out_is_refused(spec: ClosenessSpec, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        check_spec(spec)
