"""Seeds on the real worker: stored with every sample, resumed without one done twice, counted by prompt."""

from collections import Counter

import pytest

from liob_core.analysis.flips import flip_facts
from liob_core.bench import jobs
from liob_core.config import Settings
from liob_core.store.database import query
from liob_core.types import Sampling, Task
from tests.integration.test_worker import finished, measured_cells, samples, wait_for_end, wait_until
from tests.unit.bench.builders import make_fake_spec, make_suite


def test_seeds_are_resumed_where_they_were_cancelled_and_counted_by_prompt(settings: Settings) -> None:
    spec = make_fake_spec(
        tasks=(Task.SUITE,),
        suite=make_suite(4),
        sampling=Sampling(max_tokens=32, seed=7, temperature=0.8),
        n_blocks=3,
        suite_repeats=3,
        n_seeds=3,
        engine_options={"tokens_per_s": 200, "answers": {"What is 1 + 1": "2"}},
    )
    jobs.start(spec, settings)
    wait_until(lambda: jobs.read_status(spec.run_id, settings).n_done >= 14)
    jobs.cancel(spec.run_id, settings)
    assert wait_for_end(spec.run_id, settings).state == "cancelled"
    assert len(finished(spec, settings)) < len(measured_cells(spec)) == 36
    jobs.resume(spec.run_id, settings)
    assert wait_for_end(spec.run_id, settings).state == "finished"

    assert finished(spec, settings) == Counter(dict.fromkeys(measured_cells(spec), 1))
    answered = [s for s in samples(spec, settings) if not s["cell"]["warmup"] and s["outcome"] != "cancelled"]
    assert {(s["cell"]["block"], s["cell"]["seed"]) for s in answered} == {(0, 7), (1, 8), (2, 9)}
    # The scripted engine's text is a function of the seed, so that other seeds are other answers.
    assert len({s["response"] for s in answered if s["cell"]["prompt_id"] == "p2"}) == 9
    stored = query(settings.database, "SELECT * FROM seeds WHERE prompt_id = 'p1' ORDER BY variant")
    assert stored["n_answers"].tolist() == [3, 3, 3]
    assert stored["n_passed"].tolist() == [3, 3, 3]
    rates = query(settings.database, "SELECT seed_pass_rate FROM results")["seed_pass_rate"].tolist()
    assert rates == [pytest.approx(0.25)] * 3
    facts = flip_facts(settings.database, spec.run_id)
    assert facts is not None
    assert (facts.n_seeds, facts.temperature, facts.noise_flips) == (3, 0.8, 0.0)
