"""Closeness as a user runs it: the real ladder from command line to database, with SIGKILL between."""

import importlib.util
import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from liob_core.bench import jobs
from liob_core.bench.closeness import make_ask
from liob_core.bench.spec import Choices, make_spec, variants_of_files
from liob_core.config import Settings
from liob_core.models.quantize import make_ladder
from liob_core.store.database import query
from liob_core.store.journal import read_lines
from liob_core.types import LoadSettings, RunSpec, Task
from tests.integration.test_cli import document, liob

pytestmark = [
    pytest.mark.model,
    pytest.mark.ladder,
    pytest.mark.skipif(importlib.util.find_spec("llama_cpp") is None, reason="needs llama-cpp-python"),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def ladder(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """F16, Q8_0 and Q2_K made from the sample, by name."""
    names = ("F16", "Q8_0", "Q2_K")
    made = make_ladder(
        model_path, names, tmp_path_factory.mktemp("ladder"), on_progress=lambda progress: None
    )
    return dict(zip(names, made, strict=True))


def close(*arguments: str | Path) -> Any:
    options = ("--task", "closeness", "--threads", "1", "--context", "64", "--json")
    ran = liob("run", *options, *(str(argument) for argument in arguments))
    assert ran.returncode == 0, ran.stderr
    return document(ran)


def test_the_command_line_compares_with_a_reference_and_shows_it(ladder: dict[str, Path]) -> None:
    result = close("--reference", ladder["F16"], "--model", ladder["Q8_0"], "--model", ladder["Q2_K"],
                   "--windows", "8")  # fmt: skip
    assert (result["status"]["n_done"], result["status"]["n_cells"]) == (24, 24)
    rows = {row["variant"]: row for row in result["closeness"]}
    assert set(rows) == {"F16", "Q8_0", "Q2_K"}
    assert rows["F16"]["reference"] is None
    for row in rows.values():
        assert (row["n_ctx"], row["n_windows"], row["n_tokens"]) == (64, 8, 8 * 31)
        assert row["build"].startswith("llama-cpp-python")
        assert row["prefill_tps"] > 0
    # Q8_0 is near; Q2_K of so small a model is not.
    assert rows["Q8_0"]["kld_mean"] < 0.01 < 0.1 < rows["Q2_K"]["kld_mean"]
    assert rows["Q8_0"]["same_top"] > 0.9 > rows["Q2_K"]["same_top"]
    shown = liob("show", result["run_id"])
    assert shown.returncode == 0
    assert "Closeness" in shown.stdout
    assert "8 windows of 64 tokens" in shown.stdout


def test_one_file_alone_gives_its_perplexity(ladder: dict[str, Path], tmp_path: Path) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("The quick brown fox jumps over the lazy dog. " * 40, encoding="utf-8")
    result = close("--reference", ladder["Q8_0"], "--text", text, "--windows", "2", "--from-start")
    (row,) = result["closeness"]
    assert (row["text"], row["window_choice"], row["n_windows"]) == ("mine.txt", "from start", 2)
    # One sentence again and again is easily guessed.
    assert 1.0 < row["ppl"] < 3.0
    assert row["kld_mean"] is None


def test_types_of_the_cache_are_variants_of_their_own(ladder: dict[str, Path]) -> None:
    result = close("--model", ladder["Q8_0"], "--kv-type", "f16", "--kv-type", "q4_0", "--windows", "8")
    rows = {row["variant"]: row for row in result["closeness"]}
    assert set(rows) == {"Q8_0 KV f16", "Q8_0 KV q4_0"}
    assert rows["Q8_0 KV q4_0"]["reference"] == "Q8_0 KV f16"
    assert rows["Q8_0 KV q4_0"]["kld_mean"] > 0
    caches = query(
        Path(os.environ["LIOB_DATA_DIR"]) / "liob.duckdb",
        "SELECT variant, need_kv_bytes FROM variants ORDER BY need_kv_bytes",
    )
    assert caches["variant"].tolist() == ["Q8_0 KV q4_0", "Q8_0 KV f16"]


def test_a_damaged_file_is_refused_before_the_run(ladder: dict[str, Path], tmp_path: Path) -> None:
    damaged = tmp_path / "damaged-Q4_0.gguf"
    damaged.write_bytes(ladder["Q2_K"].read_bytes())
    with damaged.open("r+b") as file:
        file.truncate(damaged.stat().st_size // 2)
    ran = liob("run", "--task", "closeness", "--model", str(ladder["Q8_0"]), "--model", str(damaged))
    assert ran.returncode == 2
    assert "damaged-Q4_0.gguf" in ran.stderr
    assert "Traceback" not in ran.stderr


def make_real_spec(ladder: dict[str, Path], settings: Settings, n_windows: int) -> RunSpec:
    loaded = LoadSettings(n_ctx=64, threads=1)
    variants = variants_of_files([ladder["F16"], ladder["Q8_0"]], "embedded", loaded, settings.cache_dir)
    ask = make_ask("bundled", settings.cache_dir, n_ctx=64, n_windows=n_windows)
    return make_spec(Choices(engine="embedded", variants=variants, tasks=(Task.CLOSENESS,), closeness=ask))


def windows(spec: RunSpec, settings: Settings) -> Counter[tuple[str, int]]:
    lines, _ = read_lines(settings.runs_dir / spec.run_id)
    return Counter(
        (line["data"]["variant"], line["data"]["window"]) for line in lines if line["kind"] == "window"
    )


def wait_for(settled: Any, within_s: float = 240.0) -> None:
    deadline = time.monotonic() + within_s
    while not settled():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def results(spec: RunSpec, settings: Settings) -> dict[str, float]:
    rows = query(settings.database, "SELECT variant, ppl FROM closeness WHERE run_id = ?", (spec.run_id,))
    return dict(zip(rows["variant"], rows["ppl"], strict=True))


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_killed_worker_is_resumed_by_window_and_ends_with_the_same_figures(
    ladder: dict[str, Path], settings: Settings
) -> None:
    whole = make_real_spec(ladder, settings, n_windows=10)
    jobs.start(whole, settings)
    wait_for(lambda: not jobs.read_status(whole.run_id, settings).is_live)
    spec = make_real_spec(ladder, settings, n_windows=10)
    jobs.start(spec, settings)
    wait_for(lambda: windows(spec, settings).total() >= 4)
    status = jobs.read_status(spec.run_id, settings)
    worker = psutil.Process(status.pid)
    children = worker.children(recursive=True)
    os.kill(worker.pid, signal.SIGKILL)
    psutil.wait_procs([*children], timeout=30)
    assert not any(child.is_running() for child in children), "the evaluating child outlives its worker"
    wait_for(lambda: jobs.read_status(spec.run_id, settings).state == "orphaned")
    before = windows(spec, settings)
    assert 4 <= before.total() < 20

    jobs.resume(spec.run_id, settings)
    wait_for(lambda: not jobs.read_status(spec.run_id, settings).is_live)
    status = jobs.read_status(spec.run_id, settings)
    assert (status.state, status.n_done, status.n_cells, status.n_failed) == ("finished", 20, 20, 0)
    after = windows(spec, settings)
    assert set(after.values()) == {1}, "no window is evaluated twice"
    assert after.total() == 20
    assert results(spec, settings) == results(whole, settings)


@pytest.mark.skipif(os.name != "posix", reason="SIGTERM")
def test_cancel_ends_it_within_seconds_and_keeps_its_windows(
    ladder: dict[str, Path], settings: Settings
) -> None:
    spec = make_real_spec(ladder, settings, n_windows=200)
    jobs.start(spec, settings)
    wait_for(lambda: windows(spec, settings).total() >= 3)
    told = jobs.read_status(spec.run_id, settings)
    assert told.current_variant in {"F16", "Q8_0"}
    asked = time.monotonic()
    jobs.cancel(spec.run_id, settings)
    wait_for(lambda: not jobs.read_status(spec.run_id, settings).is_live)
    assert time.monotonic() - asked < 60.0  # a second on an idle machine; the last ingest included
    status = jobs.read_status(spec.run_id, settings)
    assert status.state == "cancelled"
    kept = windows(spec, settings).total()
    assert status.n_done == kept < 400
    rows = query(settings.database, "SELECT variant, ending, n_windows FROM closeness ORDER BY n_windows")
    assert set(rows["ending"]) == {"cancelled"}
    assert json.loads(rows.to_json(orient="records"))[-1]["n_windows"] >= 1
