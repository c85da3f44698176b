import json
import os
import subprocess
import sys
import time

import psutil
import pytest

from liob_core.engines import ollama_process
from liob_core.engines.ollama_process import Runner, find_runner, is_runner, server_environment
from tests.integration.ollama_server import RECORDINGS

BLOB = "/models/blobs/sha256-" + "a" * 64


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        (["/usr/lib/ollama/llama-server", "--model", BLOB], True),
        (["C:\\Ollama\\llama-server.exe", "--model", BLOB], True),
        (["/usr/bin/ollama", "runner", "--model", BLOB, "--port", "1"], True),
        (["/usr/bin/ollama", "serve"], False),
        (["llama-server", "--list-devices"], False),
        (["llama-server", "--model", BLOB, "--list-devices"], False),
        (["ollama", "gpu-discover"], False),
        (["llama-quantize", "--model", BLOB], False),
        (["vim", "--model", BLOB], False),
        ([], False),
    ],
)
def test_is_runner_only_what_holds_a_model(command, wanted):
    assert is_runner(command) is wanted


def test_runner_settings_are_read_from_a_recorded_command_line():
    processes = json.loads((RECORDINGS / "processes.json").read_text())
    _, first, _ = processes
    assert is_runner(first["cmdline"])
    assert Runner(first["pid"], 0.0, tuple(first["cmdline"])).settings() == {
        "n_ctx_total": "2048",
        "n_parallel": "1",
        "load_mode": "none",
        "flash_attn": "auto",
        "n_batch": "512",
        "n_ubatch": "512",
        "threads": "2",
    }


@pytest.fixture
def start_runner():
    started = []

    def start(*words, name="llama-server", **options):
        command = [name, "-c", "read _; :", *words]
        process = subprocess.Popen(command, executable="/bin/sh", stdin=subprocess.PIPE, **options)
        started.append(process)
        # Just after a program was started its command line can still be empty.
        while process.poll() is None and not psutil.Process(process.pid).cmdline():
            time.sleep(0.001)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()


needs_sh = pytest.mark.skipif(sys.platform == "win32", reason="stands in for a runner with /bin/sh")


@needs_sh
def test_find_runner_by_the_blob_it_holds(start_runner, tmp_path):
    blob = str(tmp_path / ("sha256-" + "a" * 64))
    start_runner("--model", str(tmp_path / ("sha256-" + "b" * 64)))
    start_runner("--model", blob, "--list-devices")
    wanted = start_runner("--model", blob, "-ngl", "7")
    found = find_runner(blob)
    assert found.pid == wanted.pid
    assert found.settings()["gpu_layers"] == "7"
    assert found.is_running()
    wanted.kill()
    deadline = time.monotonic() + 10
    while found.is_running() and time.monotonic() < deadline:  # a zombie until it is waited for
        time.sleep(0.02)
    assert not found.is_running()
    assert find_runner(blob) is None


@needs_sh
def test_find_runner_takes_the_newest(start_runner, tmp_path):
    blob = str(tmp_path / ("sha256-" + "c" * 64))
    start_runner("--model", blob)
    time.sleep(0.05)
    newest = start_runner("--model", blob)
    assert find_runner(blob).pid == newest.pid


def test_find_runner_processes_that_vanish_or_hide_are_passed_over(monkeypatch):
    class Hidden:
        pid = 1

        def __init__(self, error):
            self.error = error

        def cmdline(self):
            raise self.error

    hidden = [
        Hidden(psutil.NoSuchProcess(1)),
        Hidden(psutil.AccessDenied(1)),
        Hidden(psutil.ZombieProcess(1)),
    ]
    monkeypatch.setattr(ollama_process.psutil, "process_iter", lambda: iter(hidden))
    assert find_runner(BLOB) is None


def test_server_environment_has_what_changes_numbers_and_no_names(monkeypatch):
    monkeypatch.setattr(
        psutil.Process,
        "environ",
        lambda _: {"OLLAMA_KV_CACHE_TYPE": "q8_0", "OLLAMA_MODELS": "/home/me", "A": "b"},
    )
    assert server_environment(Runner(os.getpid(), 0.0, ())) == {"OLLAMA_KV_CACHE_TYPE": "q8_0"}


def test_server_environment_that_is_hidden_is_unknown(monkeypatch):
    def denied(_):
        raise psutil.AccessDenied(1)

    monkeypatch.setattr(psutil.Process, "environ", denied)
    assert server_environment(Runner(os.getpid(), 0.0, ())) is None
