"""New benchmark with Ollama: its models, both engines, and the server that LIOB may start."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from liob_core.bench import jobs
from liob_core.config import Settings, load_settings
from liob_core.engines.ollama_server import started_server, stop_server
from liob_core.engines.registry import describe_ollama
from liob_core.types import RunSpec
from liob_core.ui.setup.candidates import Found, find_candidates
from tests.app.support import Open
from tests.integration.living_ollama import LivingOllama
from tests.integration.ollama_server import MODEL
from tests.unit.models.conftest import write_gguf

pytestmark = pytest.mark.usefixtures("without_sample")


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[LivingOllama]:
    server = LivingOllama()
    # Its models are all of one blob, and one set of weights is offered once.
    server.tags["models"] = [model for model in server.tags["models"] if model["name"] == MODEL]
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    monkeypatch.setattr("liob_core.ui.setup.engine_step.describe_ollama", describe_ollama)
    st.cache_data.clear()
    yield server
    server.close()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[RunSpec]:
    specs: list[RunSpec] = []

    def start(spec: RunSpec, _: Settings) -> str:
        specs.append(spec)
        return spec.run_id

    monkeypatch.setattr(jobs, "start", start)
    return specs


def only(source: str) -> Callable[..., Found]:
    """Offers the candidates from there alone, ticked: boxes in a table cannot be clicked in such a test."""

    def find(*arguments: Any, **options: Any) -> Found:
        found = find_candidates(*arguments, **options)
        wanted = tuple(replace(one, is_installed=False) for one in found.candidates if one.source == source)
        return replace(found, candidates=wanted)

    return find


def test_ollama_is_the_default_where_it_answers(open_page: Open, ollama: LivingOllama) -> None:
    app = open_page("new")

    assert not app.exception
    assert any("answers at" in caption.value for caption in app.caption)
    table = app.dataframe[0].value
    assert list(table["file"]) == [f"Ollama: {MODEL}"]
    assert not table["use"].any(), "the user says which"
    assert table["bits"].iloc[0] == pytest.approx(5.7437, abs=1e-3)


def test_an_installed_model_is_started_by_name(
    open_page: Open, ollama: LivingOllama, started: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("liob_core.ui.setup.variants_step.find_candidates", only(MODEL))
    app = open_page("new")

    app.button(key="liob_start").click().run()

    assert not app.exception
    (spec,) = started
    assert (spec.engine, spec.variants[0].engine_model) == ("ollama", MODEL)
    assert spec.variants[0].load_settings.gpu_layers is None, "Ollama fits as many as there is room for"


def test_layers_on_the_gpu_are_as_asked(
    open_page: Open, ollama: LivingOllama, started: list[RunSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("liob_core.ui.setup.variants_step.find_candidates", only(MODEL))
    app = open_page("new")
    assert any("GPU layers automatic" in expander.label for expander in app.expander)

    app.number_input(key="liob_new_gpu_layers").set_value(7).run()
    assert any("GPU layers 7" in expander.label for expander in app.expander)
    app.button(key="liob_start").click().run()

    assert not app.exception
    (spec,) = started
    assert spec.variants[0].load_settings.gpu_layers == 7


def test_a_file_on_both_engines_is_two_variants_of_the_same_weights(
    open_page: Open, ollama: LivingOllama, started: list[RunSpec], tmp_path: Path
) -> None:
    file = write_gguf(tmp_path / "tiny-Q4_0.gguf")
    app = open_page("new")

    app.segmented_control(key="liob_new_engine").set_value("both").run()
    app.text_area(key="liob_new_paths").set_value(str(file)).run()
    app.pills(key="liob_new_tasks").set_value(["suite"]).run()
    assert not app.exception
    app.button(key="liob_start").click().run()

    assert not app.exception
    (spec,) = started
    assert [one.label for one in spec.variants] == ["Q4_0 embedded", "Q4_0 ollama"]
    assert len({one.weights_sha256 for one in spec.variants}) == 1
    assert spec.variants[1].engine_model.startswith("liob/tiny:q4_0-")


def test_without_ollama_the_embedded_engine_is_taken_and_the_page_says_why(open_page: Open) -> None:
    app = open_page("new")

    said = " ".join(caption.value for caption in app.caption)
    assert "Ready on a test" in said
    assert "default here. No Ollama in this test" in said
    app.segmented_control(key="liob_new_engine").set_value("ollama").run()
    assert app.button(key="liob_start").disabled
    assert any("Start Ollama, or choose another" in one.value for one in app.markdown)


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script")
def test_server_is_started_by_a_click_and_stopped_by_another(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = _free_port()
    binary = tmp_path / "ollama"
    binary.write_text(f"#!{sys.executable}\n{_STAND_IN}")
    binary.chmod(0o755)
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{port}")
    monkeypatch.setattr("liob_core.ui.setup.engine_step.describe_ollama", describe_ollama)
    for where in ("liob_core.ui.setup.engine_step", "liob_core.engines.ollama_server"):
        monkeypatch.setattr(f"{where}.find_binary", lambda: binary)
    st.cache_data.clear()
    settings = load_settings()
    app = open_page("new")
    try:
        app.button(key="liob_start_ollama").click().run()

        assert not app.exception
        assert not app.error
        assert started_server(settings.machine_dir) is not None
        assert any("LIOB started this server" in caption.value for caption in app.caption)
        app.button(key="liob_stop_ollama").click().run()
        assert started_server(settings.machine_dir) is None
    finally:
        stop_server(settings.machine_dir)


def _free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


_STAND_IN = """
import json, os
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"version": "0.33.0", "models": []}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

HTTPServer(("127.0.0.1", int(os.environ["OLLAMA_HOST"].rpartition(":")[2])), Handler).serve_forever()
"""
