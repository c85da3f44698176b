"""The parent's side against a stand-in for the library; the real one is in tests/integration."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from liob_core.engines.children import is_alive
from liob_core.engines.embedded import EmbeddedEngine
from liob_core.errors import EngineFailure, MissingError
from liob_core.types import LoadSettings, Outcome

SETTINGS = LoadSettings(n_ctx=256)

# Enough of the library for a child to get as far as its load.
FACTS = """
import ctypes, os, sys, types
__version__ = "0"
def get_system_info(): return "CPU : NONE = 1 | "
def get_device_info(): return []
class _Any:
    def __getattr__(self, name): return _Any()
llama_flash_attn_type = ggml_type = llama_load_mode = _Any()
class CommonParams:
    def __init__(self):
        self.model, self.cpuparams, self.cpuparams_batch = (types.SimpleNamespace() for _ in range(3))
"""
HANGS = (
    FACTS
    + """
def Server(params):
    print("loading", file=sys.stderr, flush=True)
    ctypes.PyDLL(None).sleep(120)  # keeps the interpreter lock, as the real one does
"""
)


@pytest.fixture
def engine(tmp_path):
    made = EmbeddedEngine(tmp_path / "machine")
    yield made
    made.close()


def load(engine, variant, tmp_path, load_s=60.0):
    return engine.load(variant, SETTINGS, log_path=tmp_path / "run" / "engine.log", load_s=load_s)


def load_failure(engine, variant, tmp_path, load_s=60.0):
    with pytest.raises(EngineFailure) as caught:
        load(engine, variant, tmp_path, load_s)
    assert engine.pids() == ()
    assert not list((tmp_path / "machine").rglob("*.json"))
    return caught.value


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("raise ImportError('libgomp.so.1: cannot open shared object file')", "apt-get install libgomp1"),
        ("raise ModuleNotFoundError('No module named xllamacpp')", "--engine llama-server --url"),
        ("raise OSError('strange')", "(strange)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "AVX2"),
    ],
)
def test_load_library_that_does_not_load_says_what_to_do(engine, variant, tmp_path, library, source, words):
    library(source)
    with pytest.raises(MissingError) as caught:
        load(engine, variant, tmp_path)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("server", "outcome", "words"),
    [
        ("raise RuntimeError('no')", Outcome.ENGINE_ERROR, "m.gguf could not be loaded: RuntimeError: no."),
        (
            "print(\"0.0.1 E gguf: invalid magic characters: 'x'\", file=sys.stderr); raise RuntimeError",
            Outcome.ENGINE_ERROR,
            "m.gguf could not be loaded: invalid magic characters: 'x'. Fetch or make the file again.",
        ),
        ("os.kill(os.getpid(), 6)", Outcome.ENGINE_DIED, "while loading m.gguf: it ended by signal 6"),
        ("os.kill(os.getpid(), 9)", Outcome.ENGINE_DIED, "killed by signal 9"),
        ("os._exit(7)", Outcome.ENGINE_DIED, "ended with code 7"),
    ],
)
def test_load_that_fails_tells_why(engine, variant, tmp_path, library, server, outcome, words):
    library(f"{FACTS}\ndef Server(params): {server}\n")
    failure = load_failure(engine, variant, tmp_path)
    assert failure.outcome is outcome
    assert words in str(failure)
    assert failure.needs_reload


def test_load_past_its_deadline_is_a_timeout_with_the_log(engine, variant, tmp_path, library):
    library(HANGS)
    failure = load_failure(engine, variant, tmp_path, load_s=1.5)
    assert failure.outcome is Outcome.TIMEOUT
    assert "m.gguf was not loaded after 1.5 s" in str(failure)
    assert failure.log_tail == "loading"


def test_abort_ends_a_load_under_way(engine, variant, tmp_path, library):
    library(HANGS)
    log = tmp_path / "run" / "engine.log"

    def abort_once_loading():
        while "loading" not in (log.read_text() if log.exists() else ""):
            time.sleep(0.01)
        engine.abort()

    threading.Thread(target=abort_once_loading).start()
    assert load_failure(engine, variant, tmp_path).outcome is Outcome.CANCELLED


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"engine_model": "/nowhere/x.gguf"}, "x.gguf is not there"),
        ({"engine_model": "/"}, "is a folder"),
    ],
)
def test_load_unusable_path_is_told_without_a_child(engine, variant, tmp_path, change, words):
    assert words in str(load_failure(engine, replace(variant, **change), tmp_path))


def test_load_unknown_setting_lists_the_known_ones(engine, variant, tmp_path):
    with pytest.raises(EngineFailure, match="KV type 'q9' is not known: choose one of f32, f16"):
        engine.load(variant, replace(SETTINGS, kv_type_v="q9"), log_path=tmp_path / "l", load_s=5)


def test_generate_without_a_load_is_refused(engine):
    with pytest.raises(EngineFailure, match="no model is loaded"):
        engine.tokenize("x", add_special=False)


WORKER = """
import sys, threading
from pathlib import Path
from liob_core.engines.embedded import EmbeddedEngine
from liob_core.types import LoadSettings, Variant
path, folder = Path(sys.argv[1]), Path(sys.argv[2])
variant = Variant(key="k", label="l", quant="q", engine="embedded", engine_model=str(path),
    load_settings=LoadSettings(), weights_sha256=None, file_sha256=None, model=None, need=None)
engine = EmbeddedEngine(folder / "machine")
work = lambda: engine.load(variant, LoadSettings(), log_path=folder / "engine.log", load_s=60)
if sys.argv[3] == "thread":
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
else:
    work()
"""


def is_gone(pid: int, created: float) -> bool:
    until = time.monotonic() + 10
    while is_alive(pid, created) and time.monotonic() < until:
        time.sleep(0.02)
    return not is_alive(pid, created)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the child only notices once it has loaded")
@pytest.mark.parametrize("place", ["main", "thread"])
def test_worker_killed_while_loading_takes_its_child_along(variant, tmp_path, library, place):
    library(HANGS)
    project = str(Path(__file__).resolve().parents[3])
    paths = os.pathsep.join([project, os.environ["PYTHONPATH"]])
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, variant.engine_model, str(tmp_path), place],
        env={**os.environ, "PYTHONPATH": paths},
    )
    log, until = tmp_path / "engine.log", time.monotonic() + 60
    while "loading" not in (log.read_text() if log.exists() else "") and time.monotonic() < until:
        time.sleep(0.02)
    (child,) = psutil.Process(worker.pid).children()
    created = child.create_time()
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    assert is_gone(child.pid, created)
