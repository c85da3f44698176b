"""From the lines of a stream to the chunks of an answer, with the counters exactly as Ollama told them."""

from collections.abc import Iterable, Iterator

from liob_core.engines.ollama_lines import StreamLine
from liob_core.engines.ollama_models import refused_remote
from liob_core.engines.protocol import Chunk, Request
from liob_core.engines.thinking import Splitter
from liob_core.types import Counters

NS_PER_MS = 1e6
# A prompt cut by the server keeps half the context and two tokens; text has fewer bytes per token than this.
CUT_SLACK_TOKENS = 2
METRICS_MISSING = "metrics_missing"  # how the reason of an answer without its counters begins
# A field that is zero is left out by the server, but none of these is zero for a request that was answered.
EXPECTED = ("prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration")
MOST_BYTES_PER_TOKEN = 12


def chunks_of(
    lines: Iterable[StreamLine], request: Request, *, model: str, n_ctx: int, cold: bool | None
) -> Iterator[Chunk]:
    """The chunks of one answer; the last one has the counters.

    One piece may hold several tokens, or one that gives no text, so no piece tells a number of tokens.
    """
    splitter = Splitter(request.starts_thinking and not request.messages)
    for line in lines:
        if line.remote_host or line.remote_model:
            raise refused_remote(model)
        answer, thinking = splitter.feed(line.answer)
        thinking += line.thoughts
        if not line.done:
            yield Chunk(text=answer, thinking=thinking, n_tokens=None)
            continue
        rest, rest_thinking = splitter.finish()
        answer, thinking = answer + rest, thinking + rest_thinking
        yield Chunk(
            text=answer,
            thinking=thinking,
            n_tokens=None if line.answer or line.thoughts else 0,
            counters=read_counters(line, cold),
            truncated=is_cut(line, request, n_ctx),
            note=_note(line, request),
        )
        return


def read_counters(line: StreamLine, cold: bool | None) -> Counters:
    """The counters of the last line; what it does not have is unknown."""
    return Counters(
        prompt_tokens=line.prompt_eval_count,
        cached_tokens=line.prompt_eval_cached_count,
        output_tokens=line.eval_count,
        engine_prompt_ms=_ms(line.prompt_eval_duration),
        engine_eval_ms=_ms(line.eval_duration),
        engine_load_ms=_ms(line.load_duration),
        engine_total_ms=_ms(line.total_duration),
        stop_type="limit" if line.done_reason == "length" else line.done_reason,
        eval_excludes_first_token=True,
        cold=cold,
    )


def _ms(duration_ns: int | None) -> float | None:
    return None if duration_ns is None else duration_ns / NS_PER_MS


def is_cut(line: StreamLine, request: Request, n_ctx: int) -> bool:
    """Whether the context was full: before the answer's limit, or already for the prompt.

    No field tells of either: `length` stands for both ends, and a cut prompt is counted as it was cut.
    """
    n_in, n_out = line.prompt_eval_count, line.eval_count
    if line.done_reason == "length" and n_out is not None and n_out < request.sampling.max_tokens:
        return True
    if n_in is None:
        return False
    if request.expected_prompt_tokens is not None:
        return n_in < request.expected_prompt_tokens - CUT_SLACK_TOKENS
    kept = n_ctx // 2 + CUT_SLACK_TOKENS
    n_bytes = len(str(request.prompt).encode("utf-8", "surrogatepass"))
    return abs(n_in - kept) <= CUT_SLACK_TOKENS and n_bytes > MOST_BYTES_PER_TOKEN * n_in


def _note(line: StreamLine, request: Request) -> str | None:
    """What is odd about an answer that is whole."""
    missing = [name for name in EXPECTED if getattr(line, name) is None]
    if missing:
        return f"{METRICS_MISSING}: the server's last line lacks {', '.join(missing)}"
    expected = request.expected_prompt_tokens
    if expected is not None and line.prompt_eval_count not in {None, expected}:
        return f"Ollama counted {line.prompt_eval_count} prompt tokens where {expected} were expected"
    return None
