"""The real judging process: on the fake engine from start to verdict, and on the real model."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from liob_core.analysis import judged
from liob_core.bench import jobs, judge_jobs, judge_worker
from liob_core.bench.judging import JudgingSpec, make_judge
from liob_core.bench.lock import machine_lock
from liob_core.bench.status import RunStatus
from liob_core.cli.app import app
from liob_core.config import Settings
from liob_core.errors import BusyError, UsageError
from liob_core.quality.judge import calibration
from liob_core.store.database import query
from liob_core.store.journal import read_lines
from liob_core.types import JudgeMode, Outcome, to_json
from tests.unit.bench.judging_builders import (
    RUN_ID,
    make_judged_run,
    make_judged_spec,
    make_judging,
    script,
)

SCORES = {"F16": 8, "Q8_0": 8, "Q4_0": 5}


def by_variant(variant: str, _prompt_id: str) -> int:
    return SCORES[variant]


def wait_until(settled: Callable[[], bool], within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not settled():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def status_of(settings: Settings) -> RunStatus:
    status = judge_jobs.read_status(RUN_ID, settings)
    assert status is not None
    return status


def judge_to_end(spec: JudgingSpec, settings: Settings) -> RunStatus:
    assert judge_jobs.start(spec, settings) > 0
    wait_until(lambda: not status_of(settings).is_live)
    return status_of(settings)


def records(settings: Settings, kind: str) -> list[dict[str, Any]]:
    lines, _ = read_lines(settings.runs_dir / RUN_ID)
    return [line["data"] for line in lines if line["kind"] == kind]


@pytest.fixture
def run_dir(settings: Settings) -> Path:
    return make_judged_run(settings.runs_dir, {("Q4_0", "river"): Outcome.LENGTH})


def test_judging_ends_with_scores_and_its_calibration_in_the_database(
    run_dir: Path, settings: Settings
) -> None:
    spec = make_judging(engine_options=script(run_dir, JudgeMode.SINGLE, by_variant))
    status = judge_to_end(spec, settings)
    assert (status.state, status.n_done, status.n_failed) == ("finished", 24 + 5, 0)
    facts = judged.judge_facts(settings.database, RUN_ID, spec.judge_key, spec.mode)
    assert facts is not None
    assert (facts.n_right, facts.n_items, facts.gives_verdict) == (24, 24, True)
    table = judged.scores(settings.database, RUN_ID, spec.judge_key).set_index("variant")
    assert table["mean_score"].to_dict() == SCORES
    assert table["n_scored"].to_dict() == {"F16": 2, "Q8_0": 2, "Q4_0": 1}
    assert table.loc["Q4_0", "n_own_failures"] == 1, "cut off: its own failure, not the judge's"
    stored = query(settings.database, "SELECT DISTINCT calibration_share, reason FROM judgements")
    assert stored.values.tolist() == [[1.0, "as scripted"]]
    assert query(settings.database, "SELECT state FROM runs")["state"].tolist() == ["finished"]
    assert jobs.read_status(RUN_ID, settings).state == "orphaned", "the run's own status is not touched"


def test_same_judge_repeats_nothing_and_another_one_appends(run_dir: Path, settings: Settings) -> None:
    options = script(run_dir, JudgeMode.SINGLE, by_variant)
    judge_to_end(make_judging(engine_options=options), settings)
    assert judge_jobs.start(make_judging(engine_options=options), settings) == 0
    judge_to_end(make_judging(name="second", engine_options=options), settings)
    per_judge = Counter(record["judge"] for record in records(settings, "judgement"))
    assert per_judge == {"judge on fake": 5, "second on fake": 5}
    assert len(query(settings.database, "SELECT * FROM judgements")) == 10
    assert len(judged.judges(settings.database, RUN_ID)) == 2


def test_pairs_are_judged_in_both_orders(run_dir: Path, settings: Settings) -> None:
    spec = make_judging(JudgeMode.PAIRWISE, engine_options=script(run_dir, JudgeMode.PAIRWISE, by_variant))
    assert judge_to_end(spec, settings).state == "finished"
    table = judged.pairs(settings.database, RUN_ID, spec.judge_key).set_index("variant")
    counts = table[["n_wins", "n_ties", "n_losses", "n_scored"]]
    assert counts.loc["Q8_0"].tolist() == [0, 2, 0, 2]
    assert counts.loc["Q4_0"].tolist() == [0, 0, 1, 1]


def test_judge_that_fails_its_calibration_shows_scores_and_gives_no_verdict(
    run_dir: Path, settings: Settings
) -> None:
    spec = make_judging(engine_options=script(run_dir, JudgeMode.SINGLE, by_variant, knows=False))
    assert judge_to_end(spec, settings).state == "finished"
    table = judged.scores(settings.database, RUN_ID, spec.judge_key).set_index("variant")
    assert table["mean_score"].to_dict() == SCORES
    assert table["verdict"].isna().all()
    assert "below 80 %" in table.loc["Q4_0", "reason"]
    assert "no verdict" in table.loc["Q4_0", "words"]


def test_killed_judge_is_resumed_without_repeating_an_opinion(run_dir: Path, settings: Settings) -> None:
    options = script(run_dir, JudgeMode.SINGLE, by_variant) | {"sleep": True, "tokens_per_s": 150}
    spec = make_judging(engine_options=options)
    judge_jobs.start(spec, settings)
    wait_until(lambda: len(records(settings, "judgement")) >= 2)
    os.kill(status_of(settings).pid or 0, signal.SIGKILL)
    wait_until(lambda: status_of(settings).state == "orphaned")
    n_before = len(records(settings, "judgement"))
    assert n_before < 5
    judge_to_end(replace(spec, engine_options=options | {"sleep": False}), settings)
    judged_samples = Counter(record["sample_id"] for record in records(settings, "judgement"))
    assert set(judged_samples.values()) == {1}
    assert len(judged_samples) == 5
    assert len(records(settings, "calibration")) == 24, "asked once"


def test_cancel_ends_the_judge_and_keeps_every_opinion(run_dir: Path, settings: Settings) -> None:
    options = script(run_dir, JudgeMode.SINGLE, by_variant) | {"sleep": True, "tokens_per_s": 20}
    judge_jobs.start(make_judging(engine_options=options), settings)
    wait_until(lambda: len(records(settings, "calibration")) >= 1)
    judge_jobs.cancel(RUN_ID, settings)
    wait_until(lambda: not status_of(settings).is_live, within_s=10)
    assert status_of(settings).state == "cancelled"
    stored = query(settings.database, "SELECT count(*) AS n FROM calibrations")
    assert stored["n"].tolist() == [len(records(settings, "calibration"))]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"kind": "load_fails"}, "could not be loaded"),
        ({"kind": "error"}, "could not be asked 5 times in a row"),
    ],
)
def test_broken_engine_ends_the_judging_without_a_number(
    run_dir: Path, settings: Settings, fault: dict[str, Any], words: str
) -> None:
    status = judge_to_end(make_judging(engine_options={"sleep": False, "faults": [fault]}), settings)
    assert status.state == "failed"
    assert words in (status.reason or "")
    assert records(settings, "judgement") == []
    assert not any(record["is_right"] or record["got"] for record in records(settings, "calibration"))


def test_no_judge_beside_a_measurement(run_dir: Path, settings: Settings) -> None:
    with machine_lock(settings.machine_dir, "other-run"), pytest.raises(BusyError, match="other-run"):
        judge_jobs.start(make_judging(), settings)


def test_what_cannot_be_judged_is_refused(settings: Settings) -> None:
    spec = make_judged_spec()
    one = replace(spec, variants=spec.variants[:1])
    make_judged_run(settings.runs_dir, spec=one)
    with pytest.raises(UsageError, match="no pair"):
        judge_jobs.start(make_judging(JudgeMode.PAIRWISE), settings)
    bare = replace(spec.suite, prompts=tuple(replace(p, rubric=None) for p in spec.suite.prompts))  # type: ignore
    make_judged_run(settings.runs_dir, spec=replace(spec, run_id="20261130-120001-test", suite=bare))
    with pytest.raises(UsageError, match="--all"):
        judge_jobs.start(make_judging(run_id="20261130-120001-test"), settings)


def test_command_without_a_model_says_what_to_name(run_dir: Path, settings: Settings) -> None:
    result = CliRunner().invoke(app, ["judge", RUN_ID])
    assert isinstance(result.exception, UsageError)
    assert "--judge-model" in str(result.exception)


@pytest.mark.parametrize("mode", list(JudgeMode))
def test_command_shows_what_the_judge_said_and_asks_nothing_twice(
    run_dir: Path, settings: Settings, mode: JudgeMode
) -> None:
    judge_to_end(make_judging(mode, engine_options=script(run_dir, mode, by_variant)), settings)
    command = ["judge", RUN_ID[:8], "--judge-engine", "fake", "--judge-model", "judge"]
    command += ["--pairwise"] if mode is JudgeMode.PAIRWISE else []
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    document = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert document["judge"]["judge"] == "judge on fake"
    assert document["judge"]["n_right"] == document["judge"]["n_items"]
    assert document["status"] is None, "nothing was left to do"
    by_label = {row["variant"]: row for row in document["variants"]}
    if mode is JudgeMode.SINGLE:
        assert by_label["Q4_0"]["mean_score"] == 5
        assert by_label["F16"]["words"] == "reference"
    else:
        assert set(by_label) == {"Q8_0", "Q4_0"}
        assert by_label["Q4_0"]["n_losses"] == 1


@pytest.mark.model
@pytest.mark.timeout(180)
def test_smallest_model_fails_its_calibration_and_gives_no_verdict(
    model_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SmolLM2-135M on the embedded engine: scores may come, verdicts must not."""
    whole = calibration.load_calibration(JudgeMode.SINGLE)
    few = [item for item in whole.items if item.item_id in {"gold-boiling/bad", "gold-email/bad"}]
    monkeypatch.setattr(calibration, "load_calibration", lambda _mode: replace(whole, items=tuple(few)))
    spec = make_judged_spec(variants=make_judged_spec().variants[:1])
    prompts = tuple(prompt for prompt in spec.suite.prompts if prompt.prompt_id == "colour")  # type: ignore
    run_dir = make_judged_run(
        settings.runs_dir,
        spec=replace(spec, suite=replace(spec.suite, prompts=prompts)),  # type: ignore
    )
    judge = make_judge("embedded", str(model_path), settings.cache_dir, threads=1, n_ctx=2048)
    asked = JudgingSpec(run_id=RUN_ID, judge=judge, engine="embedded")
    monkeypatch.setattr(judge_jobs, "launch", lambda *_: None)
    judge_jobs.start(asked, settings)
    assert judge_worker.main([str(run_dir)]) in {0, 1}
    assert status_of(settings).state == "finished"
    facts = judged.judge_facts(settings.database, RUN_ID, asked.judge_key, asked.mode)
    assert facts is not None
    assert facts.n_items == 2
    assert not facts.gives_verdict
    told = records(settings, "judgement")
    assert len(told) == 1
    for record in told:
        assert (record["score"] is not None) == (record["state"] == "scored"), record
        assert record["raw_reply"], record
    table = judged.scores(settings.database, RUN_ID, asked.judge_key)
    assert table["verdict"].isna().all()
    assert to_json(judge)["label"] in facts.judge
