"""Cached answers of the analysis room: frames, dicts and lists only, asked again when the file changes."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple, fields
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from liob_core.analysis import (
    answers,
    categories,
    engines,
    judged,
    overlaps,
    overview,
    resources,
    results,
    runs,
    tradeoff,
)
from liob_core.analysis.answers import PromptFacts
from liob_core.analysis.cache_costs import cache_costs
from liob_core.analysis.closeness import broken_sizes as find_broken_sizes
from liob_core.analysis.closeness import closeness_facts, closeness_table
from liob_core.analysis.flips import flip_facts, flip_table
from liob_core.analysis.history import history
from liob_core.analysis.limits import Limits
from liob_core.analysis.recommend import recommend
from liob_core.analysis.resources import Extent
from liob_core.analysis.run_pairs import Comparison, compare
from liob_core.analysis.runs import RunFacts
from liob_core.analysis.votes import vote_pairs, vote_results
from liob_core.store.connection import read
from liob_core.store.schema import describe, describe_views

_FRAMES: Mapping[str, Callable[..., pd.DataFrame]] = {
    "runs": runs.list_runs,
    "history": history,
    "results": results.results_table,
    "blocks": results.block_rates,
    "latencies": results.latencies,
    "memory": results.memory_parts,
    "tradeoff": tradeoff.tradeoff,
    "engines": engines.same_weights,
    "closeness": closeness_table,
    "cache_costs": cache_costs,
    "check_categories": categories.check_categories,
    "score_categories": categories.score_categories,
    "overlaps": overlaps.overlaps,
    "judges": judged.judges,
    "judge_scores": judged.scores,
    "judge_pairs": judged.pairs,
    "calibration": judged.calibration,
    "prompts": answers.prompts,
    "answers": answers.answers,
    "answer_seeds": answers.answer_seeds,
    "prompt_seeds": answers.prompt_seeds,
    "opinions": judged.opinions,
    "flips": flip_table,
    "vote_pairs": vote_pairs,
    "vote_results": vote_results,
    "resource_lines": resources.lines,
    "resource_requests": resources.requests,
    "resource_parts": resources.parts,
}


def frame(question: str, database: Path, *keys: str | int) -> pd.DataFrame:
    """The answer to one of the named questions about a run."""
    return _frame(question, str(database), stamp(database), keys)


def facts(database: Path, run_id: str) -> RunFacts:
    """What a run was and where."""
    return RunFacts(**_facts(str(database), stamp(database), run_id))


def extent(database: Path, run_id: str) -> Extent | None:
    """The time that a run's readings and requests cover; None where there is neither."""
    found = _extent(str(database), stamp(database), run_id)
    return None if found is None else Extent(**found)


def comparison(database: Path, before: str, after: str) -> Comparison:
    """The run `after` against the run `before`; asked anew, for it is small and rarely the same pair."""
    return compare(database, before, after)


def schema(database: Path) -> dict[str, Any]:
    """The public views with their comments (`views`) and every column of them (`columns`, as tuples)."""
    return _schema(str(database), stamp(database))


def headline(database: Path, run_id: str) -> dict[str, Any]:
    """The run's answer in a sentence, and the pick it names."""
    return _headline(str(database), stamp(database), run_id)


def recommendation(database: Path, run_id: str, limits: Limits) -> dict[str, Any]:
    """What to run under these limits: a `Recommendation` as a dict."""
    return _recommendation(str(database), stamp(database), run_id, astuple(limits))


def closeness(database: Path, run_id: str) -> dict[str, Any] | None:
    """What a run's closeness says in words; None where it was not measured."""
    return _closeness(str(database), stamp(database), run_id)


def broken_sizes(database: Path, run_id: str) -> tuple[str, ...]:
    """A sentence for each variant that is broken at its size, and one for the bits at which that begins."""
    return _broken_sizes(str(database), stamp(database), run_id)


def not_comparable(database: Path, run_id: str, metric: str) -> list[str]:
    """A sentence for each variant whose metric must not be ranked."""
    return _not_comparable(str(database), stamp(database), run_id, metric)


