"""What a person says about a run is stored beside it, and an ingest does not take it away."""

from pathlib import Path

import duckdb
import pytest

from liob_core.errors import UsageError
from liob_core.store import connection
from liob_core.store.edits import LONGEST_TITLE, Edit, apply_edit

RUN = "r"


@pytest.fixture
def db_with_run(db: Path) -> Path:
    with connection.write(db) as con:
        _insert_run(con)
    return db


def _insert_run(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "INSERT OR REPLACE INTO raw.runs (run_id, title, engine, state, n_skipped_lines, journal_offset, "
        "readings_offset, ingested_utc) VALUES (?, 'first', 'fake', 'finished', 0, 0, 0, now()::TIMESTAMP)",
        [RUN],
    )


def told(db: Path) -> tuple[object, ...]:
    with connection.read(db) as con:
        row = con.execute("SELECT title, note, deleted_utc IS NOT NULL FROM runs").fetchone()
    assert row is not None
    return tuple(row)


def edit(db: Path, action: str, text: str = "") -> None:
    with connection.write(db) as con:
        apply_edit(con, Edit(run_id=RUN, action=action, text=text))


def test_edits_add_up_and_each_can_be_taken_back(db_with_run: Path) -> None:
    edit(db_with_run, "rename", " two\n words ")
    edit(db_with_run, "annotate", "line one\nline two\n")
    edit(db_with_run, "delete")
    assert told(db_with_run) == ("two words", "line one\nline two", True)

    edit(db_with_run, "restore")
    edit(db_with_run, "rename", "")
    edit(db_with_run, "annotate", " ")
    assert told(db_with_run) == ("first", None, False)


def test_edits_outlive_another_ingest(db_with_run: Path) -> None:
    edit(db_with_run, "rename", "mine")
    with connection.write(db_with_run) as con:
        _insert_run(con)
    assert told(db_with_run)[0] == "mine"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (Edit(run_id="nobody", action="rename", text="x"), "no run 'nobody'"),
        (Edit(run_id=RUN, action="burn"), "rename, annotate"),
        (Edit(run_id=RUN, action="rename", text="x" * (LONGEST_TITLE + 1)), "at most 200 characters"),
    ],
)
def test_wrong_edit_is_refused_in_a_sentence(db_with_run: Path, wrong: Edit, says: str) -> None:
    with connection.write(db_with_run) as con, pytest.raises(UsageError, match=says):
        apply_edit(con, wrong)
    assert told(db_with_run) == ("first", None, False)
