"""The real worker process on the fake engine: finish, cancel, kill, resume, faults."""

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest

from liob_core.bench import jobs, worker
from liob_core.bench.lock import machine_lock
from liob_core.bench.plan import make_plan
from liob_core.bench.status import RunStatus
from liob_core.config import Settings
from liob_core.errors import BusyError, UsageError
from liob_core.store.database import query
from liob_core.store.journal import BANDWIDTH_FILE, read_lines, write_spec
from liob_core.types import Limits, RunSpec, Task
from tests.unit.bench.builders import make_fake_spec, make_suite

FAST = {"sleep": False}


def wait_until(settled: Callable[[], bool], within_s: float = 30.0) -> None:
    deadline = time.monotonic() + within_s
    while not settled():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def wait_for_end(run_id: str, settings: Settings, within_s: float = 60.0) -> RunStatus:
    wait_until(lambda: not jobs.read_status(run_id, settings).is_live, within_s)
    return jobs.read_status(run_id, settings)


def run_to_end(spec: RunSpec, settings: Settings) -> RunStatus:
    jobs.start(spec, settings)
    return wait_for_end(spec.run_id, settings)


def samples(spec: RunSpec, settings: Settings) -> list[dict[str, Any]]:
    lines, _ = read_lines(settings.runs_dir / spec.run_id)
    return [line["data"] for line in lines if line["kind"] == "sample"]


def finished(spec: RunSpec, settings: Settings) -> Counter[str]:
    return Counter(
        sample["cell"]["cell_id"]
        for sample in samples(spec, settings)
        if not sample["cell"]["warmup"] and sample["outcome"] != "cancelled"
    )


def measured_cells(spec: RunSpec) -> set[str]:
    return {cell.cell_id for cell in make_plan(spec) if not cell.warmup}


def test_run_ends_finished_with_every_cell_in_the_database(settings: Settings) -> None:
    spec = make_fake_spec(engine_options=FAST)
    status = run_to_end(spec, settings)
    assert (status.state, status.n_done, status.n_failed) == ("finished", 27, 0)
    rows = query(settings.database, "SELECT * FROM results WHERE run_id = ?", (spec.run_id,))
    assert set(rows["variant"]) == {"F16", "Q8_0", "Q4_0"}
    # 127 gaps at 1,000 tokens/s, as the script says; single samples, since a busy machine empties the means.
    rates = query(
        settings.database, "SELECT decode_tps FROM raw.samples WHERE shape = 'chat512' AND NOT warmup"
    )
    assert rates["decode_tps"].round(6).tolist() == [1000.0] * 9
    counted = query(settings.database, "SELECT count(*) AS n FROM samples WHERE NOT warmup")
    assert counted["n"].tolist() == [27]
    assert status.per_cell["F16|speed"].done == 6


def test_same_prompt_bytes_reach_every_variant(settings: Settings) -> None:
    spec = make_fake_spec(engine_options=FAST, tasks=(Task.SUITE,), n_blocks=1)
    run_to_end(spec, settings)
    sent: dict[str, set[str]] = {}
    for sample in samples(spec, settings):
        if not sample["cell"]["warmup"]:
            sent.setdefault(sample["cell"]["prompt_id"], set()).add(sample["prompt_sha256"])
    assert len(sent) == 3
    assert all(len(hashes) == 1 for hashes in sent.values())


def test_second_run_is_refused_while_one_is_at_work(settings: Settings) -> None:
    spec = make_fake_spec(engine_options={"tokens_per_s": 20})
    jobs.start(spec, settings)
    wait_until(lambda: jobs.read_status(spec.run_id, settings).state == "running")
    with pytest.raises(BusyError, match=spec.run_id):
        jobs.start(make_fake_spec("20261130-120001-test"), settings)
    with pytest.raises(UsageError, match="still at work"):
        jobs.resume(spec.run_id, settings)
    jobs.cancel(spec.run_id, settings)
    wait_for_end(spec.run_id, settings)


def test_worker_started_beside_another_exits_busy(settings: Settings) -> None:
    spec = make_fake_spec(engine_options=FAST)
    run_dir = settings.runs_dir / spec.run_id
    run_dir.mkdir(parents=True)
    write_spec(run_dir, spec)
    with machine_lock(settings.machine_dir, "other-run"):
        assert worker.main([str(run_dir)]) == 3
    status = jobs.read_status(spec.run_id, settings)
    assert status.state == "failed"
    assert status.reason is not None
    assert "other-run" in status.reason


