from collections import Counter
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from liob_core.bench.plan import make_plan, prompt_ids, remaining
from liob_core.types import Shape, Task
from tests.unit.bench.builders import make_fake_spec


def test_plan_is_the_same_for_the_same_spec() -> None:
    assert make_plan(make_fake_spec()) == make_plan(make_fake_spec())


def test_plan_counts_cells_by_hand() -> None:
    cells = make_plan(make_fake_spec())
    # 3 blocks x 3 variants x (1 warm-up + 2 shapes), and the suite's 3 prompts in the first block only.
    assert len(cells) == 3 * 3 * (1 + 2) + 3 * 3
    assert [cell.index for cell in cells] == list(range(len(cells)))
    assert len({cell.cell_id for cell in cells}) == len(cells)


def test_plan_visits_each_variant_once_a_block_in_rotated_order() -> None:
    cells = make_plan(make_fake_spec())
    visits = [key for key, _ in groupby((cell.block, cell.variant) for cell in cells)]
    assert Counter(visits) == Counter({(b, v): 1 for b in range(3) for v in ("F16", "Q8_0", "Q4_0")})
    first_of_block = [variant for position, (_, variant) in enumerate(visits) if position % 3 == 0]
    assert set(first_of_block) == {"F16", "Q8_0", "Q4_0"}


def test_plan_repeats_the_suite_only_where_asked() -> None:
    spec = make_fake_spec(tasks=(Task.SUITE,), suite_repeats=2)
    blocks = {cell.block for cell in make_plan(spec)}
    assert blocks == {0, 1}


def test_plan_warms_up_before_anything_measured() -> None:
    for _, group in groupby(make_plan(make_fake_spec(n_warmups=3)), key=lambda c: (c.block, c.variant)):
        flags = [cell.warmup for cell in group]
        assert flags[:3] == [True, True, True]
        assert not any(flags[3:])


def test_prompt_ids_have_the_exact_count_and_differ_from_the_first_token_on() -> None:
    spec = make_fake_spec()
    shaped = [cell for cell in make_plan(spec) if cell.shape is Shape.PP512]
    prompts = [prompt_ids(spec, cell, 512, 49_152) for cell in shaped]
    assert all(len(prompt) == 512 for prompt in prompts)
    assert len({prompt[0] for prompt in prompts}) == len(prompts)
    assert all(0 <= token < 49_152 for prompt in prompts for token in prompt)


def test_remaining_of_a_finished_run_is_nothing() -> None:
    plan = make_plan(make_fake_spec())
    assert remaining(plan, {cell.cell_id for cell in plan if not cell.warmup}) == ()


@given(st.data())
def test_remaining_is_the_plan_minus_what_is_finished(data: st.DataObject) -> None:
    plan = make_plan(make_fake_spec())
    measured = [cell.cell_id for cell in plan if not cell.warmup]
    finished = set(data.draw(st.lists(st.sampled_from(measured))))
    left = remaining(plan, finished)
    assert {cell.cell_id for cell in left if not cell.warmup} == set(measured) - finished
    assert [cell.index for cell in left] == sorted(cell.index for cell in left)
    for key, group in groupby(left, key=lambda cell: (cell.block, cell.variant)):
        cells = list(group)
        assert cells[0].warmup, f"{key} starts cold"
        assert not cells[-1].warmup, f"{key} only warms up"


def test_every_seed_is_a_block_and_the_graded_first_one_has_the_seed_asked_for() -> None:
    spec = make_fake_spec(tasks=(Task.SUITE,), n_blocks=3, suite_repeats=3, n_seeds=3)
    seeds = {(cell.block, cell.seed) for cell in make_plan(spec) if not cell.warmup}
    assert seeds == {(0, 1), (1, 2), (2, 3)}
    greedy = make_fake_spec(tasks=(Task.SUITE,), n_blocks=3, suite_repeats=3)
    assert {cell.seed for cell in make_plan(greedy)} == {1}


def test_more_seeds_than_blocks_of_speed_add_blocks_of_the_suite_alone() -> None:
    cells = make_plan(make_fake_spec(n_blocks=2, suite_repeats=4, n_seeds=4))
    blocks = {task: {cell.block for cell in cells if cell.task is task and not cell.warmup} for task in Task}
    assert blocks == {Task.SPEED: {0, 1}, Task.SUITE: {0, 1, 2, 3}, Task.CLOSENESS: set()}
    assert {cell.seed for cell in cells if cell.task is Task.SPEED} == {1}
    assert all(cell.task is Task.SUITE for cell in cells if cell.block > 1), "warm-ups too"
