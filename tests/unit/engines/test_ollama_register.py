import hashlib
import json
import re
import shutil
from collections import namedtuple
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from liob_core.engines import ollama_register
from liob_core.engines.ollama_host import find_host
from liob_core.engines.ollama_register import OllamaRegistry, RegisterFile, is_ours, model_name
from liob_core.errors import EngineFailure, FileError, UsageError
from liob_core.models.labels import published_label
from liob_core.types import Outcome
from tests.integration.ollama_server import MODEL, recording

NAME = "liob/smollm2:q4_1-0123456789ab"
CONTENT = b"GGUF" + bytes(3_000_000)


@pytest.fixture
def registry(ollama):
    made = OllamaRegistry(find_host(ollama.url))
    yield made
    made.close()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "My model-Q4_1.gguf"
    path.write_bytes(CONTENT)
    return RegisterFile(path, hashlib.sha256(CONTENT).hexdigest())


@given(
    model=st.text(max_size=200), quant=st.text(max_size=200), digest=st.text("0123456789abcdef", min_size=64)
)
def test_model_name_of_anything_is_one_that_ollama_takes(model, quant, digest):
    name = model_name(model, quant, digest)
    repository, tag = name.removeprefix("liob/").split(":")
    for part in (repository, tag):
        assert re.fullmatch(r"[a-z0-9_][a-z0-9_.-]{0,79}", part)
    assert is_ours(name)
    assert name == model_name(model, quant, digest)
    assert digest[:12] in tag


def test_model_name_differs_with_the_weights():
    assert model_name("m", "Q4_0", "a" * 64) != model_name("m", "Q4_0", "b" * 64)
    assert model_name("SmolLM2 135M", "UD-Q4_K_XL", "a" * 64) == "liob/smollm2-135m:ud-q4_k_xl-aaaaaaaaaaaa"


def test_register_uploads_what_is_missing_and_makes_the_model(ollama, registry, file):
    ollama.replay(recording("create-from-gguf"))
    told = []
    registry.register(NAME, [file], lambda *step: told.append(step))
    assert ollama.blobs == {f"sha256:{file.sha256}": CONTENT}
    (body,) = ollama.bodies("/api/create")
    assert (body["model"], body["files"]) == (NAME, {file.path.name: f"sha256:{file.sha256}"})
    assert ("uploading", len(CONTENT), len(CONTENT)) in told
    assert told[-1][0] == "success"


def test_register_what_the_server_has_is_not_sent_again(ollama, registry, file):
    ollama.blobs[f"sha256:{file.sha256}"] = CONTENT
    ollama.replay(recording("create-gemma"))
    registry.register(NAME, [file])
    assert [seen.method for seen in ollama.seen if "/blobs/" in seen.path] == ["HEAD"]


def test_register_all_shards_in_one(ollama, registry, tmp_path):
    files = []
    for number in (1, 2):
        path = tmp_path / f"m-0000{number}-of-00002.gguf"
        path.write_bytes(b"GGUF%d" % number)
        files.append(RegisterFile(path, str(number) * 64))
    ollama.replay(recording("create-from-gguf"))
    registry.register(NAME, files)
    assert list(ollama.bodies("/api/create")[0]["files"]) == [file.path.name for file in files]


@pytest.mark.parametrize(
    ("name", "words"),
    [("create-missing-blob", "no such file"), ("create-not-gguf", "not in GGUF format")],
)
def test_register_error_after_status_200_is_told(ollama, registry, file, name, words):
    ollama.replay(recording(name))
    with pytest.raises(EngineFailure, match=words) as caught:
        registry.register(NAME, [file])
    assert caught.value.outcome is Outcome.ENGINE_ERROR
    assert "did not register" in str(caught.value)


def test_register_stream_without_success_is_no_success(ollama, registry, file):
    ollama.answer("/api/create", b'{"status":"writing manifest"}\n')
    with pytest.raises(EngineFailure, match="writing manifest") as caught:
        registry.register(NAME, [file])
    assert caught.value.outcome is Outcome.INCOMPLETE


def test_register_wrong_digest_is_told(ollama, registry, file):
    path = f"/api/blobs/sha256:{file.sha256}"
    ollama.answer(path, status=404)
    ollama.replay(recording("blob-wrong"), path)
    with pytest.raises(EngineFailure, match="digest mismatch"):
        registry.register(NAME, [file])


def test_register_what_is_no_gguf_is_refused_before_anything_is_sent(ollama, registry, tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(b"version https://git-lfs")
    with pytest.raises(FileError, match="no GGUF file"):
        registry.register(NAME, [RegisterFile(path, "0" * 64)])
    assert ollama.seen == []


def test_register_other_names_are_refused(ollama, registry, file):
    with pytest.raises(UsageError, match="must begin with liob/"):
        registry.register("mine:1", [file])


def test_register_too_little_room_is_told(ollama, registry, file, monkeypatch, tmp_path):
    ollama.shown["modelfile"] = f"FROM {tmp_path}/sha256-{'a' * 64}\n"
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 3 * len(CONTENT) - 1))
    with pytest.raises(FileError, match="Registering needs"):
        registry.register(NAME, [file])
    assert ollama.blobs == {}


