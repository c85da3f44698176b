"""Whole runs through the real worker on a real Ollama server, where one answers at OLLAMA_HOST."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from liob_core.bench import jobs
from liob_core.bench.choosing import variants_of
from liob_core.bench.spec import Choices, make_spec
from liob_core.bench.status import RunStatus
from liob_core.config import Settings
from liob_core.engines.ollama_host import find_host
from liob_core.engines.ollama_models import OllamaModels
from liob_core.engines.ollama_register import OllamaRegistry
from liob_core.engines.ollama_stream import OllamaStream
from liob_core.engines.registry import describe_ollama
from liob_core.models.quantize import make_ladder
from liob_core.store.database import query
from liob_core.store.journal import read_lines
from liob_core.suites.load import suite_from_text
from liob_core.types import LoadSettings, RunSpec, Task
from tests.integration.test_worker import samples, wait_for_end, wait_until

pytestmark = [pytest.mark.live, pytest.mark.model]
ASKED = LoadSettings(n_ctx=1024, threads=1)
PROMPTS = suite_from_text("What is the capital of France?\n---\nName three colours.")


@pytest.fixture(scope="module")
def server() -> Iterator[OllamaModels]:
    status = describe_ollama()
    if not status.available:
        pytest.skip(f"no real Ollama to test against: {status.sentence}")
    stream = OllamaStream(find_host())
    models = OllamaModels(stream)
    before = {model.name for model in models.installed()}
    yield models
    registry = OllamaRegistry(find_host())
    for name in registry.ours():
        if name not in before:
            registry.remove(name)
    registry.close()
    stream.close()


@pytest.fixture(scope="module")
def files(model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One model in two quantizations: the real file, and one made of it."""
    (made,) = make_ladder(model_path, ["Q8_0"], tmp_path_factory.mktemp("ladder"), on_progress=lambda _: None)
    return [model_path, made]


def spec_of(files: list[Path], settings: Settings, *engines: str, **changes: Any) -> RunSpec:
    variants = variants_of([str(file) for file in files], engines, ASKED, settings.cache_dir)
    choices = {
        "engine": engines[0],
        "variants": variants,
        "tasks": (Task.SPEED, Task.SUITE),
        "suite": PROMPTS,
        "n_blocks": 2,
        "max_tokens": 24,
    }
    return make_spec(Choices(**{**choices, **changes}))


def to_end(spec: RunSpec, settings: Settings) -> RunStatus:
    jobs.start(spec, settings)
    return wait_for_end(spec.run_id, settings, within_s=900.0)


def stored(settings: Settings, sql: str) -> list[dict[str, Any]]:
    return query(settings.database, sql).to_dict("records")


def loads(spec: RunSpec, settings: Settings) -> list[dict[str, Any]]:
    lines, _ = read_lines(settings.runs_dir / spec.run_id)
    return [entry["data"] for entry in lines if entry["kind"] == "load"]


