import json
from collections.abc import Iterator

import pytest

from liob_core.bench.judge_source import ensure_on_ollama
from liob_core.errors import EngineFailure, MissingError
from tests.integration.ollama_server import MODEL, OllamaServer

JUDGE = "llama3.2:3b"


@pytest.fixture
def ollama() -> Iterator[OllamaServer]:
    server = OllamaServer()
    yield server
    server.close()


def test_model_that_is_there_is_not_pulled(ollama: OllamaServer) -> None:
    ensure_on_ollama(MODEL, ollama.url, may_pull=True)
    assert ollama.bodies("/api/pull") == []


def test_nothing_is_pulled_without_consent(ollama: OllamaServer) -> None:
    with pytest.raises(MissingError, match="--pull"):
        ensure_on_ollama(JUDGE, ollama.url, may_pull=False)
    assert ollama.bodies("/api/pull") == []


def test_with_consent_it_is_pulled_and_a_failure_is_told(ollama: OllamaServer) -> None:
    ollama.answer("/api/pull", json.dumps({"status": "success"}).encode() + b"\n")
    ensure_on_ollama(JUDGE, ollama.url, may_pull=True)
    [body] = ollama.bodies("/api/pull")
    assert body["model"] == JUDGE
    ollama.answer("/api/pull", json.dumps({"error": "no space left"}).encode() + b"\n")
    with pytest.raises(EngineFailure, match="no space left"):
        ensure_on_ollama(JUDGE, ollama.url, may_pull=True)
