"""The engine for a user's own llama-server, against the real server."""

from dataclasses import replace

import pytest

from liob_core.engines.embedded import EmbeddedEngine
from liob_core.engines.protocol import Request
from liob_core.engines.registry import describe_engines
from liob_core.engines.remote import LlamaServerEngine
from liob_core.errors import EngineFailure
from liob_core.types import LoadSettings, Message, Sampling
from tests.integration.test_embedded import load, make_variant

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def theirs(model_path, tmp_path_factory):
    """A llama-server as a user runs one, and its key."""
    folder = tmp_path_factory.mktemp("theirs")
    host = EmbeddedEngine(folder / "machine")
    load(host, model_path, folder)
    yield host._client
    host.close()


@pytest.fixture
def engine(theirs, monkeypatch):
    monkeypatch.setenv("LLAMA_API_KEY", theirs._http.headers["Authorization"].removeprefix("Bearer "))
    made = LlamaServerEngine(theirs.url)
    yield made
    made.close()


def test_user_s_server_gives_the_same_answer_as_the_embedded_engine(engine, theirs, model_path, tmp_path):
    report = engine.load(make_variant(model_path), LoadSettings(), log_path=tmp_path / "x", load_s=10)
    assert (report.effective or {})["n_ctx_seq"] == 1024
    prompt = engine.render([Message(role="user", content="What is 2+2?")])
    request = Request(prompt=prompt, sampling=Sampling(max_tokens=32))
    answers = ["".join(chunk.text for chunk in source.generate(request)) for source in (engine, theirs)]
    assert answers[0] == answers[1] == "The answer to this classic math problem is 4."


def test_user_s_server_with_another_file_is_refused(engine, model_path, tmp_path):
    other = replace(make_variant(model_path), engine_model="other.gguf")
    with pytest.raises(EngineFailure, match=r"not other\.gguf"):
        engine.load(other, LoadSettings(), log_path=tmp_path / "x", load_s=10)


def test_wrong_key_says_which_variable_to_set(theirs, monkeypatch):
    monkeypatch.setenv("LLAMA_API_KEY", "wrong")
    with pytest.raises(EngineFailure, match="set LLAMA_API_KEY"):
        LlamaServerEngine(theirs.url).tokenize("x", add_special=False)


def test_aborted_request_leaves_a_server_that_a_load_finds_idle_again(engine, model_path, tmp_path):
    request = Request(prompt="Once", sampling=Sampling(max_tokens=500, ignore_eos=True))
    chunks = engine.generate(request)
    next(chunks)
    engine.abort()
    with pytest.raises(EngineFailure):
        list(chunks)
    engine.load(make_variant(model_path), LoadSettings(), log_path=tmp_path / "x", load_s=30)
    assert list(engine.generate(replace(request, sampling=Sampling(max_tokens=2))))


def test_slots_metrics_and_description(theirs, engine):
    assert len(theirs.slots()) == 1
    assert "llamacpp:prompt_tokens_total" in theirs.metrics()
    found = {status.name: status for status in describe_engines(url=theirs.url)}
    embedded, server = found["embedded"], found["llama-server"]
    assert embedded.available
    assert server.available
    assert "SmolLM2" in server.sentence or ".gguf" in server.sentence
