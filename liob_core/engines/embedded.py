"""The embedded engine: llama.cpp's server in a child process, one child a load."""

import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from liob_core.engines import server_log
from liob_core.engines.children import kill_leftovers
from liob_core.engines.engine_child import (
    SIGILL_CODES,
    ChildGoneError,
    EngineChild,
    missing_library,
    unusable_processor,
)
from liob_core.engines.llamaserver import LlamaServerClient
from liob_core.engines.protocol import Capabilities, Chunk, LoadReport, Request
from liob_core.errors import EngineFailure
from liob_core.types import JsonValue, LoadSettings, Message, Outcome, Variant

__all__ = ["EmbeddedEngine", "kill_leftovers"]

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
LOAD_MODES = ("none", "mmap", "mlock", "mmap_mlock", "direct_io")
FLASH_ATTN = ("auto", "on", "off")
GPU_TYPES = frozenset({"gpu", "igpu"})
CPU_BUILD = "this build of the embedded engine uses the processor alone"
EXIT_WAIT_S = 1.0
HEALTH_POLL_S = 0.005
LOG_WAIT_S = 1.0  # the engine writes its log from a thread of its own
DAMAGE_MARKS = ("invalid magic", "failed to read magic", "file bounds", "invalid data", "corrupted")


class EmbeddedEngine:
    """llama.cpp's server in a child that never outlives this process."""

    def __init__(self, machine_dir: Path) -> None:
        self._machine_dir = machine_dir
        # Children die with the thread that started them: this one lives until `close`.
        self._spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="engine-spawner")
        self._aborted = threading.Event()
        self._child: EngineChild | None = None
        self._client: LlamaServerClient | None = None
        self._log_path: Path | None = None

    @property
    def name(self) -> str:
        """The engine's name as stored in results."""
        return "embedded"

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""
        return Capabilities(
            takes_token_ids=True,
            reports_cached_tokens=True,
            renders_templates=True,
            is_local=True,
            is_restartable=True,
        )

    def load(self, variant: Variant, settings: LoadSettings, *, log_path: Path, load_s: float) -> LoadReport:
        """What the load took; the clock runs from the order to load until the server answers."""
        self.unload()
        self._aborted.clear()
        path = _usable_path(variant, settings)
        self._log_path = log_path
        child = self._child = EngineChild.start(self._spawner, log_path, self._machine_dir)
        if self._aborted.is_set():
            child.kill()
        try:
            with child.deadline(load_s):
                return self._load_in(child, path, settings, log_path)
        except ChildGoneError as error:
            failure = self._load_failure(child, path, load_s)
            self.unload()
            raise failure from error
        except BaseException:
            self.unload()
            raise

    def _load_in(self, child: EngineChild, path: Path, settings: LoadSettings, log_path: Path) -> LoadReport:
        host = _host_reply(child)
        host_rss = _rss_bytes(child.process.pid)
        key = secrets.token_urlsafe(32)
        started = time.perf_counter_ns()
        child.order({"model": str(path), "api_key": key, **asdict(settings)})
        reply = child.reply()
        if reply["event"] == "failed":
            child.exit_sentence(EXIT_WAIT_S)  # its log is whole once it has ended
            raise self._refused(path, str(reply["error"]))
        client = self._client = LlamaServerClient(reply["address"], key)
        while not client.is_healthy():
            if not child.is_running():
                raise ChildGoneError
            time.sleep(HEALTH_POLL_S)
        load_ms = (time.perf_counter_ns() - started) / 1e6
        facts = _read_whole_log(log_path, child.log_offset)
        return LoadReport(
            load_ms=load_ms,
            host_rss_bytes=host_rss,
            effective=_with_offload(facts.effective, host["devices"], settings),
            weights_bytes=facts.weights_bytes,
            kv_bytes=facts.kv_bytes,
            compute_bytes=facts.compute_bytes,
            output_bytes=facts.output_bytes,
            engine_version=f"xllamacpp {host['version']}",
            system_info=host["system_info"],
            devices=tuple(host["devices"]),
        )

    def _refused(self, path: Path, error: str) -> EngineFailure:
        log_tail = self._log_tail()
        cause = server_log.load_error(log_tail) or error
        advice = " Fetch or make the file again." if any(mark in cause for mark in DAMAGE_MARKS) else ""
        return EngineFailure(
            Outcome.ENGINE_ERROR,
            f"{path.name} could not be loaded: {cause.rstrip('.')}.{advice}",
            log_tail=log_tail,
            needs_reload=True,
        )

    def _load_failure(self, child: EngineChild, path: Path, load_s: float) -> EngineFailure:
        ended = child.exit_sentence(EXIT_WAIT_S)
        log_tail = self._log_tail()
        if self._aborted.is_set():
            outcome, reason = Outcome.CANCELLED, f"loading {path.name} was stopped"
        elif child.is_timed_out:
            outcome, reason = Outcome.TIMEOUT, f"{path.name} was not loaded after {load_s:g} s"
        else:
            outcome = Outcome.ENGINE_DIED
            reason = f"the engine ended while loading {path.name}: {ended or 'it stopped answering'}"
        return EngineFailure(outcome, reason, log_tail=log_tail, needs_reload=True)

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt text that the loaded file's own template makes of `messages`, without a leading BOS."""
        with self._loaded() as client:
            return client.render(messages)

    def tokenize(self, text: str, *, add_special: bool) -> list[int]:
        """The token ids of `text`; with `add_special`, as the engine would read it as a prompt."""
        with self._loaded() as client:
            return client.tokenize(text, add_special=add_special)

    def bos_id(self) -> int | None:
        """The id of the token that begins a sequence, or None where the vocabulary has none."""
        with self._loaded() as client:
            return client.bos_id()

    def generate(self, request: Request) -> Iterator[Chunk]:
        """The chunks of one answer as they arrive, ending with the one that has `counters`."""
        with self._loaded() as client:
            yield from client.generate(request)

    @contextmanager
    def _loaded(self) -> Iterator[LlamaServerClient]:
        client, child = self._client, self._child
        if client is None or child is None:
            raise EngineFailure(Outcome.ENGINE_ERROR, "no model is loaded", needs_reload=True)
        try:
            yield client
        except EngineFailure as failure:
            raise self._explained(failure, child) from failure

    def _explained(self, failure: EngineFailure, child: EngineChild) -> EngineFailure:
        """A failure of the connection as what it was: the child's end, where it did end."""
        if not failure.needs_reload:
            return failure
        ended = child.exit_sentence(EXIT_WAIT_S)
        log_tail = self._log_tail()
        if self._aborted.is_set():
            outcome, reason = Outcome.CANCELLED, "the engine was stopped"
        elif ended is not None:
            outcome, reason = Outcome.ENGINE_DIED, f"the engine died: {ended}"
        else:
            outcome, reason = failure.outcome, str(failure)
        self.unload()
        return EngineFailure(outcome, reason, log_tail=log_tail, needs_reload=True)

    def _log_tail(self) -> str:
        return server_log.tail(self._log_path) if self._log_path else ""

    def abort(self) -> None:
        """Kill the child: a `generate` or `load` under way fails at once; holds until the next load."""
        self._aborted.set()
        child = self._child
        if child is not None:
            child.kill()

    def pids(self) -> tuple[int, ...]:
        """The child's process id; empty where none runs."""
        child = self._child
        return (child.process.pid,) if child is not None and child.is_running() else ()

    def unload(self) -> None:
        """End the child; nothing where none is loaded."""
        client, self._client = self._client, None
        child, self._child = self._child, None
        if client is not None:
            client.close()
        if child is not None:
            child.end()

    def close(self) -> None:
        """End the child and the thread that starts children."""
        self.unload()
        self._spawner.shutdown(wait=True)


