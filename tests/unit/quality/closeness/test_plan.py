"""What is loaded at once, what lies on disk, and what it is said to cost."""

from dataclasses import replace

import pytest

from liob_core.errors import MissingError
from liob_core.quality.closeness.plan import Plan, make_plan
from liob_core.quality.closeness.records import Candidate, ClosenessSpec, Text
from tests.unit.quality.closeness.headers import header

GB = 10**9
NAMES = ("F16", "Q8_0", "Q4_K_M", "Q2_K")
CANDIDATES = tuple(Candidate(label=name, path=name) for name in NAMES)
SPEC = ClosenessSpec(
    reference=CANDIDATES[0],
    variants=CANDIDATES[1:],
    text=Text(name="t", path="t", sha256="", n_bytes=10 * 10**6),
    n_windows=32,
    threads=2,
)
# 100,000 tokens: 102 MB of logits a window. Needs: weights, a tenth, and twice the logits.
MODELS = {
    name: header(tensor_bytes=size * GB, vocab_size=100_000, n_params=10**9)
    for name, size in zip(NAMES, (16, 8, 5, 3), strict=True)
}
WINDOW = 255 * 100_000 * 4


def _plan(memory_gb: float, *, disk_gb: float = 100, spec: ClosenessSpec = SPEC, **changes: object) -> Plan:
    return make_plan(
        spec, MODELS, available_bytes=int(memory_gb * GB), free_disk_bytes=int(disk_gb * GB), **changes
    )


def _labels(plan: Plan) -> list[list[str]]:
    return [[one.label for one in batch] for batch in plan.batches]


def test_with_room_all_are_loaded_and_nothing_is_stored() -> None:
    plan = _plan(64)
    assert _labels(plan) == [["Q8_0", "Q4_K_M", "Q2_K"]]
    assert (plan.spill_bytes, plan.disk_bytes) == (None, 0)
    assert plan.memory_bytes == pytest.approx(32 * 1.1 * GB + 4 * 2 * WINDOW)
    assert "nothing on disk" in plan.sentence


def test_with_less_room_batches_share_the_reference() -> None:
    plan = _plan(33)  # 28 usable: the reference's 17.8 and at most 10.2
    assert _labels(plan) == [["Q8_0"], ["Q4_K_M", "Q2_K"]]
    assert plan.spill_bytes is None
    assert plan.memory_bytes <= 0.85 * 33 * GB


def test_without_room_for_two_the_disk_sizes_the_groups() -> None:
    plan = _plan(20, disk_gb=1)
    assert _labels(plan) == [["Q8_0", "Q4_K_M", "Q2_K"]]
    assert plan.spill_bytes == int(0.8 * GB)
    assert plan.disk_bytes == 7 * WINDOW  # 7 windows of 102 MB fit into 0.8 GB
    assert plan.memory_bytes == pytest.approx(16 * 1.1 * GB + 2 * WINDOW)


def test_disk_need_is_that_of_the_windows() -> None:
    assert _plan(20, disk_gb=1000).disk_bytes == 32 * WINDOW


def test_neither_memory_nor_disk_is_told() -> None:
    with pytest.raises(MissingError, match=r"0\.1 GB of disk for one window"):
        _plan(20, disk_gb=0.1)


def test_one_model_at_a_time_can_be_asked_for() -> None:
    assert _plan(64, one_at_a_time=True).spill_bytes is not None


def test_one_file_alone_needs_no_disk() -> None:
    plan = _plan(1, spec=replace(SPEC, variants=()))
    assert (plan.batches, plan.spill_bytes) == (((),), None)


def test_known_rates_make_the_time() -> None:
    rates = dict.fromkeys(NAMES, 1000.0)
    together, batches = _plan(64, prefill_tps=rates), _plan(33, prefill_tps=rates)
    passes = 32 * 512 / 1000
    assert together.seconds == pytest.approx(4 * passes + 32)  # and a second a GB to load
    assert batches.seconds == pytest.approx(5 * passes + 48)  # the reference once a batch
    assert "about 2 min" in together.sentence


def test_larger_models_and_fewer_threads_take_longer() -> None:
    plain = _plan(64).seconds
    assert _plan(64, spec=replace(SPEC, threads=1)).seconds > plain
    assert _plan(64, spec=replace(SPEC, n_windows=64)).seconds > plain


def test_a_short_text_has_no_more_windows_than_it_holds() -> None:
    short = replace(SPEC, text=replace(SPEC.text, n_bytes=42_000))
    assert _plan(64, spec=short).n_windows == 19  # about 10,000 tokens
    assert _plan(64, spec=replace(short, n_windows=None)).n_windows == 19
