"""Everything that can go wrong with Ollama, as one of the closed set of outcomes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx

from liob_core.engines.ollama_host import OllamaHost
from liob_core.engines.ollama_lines import KEPT_CHARS, bad_reply, read_object, storable
from liob_core.engines.stream import told_failure
from liob_core.errors import EngineFailure
from liob_core.types import JsonValue, Outcome

NO_MEMORY = (
    "out of memory",
    "outofmemory",
    "cudamalloc failed",
    "failed to allocate",
    "unable to allocate",
    "requires more system memory",
)
CONTEXT = (
    "exceeds the available context size",
    "longer than the context length",
    "exceeds the context length",
)
DIED = (
    "model runner has unexpectedly stopped",
    "an error was encountered while running the model",
    "process has terminated",  # llama-server's, before 0.30 the runner's
    "runner process no longer running",
)
REPEATED = "token repeat limit reached"
NO_THINKING = "does not support thinking"


def told(error: JsonValue, status: int | None = None) -> EngineFailure:
    """The failure that an `error` of Ollama's tells; in it may lie another one, as JSON in a string."""
    failure = told_failure(error)
    reason = storable(str(failure))
    text = reason.lower()
    if failure.outcome is Outcome.CONTEXT_EXCEEDED or any(mark in text for mark in CONTEXT):
        return EngineFailure(Outcome.CONTEXT_EXCEEDED, reason)
    if REPEATED in text:
        return EngineFailure(Outcome.REPETITION, reason)
    if any(mark in text for mark in NO_MEMORY):
        advice = "Take a smaller variant or context, or fewer layers on the device."
        return EngineFailure(Outcome.ENGINE_ERROR, f"{reason} {advice}", needs_reload=True)
    if any(mark in text for mark in DIED):
        return EngineFailure(Outcome.ENGINE_DIED, reason, needs_reload=True)
    if status == httpx.codes.FORBIDDEN and "cloud" in text:
        return EngineFailure(Outcome.REFUSED_REMOTE, f"{reason} (it would leave this machine)")
    return EngineFailure(Outcome.ENGINE_ERROR, reason)


def told_status(status: int, body: bytes) -> EngineFailure:
    """The failure of a reply whose status is not 200."""
    try:
        error = read_object(body).get("error")
    except EngineFailure:
        error = None
    if error is None:
        return bad_reply(body, f"HTTP status {status} without an error of its own")
    return told(error, status)


def unreachable(host: OllamaHost) -> EngineFailure:
    """The failure where no server answers; the same words whatever was asked of it."""
    return EngineFailure(
        Outcome.ENGINE_DIED,
        f"No Ollama answers at {host.url}: start it (ollama serve) or set OLLAMA_HOST to where it runs.",
        needs_reload=True,
    )


@contextmanager
def translated(host: OllamaHost, is_aborted: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Within it, what the HTTP library raises becomes an `EngineFailure`."""
    try:
        if is_aborted():
            raise EngineFailure(Outcome.CANCELLED, "the request was stopped", needs_reload=True)
        yield
    except (httpx.HTTPError, httpx.StreamError, OSError) as error:
        if is_aborted():
            reason = "the request was stopped"
            raise EngineFailure(Outcome.CANCELLED, reason, needs_reload=True) from error
        raise _of_transport(host, error) from error


@contextmanager
def translated_client(host: OllamaHost) -> Iterator[None]:
    """Within it, what Ollama's own client raises becomes an `EngineFailure`; for calls of it alone.

    The client raises AttributeError on an error that is JSON but no object, and ValueError on anything
    that is not JSON or lacks a field.
    """
    import ollama  # noqa: PLC0415 - whoever has a client has imported it

    try:
        with translated(host):
            yield
    except ollama.ResponseError as error:
        raise _of_response(error) from error
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise bad_reply(str(getattr(error, "doc", error)).encode(), "a reply that cannot be read") from error


def _of_response(error: JsonValue) -> EngineFailure:
    """Of a client's ResponseError: a body that was no JSON object is kept in it as it came."""
    text, status = error.error, error.status_code
    looks_foreign = not isinstance(text, str) or text.lstrip().startswith("<")
    if status > 0 and (looks_foreign or not str(text).strip()):
        return bad_reply(str(text)[:KEPT_CHARS].encode(), f"HTTP status {status} without an error of its own")
    return told(text, status)


def _of_transport(host: OllamaHost, error: Exception) -> EngineFailure:
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return unreachable(host)
    if isinstance(error, httpx.TimeoutException):
        return EngineFailure(Outcome.TIMEOUT, f"Ollama at {host.url} fell silent", needs_reload=True)
    if isinstance(error, httpx.HTTPError | httpx.StreamError) or not isinstance(error, ConnectionError):
        reason = f"the connection to Ollama at {host.url} was lost ({error})"
        return EngineFailure(Outcome.ENGINE_DIED, reason, needs_reload=True)
    # Ollama's client raises the built-in error for a refused connection, with its own advice.
    return unreachable(host)
