import json
from dataclasses import replace

import pytest

from liob_core.engines.protocol import Request
from liob_core.engines.remote import LlamaServerEngine
from liob_core.errors import EngineFailure
from liob_core.types import LoadSettings, Outcome, Sampling
from tests.unit.engines.scripted import event, last_event

PROPS = {
    "model_path": "C:\\models\\m.gguf",
    "build_info": "b9",
    "total_slots": 2,
    "default_generation_settings": {"n_ctx": 512},
}


@pytest.fixture
def engine(server, monkeypatch):
    monkeypatch.setenv("LLAMA_API_KEY", "mine")
    made = LlamaServerEngine(server.url)
    yield made
    made.close()


def script_load(server, slots=b"[]", props=PROPS):
    server.answer(200, b"{}")
    server.answer(200, json.dumps(props).encode())
    server.answer(200, slots)


def load(engine, variant, tmp_path, load_s=20.0):
    return engine.load(variant, LoadSettings(), log_path=tmp_path / "x.log", load_s=load_s)


def test_load_tells_what_the_server_has(engine, server, variant, tmp_path):
    script_load(server)
    report = load(engine, variant, tmp_path)
    assert report.load_ms is None
    assert report.engine_version == "llama-server b9"
    assert report.effective == {"n_ctx_seq": 512, "n_seq_max": 2}
    assert b"Bearer mine" in server.requests[1]


def test_load_waits_until_the_server_is_ready_and_idle(engine, server, variant, tmp_path):
    server.answer(503, b"{}")
    script_load(server, slots=b'[{"is_processing": true}]')
    server.answer(200, b'[{"is_processing": false}]')
    load(engine, variant, tmp_path)
    assert len(server.requests) == 5


def test_load_other_model_is_refused_by_name(engine, server, variant, tmp_path):
    script_load(server, props={"model_path": "/models/other.gguf"})
    with pytest.raises(EngineFailure, match=r"has other\.gguf loaded, not m\.gguf"):
        load(engine, variant, tmp_path)


def test_load_nameless_variant_takes_any_model(engine, server, variant, tmp_path):
    script_load(server, props={"model_path": "/models/other.gguf"})
    assert load(engine, replace(variant, engine_model=""), tmp_path).effective is None


def test_load_server_that_never_gets_ready_is_a_timeout(variant, tmp_path):
    engine = LlamaServerEngine("http://127.0.0.1:9")
    with pytest.raises(EngineFailure) as caught:
        load(engine, variant, tmp_path, load_s=0.2)
    assert caught.value.outcome is Outcome.TIMEOUT
    assert "no llama-server is ready at http://127.0.0.1:9: start it" in str(caught.value)


def test_generate_after_an_abort_needs_a_load(engine, server, variant, tmp_path):
    request = Request(prompt="x", sampling=Sampling(max_tokens=8))
    engine.abort()
    with pytest.raises(EngineFailure):
        list(engine.generate(request))
    script_load(server)
    load(engine, variant, tmp_path)
    server.answer_stream(event("a", 1), last_event(1))
    assert [chunk.text for chunk in engine.generate(request)] == ["a", ""]
