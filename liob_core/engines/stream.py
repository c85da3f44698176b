"""What llama-server's stream says: its events and its errors, read into records."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ValidationError

from liob_core.engines.sse import EventReader
from liob_core.errors import EngineFailure
from liob_core.types import JsonValue, Outcome


class Timings(BaseModel):
    """The engine's own clock and counts of one request; milliseconds and tokens."""

    cache_n: int
    prompt_n: int
    prompt_ms: float
    predicted_n: int
    predicted_ms: float


class StreamEvent(BaseModel):
    """One event of a `/completion` stream; the last one has `stop`."""

    content: str = ""
    stop: bool = False
    tokens_predicted: int | None = None
    stop_type: str | None = None
    truncated: bool = False
    timings: Timings | None = None
    generation_settings: dict[str, Any] | None = None
    error: Any = None


def whole_events(reader: EventReader, piece: bytes) -> list[bytes]:
    """The data of the events that `piece` completes; something else than events is a bad reply."""
    try:
        return reader.feed(piece)
    except ValueError as error:
        raise EngineFailure(
            Outcome.BAD_REPLY, f"the engine sent no stream of events: {error}", needs_reload=True
        ) from error


def read_event(data: bytes) -> StreamEvent:
    """The event in one event's data; raises what the server reports or what cannot be read."""
    try:
        # Broken UTF-8 becomes replacement characters: it is the model's text and shown as such.
        event = StreamEvent.model_validate_json(data.decode("utf-8", errors="replace"))
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"])
        reason = f"the engine sent an event that cannot be read ({place or 'not JSON'}): {data[:80]!r}"
        raise EngineFailure(Outcome.BAD_REPLY, reason, needs_reload=True) from error
    if event.error is not None:
        raise told_failure(event.error)
    return event


def told_failure(error: JsonValue) -> EngineFailure:
    """The failure that the server's error tells; proxies wrap one in another, also as JSON in a string."""
    kind = None
    for _ in range(4):
        if isinstance(error, str) and error.lstrip().startswith("{"):
            with suppress(ValueError):
                error = json.loads(error)
        if not isinstance(error, Mapping):
            break
        kind = error.get("type", kind)
        inner = error.get("error", error.get("message"))
        if inner is None:
            break
        error = inner
    if kind == "exceed_context_size_error":
        return EngineFailure(Outcome.CONTEXT_EXCEEDED, f"the prompt does not fit: {error}")
    return EngineFailure(Outcome.ENGINE_ERROR, f"the engine says: {error}")