def test_memory_is_read_once_where_its_speed_bounds_what_is_measured(settings: Settings) -> None:
    spec = make_fake_spec(engine_options=FAST, tasks=(Task.SPEED,), n_blocks=1)
    run_to_end(spec, settings)
    assert not (settings.runs_dir / spec.run_id / BANDWIDTH_FILE).exists(), "the fake model has no weights"
    variants = tuple(
        replace(one, model=replace(one.model, read_bytes=1000)) if one.model else one for one in spec.variants
    )
    other = replace(spec, run_id=f"{spec.run_id}-2", variants=variants)
    run_to_end(other, settings)
    found = query(settings.database, "SELECT * FROM runs WHERE run_id = ?", (other.run_id,)).iloc[0]
    assert found["read_threads"] == max(one.load_settings.threads for one in variants)
    # Which of the two depends on this machine's caches and free memory.
    assert pd.isna(found["read_bytes_per_s"]) != pd.isna(found["read_reason"])


def test_cancel_ends_within_a_second_and_resume_does_the_rest(settings: Settings) -> None:
    spec = make_fake_spec(engine_options={"tokens_per_s": 60}, tasks=(Task.SPEED,), n_blocks=1)
    jobs.start(spec, settings)
    wait_until(lambda: jobs.read_status(spec.run_id, settings).current_task == "speed")
    asked = time.monotonic()
    jobs.cancel(spec.run_id, settings)
    status = wait_for_end(spec.run_id, settings)
    assert status.state == "cancelled"
    assert time.monotonic() - asked < 4.0  # a second to end, and what a loaded machine adds
    before = finished(spec, settings)
    assert jobs.resume(spec.run_id, settings) == spec.run_id
    status = wait_for_end(spec.run_id, settings)
    assert status.state == "finished"
    assert finished(spec, settings) == Counter(dict.fromkeys(measured_cells(spec), 1))
    assert before <= finished(spec, settings)


def test_killed_worker_is_orphaned_and_loses_nothing(settings: Settings) -> None:
    """SIGKILL at 20 random moments over one run, resumed each time."""
    chance = random.Random(7)
    spec = make_fake_spec(
        engine_options={"tokens_per_s": 4000, "load_s": 0.02},
        n_blocks=6,
        suite=make_suite(8),
        suite_repeats=6,
    )
    jobs.start(spec, settings)
    seen: Counter[str] = Counter()
    for _ in range(20):
        wait_until(lambda: jobs.read_status(spec.run_id, settings).state != "starting")
        n_before = len(samples(spec, settings))
        wait_until(
            lambda n=n_before: (
                len(samples(spec, settings)) > n or not jobs.read_status(spec.run_id, settings).is_live
            )
        )
        time.sleep(chance.uniform(0, 0.3))
        status = jobs.read_status(spec.run_id, settings)
        if not status.is_live:
            break
        os.kill(status.pid or 0, signal.SIGKILL)
        status = wait_for_end(spec.run_id, settings)
        assert status.state == "orphaned"
        now = finished(spec, settings)
        assert seen <= now, "a finished sample was lost"
        seen = now
        jobs.resume(spec.run_id, settings)
    status = wait_for_end(spec.run_id, settings, within_s=120)
    assert status.state == "finished"
    assert finished(spec, settings) == Counter(dict.fromkeys(measured_cells(spec), 1))
    stored = query(
        settings.database, "SELECT count(*) AS n FROM samples WHERE NOT warmup AND outcome <> 'cancelled'"
    )
    assert stored["n"].tolist() == [len(measured_cells(spec))]


def test_status_is_not_fooled_by_a_reused_pid(settings: Settings) -> None:
    spec = make_fake_spec(engine_options=FAST)
    run_to_end(spec, settings)
    path = settings.runs_dir / spec.run_id / "status.json"
    status = json.loads(path.read_text())
    # This test's own process lives, but it is not the worker of that run.
    path.write_text(json.dumps({**status, "state": "running", "pid": os.getpid(), "pid_created": 1.0}))
    assert jobs.read_status(spec.run_id, settings).state == "orphaned"
    mine = psutil.Process().create_time()
    path.write_text(json.dumps({**status, "state": "running", "pid": os.getpid(), "pid_created": mine}))
    assert jobs.read_status(spec.run_id, settings).state == "running"


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("die", "engine_died"),
        ("error", "engine_error"),
        ("garble", "bad_reply"),
        ("incomplete", "incomplete"),
    ],
)
def test_fault_becomes_a_tagged_sample_and_the_run_goes_on(
    settings: Settings, kind: str, outcome: str
) -> None:
    fault = {"kind": kind, "variant": "Q8_0", "prompt": "What is 1", "times": 1}
    spec = make_fake_spec(engine_options={**FAST, "faults": [fault]}, tasks=(Task.SUITE,), n_blocks=1)
    status = run_to_end(spec, settings)
    assert (status.state, status.n_done, status.n_failed) == ("finished", 9, 1)
    failed = [s for s in samples(spec, settings) if s["outcome"] not in {"ok", "length"}]
    assert [(s["cell"]["cell_id"], s["outcome"]) for s in failed] == [("b0/Q8_0/suite/p1", outcome)]
    assert failed[0]["response"]  # the text so far
    assert failed[0]["reason"]