def test_two_variants_are_measured_from_files_to_results(
    server: OllamaModels, files: list[Path], settings: Settings
) -> None:
    spec = spec_of(files, settings, "ollama")
    status = to_end(spec, settings)
    assert (status.state, status.n_done) == ("finished", status.n_cells)
    assert {variant.engine_model for variant in spec.variants} <= {
        model.name for model in server.installed()
    }, "registered by the run"
    assert not {variant.engine_model for variant in spec.variants} & {
        model.name for model in server.loaded()
    }, "and freed at its end"

    for load in loads(spec, settings):
        assert load["outcome"] == "ok"
        assert load["load_ms"] > 0
        assert load["effective"]["n_ctx"] == 1024
        assert "num_gpu" not in load["effective"]["request"]["options"]
        assert load["effective"]["blob_sha256"]
    measured = [one for one in samples(spec, settings) if not one["cell"]["warmup"]]
    # A model may end the text of a fixed shape early, which Ollama cannot forbid; that is told.
    assert {one["outcome"] for one in measured} <= {"ok", "length", "bad_reply"}
    assert not any(one["cold"] for one in measured)
    texts: dict[str, set[str]] = {}
    for one in measured:
        if one["cell"]["prompt_id"]:
            texts.setdefault(one["cell"]["prompt_id"], set()).add(one["prompt_sha256"])
    assert {len(hashes) for hashes in texts.values()} == {1}, "the same bytes to both"
    for one in measured:
        counters = one["counters"]
        accounted = counters["engine_prompt_ms"] + counters["engine_eval_ms"] + counters["engine_load_ms"]
        assert counters["engine_total_ms"] >= accounted - 1

    # Not the results: on a machine that others use too, no sample may be good enough for an average.
    rows = stored(
        settings,
        "SELECT variant, max(decode_tps) AS decode_tps, max(prefill_tps) AS prefill_tps FROM samples "
        "WHERE NOT warmup GROUP BY variant",
    )
    assert len(rows) == 2
    assert all(row["decode_tps"] > 0 and row["prefill_tps"] > 0 for row in rows)
    has_runner = all(load["effective"].get("runner") for load in loads(spec, settings))
    peaks = stored(settings, "SELECT peak_rss_run_bytes AS peak FROM loads")
    assert all(row["peak"] > 2**26 for row in peaks) or not has_runner


def test_prompt_rate_does_not_rise_over_repetitions(
    server: OllamaModels, files: list[Path], settings: Settings
) -> None:
    spec = spec_of(files[:1], settings, "ollama", tasks=(Task.SPEED,), suite=None, n_blocks=4)
    assert to_end(spec, settings).state == "finished"
    rows = stored(
        settings,
        "SELECT block, prefill_tps FROM samples WHERE shape = 'pp512' AND NOT warmup "
        "AND prefill_tps IS NOT NULL ORDER BY block",
    )
    rates = [row["prefill_tps"] for row in rows]
    assert len(rates) >= 3
    assert max(rates[1:]) < 2 * rates[0], "a cache served the prompts"


def test_cancel_in_mid_run_keeps_what_is_done_and_frees_the_model(
    server: OllamaModels, files: list[Path], settings: Settings
) -> None:
    spec = spec_of(files, settings, "ollama", n_blocks=5, max_tokens=400)
    jobs.start(spec, settings)
    wait_until(lambda: jobs.read_status(spec.run_id, settings).n_done >= 2, within_s=300.0)
    jobs.cancel(spec.run_id, settings)
    status = wait_for_end(spec.run_id, settings, within_s=15.0)
    assert status.state == "cancelled"
    assert 2 <= status.n_done < status.n_cells
    assert samples(spec, settings)[-1]["outcome"] in {"cancelled", "ok", "length"}
    names = {variant.engine_model for variant in spec.variants}
    wait_until(lambda: not names & {model.name for model in server.loaded()})


@pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="the embedded engine is not installed"
)
def test_engines_are_compared_on_the_same_weights_and_bytes(
    server: OllamaModels, files: list[Path], settings: Settings
) -> None:
    spec = spec_of(files[:1], settings, "embedded", "ollama", n_blocks=1)
    status = to_end(spec, settings)
    assert (status.state, status.n_done) == ("finished", status.n_cells)
    assert len({variant.weights_sha256 for variant in spec.variants}) == 1
    rows = stored(
        settings,
        "SELECT count(DISTINCT prompt_sha256) AS n_bytes, count(DISTINCT prompt_tokens) AS n_counts, "
        "count(DISTINCT variant) AS n_variants, prompt_id FROM samples "
        "WHERE task = 'suite' AND NOT warmup GROUP BY ALL",
    )
    assert [(row["n_bytes"], row["n_counts"], row["n_variants"]) for row in rows] == [(1, 1, 2)] * 2
    (engines,) = stored(settings, "SELECT engine, engine_version FROM runs")
    assert engines["engine"] == "embedded, ollama"
    assert "ollama" in engines["engine_version"]
    assert "xllamacpp" in engines["engine_version"]
