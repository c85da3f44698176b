import json

import pytest

from liob_core.engines.ollama_host import find_host
from liob_core.engines.ollama_models import (
    OllamaModels,
    ShownModel,
    blob_name,
    full_name,
    is_remote_name,
)
from liob_core.engines.ollama_report import gpu_share
from liob_core.engines.ollama_stream import OllamaStream
from liob_core.errors import EngineFailure
from liob_core.types import Outcome
from tests.integration.ollama_server import MODEL, recording


@pytest.fixture
def models(ollama):
    stream = OllamaStream(find_host(ollama.url))
    yield OllamaModels(stream)
    stream.close()


def test_installed_models_have_size_quantization_and_capabilities(models):
    gemma, think, plain = models.installed()
    assert (gemma.name, gemma.size, gemma.details.quantization_level) == (
        "gemma3-270m:q4_k_m",
        253113180,
        "Q4_K_M",
    )
    assert (think.capabilities, plain.capabilities) == (["completion", "thinking"], ["completion"])
    assert not any(model.is_remote for model in (gemma, think, plain))


def test_installed_of_an_older_server_has_unknown_capabilities(ollama, models):
    ollama.tags = {"models": [{"name": "a:latest", "remote_host": "https://x"}]}
    (model,) = models.installed()
    assert (model.capabilities, model.size, model.is_remote) == (None, None, True)


@pytest.mark.parametrize("reply", [b"[]", b'{"models": 3}', b'{"models": [{"name": 5}]}', b"{}", b"<html>"])
def test_installed_list_that_is_none_is_a_bad_reply(ollama, models, reply):
    ollama.answer("/api/tags", reply)
    with pytest.raises(EngineFailure) as caught:
        models.installed()
    assert caught.value.outcome is Outcome.BAD_REPLY


@pytest.mark.parametrize("reply", [recording("ps-after-unload").body, b'{"models": null}'])
def test_loaded_nothing_is_an_empty_list(ollama, models, reply):
    ollama.answer("/api/ps", reply)
    assert models.loaded() == []


@pytest.mark.parametrize("name", ["ps-loaded", "ps-keepalive-minus-1", "ps-after-kill"])
def test_loaded_recorded_entries_are_read(ollama, models, name):
    ollama.answer("/api/ps", recording(name).body)
    (entry,) = models.loaded()
    assert (entry.name, entry.size, entry.size_vram, entry.context_length) == (
        MODEL,
        99971235,
        99971235,
        2048,
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"size": 0, "size_vram": 0, "expires_at": "0001-01-01T00:00:00Z"},
        {"size": 5, "size_vram": 0, "expires_at": "2318-12-11T00:00:00Z", "context_length": None},
        {},
    ],
)
def test_loaded_odd_entries_are_read(ollama, models, fields):
    ollama.answer("/api/ps", json.dumps({"models": [{"name": "a", **fields}]}).encode())
    (entry,) = models.loaded()
    assert (entry.size, entry.context_length) == (fields.get("size"), None)


def test_gpu_share_of_nothing_is_unknown(ollama, models, monkeypatch):
    monkeypatch.setattr("liob_core.engines.ollama_report.has_nvidia_card", lambda: True)
    ollama.answer("/api/ps", b'{"models": [{"name": "a", "size": 0, "size_vram": 0}]}')
    assert gpu_share(models.loaded()[0], is_local=True) == (None, "the server does not tell")
    assert gpu_share(None, is_local=True)[0] is None


def test_show_tells_the_blob_and_what_the_model_can(models):
    shown = models.show(MODEL)
    digest = "941f309b54caaad6747569ba43712bcde44a2be3bae16c3282ff499c37c54af5"
    assert shown.blob_digest == digest
    assert shown.blob_path == f"/usr/share/ollama/.ollama/models/blobs/sha256-{digest}"
    assert not shown.can_think
    assert len(shown.tensors) == 272


def test_show_thinking_comes_from_the_template_alone():
    assert ShownModel.model_validate_json(recording("show-thinking").body).can_think


@pytest.mark.parametrize(
    ("modelfile", "digest"),
    [
        ("FROM C:\\Users\\me\\.ollama\\models\\blobs\\sha256-" + "a" * 64, "a" * 64),
        (f"# FROM x:1\nFROM base:1\nFROM /b/sha256-{'b' * 64}\nFROM /b/sha256-{'c' * 64}\n", "b" * 64),
        ("FROM base:1", None),
        ("", None),
    ],
)
def test_show_blob_is_the_first_file_named(modelfile, digest):
    assert ShownModel(modelfile=modelfile).blob_digest == digest


def test_show_nulls_are_empty():
    shown = ShownModel.model_validate({"capabilities": None, "model_info": None, "tensors": None})
    assert (shown.capabilities, shown.facts, shown.tensors, shown.blob_path) == ([], {}, [], None)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("a", "A:latest", True),
        ("registry.ollama.ai/library/a:1", "a:1", True),
        ("hf.co/User/Repo:Q4_0", "hf.co/user/repo:q4_0", True),
        ("a:1", "a:2", False),
        ("localhost:5000/x/a", "localhost:5000/x/a:latest", True),
    ],
)
def test_full_name_compares_as_ollama_does(one, other, is_same):
    assert (full_name(one) == full_name(other)) is is_same


@pytest.mark.parametrize(
    ("name", "is_remote"), [("a:cloud", True), ("a:7b-cloud", True), ("cloud:7b", False)]
)
def test_remote_names_are_told(name, is_remote):
    assert is_remote_name(name) is is_remote


def test_blob_name_of_either_system():
    assert blob_name("C:\\a\\b") == blob_name("/a/b") == blob_name("b") == "b"