def test_hung_engine_is_a_timeout_and_the_run_goes_on(settings: Settings) -> None:
    fault = {"kind": "hang", "variant": "F16", "prompt": "What is 2", "times": 1}
    spec = make_fake_spec(
        engine_options={**FAST, "faults": [fault]},
        tasks=(Task.SUITE,),
        n_blocks=1,
        limits=Limits(between_tokens_s=0.5),
    )
    status = run_to_end(spec, settings)
    assert (status.state, status.n_failed) == ("finished", 1)
    failed = [s for s in samples(spec, settings) if s["outcome"] == "timeout"]
    assert [s["cell"]["prompt_id"] for s in failed] == ["p2"]
    assert "no further token" in failed[0]["reason"]


def test_variant_that_cannot_be_loaded_is_tagged_and_the_others_run(settings: Settings) -> None:
    fault = {"kind": "load_fails", "variant": "Q4_0"}
    spec = make_fake_spec(engine_options={**FAST, "faults": [fault]}, tasks=(Task.SUITE,), n_blocks=1)
    status = run_to_end(spec, settings)
    assert (status.n_done, status.n_failed) == (9, 3)
    outcomes = Counter((s["cell"]["variant"], s["outcome"]) for s in samples(spec, settings))
    assert outcomes[("Q4_0", "engine_error")] == 3
    assert ("F16", "engine_error") not in outcomes


def test_engine_that_always_dies_is_given_up_after_three_times(settings: Settings) -> None:
    fault = {"kind": "die", "variant": "Q4_0"}
    spec = make_fake_spec(
        engine_options={**FAST, "faults": [fault]}, tasks=(Task.SUITE,), n_blocks=1, n_warmups=0
    )
    status = run_to_end(spec, settings)
    assert (status.state, status.n_failed) == ("finished", 3)
    lines, _ = read_lines(settings.runs_dir / spec.run_id)
    assert sum(line["kind"] == "load" and line["data"]["variant"] == "Q4_0" for line in lines) == 3


def test_full_disk_stops_the_run_and_keeps_what_was_finished(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = make_fake_spec(engine_options=FAST)
    run_dir = settings.runs_dir / spec.run_id
    run_dir.mkdir(parents=True)
    write_spec(run_dir, spec)
    real_write, n_writes = os.write, 0

    def write_until_full(fd: int, data: bytes) -> int:
        nonlocal n_writes
        if b'"kind": "sample"' in data:
            n_writes += 1
            if n_writes > 10:
                return real_write(fd, data[: len(data) // 2])  # the disk fills up in the middle of a line
        return real_write(fd, data)

    monkeypatch.setattr("liob_core.store.journal.os.write", write_until_full)
    assert worker.main([str(run_dir)]) == 1
    status = jobs.read_status(spec.run_id, settings)
    assert status.state == "failed"
    assert status.reason is not None
    assert "free some space" in status.reason
    assert len(samples(spec, settings)) == 10
    monkeypatch.undo()
    jobs.resume(spec.run_id, settings)
    assert wait_for_end(spec.run_id, settings).state == "finished"
    assert finished(spec, settings) == Counter(dict.fromkeys(measured_cells(spec), 1))


def test_run_survives_a_database_that_is_held(settings: Settings, tmp_path: Path) -> None:
    import duckdb

    spec = make_fake_spec(engine_options=FAST, tasks=(Task.SUITE,), n_blocks=1)
    settings.data_dir.mkdir(parents=True)
    holder = duckdb.connect(str(settings.database))
    monkey_wait, worker.LAST_INGEST_WAIT_S = worker.LAST_INGEST_WAIT_S, 0.2
    try:
        run_dir = settings.runs_dir / spec.run_id
        run_dir.mkdir(parents=True)
        write_spec(run_dir, spec)
        worker.main([str(run_dir)])
    finally:
        worker.LAST_INGEST_WAIT_S = monkey_wait
        holder.close()
    assert jobs.read_status(spec.run_id, settings).state == "finished"
    assert len(finished(spec, settings)) == 9
