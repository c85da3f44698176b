"""The real worker on the real engine and model: deaths in mid-answer, and no child left behind."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from liob_core.bench import jobs
from liob_core.bench.plan import make_plan
from liob_core.bench.spec import Choices, make_spec, variants_of_files
from liob_core.config import Settings
from liob_core.store.database import query
from liob_core.store.journal import read_lines
from liob_core.types import LoadSettings, Message, Prompt, RunSpec, Suite, Task

pytestmark = pytest.mark.model


@pytest.fixture
def spec(model_path: Path, settings: Settings) -> RunSpec:
    load = LoadSettings(n_ctx=1024, threads=1)
    prompts = [("story", "Tell me a long story about a lighthouse."), ("sum", "What is 7 + 5?")]
    suite = Suite(
        name="two",
        description="",
        version="1",
        sha256="0" * 64,
        prompts=tuple(
            Prompt(prompt_id=name, category="any", messages=(Message(role="user", content=text),))
            for name, text in prompts
        ),
    )
    return make_spec(
        Choices(
            engine="embedded",
            variants=variants_of_files([model_path], "embedded", load, settings.cache_dir),
            tasks=(Task.SUITE,),
            suite=suite,
            n_blocks=1,
            max_tokens=60,
        )
    )


def wait_until(settled: Callable[[], bool], within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not settled():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def engine_child(settings: Settings, run_id: str) -> psutil.Process:
    worker = psutil.Process(jobs.read_status(run_id, settings).pid)
    (child,) = [p for p in worker.children() if "embedded_child" in " ".join(p.cmdline())]
    return child


def is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def is_writing(run_id: str, settings: Settings, prompt_id: str) -> bool:
    status = jobs.read_status(run_id, settings)
    return status.current_prompt == prompt_id and bool(status.text_tail)


def test_engine_killed_in_mid_answer_is_tagged_and_the_run_goes_on(spec: RunSpec, settings: Settings) -> None:
    jobs.start(spec, settings)
    wait_until(lambda: is_writing(spec.run_id, settings, "story"))
    engine_child(settings, spec.run_id).kill()
    wait_until(lambda: not jobs.read_status(spec.run_id, settings).is_live)
    assert jobs.read_status(spec.run_id, settings).state == "finished"
    rows = query(
        settings.database, "SELECT prompt_id, outcome, reason, response FROM samples WHERE NOT warmup"
    ).set_index("prompt_id")
    assert rows.loc["story", "outcome"] == "engine_died"
    assert "signal 9" in rows.loc["story", "reason"]
    assert rows.loc["story", "response"], "the text so far is kept"
    assert rows.loc["sum", "outcome"] in {"ok", "length"}
    loads = query(settings.database, "SELECT load_ms, weights_bytes, kv_bytes, host_rss_bytes FROM loads")
    assert len(loads) == 2, "it was started again"
    # 30 layers x 2 x 3 KV heads x 64 x 1024 tokens x 2 bytes
    assert set(loads["kv_bytes"]) == {30 * 2 * 3 * 64 * 1024 * 2}
    assert loads["load_ms"].gt(0).all()


def test_worker_killed_takes_its_engine_along_and_is_resumed(spec: RunSpec, settings: Settings) -> None:
    jobs.start(spec, settings)
    wait_until(lambda: is_writing(spec.run_id, settings, "story"))
    child = engine_child(settings, spec.run_id)
    os.kill(jobs.read_status(spec.run_id, settings).pid or 0, signal.SIGKILL)
    wait_until(lambda: is_gone(child), within_s=5)
    assert jobs.read_status(spec.run_id, settings).state == "orphaned"
    jobs.resume(spec.run_id, settings)
    wait_until(lambda: not jobs.read_status(spec.run_id, settings).is_live)
    assert jobs.read_status(spec.run_id, settings).state == "finished"
    lines, _ = read_lines(settings.runs_dir / spec.run_id)
    done = Counter(
        line["data"]["cell"]["cell_id"]
        for line in lines
        if line["kind"] == "sample" and not line["data"]["cell"]["warmup"]
    )
    assert done == Counter({cell.cell_id: 1 for cell in make_plan(spec) if not cell.warmup})


def test_cancel_in_mid_answer_leaves_no_engine(spec: RunSpec, settings: Settings) -> None:
    jobs.start(spec, settings)
    wait_until(lambda: is_writing(spec.run_id, settings, "story"))
    child = engine_child(settings, spec.run_id)
    jobs.cancel(spec.run_id, settings)
    wait_until(lambda: is_gone(child), within_s=5)
    wait_until(lambda: not jobs.read_status(spec.run_id, settings).is_live)
    lines, _ = read_lines(settings.runs_dir / spec.run_id)
    outcomes = [line["data"]["outcome"] for line in lines if line["kind"] == "sample"]
    assert outcomes[-1] == "cancelled"
