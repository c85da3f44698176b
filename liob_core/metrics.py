"""What each metric means (METRICS), and the formulas from one sample's raw stamps and counters.

A metric's id is the name of its column. A metric that cannot be computed is None with a reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from liob_core.types import Outcome, Sample, Task

MIN_PREFILL_TOKENS = 32
MIN_DECODE_TOKENS = 8
MIN_DECODE_MS = 1.0

SPEED_OUTCOMES = frozenset({Outcome.OK, Outcome.LENGTH})
# The reply reached its end, so its times are those of a whole reply, whatever its text is worth.
COMPLETE_OUTCOMES = SPEED_OUTCOMES | {
    Outcome.EMPTY,
    Outcome.THINKING_ONLY,
    Outcome.TRUNCATED_THINKING,
    Outcome.REPETITION,
}


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its names, units, direction (higher, lower, None) and formula, for tables and axes.

    `unit` is how it is stored, `shown_unit` how people say it, `needs` what must have been measured.
    """

    id: str
    label: str
    short_label: str
    unit: str
    shown_unit: str
    direction: str | None
    level: str  # sample | variant | run
    needs: str
    formula: str
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleMetrics:
    """The computed metrics of one sample; `unknown` maps each that is None to its reason."""

    ttft_ms: float | None
    ttfot_ms: float | None
    tpot_ms: float | None
    e2e_ms: float | None
    prefill_tps: float | None
    decode_tps: float | None
    decode_tps_client: float | None
    output_tps: float | None
    overhead_ms: float | None
    unknown: Mapping[str, str]


Value = tuple[float | None, str]  # the value, and why there is none


def sample_metrics(sample: Sample) -> SampleMetrics:
    """The metrics of one sample in ms and tokens/s.

    Computed for every reply that reached its end; aggregates take `SPEED_OUTCOMES` only. Of a request
    that failed on the way only the times to the first token exist.
    """
    stamps = sample.stamps
    values: dict[str, Value] = {
        "ttft_ms": _ms(stamps.first_text_ns, "no text arrived"),
        "ttfot_ms": _ms(stamps.first_output_ns, "no text outside thinking arrived"),
    }
    if sample.outcome in COMPLETE_OUTCOMES:
        e2e = _ms(stamps.end_ns, "the end was not stamped")
        values |= {
            "e2e_ms": e2e,
            "tpot_ms": _tpot_ms(e2e[0], values["ttft_ms"][0], sample),
            "prefill_tps": _prefill_tps(sample),
            "decode_tps": _decode_tps(sample),
            "decode_tps_client": _decode_tps_client(sample),
            "output_tps": _output_tps(e2e[0], sample),
            "overhead_ms": _overhead_ms(e2e[0], sample),
        }
    else:
        failed: Value = (None, f"the request did not complete ({sample.outcome.value})")
        values |= dict.fromkeys(_OF_WHOLE_REPLIES, failed)
    return SampleMetrics(
        **{name: value for name, (value, _) in values.items()},
        unknown={name: reason for name, (value, reason) in values.items() if value is None},
    )


_OF_WHOLE_REPLIES = (
    "e2e_ms",
    "tpot_ms",
    "prefill_tps",
    "decode_tps",
    "decode_tps_client",
    "output_tps",
    "overhead_ms",
)


def _ms(stamp_ns: int | None, missing: str) -> Value:
    return (None, missing) if stamp_ns is None else (stamp_ns / 1e6, "")


def _tpot_ms(e2e_ms: float | None, ttft_ms: float | None, sample: Sample) -> Value:
    n_out = sample.counters.output_tokens
    if n_out is None:
        return None, "output tokens not reported"
    if n_out < 2:
        return None, "fewer than 2 output tokens"
    if e2e_ms is None or ttft_ms is None:
        return None, "no time to the first token or to the end"
    return (e2e_ms - ttft_ms) / (n_out - 1), ""


def _prefill_tps(sample: Sample) -> Value:
    counters = sample.counters
    if counters.prompt_tokens is None or counters.engine_prompt_ms is None:
        return None, "prompt tokens or time not reported"
    cached = counters.cached_tokens
    if cached is None:
        # A `speed` prompt starts with a prefix that was never sent before, so nothing of it is cached.
        if sample.cell.task is not Task.SPEED:
            return None, "cache unknown"
        cached = 0
    uncached = counters.prompt_tokens - cached
    if uncached < MIN_PREFILL_TOKENS:
        return None, f"fewer than {MIN_PREFILL_TOKENS} uncached prompt tokens"
    if counters.engine_prompt_ms <= 0:
        return None, "the engine reported no prompt time"
    return uncached / counters.engine_prompt_ms * 1e3, ""


