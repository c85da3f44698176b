"""The embedded engine on the real library and the real model."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from liob_core.engines.children import is_alive
from liob_core.engines.embedded import EmbeddedEngine, kill_leftovers
from liob_core.engines.protocol import Chunk, LoadReport, Request
from liob_core.errors import EngineFailure
from liob_core.types import LoadSettings, Message, Outcome, Sampling, Variant

pytestmark = pytest.mark.model

SETTINGS = LoadSettings(n_ctx=1024, threads=1)  # two threads crawl beside a busy neighbour
SHAPE_IDS = tuple(range(100, 612))
MIB = 2**20
SOON_S = 3.0  # at once, and what a loaded machine adds


def make_variant(path: Path) -> Variant:
    return Variant(
        key="k",
        label="Q4_1",
        quant="Q4_1",
        engine="embedded",
        engine_model=str(path),
        load_settings=SETTINGS,
        weights_sha256=None,
        file_sha256=None,
        model=None,
        need=None,
    )


def load(engine: EmbeddedEngine, path: Path, folder: Path, settings: LoadSettings = SETTINGS) -> LoadReport:
    return engine.load(make_variant(path), settings, log_path=folder / "engine.log", load_s=60)


def ask(engine: EmbeddedEngine, prompt: str | tuple[int, ...], **options) -> list[Chunk]:
    return list(engine.generate(Request(prompt=prompt, sampling=Sampling(**{"max_tokens": 16, **options}))))


def text_of(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("embedded")


@pytest.fixture(scope="module")
def shared(folder) -> Iterator[EmbeddedEngine]:
    engine = EmbeddedEngine(folder / "machine")
    yield engine
    engine.close()
    assert list((folder / "machine" / "children").iterdir()) == []


@pytest.fixture(scope="module")
def report(shared, model_path, folder) -> LoadReport:
    return load(shared, model_path, folder)


@pytest.fixture
def loaded(shared, report) -> EmbeddedEngine:
    """The shared engine with the model loaded; only for tests that leave it loaded."""
    return shared


@pytest.fixture
def own(tmp_path) -> Iterator[EmbeddedEngine]:
    """An engine whose child may come to harm."""
    engine = EmbeddedEngine(tmp_path / "machine")
    yield engine
    engine.close()


# --- what a load tells --------------------------------------------------------------------------


def test_load_reports_buffers_to_the_printed_digit(report):
    assert report.weights_bytes == pytest.approx(92.10 * MIB, abs=0.0051 * MIB)
    assert report.kv_bytes == 1024 * 30 * 192 * 2 * 2  # tokens, layers, width, K and V, two bytes
    assert (report.compute_bytes or 0) > MIB
    assert report.output_bytes == pytest.approx(
        49152 * 4, abs=0.0051 * MIB
    )  # one float a word of the vocabulary
    assert (report.host_rss_bytes or 0) > 10 * MIB
    assert (report.load_ms or 0) > 10


def test_load_reports_what_became_of_the_settings(report):
    effective = dict(report.effective or {})
    assert {name: effective[name] for name in ("n_ctx", "n_seq_max", "n_ubatch", "threads", "load_mode")} == {
        "n_ctx": 1024,
        "n_seq_max": 1,
        "n_ubatch": 512,
        "threads": 1,
        "load_mode": "none",
    }
    assert (effective["kv_type_k"], effective["kv_type_v"], effective["flash_attn"]) == ("f16", "f16", "on")
    assert (report.engine_version or "").startswith("xllamacpp ")
    assert "AVX2" in (report.system_info or "") or "NEON" in (report.system_info or "")
    assert report.devices[0]["type"] in {"cpu", "gpu"}


def test_load_q8_cache_mapped_file_and_two_slots_become_effective(own, model_path, tmp_path):
    settings = replace(
        SETTINGS, n_ctx=4096, n_parallel=2, kv_type_k="q8_0", kv_type_v="q8_0", load_mode="mmap"
    )
    report = load(own, model_path, tmp_path, settings)
    exact = 4096 * 30 * 2 * (192 // 32) * 34  # 34 bytes for 32 values
    assert report.kv_bytes == pytest.approx(exact, abs=0.0051 * MIB)
    effective = report.effective or {}
    assert (effective["kv_type_k"], effective["load_mode"]) == ("q8_0", "mmap")
    assert (effective["n_seq_max"], effective["n_ctx_seq"]) == (2, 2048)


def test_load_quantized_values_without_flash_attention_says_so(own, model_path, tmp_path):
    settings = replace(SETTINGS, kv_type_k="q8_0", kv_type_v="q8_0", flash_attn="off")
    with pytest.raises(EngineFailure, match="quantized V cache requires flash_attn to be enabled") as caught:
        load(own, model_path, tmp_path, settings)
    assert "\n" not in str(caught.value)


# --- what an answer is --------------------------------------------------------------------------


def test_shape_counts_are_met_exactly(loaded):
    chunks = ask(loaded, SHAPE_IDS, max_tokens=128, ignore_eos=True)
    counters = chunks[-1].counters
    assert counters is not None
    assert (counters.prompt_tokens, counters.output_tokens, counters.cached_tokens) == (512, 128, 0)
    assert sum(chunk.n_tokens or 0 for chunk in chunks) == 128
    assert counters.stop_type == "limit"
    assert not chunks[-1].truncated


def test_render_gives_the_file_s_own_template_and_bos_is_a_token_of_it(loaded):
    prompt = loaded.render([Message(role="user", content="Hi")])
    assert prompt.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")
    assert prompt.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert loaded.bos_id() == 1
    tokens = loaded.tokenize(prompt, add_special=True)
    assert tokens[0] == 1  # <|im_start|>: this vocabulary adds no BOS
    assert tokens[1] != 1
    assert ask(loaded, prompt, max_tokens=1)[-1].counters.prompt_tokens == len(tokens)


def test_end_token_is_counted_though_it_shows_nothing(loaded):
    prompt = loaded.render([Message(role="user", content="What is 2+2?")])
    chunks = ask(loaded, prompt, max_tokens=64)
    assert text_of(chunks) == "The answer to this classic math problem is 4."
    counters = chunks[-1].counters
    assert counters.stop_type == "eos"
    assert counters.output_tokens == len(loaded.tokenize(text_of(chunks), add_special=False)) + 1
    assert sum(chunk.n_tokens or 0 for chunk in chunks) == counters.output_tokens


def test_multibyte_text_has_more_tokens_than_events(loaded):
    chunks = ask(loaded, "Repeat: 😀😀😀😀\nRepeat: 😀😀😀😀\nRepeat: 😀😀😀😀\nRepeat: 😀", max_tokens=9)
    assert "😀" in text_of(chunks)
    counters = chunks[-1].counters
    assert sum(chunk.n_tokens or 0 for chunk in chunks) == counters.output_tokens == 9
    assert max(chunk.n_tokens or 0 for chunk in chunks) > 1


def test_stop_string_ends_the_answer_and_is_not_in_it(loaded):
    chunks = ask(loaded, "1, 2, 3, 4, 5,", stop=("8",), max_tokens=32)
    assert text_of(chunks) == " 6, 7, "
    assert chunks[-1].counters.stop_type == "word"


def test_schema_makes_an_object(loaded):
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "maximum": 9}},
        "required": ["a"],
        "additionalProperties": False,
    }
    answer = text_of(ask(loaded, "As JSON:", json_schema=schema, max_tokens=64))
    assert answer.strip().startswith("{")
    assert '"a"' in answer


def test_same_seed_gives_the_same_text_and_another_seed_another(loaded):
    first, again, other = (
        text_of(ask(loaded, "Once upon a time", seed=seed, temperature=1.0, max_tokens=8))
        for seed in (7, 7, 8)
    )
    assert first == again != other


def test_prefix_cache_only_where_asked_for(loaded):
    ids = SHAPE_IDS[:40]
    on = {"cache_prompt": True, "max_tokens": 1}
    ask(loaded, ids, **on)
    assert ask(loaded, ids, **on)[-1].counters.cached_tokens == 39
    counters = ask(loaded, ids, max_tokens=1)[-1].counters
    assert (counters.cached_tokens, counters.prompt_tokens) == (0, 40)


def test_prompt_as_long_as_the_context_is_refused_and_the_engine_lives(loaded):
    with pytest.raises(EngineFailure) as caught:
        ask(loaded, (100,) * 1024)
    assert caught.value.outcome is Outcome.CONTEXT_EXCEEDED
    assert not caught.value.needs_reload
    assert "1024" in str(caught.value)
    assert ask(loaded, "Hi", max_tokens=1)


def test_context_full_in_mid_answer_is_truncated(own, model_path, tmp_path):
    report = load(own, model_path, tmp_path, replace(SETTINGS, n_ctx=100))
    assert (report.effective or {})["n_ctx_seq"] == 256  # the engine's own minimum
    chunks = ask(own, (100,) * 250, max_tokens=100, ignore_eos=True)
    assert chunks[-1].truncated
    assert chunks[-1].counters.output_tokens == 6


def test_pids_name_the_process_that_holds_the_memory(loaded, report):
    (pid,) = loaded.pids()
    assert psutil.Process(pid).memory_info().rss > report.weights_bytes


# --- files that are none ------------------------------------------------------------------------


def damaged(kind: str, model_path: Path, folder: Path) -> Path:
    path = folder / f"{kind}.gguf"
    whole = model_path.read_bytes() if kind in {"cut", "random"} else b""
    if kind == "cut":
        path.write_bytes(whole[:40_000_000])
    elif kind == "random":
        path.write_bytes(whole[:-30_000_000] + os.urandom(20_000_000) + whole[-10_000_000:])
    elif kind == "page":
        path.write_text("<!DOCTYPE html><html>Not found</html>")
    elif kind == "folder":
        path.mkdir()
    return path


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("cut", "data is not within the file bounds"),
        ("random", "has invalid data"),
        ("page", "invalid magic characters: '<!DO'"),
        ("folder", "is a folder"),
        ("missing", "is not there"),
    ],
)
def test_file_that_is_no_model_is_one_sentence(own, model_path, tmp_path, kind, words):
    with pytest.raises(EngineFailure) as caught:
        load(own, damaged(kind, model_path, tmp_path), tmp_path)
    assert words in str(caught.value)
    assert f"{kind}.gguf" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert own.pids() == ()


# --- deaths -------------------------------------------------------------------------------------


def start_long_answer(engine: EmbeddedEngine) -> Iterator[Chunk]:
    sampling = Sampling(max_tokens=600, ignore_eos=True)
    chunks = engine.generate(Request(prompt="Once upon a time", sampling=sampling))
    next(chunks)
    return chunks


def test_child_killed_in_mid_answer_is_told_and_the_next_load_works(own, model_path, tmp_path):
    load(own, model_path, tmp_path)
    chunks = start_long_answer(own)
    killed = time.monotonic()
    os.kill(own.pids()[0], signal.SIGKILL)
    with pytest.raises(EngineFailure) as caught:
        list(chunks)
    assert time.monotonic() - killed < SOON_S
    assert caught.value.outcome is Outcome.ENGINE_DIED
    assert "killed by signal 9" in str(caught.value)
    assert caught.value.log_tail
    assert caught.value.needs_reload
    assert own.pids() == ()
    load(own, model_path, tmp_path)
    assert ask(own, "Hi", max_tokens=2)


def test_abort_ends_an_answer_at_once(own, model_path, tmp_path):
    load(own, model_path, tmp_path)
    (pid,) = own.pids()
    chunks, aborted = start_long_answer(own), []

    def abort() -> None:
        aborted.append(time.monotonic())
        own.abort()

    threading.Timer(0.1, abort).start()
    with pytest.raises(EngineFailure) as caught:
        list(chunks)
    assert time.monotonic() - aborted[0] < SOON_S
    assert caught.value.outcome is Outcome.CANCELLED
    assert caught.value.needs_reload
    assert not psutil.pid_exists(pid)


def test_child_that_hangs_is_ended_by_abort(own, model_path, tmp_path):
    load(own, model_path, tmp_path)
    chunks = start_long_answer(own)
    os.kill(own.pids()[0], signal.SIGSTOP)
    threading.Timer(0.2, own.abort).start()
    with pytest.raises(EngineFailure) as caught:
        list(chunks)
    assert caught.value.outcome is Outcome.CANCELLED


def test_child_outlives_the_thread_that_loaded_it(own, model_path, tmp_path):
    thread = threading.Thread(target=load, args=(own, model_path, tmp_path))
    thread.start()
    thread.join()
    time.sleep(0.2)
    assert ask(own, "Hi", max_tokens=2)


WORKER = """
import sys, time
from pathlib import Path
from tests.integration.test_embedded import load, start_long_answer
from liob_core.engines.children import is_alive
from liob_core.engines.embedded import EmbeddedEngine
engine = EmbeddedEngine(Path(sys.argv[2]) / "machine")
load(engine, Path(sys.argv[1]), Path(sys.argv[2]))
print(*engine.pids(), flush=True)
for chunk in start_long_answer(engine):
    pass
