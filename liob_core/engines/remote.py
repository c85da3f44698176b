"""The engine that is a llama-server which the user runs: LIOB measures it but cannot load or restart it."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PureWindowsPath

import httpx

from liob_core.engines.llamaserver import KEY_VARIABLE, LlamaServerClient
from liob_core.engines.protocol import Capabilities, Chunk, LoadReport, Request
from liob_core.errors import EngineFailure, UsageError
from liob_core.types import JsonValue, LoadSettings, Message, Outcome, Variant

POLL_S = 0.1


class LlamaServerEngine:
    """A llama-server at a URL with the one model it was started with."""

    def __init__(self, url: str) -> None:
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise UsageError(f"{url!r} is no address: write it like http://127.0.0.1:8080.") from error
        if parsed.scheme not in {"http", "https"} or not parsed.host:
            raise UsageError(f"{url!r} is no address: write it like http://127.0.0.1:8080.")
        self._client = LlamaServerClient(url, server_key())
        self._is_stopped = False

    @property
    def name(self) -> str:
        """The engine's name as stored in results."""
        return "llama-server"

    @property
    def capabilities(self) -> Capabilities:
        """What it can do; its processes are not LIOB's to watch or start."""
        return Capabilities(
            takes_token_ids=True,
            reports_cached_tokens=True,
            renders_templates=True,
            is_local=False,
            is_restartable=False,
        )

    def load(self, variant: Variant, settings: LoadSettings, *, log_path: Path, load_s: float) -> LoadReport:
        """What the server says of the model it has; nothing is loaded, so `load_ms` is None.

        Waits until the server is ready and no slot works on an earlier request: closing a connection does
        not stop a prompt in process.
        """
        self._is_stopped = False
        self._client.reset()
        until = time.monotonic() + load_s
        self._wait(
            self._client.is_healthy, until, f"no llama-server is ready at {self._client.url}: start it"
        )
        props = self._client.props()
        _check_model(variant, str(props.get("model_path", "")), self._client.url)
        self._wait(
            self._is_idle, until, f"the llama-server at {self._client.url} is busy with other requests"
        )
        build = props.get("build_info")
        return LoadReport(
            load_ms=None,
            effective=_effective(props),
            engine_version=f"llama-server {build}" if build else None,
        )

    def _wait(self, is_true: Callable[[], bool], until: float, otherwise: str) -> None:
        while not is_true():
            if self._is_stopped:
                raise EngineFailure(Outcome.CANCELLED, "loading was stopped", needs_reload=True)
            if time.monotonic() > until:
                raise EngineFailure(Outcome.TIMEOUT, otherwise, needs_reload=True)
            time.sleep(POLL_S)

    def _is_idle(self) -> bool:
        slots: list[JsonValue] = []
        with suppress(EngineFailure):  # the user's server may not offer this page
            slots = self._client.slots()
        return not any(isinstance(slot, Mapping) and slot.get("is_processing") for slot in slots)

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt text that the server's template makes of `messages`, without a leading BOS."""
        return self._client.render(messages)

    def tokenize(self, text: str, *, add_special: bool) -> list[int]:
        """The token ids of `text`; with `add_special`, as the engine would read it as a prompt."""
        return self._client.tokenize(text, add_special=add_special)

    def bos_id(self) -> int | None:
        """The id of the token that begins a sequence, or None where the vocabulary has none."""
        return self._client.bos_id()

    def generate(self, request: Request) -> Iterator[Chunk]:
        """The chunks of one answer as they arrive, ending with the one that has `counters`."""
        return self._client.generate(request)

    def abort(self) -> None:
        """Cut the connection of a request under way; holds until the next load."""
        self._is_stopped = True
        self._client.abort()

    def pids(self) -> tuple[int, ...]:
        """No process ids: the server is not LIOB's."""
        return ()

    def unload(self) -> None:
        """Nothing: the model stays in the user's server."""

    def close(self) -> None:
        """Close the client."""
        self._client.close()


def server_key() -> str | None:
    """The key of the user's llama-server, from the variable that llama-server itself reads."""
    return os.environ.get(KEY_VARIABLE)


def _check_model(variant: Variant, loaded: str, url: str) -> None:
    asked = PureWindowsPath(variant.engine_model).name  # takes both kinds of separators
    if asked and loaded and PureWindowsPath(loaded).name != asked:
        raise EngineFailure(
            Outcome.ENGINE_ERROR,
            f"The llama-server at {url} has {PureWindowsPath(loaded).name} loaded, not {asked}: "
            "start it with that file or name the one it has.",
        )


def _effective(props: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    defaults = props.get("default_generation_settings")
    facts = {
        "n_ctx_seq": defaults.get("n_ctx") if isinstance(defaults, Mapping) else None,
        "n_seq_max": props.get("total_slots"),
    }
    return {name: value for name, value in facts.items() if value is not None} or None