def _decode_tps(sample: Sample) -> Value:
    counters = sample.counters
    n_out, eval_ms = counters.output_tokens, counters.engine_eval_ms
    if n_out is None or eval_ms is None:
        return None, "output tokens or time not reported"
    if n_out < MIN_DECODE_TOKENS or eval_ms < MIN_DECODE_MS:
        return None, "too short"
    n_timed = n_out - 1 if counters.eval_excludes_first_token else n_out
    return n_timed / eval_ms * 1e3, ""


def _decode_tps_client(sample: Sample) -> Value:
    stamps, n_out = sample.stamps, sample.counters.output_tokens
    if n_out is None:
        return None, "output tokens not reported"
    if stamps.first_event_tokens != 1:
        return None, "the first piece may hold several tokens"
    if stamps.first_token_ns is None or stamps.last_token_ns is None:
        return None, "the first or the last token was not stamped"
    span_ns = stamps.last_token_ns - stamps.first_token_ns
    if n_out < 2 or span_ns <= 0:
        return None, "too short"
    return (n_out - 1) / span_ns * 1e9, ""


def _output_tps(e2e_ms: float | None, sample: Sample) -> Value:
    n_out = sample.counters.output_tokens
    if n_out is None:
        return None, "output tokens not reported"
    if not e2e_ms:
        return None, "the end was not stamped"
    return n_out / e2e_ms * 1e3, ""


def _overhead_ms(e2e_ms: float | None, sample: Sample) -> Value:
    counters = sample.counters
    if e2e_ms is None:
        return None, "the end was not stamped"
    if counters.engine_prompt_ms is None or counters.engine_eval_ms is None:
        return None, "the engine's times are not reported"
    accounted = counters.engine_prompt_ms + counters.engine_eval_ms + (counters.engine_load_ms or 0.0)
    return e2e_ms - accounted, ""


