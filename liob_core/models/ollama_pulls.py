"""Variants on the Hub as Ollama itself pulls them: by a name, without a choice of the commit."""

import re

from liob_core.engines.ollama_register import MAX_PART_CHARS, OllamaRegistry, Progress
from liob_core.errors import EngineFailure, UsageError
from liob_core.models.hub_repo import HubRepo, HubVariant
from liob_core.types import Outcome

PREFIX = "hf.co/"
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_NAMESPACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")


def pull_name(repo: HubRepo, variant: HubVariant) -> str:
    """The name by which Ollama pulls a variant; raises UsageError, with the way out, where there is none."""
    problem = pull_problem(repo, variant)
    if problem is not None:
        raise UsageError(f"{problem} Download it instead: a run registers the file with Ollama.")
    return f"{PREFIX}{repo.repo_id}:{variant.label}"


def pull_problem(repo: HubRepo, variant: HubVariant) -> str | None:
    """Why Ollama cannot pull a variant, in one sentence; None where it may."""
    owner, _, name = repo.repo_id.partition("/")
    if variant.problem:
        return f"{variant.label} of {repo.repo_id}: {variant.problem}"
    if len(variant.files) > 1:
        return (
            f"The Hub does not give {variant.label} to Ollama: it is split into {len(variant.files)} files."
        )
    if repo.revision is not None:
        return f"Ollama pulls what main holds, not {repo.revision} of {repo.repo_id}."
    parts = (name, variant.label)
    if not _NAMESPACE.fullmatch(owner) or not all(
        _PART.fullmatch(part) and len(part) <= MAX_PART_CHARS for part in parts
    ):
        return f"Ollama takes no model by the name of {repo.repo_id}:{variant.label}."
    return None


def pull(
    registry: OllamaRegistry, name: str, progress: Progress | None = None, *, n_bytes: int | None = None
) -> None:
    """Have Ollama pull a model; where its registry refuses, its words and the way out are raised."""
    try:
        registry.pull(name, progress, n_bytes=n_bytes)
    except EngineFailure as failure:
        if failure.outcome is not Outcome.ENGINE_ERROR:
            raise  # nobody answers, or it broke off: pulling again goes on from there
        advice = "Download the file instead (models pull): a run registers it with Ollama."
        raise EngineFailure(failure.outcome, f"{str(failure).rstrip('.')}. {advice}") from failure
