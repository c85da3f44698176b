"""The whole job against a real Ollama server, where one answers at OLLAMA_HOST."""

from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from liob_core.engines.ollama import OllamaEngine
from liob_core.engines.ollama_host import find_host
from liob_core.engines.ollama_models import OllamaModels
from liob_core.engines.ollama_register import OllamaRegistry, RegisterFile, model_name
from liob_core.engines.ollama_stream import OllamaStream
from liob_core.engines.protocol import Request
from liob_core.engines.registry import describe_ollama
from liob_core.errors import EngineFailure
from liob_core.models.digests import file_sha256, weights_sha256
from liob_core.types import LoadSettings, Message, Outcome, Sampling, Variant

pytestmark = [pytest.mark.live, pytest.mark.model]
SETTINGS = LoadSettings(n_ctx=1024, threads=1)
WORDS = " ".join(["word"] * 1500)


@pytest.fixture(scope="module")
def host():
    status = describe_ollama()
    if not status.available:
        pytest.skip(f"no real Ollama to test against: {status.sentence}")
    return find_host()


@pytest.fixture(scope="module")
def name(host, model_path: Path, tmp_path_factory):
    """The real file, registered under LIOB's name and removed at the end."""
    cache = tmp_path_factory.mktemp("cache")
    made = model_name("smollm2-live-test", "Q4_1", weights_sha256(model_path, cache))
    registry = OllamaRegistry(host)
    registry.register(made, [RegisterFile(model_path, file_sha256(model_path, cache))])
    assert made in registry.ours()
    yield made
    registry.remove(made)
    assert made not in registry.ours()
    registry.close()


@pytest.fixture
def engine(host, name, tmp_path):
    made = OllamaEngine(host.url)
    load(made, name, tmp_path)
    yield made
    made.close()


def load(engine, name, tmp_path):
    variant = Variant(
        key="k",
        label="Q4_1",
        quant="Q4_1",
        engine="ollama",
        engine_model=name,
        load_settings=SETTINGS,
        weights_sha256=None,
        file_sha256=None,
        model=None,
        need=None,
    )
    return engine.load(variant, SETTINGS, log_path=tmp_path / "engine.log", load_s=120.0)


def raw(prompt, n_out=16, **changes):
    return Request(prompt=prompt, sampling=Sampling(max_tokens=n_out), **changes)


def last(engine, request):
    return list(engine.generate(request))[-1]


def test_registered_weights_are_the_files_though_the_blob_is_not(host, name, model_path, tmp_path):
    shown = OllamaModels(OllamaStream(host)).show(name)
    blob = Path(shown.blob_path or "")
    if not blob.is_file():
        pytest.skip("the server's files cannot be read from here")
    assert weights_sha256(blob, tmp_path) == weights_sha256(model_path, tmp_path)


def test_load_is_measured_and_read_back(host, name, tmp_path):
    engine = OllamaEngine(host.url)
    report = load(engine, name, tmp_path)
    assert report.load_ms > 0
    assert report.effective["n_ctx"] == 1024
    assert report.engine_version.startswith("ollama ")
    again = load(engine, name, tmp_path)
    assert again.load_ms > 0, "a second load is a load too"
    if host.is_loopback:
        assert len(engine.pids()) == 1
        assert report.effective["runner"]["n_ctx_total"] == "1024"
    engine.close()
    assert engine.pids() == ()


def test_first_request_after_the_load_is_warm_with_exact_counts(engine):
    chunk = last(engine, raw(" time year people way day man thing woman", 24))
    counters = chunk.counters
    assert counters.cold is False
    assert counters.prompt_tokens == 8
    assert counters.output_tokens == 24 or counters.stop_type != "limit"
    assert counters.engine_load_ms < 200
    assert counters.engine_total_ms >= counters.engine_prompt_ms + counters.engine_eval_ms - 1


def test_one_token_costs_nothing_after_the_first(engine):
    counters = last(engine, raw(" time year people", 1)).counters
    assert (counters.output_tokens, counters.stop_type) == (1, "limit")
    assert counters.engine_eval_ms < 1


def test_prompt_that_does_not_fit_is_context_exceeded(engine):
    with pytest.raises(EngineFailure) as caught:
        last(engine, raw(WORDS))
    assert caught.value.outcome is Outcome.CONTEXT_EXCEEDED
    assert last(engine, raw(" time year")).counters.output_tokens, "the next one works"


def test_answer_that_fills_the_context_is_cut_not_shifted(engine):
    chunk = last(engine, raw(" ".join(["list"] * 1000), 200))
    assert chunk.truncated or chunk.counters.stop_type != "limit"


def test_render_and_turns_agree(engine):
    turns = (Message(role="user", content="Hi there"),)
    text = engine.render(turns)
    assert "Hi there" in text
    as_text = last(engine, raw(text, 1)).counters.prompt_tokens
    as_turns = last(engine, replace(raw(text, 1), messages=turns)).counters.prompt_tokens
    assert as_text == as_turns


def test_schema_is_followed(engine):
    import json

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    request = Request(prompt="A number as JSON: ", sampling=Sampling(max_tokens=60, json_schema=schema))
    chunks = list(engine.generate(request))
    if chunks[-1].counters.stop_type != "limit":
        assert isinstance(json.loads("".join(chunk.text for chunk in chunks))["n"], int)


def test_abort_frees_the_slot_at_once(engine, name, tmp_path):
    chunks = engine.generate(raw(" time year people way day", 400))
    next(chunks)
    engine.abort()
    with pytest.raises(EngineFailure) as caught:
        list(chunks)
    assert caught.value.outcome is Outcome.CANCELLED
    load(engine, name, tmp_path)
    assert last(engine, raw(" time year")).counters.output_tokens


def test_unload_leaves_nothing_in_memory(host, engine, name):
    engine.unload()
    models = OllamaModels(OllamaStream(host))
    assert name not in [model.name for model in models.loaded()]


def test_runner_of_a_silent_reload_is_found_again(engine):
    """Ollama loads a model anew where its process is gone, and says so nowhere but in the time it took."""
    before = engine.pids()
    if not before:
        pytest.skip("the server's processes cannot be seen from here")
    runner = psutil.Process(before[0])
    try:
        runner.kill()
    except psutil.AccessDenied:
        pytest.skip("the server's processes belong to another user")
    psutil.wait_procs([runner], timeout=10)
    counters = last(engine, raw(" time year people way", 8)).counters
    assert counters.cold is True
    after = engine.pids()
    assert len(after) == 1
    assert after != before
    assert last(engine, raw(" day man thing woman", 8)).counters.cold is False
