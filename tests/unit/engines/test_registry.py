import pytest

from liob_core.engines import registry
from liob_core.engines.registry import describe_engines, make_engine
from liob_core.errors import UsageError


@pytest.mark.parametrize("name", ["embedded", "fake"])
def test_make_engine_known_name_gives_that_engine(tmp_path, name):
    engine = make_engine(name, machine_dir=tmp_path)
    assert engine.name == name
    engine.close()


def test_make_engine_llama_server_takes_its_url(tmp_path):
    engine = make_engine("llama-server", url="http://127.0.0.1:9", machine_dir=tmp_path)
    assert engine.name == "llama-server"
    engine.close()


@pytest.mark.parametrize(
    ("name", "url", "words"),
    [
        ("gpt", None, "choose one of embedded, ollama, llama-server, fake"),
        ("llama-server", None, "needs its address"),
        ("llama-server", "127.0.0.1:8080", "is no address"),
        ("llama-server", "ftp://x", "is no address"),
        ("embedded", "http://x", "takes no URL"),
    ],
)
def test_make_engine_wrong_use_is_told(tmp_path, name, url, words):
    with pytest.raises(UsageError, match=words):
        make_engine(name, url=url, machine_dir=tmp_path)


FACTS = """
import types
__version__ = "7"
def get_system_info(): return "x"
def get_device_info():
    return [{"name": "CPU", "description": "Some CPU", "memory_total": 1,
             "type": types.SimpleNamespace(name="GGML_BACKEND_DEVICE_TYPE_CPU")}]
"""


def test_describe_engines_working_library_is_ready_with_its_devices(library, monkeypatch):
    library(FACTS)
    monkeypatch.setattr(registry, "has_nvidia_card", lambda: False)
    embedded = describe_engines()[0]
    assert (embedded.available, embedded.version) == (True, "xllamacpp 7")
    assert embedded.sentence == "Ready on CPU: Some CPU."


def test_describe_engines_nvidia_card_beside_a_cpu_build_is_told(library, monkeypatch):
    library(FACTS)
    monkeypatch.setattr(registry, "has_nvidia_card", lambda: True)
    assert "GPU wheels" in describe_engines()[0].sentence


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "AVX2"),
        ("raise ImportError('libgomp.so.1')", "libgomp1"),
        ("raise TypeError('boom')", "boom"),
    ],
)
def test_describe_engines_broken_library_is_one_sentence(library, source, words):
    library(source)
    embedded = describe_engines()[0]
    assert not embedded.available
    assert words in embedded.sentence


def test_describe_engines_llama_server_tells_its_model(library, server):
    library(FACTS)
    server.answer(200, b'{"model_path": "/models/a.gguf", "build_info": "b1"}')
    status = describe_engines(url=server.url)[1]
    assert (status.available, status.version) == (True, "b1")
    assert "a.gguf" in status.sentence
