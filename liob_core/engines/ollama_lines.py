"""Ollama's streams: JSON objects, one a line, out of raw bytes."""

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from liob_core.errors import EngineFailure
from liob_core.types import JsonValue, Outcome

MAX_LINE_BYTES = 64 * 2**20
KEPT_CHARS = 200
# Beyond 2^53 a number does not survive other programs' JSON, nor is any count or duration that large.
Count = Annotated[int, Field(ge=0, le=2**53, strict=True)]


class LineReader:
    r"""Takes bytes in any pieces and returns whole lines, without blank ones.

    Lines end at the byte `\n` alone: text splitters also cut at U+0085 and U+2028, which Ollama does not
    escape, and a piece may end inside a character.
    """

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that `piece` completes."""
        self._rest += piece
        *lines, rest = self._rest.split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            raise bad_reply(bytes(rest), f"a line of more than {MAX_LINE_BYTES} bytes")
        self._rest = rest
        return [bytes(line) for line in lines if line.strip()]

    def finish(self) -> list[bytes]:
        """The last line, where the stream ended without a line's end."""
        rest, self._rest = bytes(self._rest), bytearray()
        return [rest] if rest.strip() else []


class StreamMessage(BaseModel):
    """A piece of a chat answer."""

    content: str | None = None
    thinking: str | None = None
    tool_calls: list[Any] | None = None


class DebugInfo(BaseModel):
    """What a request rendered and did not run."""

    rendered_template: str = ""


class StreamLine(BaseModel):
    """One line of a stream of `generate` or `chat`; the last one has `done`. Durations are in ns.

    A field that is zero is absent, so an absent one is unknown, not zero.
    """

    model_config = ConfigDict(populate_by_name=True)

    done: bool = False
    done_reason: str | None = None
    response: str | None = None
    thinking: str | None = None
    tool_calls: list[Any] | None = None
    message: StreamMessage | None = None
    remote_model: str | None = None
    remote_host: str | None = None
    debug_info: DebugInfo | None = Field(default=None, alias="_debug_info")
    total_duration: Count | None = None
    load_duration: Count | None = None
    prompt_eval_count: Count | None = None
    prompt_eval_cached_count: Count | None = None
    prompt_eval_duration: Count | None = None
    eval_count: Count | None = None
    eval_duration: Count | None = None

    @property
    def answer(self) -> str:
        """The text that this line adds to the answer; a tool call is shown as the JSON it is."""
        text = (self.response or "") + ((self.message.content or "") if self.message else "")
        calls = self.tool_calls or (self.message.tool_calls if self.message else None)
        return storable(text + (json.dumps(calls, ensure_ascii=False) if calls else ""))

    @property
    def thoughts(self) -> str:
        """The text that this line adds to the thinking."""
        return storable((self.thinking or "") + ((self.message.thinking or "") if self.message else ""))


def storable(text: str) -> str:
    """The text with half a surrogate pair, which nothing can store, as a replacement character."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_object(data: bytes) -> dict[str, JsonValue]:
    """The JSON object in one line or body; raises the bad reply that anything else is."""
    try:
        # Broken UTF-8 becomes replacement characters: it is the model's text and shown as such.
        value = json.loads(data.decode("utf-8", errors="replace"), strict=False)
    except (ValueError, RecursionError) as error:
        raise bad_reply(data, "no JSON") from error
    if not isinstance(value, dict):
        raise bad_reply(data, "JSON, but no object")
    return value


def read_line(value: dict[str, JsonValue], data: bytes) -> StreamLine:
    """The fields of one line that LIOB uses; raises a bad reply where one has an impossible value."""
    try:
        return StreamLine.model_validate(value)
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise bad_reply(data, f"a field that cannot be read ({place})") from error


def bad_reply(data: bytes, what: str) -> EngineFailure:
    """The failure of a reply that is not Ollama's, with the beginning of what came instead."""
    begin = data[: 4 * KEPT_CHARS].decode("utf-8", errors="replace")[:KEPT_CHARS]
    return EngineFailure(Outcome.BAD_REPLY, f"the server sent {what}; is it Ollama? It began: {begin}")