def _usable_path(variant: Variant, settings: LoadSettings) -> Path:
    path = Path(variant.engine_model).resolve()
    problem = None
    if path.is_dir():
        problem = f"{path} is a folder: name the GGUF file in it."
    elif not path.is_file():
        problem = f"{path} is not there: check the path."
    for name, value, known in (
        ("KV type", settings.kv_type_k, KV_TYPES),
        ("KV type", settings.kv_type_v, KV_TYPES),
        ("load mode", settings.load_mode, LOAD_MODES),
        ("flash attention", settings.flash_attn, FLASH_ATTN),
    ):
        if value not in known:
            problem = f"The {name} {value!r} is not known: choose one of {', '.join(known)}."
    if problem:
        raise EngineFailure(Outcome.ENGINE_ERROR, problem, needs_reload=True)
    return path


def _with_offload(
    effective: Mapping[str, JsonValue] | None, devices: Sequence[Mapping[str, JsonValue]], asked: LoadSettings
) -> dict[str, JsonValue] | None:
    """The effective settings, and that nothing was offloaded where the build knows no graphics device."""
    if any(device["type"] in GPU_TYPES for device in devices):
        return dict(effective) if effective else None
    facts = {**(effective or {}), "gpu_layers": 0, "gpu_share": 0.0, "gpu_share_reason": CPU_BUILD}
    if asked.gpu_layers:
        facts["warnings"] = [f"{CPU_BUILD}: the {asked.gpu_layers} layers asked for stay there"]
    return facts


def _rss_bytes(pid: int) -> int | None:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None


def _host_reply(child: EngineChild) -> dict[str, Any]:
    try:
        reply = child.reply()
    except ChildGoneError:
        child.exit_sentence(EXIT_WAIT_S)
        if child.process.returncode in SIGILL_CODES:
            raise unusable_processor() from None
        raise
    if reply["event"] == "missing":
        raise missing_library(reply)
    return reply


def _read_whole_log(path: Path, offset: int) -> server_log.LogFacts:
    until = time.monotonic() + LOG_WAIT_S
    while server_log.LOADED_MARK not in server_log.tail(path) and time.monotonic() < until:
        time.sleep(HEALTH_POLL_S)
    return server_log.read_log(path, offset)
