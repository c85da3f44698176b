"""Specs and variants for tests of the bench room, on the fake engine."""

from dataclasses import replace
from typing import Any

from liob_core.models.variant import fake_variant
from liob_core.types import (
    Check,
    LoadSettings,
    Message,
    Prompt,
    RunSpec,
    Sampling,
    Shape,
    Suite,
    Task,
)


def make_suite(n_prompts: int = 3) -> Suite:
    return Suite(
        name="tiny",
        description="",
        version="1",
        sha256="0" * 64,
        prompts=tuple(
            Prompt(
                prompt_id=f"p{number}",
                category="math",
                messages=(Message(role="user", content=f"What is {number} + 1?"),),
                check=Check(kind="number", params={"value": number + 1}),
            )
            for number in range(n_prompts)
        ),
    )


def make_fake_spec(run_id: str = "20261130-120000-test", **changes: Any) -> RunSpec:
    settings = LoadSettings(n_ctx=2048, threads=1)
    spec = RunSpec(
        run_id=run_id,
        title="fake",
        created_utc="2026-11-30T12:00:00Z",
        engine="fake",
        engine_url=None,
        variants=tuple(
            fake_variant(name, bpw=bpw, settings=settings)
            for name, bpw in (("F16", 16.0), ("Q8_0", 8.5), ("Q4_0", 4.5))
        ),
        reference="F16",
        tasks=(Task.SPEED, Task.SUITE),
        suite=make_suite(),
        sampling=Sampling(max_tokens=32),
        shapes=(Shape.PP512, Shape.CHAT512),
        n_blocks=3,
        n_warmups=1,
    )
    return replace(spec, **changes)
