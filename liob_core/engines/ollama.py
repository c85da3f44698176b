"""The Ollama engine: models as users have them, on a server that LIOB does not own."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from liob_core.engines.ollama_answer import chunks_of
from liob_core.engines.ollama_errors import NO_THINKING
from liob_core.engines.ollama_host import CALL_TIMEOUT_S, find_host
from liob_core.engines.ollama_lines import StreamLine, bad_reply
from liob_core.engines.ollama_models import (
    OllamaModels,
    ShownModel,
    full_name,
    is_remote_name,
    refused_remote,
)
from liob_core.engines.ollama_options import (
    load_body,
    read_profile,
    request_body,
    sampling_problem,
    settings_problem,
)
from liob_core.engines.ollama_process import Runner, find_runner
from liob_core.engines.ollama_render import added_bos, render
from liob_core.engines.ollama_report import effective, load_warnings, log_sent
from liob_core.engines.ollama_residents import Residents
from liob_core.engines.ollama_stream import OllamaStream
from liob_core.engines.protocol import Capabilities, Chunk, LoadReport, Request
from liob_core.errors import EngineFailure
from liob_core.types import JsonValue, LoadSettings, Message, Outcome, Variant

UNLOAD_WAIT_S = 30.0
# Whoever stopped a run waits for its end: the model is told to leave, a slow server is not waited for.
UNLOAD_WAIT_ABORTED_S = 3.0
ANSWER_ABORTED_S = 1.0
# A "warm" request that spends this share of the load's own time on loading was not warm; a warm one
# never spends nothing, so there is a least time too.
RELOAD_SHARE = 0.5
RELOAD_LEAST_MS = 150.0


@dataclass(slots=True)
class _Loaded:
    """The model in use, how its load was asked for, and where its log goes."""

    name: str
    settings: LoadSettings
    shown: ShownModel
    log_path: Path
    load_ms: float | None = None
    runner: Runner | None = None
    is_reloaded: bool = False  # by the server, in silence: its runner is another process then
    refused_think: bool = False
    added_bos: str | None = None  # None: not asked yet
    n_others: int = 0  # models that were in memory too, before the latest request


class OllamaEngine:
    """One model at a time on one Ollama server, loaded for LIOB and unloaded after it."""

    def __init__(self, url: str | None = None, options: Mapping[str, JsonValue] | None = None) -> None:
        self._profile = read_profile(options or {})
        self._host = find_host(url)
        self._measured = OllamaStream(self._host)
        self._control = OllamaStream(self._host)  # not stopped by `abort`: it also cleans up after one
        self._models = OllamaModels(self._measured)
        self._residents = Residents(self._measured)
        self._loaded: _Loaded | None = None

    @property
    def name(self) -> str:
        """The engine's name as stored in results."""
        return "ollama"

    @property
    def capabilities(self) -> Capabilities:
        """What it can do. Prompts are text and the end token ends an answer: no request changes that."""
        return Capabilities(
            takes_token_ids=False,
            reports_cached_tokens=False,
            renders_templates=True,
            is_local=self._host.is_loopback,
            is_restartable=False,
            tokenizes=False,
            uses_file_template=False,
        )

    # --- loading ------------------------------------------------------------------------------

    def load(self, variant: Variant, settings: LoadSettings, *, log_path: Path, load_s: float) -> LoadReport:
        """What the load took, from the order until the answer; the model is first made to leave memory."""
        self._measured.reset()
        self.unload()
        name = variant.engine_model
        if problem := settings_problem(settings):
            raise EngineFailure(Outcome.ENGINE_ERROR, problem, needs_reload=True)
        if is_remote_name(name) and not self._profile.allow_remote:
            raise refused_remote(name)
        version, warnings = self._version()
        loaded = self._loaded = _Loaded(name, settings, self._show(name), log_path)
        try:
            return self._load(loaded, load_s, version, warnings)
        except BaseException:
            self.unload()
            raise

    def _load(self, loaded: _Loaded, load_s: float, version: str | None, warnings: list[str]) -> LoadReport:
        was_gone = self._residents.make_leave(loaded.name, wait_s=UNLOAD_WAIT_S, answer_s=CALL_TIMEOUT_S)
        self._stop_if_aborted()
        others = [model.name for model in self._models.loaded()]
        body = load_body(loaded.name, loaded.settings, self._profile)
        log_sent(loaded.log_path, "/api/generate", body)
        started = time.perf_counter_ns()
        reply = self._measured.call("POST", "/api/generate", body, timeout_s=load_s)
        if was_gone:
            loaded.load_ms = (time.perf_counter_ns() - started) / 1e6
        if reply.get("done") is not True:
            raise bad_reply(json.dumps(reply).encode(), "no end of the load")
        entry, loaded.runner = self._residents.entry(loaded.name), self._find_runner(loaded)
        return LoadReport(
            load_ms=loaded.load_ms,
            # The runner holds this one model alone, so all that it takes is the model's.
            host_rss_bytes=0 if loaded.runner else None,
            effective=effective(
                loaded.shown,
                entry,
                loaded.runner,
                is_local=self._host.is_loopback,
                body=body,
                warnings=[
                    *warnings,
                    *load_warnings(
                        loaded.settings,
                        entry,
                        others,
                        parameters=loaded.shown.parameters,
                        was_gone=was_gone,
                    ),
                ],
            ),
            engine_version=f"ollama {version}" if version else None,
        )

    def _version(self) -> tuple[str | None, list[str]]:
        try:
            version = self._models.version()
        except EngineFailure as failure:
            if failure.outcome is Outcome.ENGINE_DIED:
                raise
            return None, [f"the server's version is not known: {failure}"]
        if version == "0.30.0":
            return version, ["Ollama 0.30.0 counts only uncached prompt tokens: update it"]
        return version, []

    def _show(self, name: str) -> ShownModel:
        try:
            shown = self._models.show(name)
        except EngineFailure as failure:
            if "not found" not in str(failure):
                raise
            reason = f"Ollama has no model {name}: pull it or register a file (models pull, models register)."
            raise EngineFailure(Outcome.ENGINE_ERROR, reason, needs_reload=True) from failure
        if (shown.remote_host or shown.remote_model) and not self._profile.allow_remote:
            raise refused_remote(name)
        return shown

    def _find_runner(self, loaded: _Loaded) -> Runner | None:
        blob = loaded.shown.blob_path
        return find_runner(blob) if blob and self._host.is_loopback else None

    # --- prompts ------------------------------------------------------------------------------

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt that the server makes of `messages`, by its template for the model, without a BOS."""
        loaded = self._in_use()
        body = load_body(loaded.name, loaded.settings, self._profile)
        think = self._think(loaded, for_chat=True)
        asked = body if think is None else {**body, "think": think}
        if loaded.added_bos is None:
            loaded.added_bos = added_bos(self._measured, self._models, body)
        return render(self._measured, asked, messages).removeprefix(loaded.added_bos)

    def tokenize(self, text: str, *, add_special: bool) -> list[int]:
        """Nothing: Ollama has no way to ask for tokens."""
        raise EngineFailure(Outcome.ENGINE_ERROR, "Ollama has no way to ask for tokens")

    def bos_id(self) -> int | None:
        """None: Ollama has no way to ask for it."""
        return None

    # --- requests -----------------------------------------------------------------------------

    def generate(self, request: Request) -> Iterator[Chunk]:
        """The chunks of one answer. Whether the model is loaded is asked here, before the clock runs."""
        loaded = self._in_use()
        if problem := sampling_problem(request.sampling):
            raise EngineFailure(Outcome.ENGINE_ERROR, problem)
        names = self._residents.names()
        loaded.n_others = len(names - {full_name(loaded.name)})
        is_gone = loaded.runner is not None and not loaded.runner.is_running()
        cold = is_gone or full_name(loaded.name) not in names
        think = self._think(loaded, for_chat=bool(request.messages))
        path, body = request_body(loaded.name, loaded.settings, self._profile, request, think)
        log_sent(loaded.log_path, path, body)
        return self._answer(loaded, path, body, request, cold=cold)

    def _answer(
        self, loaded: _Loaded, path: str, body: dict[str, JsonValue], request: Request, *, cold: bool
    ) -> Iterator[Chunk]:
        lines = self._lines(loaded, path, body, request)
        for chunk in chunks_of(lines, request, model=loaded.name, n_ctx=loaded.settings.n_ctx, cold=cold):
            yield self._explained(loaded, chunk) if chunk.counters else chunk

    def _lines(
        self, loaded: _Loaded, path: str, body: dict[str, JsonValue], request: Request
    ) -> Iterator[StreamLine]:
        try:
            yield from self._measured.lines(path, body, request.limits)
        except EngineFailure as failure:
            if "think" not in body or NO_THINKING not in str(failure):
                raise
            loaded.refused_think = True  # its capabilities promised more than the server keeps
            yield from self._measured.lines(
                path, {key: value for key, value in body.items() if key != "think"}, request.limits
            )

    def _explained(self, loaded: _Loaded, chunk: Chunk) -> Chunk:
        """The last chunk with what only this engine knows about its load."""
        counters, note = chunk.counters, chunk.note
        load_ms = counters.engine_load_ms if counters else None
        if counters and load_ms and loaded.load_ms:
            is_reload = load_ms > max(RELOAD_LEAST_MS, RELOAD_SHARE * loaded.load_ms)
            counters = replace(counters, cold=counters.cold or is_reload)
        notes = [note] if note else []
        if counters and counters.cold:
            loaded.is_reloaded = True
            notes.append("the server had to load the model again for it")
        if loaded.refused_think:
            notes.append("sent without `think`, which the server refused")
        if loaded.n_others:
            notes.append(f"{loaded.n_others} other models were in memory")
        return replace(chunk, counters=counters, note="; ".join(notes) or None)

    def _think(self, loaded: _Loaded, *, for_chat: bool) -> bool | str | None:
        if not loaded.shown.can_think or loaded.refused_think:
            return None
        if not for_chat:
            return False  # a rendered prompt has decided it, and the text comes back as it is written
        return True if self._profile.think is None else self._profile.think

    def _in_use(self) -> _Loaded:
        if self._loaded is None:
            raise EngineFailure(Outcome.ENGINE_ERROR, "no model is loaded", needs_reload=True)
        self._stop_if_aborted()
        return self._loaded

    def _stop_if_aborted(self) -> None:
        if self._measured.is_aborted:
            raise EngineFailure(Outcome.CANCELLED, "the engine was stopped", needs_reload=True)

    # --- ending -------------------------------------------------------------------------------

    def abort(self) -> None:
        """Cut the connection of a request or load under way, which makes the server stop its work."""
        self._measured.abort()

    def pids(self) -> tuple[int, ...]:
        """The runner that holds the model; empty where it cannot be seen from here."""
        loaded = self._loaded
        if loaded is None:
            return ()
        if loaded.is_reloaded or (loaded.runner is not None and not loaded.runner.is_running()):
            # Where none is found the ended one is kept, so that the next request is known to be cold.
            loaded.runner, loaded.is_reloaded = self._find_runner(loaded) or loaded.runner, False
        runner = loaded.runner
        return (runner.pid,) if runner and runner.is_running() else ()

    def unload(self) -> None:
        """Have the server free the model, and wait for it within limits; nothing where none was loaded."""
        loaded, self._loaded = self._loaded, None
        if loaded is None:
            return
        is_hurried = self._measured.is_aborted
        with suppress(EngineFailure):  # a server that is gone has freed it
            Residents(self._control).make_leave(
                loaded.name,
                wait_s=UNLOAD_WAIT_ABORTED_S if is_hurried else UNLOAD_WAIT_S,
                answer_s=ANSWER_ABORTED_S if is_hurried else CALL_TIMEOUT_S,
            )

    def close(self) -> None:
        """Free the model and close the connections."""
        self.unload()
        self._measured.close()
        self._control.close()
