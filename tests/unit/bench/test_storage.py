"""What lies on disk is counted, and only folders that nothing needs any more can go."""

from dataclasses import replace
from pathlib import Path

import pytest

from liob_core.bench import storage
from liob_core.bench.status import RunStatus, write_status
from liob_core.config import Settings
from liob_core.errors import UsageError
from liob_core.store import database
from liob_core.store.journal import Journal, write_spec
from tests.unit.bench.builders import make_fake_spec


def make_run(settings: Settings, run_id: str, state: str, *, is_stored: bool) -> Path:
    run_dir = settings.runs_dir / run_id
    run_dir.mkdir(parents=True)
    write_spec(run_dir, replace(make_fake_spec(), run_id=run_id))
    journal = Journal(run_dir)
    journal.append_event(state, "")
    journal.close()
    write_status(run_dir, RunStatus(run_id=run_id, title="t", state=state))
    if is_stored:
        with database.write(settings.database) as con:
            database.ingest(con, run_dir)
    return run_dir


def test_only_finished_and_stored_folders_are_removed(settings: Settings) -> None:
    done = make_run(settings, "20261130-120000-done", "finished", is_stored=True)
    new = make_run(settings, "20261130-120001-new", "finished", is_stored=False)
    cancelled = make_run(settings, "20261130-120002-half", "cancelled", is_stored=True)
    found = storage.measure(settings)

    assert [folder.run_id for folder in found.removable] == [done.name]
    assert {folder.run_id: folder.why_kept for folder in found.runs if folder.why_kept} == {
        new.name: "not yet in the database",
        cancelled.name: "not finished, so it can be resumed",
    }
    size = sum(file.stat().st_size for file in done.iterdir())
    assert storage.remove_run_folders(settings, [done.name]) == size
    assert not done.exists()
    assert new.exists()
    assert cancelled.exists()
    assert len(database.query(settings.database, "SELECT * FROM runs WHERE run_id = ?", [done.name])) == 1


def test_folder_that_is_needed_is_refused(settings: Settings) -> None:
    half = make_run(settings, "20261130-120002-half", "cancelled", is_stored=True)
    for run_id in (half.name, "..", "nobody"):
        with pytest.raises(UsageError, match="still needed"):
            storage.remove_run_folders(settings, [run_id])
    assert half.exists()


def test_empty_data_folder_holds_nothing(settings: Settings) -> None:
    found = storage.measure(settings)
    assert (found.database_bytes, found.runs_bytes, found.models_bytes, found.cache_bytes) == (0, 0, 0, 0)
    assert found.free_bytes > 0
