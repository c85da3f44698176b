import os
import socket
import subprocess
import sys

import psutil
import pytest

from liob_core.engines import ollama_server, registry
from liob_core.engines.ollama_host import find_host
from liob_core.engines.ollama_server import find_binary, start_server, started_server, stop_server
from liob_core.errors import MissingError, UsageError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="stands in for Ollama with a script")

SERVE = """\
#!{python} -S
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{{"version": "0.99.0", "models": []}}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
assert sys.argv[1:] == ["serve"] and os.environ["LLAMA_ARG_CACHE_RAM"] == "0"
port = int(os.environ["OLLAMA_HOST"].rpartition(":")[2])
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def host():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return find_host(f"127.0.0.1:{port}")


@pytest.fixture
def install(tmp_path, monkeypatch):
    def run(text):
        folder = tmp_path / "bin"
        folder.mkdir()
        program = folder / "ollama"
        program.write_text(text)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        return program

    return run


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    monkeypatch.setattr(ollama_server.shutil, "which", lambda _: None)
    monkeypatch.setattr(ollama_server.Path, "is_file", lambda _: False)


def test_start_serves_until_stop_which_ends_only_that(host, install, tmp_path):
    program = install(SERVE.format(python=sys.executable))
    assert find_binary() == program
    bystander = subprocess.Popen(["sleep", "60"])
    server = start_server(host, tmp_path / "machine", tmp_path / "serve.log")
    assert started_server(tmp_path / "machine") == server
    assert server.url == host.url
    with pytest.raises(UsageError, match="already"):
        start_server(host, tmp_path / "machine", tmp_path / "serve.log")
    assert stop_server(tmp_path / "machine")
    assert not psutil.pid_exists(server.pid) or psutil.Process(server.pid).status() == psutil.STATUS_ZOMBIE
    assert started_server(tmp_path / "machine") is None
    assert not stop_server(tmp_path / "machine")
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_start_that_fails_is_told_with_its_log(host, install, tmp_path):
    install("#!/bin/sh\necho no room >&2\nexit 1\n")
    with pytest.raises(MissingError, match=r"serve\.log"):
        start_server(host, tmp_path / "machine", tmp_path / "serve.log")
    assert "no room" in (tmp_path / "serve.log").read_text()
    assert started_server(tmp_path / "machine") is None


def test_start_where_ollama_is_not_installed_is_told(host, nowhere, tmp_path):
    with pytest.raises(MissingError, match="not installed"):
        start_server(host, tmp_path, tmp_path / "x.log")


def test_start_on_another_machine_is_refused(tmp_path):
    with pytest.raises(UsageError, match="another machine"):
        start_server(find_host("box.invalid"), tmp_path, tmp_path / "x.log")


def test_note_of_an_earlier_process_is_not_taken_for_this_one(tmp_path):
    (tmp_path / ollama_server.NOTE_FILE).write_text(f'{{"pid": {os.getpid()}, "started_s": 1.0, "url": "u"}}')
    assert started_server(tmp_path) is None
    assert not stop_server(tmp_path)
    assert not (tmp_path / ollama_server.NOTE_FILE).exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", "nonsense"])
def test_note_that_is_damaged_is_none(tmp_path, text):
    (tmp_path / ollama_server.NOTE_FILE).write_text(text)
    assert started_server(tmp_path) is None


# --- which engine is taken --------------------------------------------------------------------


def test_default_engine_is_ollama_where_it_answers(ollama, monkeypatch):
    monkeypatch.setenv("OLLAMA_HOST", ollama.url)
    name, sentence = registry.default_engine()
    assert name == "ollama"
    assert sentence == (
        f"Ollama is used, since it answers. Ollama 0.33.0 answers at {ollama.url} with 3 installed models."
    )


def test_default_engine_is_embedded_where_nothing_answers(host, nowhere, monkeypatch):
    monkeypatch.setenv("OLLAMA_HOST", host.url)
    name, sentence = registry.default_engine()
    assert name == "embedded"
    assert f"No Ollama answers at {host.url}" in sentence


def test_default_engine_says_where_ollama_is_only_installed(host, install, monkeypatch):
    install("#!/bin/sh\n")
    monkeypatch.setenv("OLLAMA_HOST", host.url)
    assert "Ollama is installed, but nothing answers" in registry.default_engine()[1]


def test_default_engine_bad_address_is_told(monkeypatch):
    monkeypatch.setenv("OLLAMA_HOST", "host:abc")
    name, sentence = registry.default_engine()
    assert name == "embedded"
    assert "is no address" in sentence


def test_describe_something_else_at_the_address_is_told(ollama):
    ollama.answer("/api/version", b"<html>hello")
    status = registry.describe_ollama(ollama.url)
    assert not status.available
    assert "<html>hello" in status.sentence


def test_make_engine_ollama_takes_an_address_and_a_profile(tmp_path):
    engine = registry.make_engine("ollama", url="[::1]:9", options={"think": True}, machine_dir=tmp_path)
    assert (engine.name, engine.capabilities.is_local) == ("ollama", True)
    engine.close()
    with pytest.raises(UsageError, match="no setting 'thnik'"):
        registry.make_engine("ollama", options={"thnik": True}, machine_dir=tmp_path)
