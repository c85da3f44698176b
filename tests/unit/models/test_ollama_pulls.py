import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from liob_core.engines.ollama_host import find_host
from liob_core.engines.ollama_register import OllamaRegistry
from liob_core.errors import EngineFailure, UsageError
from liob_core.models.hub_repo import HubFile, HubRepo, HubVariant
from liob_core.models.ollama_pulls import pull, pull_name, pull_problem
from liob_core.types import Outcome
from tests.integration.ollama_server import OllamaServer

REPO = HubRepo(
    repo_id="Qwen/Qwen2.5-0.5B-GGUF", revision=None, commit="c", gated=None, private=False, variants=()
)
FILE = HubFile(path="q4.gguf", n_bytes=5, sha256="0" * 64)


def variant(label: str = "Q4_K_M", n_files: int = 1, problem: str | None = None) -> HubVariant:
    return HubVariant(label=label, files=(FILE,) * n_files, problem=problem)


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    made = OllamaServer()
    yield made
    made.close()


@pytest.fixture
def registry(server: OllamaServer) -> Iterator[OllamaRegistry]:
    made = OllamaRegistry(find_host(server.url))
    yield made
    made.close()


def test_name_is_the_hubs_to_the_letter() -> None:
    assert pull_name(REPO, variant()) == "hf.co/Qwen/Qwen2.5-0.5B-GGUF:Q4_K_M"
    assert pull_name(REPO, variant("UD-Q4_K_XL")) == "hf.co/Qwen/Qwen2.5-0.5B-GGUF:UD-Q4_K_XL"


@pytest.mark.parametrize(
    ("one", "repo", "words"),
    [
        (variant(n_files=3), {}, "split into 3 files"),
        (variant(problem="Only 2 of its 3 parts are there."), {}, "Only 2 of its 3 parts"),
        (variant(), {"revision": "v1"}, "pulls what main holds, not v1"),
        (variant("folder/odd name"), {}, "takes no model by the name"),
        (variant("Q" * 81), {}, "takes no model by the name"),
        (variant(), {"repo_id": "dotted.owner/x"}, "takes no model by the name"),
        (variant(), {"repo_id": "gpt2"}, "takes no model by the name"),
    ],
)
def test_what_ollama_cannot_pull_is_told_with_the_way_out(
    one: HubVariant, repo: dict[str, str], words: str
) -> None:
    asked = replace(REPO, **repo)  # type: ignore[arg-type]
    assert words in str(pull_problem(asked, one))
    with pytest.raises(UsageError, match="Download it instead"):
        pull_name(asked, one)


def test_refusal_of_the_registry_is_in_its_words_with_the_way_out(
    server: OllamaServer, registry: OllamaRegistry
) -> None:
    refusal = "pull model manifest: 400: sharded GGUF is not supported"
    server.answer("/api/pull", json.dumps({"error": refusal}).encode() + b"\n")
    with pytest.raises(EngineFailure, match=r"GGUF is not supported\. Download the file instead") as caught:
        pull(registry, "hf.co/a/b:Q4_K_M")
    assert caught.value.outcome is Outcome.ENGINE_ERROR


def test_pull_that_broke_off_is_no_refusal(server: OllamaServer, registry: OllamaRegistry) -> None:
    server.answer("/api/pull", json.dumps({"status": "pulling manifest"}).encode() + b"\n")
    with pytest.raises(EngineFailure) as caught:
        pull(registry, "hf.co/a/b:Q4_K_M")
    assert caught.value.outcome is Outcome.INCOMPLETE
    assert "instead" not in str(caught.value)
