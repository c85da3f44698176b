"""Code from answers in a whole run: unchecked unless allowed, scored in the database, ended by a cancel."""

from dataclasses import replace
from pathlib import Path

from liob_core.bench import jobs
from liob_core.config import Settings
from liob_core.store.database import query
from liob_core.types import Check, Message, Prompt, RunSpec, Sampling, Task
from tests.integration.test_worker import run_to_end, samples, wait_for_end, wait_until
from tests.unit.bench.builders import make_fake_spec, make_suite

RIGHT = "```python\ndef double(x):\n    return x * 2\n```"
HALF = "```python\ndef double(x):\n    return 8\n```"
TESTS = "assert double(4) == 8\nassert double(1) == 2"


def _spec(answers: dict[str, str], *, allow_code: bool, time_limit_s: float = 10) -> RunSpec:
    prompts = tuple(
        Prompt(
            prompt_id=name,
            category="coding",
            messages=(Message(role="user", content=f"Write {name}."),),
            check=Check(kind="unit_tests", params={"tests": TESTS, "time_limit_s": time_limit_s}),
        )
        for name in answers
    )
    spec = make_fake_spec(
        engine_options={
            "sleep": False,
            "answers": {f"Write {name}.": text for name, text in answers.items()},
        },
        tasks=(Task.SUITE,),
        suite=replace(make_suite(), prompts=prompts),
        sampling=Sampling(max_tokens=300),
        n_blocks=1,
        allow_code=allow_code,
    )
    return replace(spec, variants=spec.variants[:1])


def _checks(settings: Settings) -> dict[str, tuple[str, float | None]]:
    rows = query(
        settings.database,
        "SELECT prompt_id, check_result, check_score FROM samples WHERE NOT warmup ORDER BY 1",
    )
    return {row.prompt_id: (row.check_result, row.check_score) for row in rows.itertuples()}


def test_allowed_code_is_graded_with_its_share_of_tests(settings: Settings) -> None:
    status = run_to_end(_spec({"right": RIGHT, "half": HALF}, allow_code=True), settings)
    assert (status.state, status.n_done) == ("finished", 2)
    assert _checks(settings) == {"right": ("pass", 1.0), "half": ("fail", 0.5)}


def test_code_stays_unchecked_without_permission(settings: Settings, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    spec = _spec({"right": f"```python\nopen({str(proof)!r}, 'w')\n```"}, allow_code=False)
    run_to_end(spec, settings)
    [sample] = [sample for sample in samples(spec, settings) if not sample["cell"]["warmup"]]
    assert sample["check"]["result"] == "unchecked"
    assert "--allow-code" in sample["check"]["reason"]
    assert not proof.exists()


def test_cancel_ends_code_that_would_run_on(settings: Settings) -> None:
    spec = _spec({"endless": "```python\nwhile True: pass\n```"}, allow_code=True, time_limit_s=60)
    jobs.start(spec, settings)
    wait_until(lambda: bool(jobs.read_status(spec.run_id, settings).current_prompt == "endless"))
    jobs.cancel(spec.run_id, settings)
    assert wait_for_end(spec.run_id, settings, within_s=30).state == "cancelled"
    assert all(sample["cell"]["warmup"] for sample in samples(spec, settings))  # a resumed run does it anew
