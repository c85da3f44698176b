"""From a planned cell to the request that is sent. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from liob_core.bench.plan import SHAPE_TOKENS, WARMUP_TOKENS, prompt_ids
from liob_core.bench.wording import FEWEST_TOKENS, TEMPERATURE, Calibration, speed_text
from liob_core.engines.protocol import Request
from liob_core.engines.thinking import opens_thinking
from liob_core.types import Cell, Prompt, RenderedPrompt, RunSpec, Sampling, Task, Variant


def make_request(
    spec: RunSpec,
    variant: Variant,
    cell: Cell,
    prompts: Mapping[str, RenderedPrompt],
    calibration: Calibration | None = None,
) -> Request:
    """The request of one cell: fixed lengths for warm-ups and shapes, the rendered text for a suite.

    Fixed lengths are exact token ids, or with a `calibration`, for engines that take none, text.
    """
    sampling = replace(spec.sampling, seed=cell.seed)
    if cell.task is Task.SPEED or cell.warmup:
        n_in, n_out = SHAPE_TOKENS[cell.shape] if cell.shape else WARMUP_TOKENS
        if calibration is not None:
            return _text_request(spec, cell, calibration, (n_in, n_out))
        vocab_size = variant.model.vocab_size if variant.model else None
        return Request(
            prompt=prompt_ids(spec, cell, n_in, vocab_size),
            sampling=replace(_bare(sampling, n_out), ignore_eos=True),
            limits=spec.limits,
            fixed_length=(n_in, n_out),
        )
    prompt = prompt_of(spec, cell)
    rendered = prompts[prompt.prompt_id]
    cap = min(prompt.max_tokens or sampling.max_tokens, sampling.max_tokens)
    is_engines_own = spec.prompt_mode == "engine"
    return Request(
        prompt=rendered.text,
        sampling=replace(sampling, max_tokens=cap),
        limits=spec.limits,
        starts_thinking=opens_thinking(rendered.text),
        messages=prompt.messages if is_engines_own else (),
        expected_prompt_tokens=None if is_engines_own else rendered.n_tokens,
    )


def _text_request(spec: RunSpec, cell: Cell, calibration: Calibration, length: tuple[int, int]) -> Request:
    n_in, n_out = length
    sampling = replace(spec.sampling, seed=cell.seed)
    if cell.warmup and not calibration.is_sure:
        n_in = max(n for n, _ in SHAPE_TOKENS.values())  # a second length shows how tokens rise with words
    n_in = max(n_in, FEWEST_TOKENS)
    return Request(
        prompt=speed_text(spec, cell, calibration.words_for(n_in)),
        sampling=replace(_bare(sampling, n_out), temperature=TEMPERATURE),
        limits=spec.limits,
        fixed_length=(n_in, n_out),
    )


def prompt_of(spec: RunSpec, cell: Cell) -> Prompt:
    """The suite's prompt that a cell of task `suite` asks."""
    if spec.suite is None:
        raise LookupError(f"cell {cell.cell_id} belongs to no suite")
    return next(prompt for prompt in spec.suite.prompts if prompt.prompt_id == cell.prompt_id)


def _bare(sampling: Sampling, n_out: int) -> Sampling:
    return replace(sampling, max_tokens=n_out, temperature=0.0, stop=(), json_schema=None, cache_prompt=False)
