"""Whose results are shown: the user's own, the sample that LIOB ships, or the file a hosted app shares."""

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from liob_core.config import SAMPLE_DATABASE, Settings, load_settings
from liob_core.errors import FileError, MissingError
from liob_core.store.connection import is_outdated
from liob_core.ui import reads, selection
from liob_core.ui.text import literal

OWN, SAMPLE = "own", "sample"
_NAMES = {OWN: "My results", SAMPLE: "Sample results"}


@dataclass(frozen=True, slots=True)
class Source:
    """A database with at least one run, its runs (newest first), and whether it is the sample."""

    database: Path
    runs: pd.DataFrame
    is_sample: bool


@dataclass(frozen=True, slots=True)
class Chosen:
    """One run of one source: what every page of results reads."""

    source: Source
    run_id: str

    @property
    def database(self) -> Path:
        """The file that holds the run."""
        return self.source.database


def choose(settings: Settings) -> Chosen | None:
    """The run chosen in the address or the sidebar; None where there is nothing to show yet."""
    if settings.share is not None:
        return _choose_shared(settings.share.resolve())
    _bring_up_to_date(settings)
    found = {
        name: runs
        for name, path in ((OWN, settings.database), (SAMPLE, SAMPLE_DATABASE))
        if path.exists() and not (runs := reads.frame("runs", path)).empty
    }
    if not found:
        return None
    with st.sidebar:
        name = _choose_source(list(found))
        runs = found[name]
        run_id = _choose_run(runs)
    path = settings.database if name == OWN else SAMPLE_DATABASE
    return Chosen(Source(path, runs, name == SAMPLE), run_id)


def _choose_shared(path: Path) -> Chosen:
    """A run of the one file that visitors are shown."""
    if not path.is_file():
        raise MissingError(f"LIOB_SHARE names {path}, which is not there.")
    if _is_outdated(str(path), path.stat().st_mtime_ns):
        raise FileError(f"{path} was made by an older LIOB: import it and export it again.")
    runs = reads.frame("runs", path)
    if runs.empty:
        raise MissingError(f"{path} holds no run. Name a file that `export --format duckdb` made.")
    with st.sidebar:
        run_id = _choose_run(runs)
    return Chosen(Source(path, runs, is_sample=path == SAMPLE_DATABASE), run_id)


@st.cache_data(ttl=3600, max_entries=4, show_spinner=False)
def _is_outdated(path: str, stamp: int) -> bool:
    return is_outdated(Path(path))


def _bring_up_to_date(settings: Settings) -> None:
    """Have a child store what the run folders hold and the database does not; this process only reads."""
    folders = sorted(settings.runs_dir.glob("*/journal.jsonl"))
    _catch_up(str(settings.data_dir), tuple(path.stat().st_mtime_ns for path in folders))


@st.cache_data(ttl=60, max_entries=4, show_spinner="Storing finished samples")
def _catch_up(data_dir: str, journals: tuple[int, ...]) -> None:
    if journals or load_settings().database.exists():  # which an older LIOB may have made
        from liob_core.bench.catch_up import catch_up_in_child  # noqa: PLC0415 - no bench in a hosted app

        catch_up_in_child(load_settings())


def _choose_source(names: list[str]) -> str:
    wanted = selection.get("source")
    if len(names) == 1:
        return names[0]
    chosen = st.segmented_control(
        "Source",
        names,
        default=wanted if wanted in names else names[0],
        format_func=_NAMES.__getitem__,
        label_visibility="collapsed",
        key="liob_source",
        width="stretch",
    )
    name = chosen or names[0]
    if name != wanted:
        selection.put("source", name)
    return name


def _choose_run(runs: pd.DataFrame) -> str:
    names = {str(row["run_id"]): _run_name(row) for row in runs.to_dict("records")}
    if asked := selection.never_chosen("run", names):
        st.warning(
            literal(f"There is no run {asked} here. This is another one."), icon=":material/search_off:"
        )
    if len(names) > 1:
        return selection.pick("run", "Run", names)
    run_id = next(iter(names))
    selection.put("run", run_id)
    return run_id


def _run_name(run: dict[Hashable, Any]) -> str:
    started = run["created_utc"]
    day = f" · {pd.Timestamp(started):%d %b %H:%M}" if pd.notna(started) else ""
    return f"{run['title'] or run['run_id']}{day}"


def show_origin(chosen: Chosen) -> None:
    """One quiet line that says when the results shown are not the user's."""
    if chosen.source.is_sample:
        run = next(row for row in chosen.source.runs.to_dict("records") if row["run_id"] == chosen.run_id)
        where = f" on {run['cpu_name']}" if run["cpu_name"] else ""
        st.caption(literal(f"Sample results: {run['model_name'] or run['title']}{where}, made by LIOB."))
