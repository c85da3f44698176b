"""What an installed model is: told by the server, or read from its blob; three digests kept apart."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from liob_core.errors import EngineFailure, MissingError, UsageError
from liob_core.models.digests import weights_sha256
from liob_core.models.ollama_files import needs_registering, registered_variant, variant_to_register
from liob_core.models.ollama_variant import family_of, make_ollama_variant, open_server
from liob_core.models.variant import make_variant, model_name_of, unique_labels
from liob_core.types import LoadSettings
from tests.integration.ollama_server import MODEL, OllamaServer
from tests.unit.models.conftest import write_gguf

SETTINGS = LoadSettings(n_ctx=2048, threads=1)


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    made = OllamaServer()
    yield made
    made.close()


def put_blob(server: OllamaServer, folder: Path) -> Path:
    """A blob on this machine, which the server names as the model's own."""
    blob = write_gguf(folder / f"sha256-{'a' * 64}")
    server.shown["modelfile"] = f"# made by hand\nFROM {blob}\nTEMPLATE x\n"
    return blob


def test_a_model_that_cannot_be_read_is_what_the_server_tells(server: OllamaServer, tmp_path: Path) -> None:
    with open_server(server.url) as opened:
        found = opened.find("SmolLM2-135M:Q4_1")
    assert found.name == MODEL
    assert found.blob is None
    assert found.model is not None
    # Hand computation: 8 x 96,576,768 / 134,515,008
    assert found.model.bpw == pytest.approx(5.7437, abs=1e-4)
    assert (found.model.n_params, found.model.n_tensors) == (134_515_008, 272)
    assert (found.model.n_layers, found.model.n_kv_heads) == (30, (3,) * 30)
    assert found.model.has_chat_template
    assert found.blob_digest is not None
    assert found.blob_digest.startswith("941f309b")
    variant = make_ollama_variant(found, SETTINGS, tmp_path)
    assert (variant.quant, variant.engine_model) == ("Q4_1", MODEL)
    assert (variant.weights_sha256, variant.file_sha256) == (None, None)
    assert variant.need is not None
    # KV cache by hand: 2048 tokens x 30 layers x 2 x 3 heads x 64 x 2 bytes
    assert variant.need.kv_bytes == 47_185_920
    assert model_name_of(variant) == "smollm2-135m"
    with pytest.raises(MissingError, match="cannot be read from here"):
        make_ollama_variant(found, SETTINGS, tmp_path, engine="embedded")


def test_a_blob_on_this_machine_is_recognised_by_its_weights(server: OllamaServer, tmp_path: Path) -> None:
    blob = put_blob(server, tmp_path)
    file = write_gguf(tmp_path / "tiny-Q4_0.gguf", alignment=64, names=list(reversed(_names())))
    with open_server(server.url) as opened:
        found = opened.find(MODEL)
    on_ollama = make_ollama_variant(found, SETTINGS, tmp_path / "cache")
    on_embedded = make_ollama_variant(found, SETTINGS, tmp_path / "cache", engine="embedded")
    assert on_embedded.engine_model == str(blob)
    assert on_ollama.weights_sha256 == on_embedded.weights_sha256 == weights_sha256(file, tmp_path / "cache")
    assert on_ollama.file_sha256 is None, "what was published is not known"
    assert found.blob_digest == "a" * 64
    assert on_ollama.load_settings.n_ctx == 256, "never beyond what the model was trained for"
    assert on_ollama.key != on_embedded.key
    assert [one.label for one in unique_labels([on_embedded, on_ollama])] == ["Q4_1 embedded", "Q4_1 ollama"]
    assert model_name_of(on_embedded) == "smollm2-135m", "a digest is no name"


def _names() -> list[str]:
    from tests.unit.models.conftest import default_tensors

    return list(default_tensors())


def test_tensors_of_a_type_unknown_here_leave_the_bits_unknown(server: OllamaServer, tmp_path: Path) -> None:
    server.shown["tensors"][0]["type"] = "Q9_X"
    with open_server(server.url) as opened:
        found = opened.find(MODEL)
    assert found.model is None
    variant = make_ollama_variant(found, SETTINGS, tmp_path)
    assert (variant.quant, variant.model, variant.need) == ("Q4_1", None, None)


def test_a_file_without_template_is_told_from_one_with(server: OllamaServer) -> None:
    server.shown["template"] = "{{ .Prompt }}"
    with open_server(server.url) as opened:
        found = opened.find(MODEL)
    assert found.model is not None
    assert not found.model.has_chat_template


def test_unknown_and_remote_models_are_refused(server: OllamaServer) -> None:
    server.tags["models"].append({"name": "big:cloud", "remote_host": "https://ollama.com"})
    with open_server(server.url) as opened:
        with pytest.raises(UsageError, match=r"no model 'nothing'.*smollm2-135m:q4_1"):
            opened.find("nothing")
        with pytest.raises(EngineFailure, match="would leave this machine"):
            opened.find("big:cloud")
        assert "big:cloud" not in [entry.name for entry in opened.installed()]


def test_two_names_of_one_blob_have_one_key(server: OllamaServer, tmp_path: Path) -> None:
    with open_server(server.url) as opened:
        first, second = (make_ollama_variant(opened.find(name), SETTINGS, tmp_path) for name in _two(server))
    with pytest.raises(UsageError, match="named twice"):
        unique_labels([first, second])


def _two(server: OllamaServer) -> list[str]:
    names = [model["name"] for model in json.loads(json.dumps(server.tags))["models"]]
    return [name for name in names if "smollm2" in name]


def test_a_registered_file_keeps_its_digests_and_gets_the_same_name_again(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "Tiny Model-Q4_0.gguf")
    variant = variant_to_register(file, SETTINGS, tmp_path)
    assert variant.weights_sha256 is not None
    assert variant.engine_model == f"liob/tiny-model:q4_0-{variant.weights_sha256[:12]}"
    assert registered_variant(make_variant(file, "ollama", SETTINGS, tmp_path)) == variant
    assert variant.file_sha256 is not None
    assert needs_registering(variant)
    assert not needs_registering(make_variant(file, "embedded", SETTINGS, tmp_path))
    assert model_name_of(variant) == "Tiny Model"


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("qwen2.5:7b-instruct-q4_K_M", "qwen2.5"),
        ("hf.co/me/tiny-GGUF:Q4_0", "tiny-GGUF"),
        ("liob/tiny:q4_0-123", "tiny"),
        ("plain", "plain"),
    ],
)
def test_family_is_the_name_without_owner_and_tag(name: str, family: str) -> None:
    assert family_of(name) == family
