"""What an evaluation tells while it runs and gives back at its end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from liob_core.quality.closeness.fidelity import Fidelity, closeness, pair_windows
from liob_core.quality.closeness.records import Build, ClosenessSpec, Ending, WindowScore
from liob_core.quality.closeness.running import Running


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where an evaluation is. Counts are windows of all variants, the reference's too."""

    variant: str
    doing: str  # loading | evaluating
    n_done: int
    n_total: int | None  # None: the text is not cut yet
    running: Mapping[str, Running]
    n_windows: int | None = None  # of each variant; None: the text is not cut yet
    build: Build | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How one variant's evaluation ended, and what it found where it did not fail."""

    label: str
    ending: Ending
    reason: str | None
    fidelity: Fidelity | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """All results, the reference's first; `n_text_tokens` is the length of the whole text."""

    build: Build | None
    n_text_tokens: int | None
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The windows of an earlier part of this evaluation and the build that made them."""

    build: Build
    scores: Sequence[WindowScore]


def fidelity_of(
    spec: ClosenessSpec, label: str, scores: Mapping[str, Mapping[int, WindowScore]], build: Build | None
) -> Fidelity | None:
    """One variant's result over the windows that are there; None where it shares none with the reference."""
    own = list(scores[label].values())
    is_reference = label == spec.reference.label
    theirs = None if is_reference else list(scores[spec.reference.label].values())
    if build is None or not pair_windows(own, theirs):
        return None
    return closeness(
        own,
        theirs,
        text=spec.text.name,
        text_sha256=spec.text.sha256,
        from_start=spec.from_start,
        build=build,
    )