def test_register_room_that_cannot_be_told_is_no_hindrance(ollama, registry, file):
    ollama.tags = {"models": []}
    ollama.replay(recording("create-from-gguf"))
    registry.register(NAME, [file])


def test_pull_offline_is_told_in_the_servers_words(ollama, registry):
    ollama.replay(recording("pull-offline"))
    with pytest.raises(EngineFailure, match="no such host") as caught:
        registry.pull("hf.co/nobody/nothing-GGUF:Q4_K_M")
    assert "did not pull" in str(caught.value)


def test_pull_progress_is_summed_over_parts_and_never_beyond_the_whole(ollama, registry):
    steps = [
        {"status": "pulling manifest"},
        {"status": "pulling aaa", "digest": "a", "total": 100},
        {"status": "pulling aaa", "digest": "a", "total": 100, "completed": 150},
        {"status": "pulling bbb", "digest": "b", "total": 50, "completed": 10},
        {"status": "pulling bbb", "digest": "b", "total": 50, "completed": 5},
        {"status": "success"},
    ]
    ollama.answer("/api/pull", *(json.dumps(step).encode() + b"\n" for step in steps))
    told = []
    registry.pull("m", lambda *step: told.append(step[1:]))
    assert told == [(None, None), (0, 100), (100, 100), (110, 150), (105, 150), (105, 150)]


@pytest.mark.parametrize("cut", [0, 10, 30])
def test_pull_cut_off_is_a_failure(ollama, registry, cut):
    ollama.answer("/api/pull", b'{"status":"pulling manifest"}\n'[:cut], is_whole=False)
    with pytest.raises(EngineFailure):
        registry.pull("m")


def test_remove_unloads_first_and_gone_already_is_as_good(ollama, registry):
    ollama.loaded[NAME] = 2048
    ollama.replay(recording("delete-404"))
    registry.remove(NAME)
    assert ollama.loaded == {}
    assert ollama.bodies("/api/delete") == [{"model": NAME}]


def test_remove_of_an_empty_reply_is_done(ollama, registry):
    ollama.replay(recording("delete"))
    registry.remove(NAME)


def test_remove_what_liob_did_not_make_needs_a_confirmation(ollama, registry):
    with pytest.raises(UsageError, match="did not make"):
        registry.remove(MODEL)
    assert ollama.seen == []
    ollama.replay(recording("delete"))
    registry.remove(MODEL, confirmed=True)


def test_ours_are_the_names_that_liob_gives(ollama, registry):
    ollama.tags["models"].append({"name": NAME})
    assert registry.ours() == [NAME]


@pytest.mark.parametrize(
    ("body", "status", "outcome"),
    [
        (b'"oops"', 500, Outcome.BAD_REPLY),
        (b"<html>", 502, Outcome.BAD_REPLY),
        (b"", 500, Outcome.BAD_REPLY),
        (b'{"error": "123"}', 500, Outcome.ENGINE_ERROR),
        (b'{"error": "busy"}', 503, Outcome.ENGINE_ERROR),
    ],
)
def test_library_errors_of_every_kind_are_mapped(ollama, registry, body, status, outcome):
    ollama.answer("/api/delete", body, status=status)
    with pytest.raises(EngineFailure) as caught:
        registry.remove(NAME)
    assert caught.value.outcome is outcome


@pytest.mark.parametrize("body", [b"<html>\n", b'"x"\n', b"[1]\n", b"\n"])
def test_library_streams_of_something_else_are_bad_replies(ollama, registry, body):
    ollama.answer("/api/pull", body)
    with pytest.raises(EngineFailure) as caught:
        registry.pull("m")
    assert caught.value.outcome in {Outcome.BAD_REPLY, Outcome.INCOMPLETE}


def test_no_server_is_told_alike(tmp_path):
    registry = OllamaRegistry(find_host("127.0.0.1:1"))
    with pytest.raises(EngineFailure, match=r"No Ollama answers at http://127\.0\.0\.1:1") as caught:
        registry.pull("m")
    assert caught.value.outcome is Outcome.ENGINE_DIED
    assert ollama_register.is_ours("LIOB/x:1")


def test_pull_too_little_room_is_told_before_the_first_byte(ollama, registry, monkeypatch, tmp_path):
    ollama.shown["modelfile"] = f"FROM {tmp_path}/sha256-{'a' * 64}\n"
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 99))
    with pytest.raises(FileError, match=r"Pulling hf\.co/a/b:Q4_0 needs .* Free some space there"):
        registry.pull("hf.co/a/b:Q4_0", n_bytes=100)
    assert ollama.bodies("/api/pull") == []
    ollama.answer("/api/pull", b'{"status": "success"}\n')
    registry.pull("hf.co/a/b:Q4_0", n_bytes=99)


@pytest.mark.parametrize("quant", ["Q4_K_M", "UD-Q4_K_XL", "IQ2_XXS", "i1-Q4_K_M", "Q4_0_4_4", "BF16", "F16"])
def test_model_name_is_read_back_for_its_quantization_and_weights(quant):
    name = model_name("Qwen2.5 0.5B Instruct", quant, "0123456789abcdef" * 4)
    read = published_label(Path(name.replace("/", "-").replace(":", "-") + ".gguf"))
    assert read is not None
    assert read.lower() in quant.lower()
    assert name.endswith("-0123456789ab")
