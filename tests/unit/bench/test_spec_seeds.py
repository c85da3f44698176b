"""What `--seeds` and `--temperature` make of a run."""

from pathlib import Path
from typing import Any

import pytest

from liob_core.bench.estimate import estimate
from liob_core.bench.plan import SEED_LIMIT
from liob_core.bench.spec import Choices, make_spec
from liob_core.errors import UsageError
from liob_core.models.variant import fake_variant
from liob_core.types import Task
from tests.unit.bench.builders import make_suite


def choices(**changes: Any) -> Choices:
    known: dict[str, Any] = {
        "engine": "fake",
        "variants": (fake_variant("F16", bpw=16), fake_variant("Q4_0", bpw=4.5)),
        "tasks": (Task.SUITE,),
        "suite": make_suite(),
    }
    return Choices(**(known | changes))


def test_without_seeds_answers_are_greedy_and_share_one_seed() -> None:
    spec = make_spec(choices())
    assert (spec.n_seeds, spec.sampling.temperature, spec.suite_repeats, spec.n_blocks) == (1, 0.0, 3, 3)


def test_seeds_alone_are_as_many_blocks_at_a_stated_temperature() -> None:
    spec = make_spec(choices(n_seeds=5))
    assert (spec.n_seeds, spec.sampling.temperature, spec.suite_repeats, spec.n_blocks) == (5, 0.8, 5, 5)
    assert make_spec(choices(n_seeds=5, temperature=0.3)).sampling.temperature == 0.3


def test_seeds_beside_speed_leave_its_blocks_as_asked() -> None:
    spec = make_spec(choices(tasks=(Task.SPEED, Task.SUITE), n_blocks=3, n_seeds=5))
    assert (spec.n_blocks, spec.suite_repeats) == (3, 5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"temperature": 0.8}, "name several seeds"),
        ({"n_seeds": 0}, "choose 1 to 100"),
        ({"n_seeds": 3, "temperature": 0.0}, "choose one above 0"),
        ({"n_seeds": 3, "temperature": float("nan")}, "choose one above 0"),
        ({"n_seeds": 3, "suite_repeats": 2}, "leave --suite-repeats out"),
        ({"n_seeds": 3, "tasks": (Task.SPEED,)}, "add the task `suite`"),
        ({"n_seeds": 3, "seed": SEED_LIMIT - 2}, "leaves no room for 3"),
    ],
)
def test_what_seeds_cannot_be_is_told(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_spec(choices(**changes))


def test_the_estimate_grows_with_the_seeds(tmp_path: Path) -> None:
    once, often = (
        estimate(make_spec(choices(n_blocks=1, n_seeds=n_seeds)), tmp_path / "none.duckdb").seconds
        for n_seeds in (1, 5)
    )
    assert often == pytest.approx(5 * once)
