"""A run in a line: what, where, when, how."""

from liob_core.analysis.runs import RunFacts


def kicker(facts: RunFacts) -> str:
    """The model, its machine and its day in one line."""
    return " · ".join(
        part for part in (facts.model_name or facts.title, facts.machine_line, _day(facts)) if part
    )


def origin(facts: RunFacts) -> tuple[str, str]:
    """The lines inside a picture that keep it honest when it travels: model, date, version; machine."""
    version = f"LIOB {facts.liob_version}" if facts.liob_version else "LIOB"
    what = " · ".join(part for part in (facts.model_name or facts.title, _day(facts), version) if part)
    return what, facts.machine_line


def how(facts: RunFacts) -> str:
    """How the run was made: requests, blocks, prompts, engine, settings."""
    parts = [
        f"{facts.n_samples} requests" if facts.n_samples else _without_requests(facts),
        _blocks(facts.n_blocks) if facts.n_samples else None,
        f"{facts.n_suite_prompts} prompts of {facts.suite}{_seeds(facts)}" if facts.suite else None,
        f"{facts.engine} {facts.engine_version or ''}".strip() if facts.n_samples else None,
        f"context {facts.n_ctx}" if facts.n_ctx else None,
        f"{facts.threads} thread{'s' if facts.threads != 1 else ''}" if facts.threads else None,
        facts.offload,
        f"answers up to {facts.max_tokens} tokens" if facts.max_tokens and facts.n_samples else None,
        f"run {facts.run_id}",
    ]
    return " · ".join(part for part in parts if part)


def _without_requests(facts: RunFacts) -> str:
    """What a run was that sent no request to an engine."""
    return "closeness alone, without an engine" if facts.tasks == ("closeness",) else "no request was sent"


def _seeds(facts: RunFacts) -> str:
    """How often each prompt was asked, where it was not once and greedy."""
    if not facts.temperature:
        return ""
    return f" with {facts.suite_repeats} seeds at temperature {facts.temperature:g}"


def _day(facts: RunFacts) -> str | None:
    return f"{facts.created_utc:%d %b %Y}" if facts.created_utc is not None else None


def _blocks(n_blocks: int | None) -> str | None:
    return f"{n_blocks} block{'s' if n_blocks != 1 else ''}" if n_blocks else None
