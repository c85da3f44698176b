"""A run folder into the database, with its summary and verdicts."""

from pathlib import Path

from liob_core.analysis.summary import summarize
from liob_core.store import database


def ingest_run(db_path: Path, run_dir: Path) -> database.IngestReport:
    """What was ingested; the run's summary and paired deltas are made anew in the same connection."""
    with database.write(db_path) as con:
        report = database.ingest(con, run_dir)
        summarize(con, report.run_id)
    return report