# fmt: off
_ROWS = (
    Metric("ttft_ms", "Time to first token", "TTFT", "ms", "ms", "lower", "sample", "streaming",
           "first non-empty text, thinking or tool call - send",
           "How long until anything appears. Model loads are never part of it."),
    Metric("ttfot_ms", "Time to first output token", "TTFOT", "ms", "ms", "lower", "sample", "streaming",
           "first non-thinking text - send", "How long until the answer itself starts."),
    Metric("tpot_ms", "Time per output token", "TPOT", "ms", "ms", "lower", "sample",
           "streaming, output tokens", "(E2E - TTFT) / (output tokens - 1), from 2 output tokens",
           "The pace of the text after its first token, which is not counted."),
    Metric("e2e_ms", "End-to-end latency", "E2E", "ms", "s", "lower", "sample", "a complete reply",
           "last byte - send", "How long the whole reply took."),
    Metric("prefill_tps", "Prompt (prefill) rate", "prefill", "tok/s", "tok/s", "higher", "sample",
           "engine timings", "uncached prompt tokens / engine's prompt time, from 32 uncached tokens",
           "How fast the prompt is read, by the engine's clock. Per variant: tokens / time of each block's "
           "pp512 requests (suite prompts where speed did not run), mean over blocks."),
    Metric("decode_tps", "Decode rate", "tok/s", "tok/s", "tok/s", "higher", "sample", "engine timings",
           "(output tokens - 1) / engine's decode time, from 8 tokens and 1 ms",
           "How fast text is written, by the engine's clock. Per variant: tokens / time of each block's "
           "chat512 requests (suite answers where speed did not run), mean over blocks."),
    Metric("decode_tps_ci_low", "Decode rate, lower end", "tok/s low", "tok/s", "tok/s", "higher", "variant",
           "2 blocks", "mean - t(0.975, blocks - 1) x sd / sqrt(blocks), not below 0",
           "The lower end of the 95 % interval over blocks."),
    Metric("decode_tps_ci_high", "Decode rate, upper end", "tok/s high", "tok/s", "tok/s", "higher",
           "variant", "2 blocks", "mean + t(0.975, blocks - 1) x sd / sqrt(blocks)",
           "The upper end of the 95 % interval over blocks."),
    Metric("ceiling_tps", "Memory-bandwidth ceiling", "ceiling", "tok/s", "tok/s", None, "variant",
           "speed on the processor, a model larger than its caches",
           "bytes/s read with the run's threads / bytes that a token reads at chat512's mean depth",
           "No token comes faster than its weights and cache can be read from memory."),
    Metric("roofline_share", "Share of the ceiling", "of ceiling", "share", "%", "higher", "variant",
           "the memory-bandwidth ceiling", "chat512 decode rate / ceiling",
           "Near 100 % only fewer bits, or faster memory, make it faster."),
    Metric("decode_tps_client", "Decode rate seen by the client", "tok/s client", "tok/s", "tok/s", "higher",
           "sample", "streaming token by token",
           "(output tokens - 1) / (last token's event - first token's event)",
           "The same pace by LIOB's own clock; never mixed with the engine's."),
    Metric("output_tps", "Output rate of a request", "out tok/s", "tok/s", "tok/s", "higher", "sample",
           "output tokens", "output tokens / E2E", "Prompt reading and waiting included."),
    Metric("overhead_ms", "Overhead", "overhead", "ms", "ms", "lower", "sample", "engine timings",
           "E2E - (engine's load + prompt + decode time)",
           "What the engine does not account for; a negative one means that its clock is in doubt."),
    Metric("prompt_tokens", "Prompt tokens", "in", "tokens", "tokens", None, "sample", "engine counters",
           "as the engine reports it, cached part included", "The length of the prompt."),
    Metric("cached_tokens", "Cached prompt tokens", "cached", "tokens", "tokens", None, "sample",
           "engine counters", "as the engine reports it", "Prompt tokens that were not computed again."),
    Metric("output_tokens", "Output tokens", "out", "tokens", "tokens", None, "sample", "engine counters",
           "as the engine reports it", "The length of the reply, thinking included."),
    Metric("engine_prompt_ms", "Engine's prompt time", "prompt ms", "ms", "ms", "lower", "sample",
           "engine timings", "as the engine reports it", "The engine's own clock for reading the prompt."),
    Metric("engine_eval_ms", "Engine's decode time", "decode ms", "ms", "ms", "lower", "sample",
           "engine timings", "as the engine reports it", "The engine's own clock for writing the reply."),
    Metric("cpu_other_share", "CPU used by others", "others", "share", "%", "lower", "sample", "monitor",
           "CPU time of processes that are neither engine nor LIOB / the machine's CPU time",
           "A busy neighbour slows every number; such samples are kept out of verdicts."),
    Metric("bpw", "True bits per weight", "bits", "bits", "bits", None, "variant", "GGUF header",
           "8 x tensor bytes / parameters", "What the tensors really hold, whatever the label says."),
    Metric("file_bytes", "File size", "size", "bytes", "GiB", "lower", "variant", "GGUF file",
           "bytes of all shards", "What is downloaded and kept on disk."),
    Metric("tensor_bytes", "Tensor size", "tensors", "bytes", "GiB", "lower", "variant", "GGUF header",
           "sum of the tensors' bytes", "The weights alone, without header and vocabulary."),
    Metric("need_bytes", "Predicted memory", "need", "bytes", "GiB", "lower", "variant", "GGUF header",
           "weights + KV cache + compute buffer", "An estimate made before the load."),
    Metric("n_samples", "Samples", "n", "samples", "samples", None, "variant", "a run",
           "samples that are not warm-ups", "How many requests were made."),
    Metric("n_ok", "Usable samples", "ok", "samples", "samples", "higher", "variant", "a run",
           "samples whose outcome is ok or length", "How many of them enter speed statistics."),
    Metric("n_blocks", "Blocks", "blocks", "blocks", "blocks", None, "variant", "timing samples",
           "blocks with a decode rate", "One block is one load and one repetition; the unit of evidence."),
    Metric("ttft_ms_p50", "Time to first token, median", "TTFT", "ms", "ms", "lower", "variant", "streaming",
           "median TTFT of chat512 requests (suite prompts where speed did not run)",
           "Half of the requests showed something sooner. Comparable at equal prompt lengths only."),
    Metric("load_ms", "Load time", "load", "ms", "s", "lower", "variant", "a load LIOB made",
           "median over loads of the time from asking to answering",
           "With the file in the page cache; never part of TTFT."),
    Metric("answer_tokens", "Tokens per answer", "answer", "tokens", "tokens", None, "variant", "suite",
           "median output tokens of the graded answers", "A variant that talks more costs more."),
    Metric("answer_s", "Time per answer", "answer time", "s", "s", "lower", "variant", "suite",
           "median E2E of the graded answers", "What a person waits for one whole answer."),
    Metric("truncated_share", "Answers cut off", "cut off", "share", "%", "lower", "variant", "suite",
           "graded answers that hit the token limit / graded answers that completed",
           "Where it differs clearly between variants, their quality is not comparable."),
    Metric("peak_memory_bytes", "Peak memory", "memory", "bytes", "GiB", "lower", "variant", "monitor",
           "max over time of (engine's process tree - host before the load + device)",
           "The figure people mean: what the model takes while it runs."),
    Metric("peak_rss_bytes", "Peak resident memory", "RSS", "bytes", "GiB", "lower", "variant", "monitor",
           "high-water mark of the engine's process tree", "The host program's own memory included."),
    Metric("peak_anon_bytes", "Peak anonymous memory", "anon", "bytes", "GiB", "lower", "variant", "monitor",
           "maximum of anonymous + swapped memory of the engine's process tree",
           "Memory that cannot be dropped; mapped weights are not in it."),
    Metric("peak_vram_bytes", "Peak device memory", "VRAM", "bytes", "GiB", "lower", "variant", "NVML",
           "maximum of the device memory in use by the engine", "What the graphics device had to hold."),
    Metric("peak_system_ram_bytes", "Peak system memory", "system RAM", "bytes", "GiB", "lower", "variant",
           "monitor", "maximum of the machine's memory in use", "Of the whole machine, other programs too."),
    Metric("cpu_peak_pct_mean", "Mean of CPU peaks", "CPU peak", "%", "%", "lower", "variant", "monitor",
           "mean over prompts of the highest CPU share of the machine",
           "How busy the machine was made, as the original study counted it."),
    Metric("pass_rate", "Checks passed", "checks", "share", "%", "higher", "variant", "suite with checks",
           "answers that passed / answers checked, one answer a prompt",
           "By deterministic checks; answers that could not be checked are not counted."),
    Metric("seed_pass_rate", "Checks passed over seeds", "checks, seeds", "share", "%", "higher", "variant",
           "suite with checks, several seeds", "mean over prompts of (answers that passed / answers checked)",
           "Each prompt answered with several seeds; averaged per prompt first, since prompts are the unit."),
    Metric("n_checked", "Answers checked", "n checked", "answers", "answers", None, "variant",
           "suite with checks", "graded answers whose check said pass or fail", "The n of the pass rate."),
    Metric("energy_j", "Energy of a window", "energy", "J", "J", "lower", "variant", "an energy counter",
           "joules of one scope while one shape's requests run back to back for at least 10 s",
           "Everything that the scope spent, the model at rest included; the source is named beside it."),
    Metric("j_per_request", "Energy per request", "J/request", "J/request", "J/request", "lower", "variant",
           "an energy counter", "energy of the window / its requests", "What one request of a shape takes."),
    Metric("j_per_output_token", "Energy per output token", "J/token", "J/token", "J/token", "lower",
           "variant", "an energy counter", "energy of the tg128 window / tokens written, mean over blocks",
           "What a token takes, all that the scope spends meanwhile included. Comparable within one scope."),
    Metric("tokens_per_j", "Output tokens per joule", "tokens/J", "tokens/J", "tokens/J", "higher", "variant",
           "an energy counter", "tokens written in the tg128 window / its energy",
           "The same the other way round."),
    Metric("ppl", "Perplexity", "PPL", "tokens", "tokens", "lower", "variant", "task closeness",
           "e^mean(NLL) over the second half of each window",
           "Between how many tokens the model wavers, on this text; never comparable across tokenizers."),
    Metric("ln_ratio", "Perplexity against the reference", "ln PPL ratio", "nats", "nats", "lower", "variant",
           "task closeness", "mean(NLL - NLL of the reference), token by token",
           "What the variant loses in predicting the text; e^x - 1 is the rise in perplexity."),
    Metric("kld_mean", "KL divergence from the reference", "KLD", "nats", "nats", "lower", "variant",
           "task closeness", "mean over tokens of sum p_ref (ln p_ref - ln p)",
           "How far the variant's predictions are from the reference's: closeness, not quality."),
    Metric("same_top", "Same first choice as the reference", "same top", "share", "%", "higher", "variant",
           "task closeness", "tokens whose most likely continuation is the reference's / tokens",
           "How often both would have written the same token."),
    Metric("judge_score", "Judge score", "judge", "points", "points", "higher", "variant",
           "a judge that passed its calibration", "mean over prompts of its score from 1 to 10",
           "What a judge gives the answers; compared only on prompts that it scored for both."),
    Metric("judge_win_share", "Wins less losses in pairs", "judge pairs", "share", "%", "higher", "variant",
           "a judge that passed its calibration", "(wins - losses) / pairs against the reference's answers",
           "A win needs the judge's preference in both orders; what the order decides is a tie."),
)
# fmt: on
METRICS: Mapping[str, Metric] = {metric.id: metric for metric in _ROWS}
