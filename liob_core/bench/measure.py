"""One request, measured: the runner's clock on every event, and the one outcome it ends in."""

import hashlib
import re
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from liob_core.bench.wording import is_near
from liob_core.engines.protocol import Chunk, Request
from liob_core.types import Counters, Outcome, Stamps

# Shortest loop worth the name: this many characters at the end that only repeat one unit.
LOOP_CHARS = 240
_LOOP = re.compile(r"(.{1,120}?)\1{3,}\Z", re.DOTALL)


@dataclass(slots=True)
class Recording:
    """What one stream gave: text, thinking, stamps in ns after the send, and the engine's counters."""

    started_utc_ns: int
    text: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    first_token_ns: int | None = None
    first_text_ns: int | None = None
    first_output_ns: int | None = None
    last_token_ns: int | None = None
    end_ns: int | None = None
    first_event_tokens: int | None = None
    counters: Counters | None = None
    truncated: bool = False
    note: str | None = None

    def stamps(self) -> Stamps:
        """The stamps as a record."""
        return Stamps(
            first_token_ns=self.first_token_ns,
            first_text_ns=self.first_text_ns,
            first_output_ns=self.first_output_ns,
            last_token_ns=self.last_token_ns,
            end_ns=self.end_ns,
            first_event_tokens=self.first_event_tokens,
        )

    @property
    def response(self) -> str:
        """The answer without its thinking."""
        return "".join(self.text)

    @property
    def thoughts(self) -> str:
        """The thinking."""
        return "".join(self.thinking)


def record(
    recording: Recording, chunks: Iterator[Chunk], sent_ns: int, beat: Callable[[int | None, str], None]
) -> None:
    """Fill `recording` from a stream as it arrives, so that what came before a failure is kept.

    `sent_ns` is `perf_counter_ns` just before the request was sent; `beat` is told of every token.
    """
    for chunk in chunks:
        at_ns = time.perf_counter_ns() - sent_ns
        if chunk.n_tokens is None or chunk.n_tokens > 0:
            if recording.first_token_ns is None:
                recording.first_token_ns = at_ns
                recording.first_event_tokens = chunk.n_tokens
            recording.last_token_ns = at_ns
            beat(chunk.n_tokens, chunk.text or chunk.thinking)
        if chunk.text or chunk.thinking:
            recording.first_text_ns = recording.first_text_ns or at_ns
        if chunk.text:
            recording.first_output_ns = recording.first_output_ns or at_ns
            recording.text.append(chunk.text)
        if chunk.thinking:
            recording.thinking.append(chunk.thinking)
        if chunk.counters is not None:
            recording.counters = chunk.counters
            recording.truncated = chunk.truncated
            recording.note = chunk.note
    recording.end_ns = time.perf_counter_ns() - sent_ns


class Ending(NamedTuple):
    """The one outcome of a sample, and why where that needs words."""

    outcome: Outcome
    reason: str | None = None


def ending_of(recording: Recording, *, fixed_length: bool) -> Ending:
    """How a stream that ended by itself ended.

    With `fixed_length` (the `speed` task) any text will do; only the counts matter.
    """
    if recording.counters is None:
        return Ending(Outcome.INCOMPLETE, "the stream ended without its end mark")
    if recording.truncated:
        return Ending(Outcome.CONTEXT_EXCEEDED, "the context was full before the answer ended")
    hit_limit = recording.counters.stop_type == "limit"
    if not fixed_length and not recording.response.strip():
        return _without_answer(recording, hit_limit)
    if not hit_limit:
        return Ending(Outcome.OK, recording.note)
    unit = None if fixed_length else loop_unit(recording.response)
    if unit is not None:
        return Ending(Outcome.REPETITION, f"the answer ends in a loop of {unit[:40]!r}")
    return Ending(Outcome.LENGTH, recording.note)


def _without_answer(recording: Recording, hit_limit: bool) -> Ending:
    if not recording.thoughts.strip():
        return Ending(Outcome.EMPTY)
    return Ending(Outcome.TRUNCATED_THINKING if hit_limit else Outcome.THINKING_ONLY)


def shape_ending(request: Request, recording: Recording, ending: Ending) -> Ending:
    """How a request of fixed length ended: as `ending` says, or as one that did not have its length.

    Token ids are met exactly. Text is met nearly, and its answer may end early where the engine cannot go
    on past the end token; both counts are stored, and what is off is in no average.
    """
    if request.fixed_length is None or recording.counters is None:
        return ending
    if ending.outcome is Outcome.CONTEXT_EXCEEDED:
        return ending
    n_in, n_out = request.fixed_length
    if isinstance(request.prompt, str):
        problem = text_mismatch(recording.counters, n_in, n_out)
    else:
        problem = count_mismatch(recording.counters, n_in, n_out)
    return ending if problem is None else Ending(Outcome.BAD_REPLY, problem)


def count_mismatch(counters: Counters, n_in: int, n_out: int) -> str | None:
    """Why a fixed shape was not met, or None where its token counts were met exactly."""
    if (counters.prompt_tokens, counters.output_tokens) == (n_in, n_out):
        return None
    return _off(counters, n_in, n_out)


def text_mismatch(counters: Counters, n_in: int, n_out: int) -> str | None:
    """Why a fixed shape sent as text was not met, or None where it was met nearly."""
    n_written = counters.output_tokens
    if n_written is not None and n_written < n_out and counters.stop_type != "limit":
        return (
            f"the model ended its answer after {n_written} of {n_out} tokens, which the engine cannot forbid"
        )
    if n_written != n_out or not is_near(counters.prompt_tokens, n_in):
        return _off(counters, n_in, n_out)
    return None


def _off(counters: Counters, n_in: int, n_out: int) -> str:
    return (
        f"the shape asks for {n_in} tokens in and {n_out} out; "
        f"the engine counted {counters.prompt_tokens} and {counters.output_tokens}"
    )


def loop_unit(text: str) -> str | None:
    """The piece that the end of `text` repeats over and over, or None where it does not loop."""
    tail = text[-LOOP_CHARS * 2 :]
    found = _LOOP.search(tail)
    if found is None or found.end() - found.start() < LOOP_CHARS or not found.group(1).strip():
        return None
    return found.group(1)


def prompt_sha256(prompt: str | tuple[int, ...]) -> str:
    """SHA-256 of what was sent: the text's UTF-8 bytes, or the ids as little-endian 32-bit integers."""
    if isinstance(prompt, str):
        return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
    return hashlib.sha256(struct.pack(f"<{len(prompt)}I", *prompt)).hexdigest()