time.sleep(60)
"""


def start_worker(model_path: Path, folder: Path) -> subprocess.Popen[str]:
    project = str(Path(__file__).resolve().parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(model_path), str(folder)],
        env={**os.environ, "PYTHONPATH": project},
        stdout=subprocess.PIPE,
        text=True,
    )


def is_gone_soon_after_kill(worker: subprocess.Popen[str], child: psutil.Process) -> bool:
    created = child.create_time()
    worker.kill()
    killed = time.monotonic()
    worker.wait()
    worker.stdout.close()
    # Nobody may reap it in a container, so it may stay as a zombie.
    while is_alive(child.pid, created) and time.monotonic() - killed < SOON_S:
        time.sleep(0.01)
    return not is_alive(child.pid, created)


def test_worker_killed_in_mid_answer_takes_its_child_along(model_path, tmp_path):
    worker = start_worker(model_path, tmp_path)
    child = psutil.Process(int(worker.stdout.readline()))
    assert is_gone_soon_after_kill(worker, child)
    assert kill_leftovers(tmp_path / "machine") == []
    assert list((tmp_path / "machine" / "children").iterdir()) == []


def test_worker_killed_while_loading_takes_its_child_along(model_path, tmp_path):
    worker = start_worker(model_path, tmp_path)
    log, until = tmp_path / "engine.log", time.monotonic() + 30
    while "loading model" not in (log.read_text() if log.exists() else "") and time.monotonic() < until:
        time.sleep(0.002)
    (child,) = psutil.Process(worker.pid).children()
    assert is_gone_soon_after_kill(worker, child)
