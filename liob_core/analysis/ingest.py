"""A run folder into the database, with its summary and verdicts."""

from pathlib import Path

from liob_core.analysis.summary import summarize
from liob_core.store import database


def ingest_run(db_path: Path, run_dir: Path, *, wait_s: float = 5.0) -> database.IngestReport:
    """What was ingested; samples, summary and paired deltas are stored together or not at all.

    Raises BusyError where another process holds the database for longer than `wait_s`.
    """
    with database.write(db_path, wait_s=wait_s) as con:
        return database.ingest(con, run_dir, finish=summarize)
