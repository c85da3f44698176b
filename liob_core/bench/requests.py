"""From a planned cell to the request that is sent. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from liob_core.bench.plan import SHAPE_TOKENS, WARMUP_TOKENS, prompt_ids
from liob_core.engines.protocol import Request
from liob_core.engines.thinking import opens_thinking
from liob_core.types import Cell, Prompt, RenderedPrompt, RunSpec, Sampling, Task, Variant


def make_request(
    spec: RunSpec, variant: Variant, cell: Cell, prompts: Mapping[str, RenderedPrompt]
) -> Request:
    """The request of one cell: exact token ids for warm-ups and shapes, the rendered text for a suite."""
    sampling = replace(spec.sampling, seed=cell.seed)
    if cell.task is Task.SPEED or cell.warmup:
        n_in, n_out = SHAPE_TOKENS[cell.shape] if cell.shape else WARMUP_TOKENS
        vocab_size = variant.model.vocab_size if variant.model else None
        return Request(
            prompt=prompt_ids(spec, cell, n_in, vocab_size),
            sampling=_fixed_length(sampling, n_out),
            limits=spec.limits,
        )
    prompt = prompt_of(spec, cell)
    text = prompts[prompt.prompt_id].text
    cap = min(prompt.max_tokens or sampling.max_tokens, sampling.max_tokens)
    return Request(
        prompt=text,
        sampling=replace(sampling, max_tokens=cap),
        limits=spec.limits,
        starts_thinking=opens_thinking(text),
    )


def prompt_of(spec: RunSpec, cell: Cell) -> Prompt:
    """The suite's prompt that a cell of task `suite` asks."""
    if spec.suite is None:
        raise LookupError(f"cell {cell.cell_id} belongs to no suite")
    return next(prompt for prompt in spec.suite.prompts if prompt.prompt_id == cell.prompt_id)


def _fixed_length(sampling: Sampling, n_out: int) -> Sampling:
    return replace(
        sampling,
        max_tokens=n_out,
        ignore_eos=True,
        temperature=0.0,
        stop=(),
        json_schema=None,
        cache_prompt=False,
    )