def flips(database: Path, run_id: str) -> dict[str, Any] | None:
    """What a run's flips say in words; None where nothing can be compared."""
    return _flips(str(database), stamp(database), run_id)


def prompt(database: Path, run_id: str, prompt_id: str) -> PromptFacts:
    """One prompt as it was asked."""
    return PromptFacts(**_prompt(str(database), stamp(database), run_id, prompt_id))


def warnings(database: Path, run_id: str) -> list[str]:
    """What could make a run's figures wrong, one sentence each."""
    return _warnings(str(database), stamp(database), run_id)


def stamp(database: Path) -> tuple[int, int]:
    """What changes whenever the file does."""
    try:
        status = database.stat()
    except FileNotFoundError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


@st.cache_data(ttl=3600, max_entries=128, show_spinner=False)
def _frame(question: str, database: str, stamp: tuple[int, int], keys: tuple[str | int, ...]) -> pd.DataFrame:
    return _FRAMES[question](Path(database), *keys)


@st.cache_data(ttl=3600, max_entries=64, show_spinner=False)
def _facts(database: str, stamp: tuple[int, int], run_id: str) -> dict[str, Any]:
    return asdict(runs.run_facts(Path(database), run_id))


@st.cache_data(ttl=3600, max_entries=64, show_spinner=False)
def _extent(database: str, stamp: tuple[int, int], run_id: str) -> dict[str, Any] | None:
    found = resources.extent(Path(database), run_id)
    return None if found is None else asdict(found)


@st.cache_data(ttl=3600, max_entries=8, show_spinner=False)
def _schema(database: str, stamp: tuple[int, int]) -> dict[str, Any]:
    with read(Path(database)) as con:
        columns = [(row.view, row.column, row.type_name, row.comment) for row in describe(con)]
        return {"views": describe_views(con), "columns": columns}


@st.cache_data(ttl=3600, max_entries=64, show_spinner=False)
def _headline(database: str, stamp: tuple[int, int], run_id: str) -> dict[str, Any]:
    return asdict(overview.headline(Path(database), run_id))


@st.cache_data(ttl=3600, max_entries=256, show_spinner=False)
def _recommendation(
    database: str, stamp: tuple[int, int], run_id: str, limits: tuple[float | None, ...]
) -> dict[str, Any]:
    names = [field.name for field in fields(Limits)]
    asked = Limits(**dict(zip(names, limits, strict=True)))  # type: ignore[arg-type]  # as astuple gave them
    return asdict(recommend(Path(database), run_id, asked))


@st.cache_data(ttl=3600, max_entries=64, show_spinner=False)
def _closeness(database: str, stamp: tuple[int, int], run_id: str) -> dict[str, Any] | None:
    found = closeness_facts(Path(database), run_id)
    return None if found is None else asdict(found)


@st.cache_data(ttl=3600, max_entries=64, show_spinner=False)
def _broken_sizes(database: str, stamp: tuple[int, int], run_id: str) -> tuple[str, ...]:
    return find_broken_sizes(Path(database), run_id)


@st.cache_data(ttl=3600, max_entries=64, show_spinner=False)
def _not_comparable(database: str, stamp: tuple[int, int], run_id: str, metric: str) -> list[str]:
    return categories.not_comparable(Path(database), run_id, metric)


@st.cache_data(ttl=3600, max_entries=256, show_spinner=False)
def _prompt(database: str, stamp: tuple[int, int], run_id: str, prompt_id: str) -> dict[str, Any]:
    return asdict(answers.prompt_facts(Path(database), run_id, prompt_id))


@st.cache_data(ttl=3600, max_entries=64, show_spinner=False)
def _flips(database: str, stamp: tuple[int, int], run_id: str) -> dict[str, Any] | None:
    found = flip_facts(Path(database), run_id)
    return None if found is None else asdict(found)


@st.cache_data(ttl=3600, max_entries=64, show_spinner=False)
def _warnings(database: str, stamp: tuple[int, int], run_id: str) -> list[str]:
    return results.warnings(Path(database), run_id)
