"""Brings the database up to date with run folders: `python -m liob_core.bench.catch_up`.

The app runs this as a short-lived child, since its own process only ever opens the database to read.
"""

import logging
import subprocess
import sys
from collections.abc import Sequence

from liob_core.analysis.ingest import ingest_run
from liob_core.bench.status import read_status_file
from liob_core.config import PROJECT_DIR, Settings, load_settings
from liob_core.errors import BusyError, LiobError
from liob_core.store.connection import is_outdated, write
from liob_core.store.ingest import is_behind

log = logging.getLogger("liob.catch_up")


def runs_behind(settings: Settings) -> list[str]:
    """The runs whose journal holds more than the database, without those that a worker looks after."""
    behind = []
    for path in sorted(settings.runs_dir.glob("*/spec.json")):
        status = read_status_file(path.parent)
        if (status is None or not status.is_live) and is_behind(settings.database, path.parent):
            behind.append(path.parent.name)
    return behind


def catch_up(settings: Settings) -> int:
    """How many runs were brought into the database; a broken one is told and left."""
    if is_outdated(settings.database):
        with write(settings.database):  # opening it to write applies the migrations
            log.info("The database has the newest schema now.")
    n_runs = 0
    for run_id in runs_behind(settings):
        try:
            ingest_run(settings.database, settings.runs_dir / run_id)
            n_runs += 1
        except BusyError:
            raise
        except LiobError as error:
            log.error("Run %s could not be read into the database: %s", run_id, error)
    return n_runs


def catch_up_in_child(settings: Settings, timeout_s: float = 60.0) -> None:
    """The same in a child process; waits for it, and leaves it for the next time where it takes longer."""
    if not is_outdated(settings.database) and not runs_behind(settings):
        return
    try:
        subprocess.run(
            [sys.executable, "-m", "liob_core.bench.catch_up"],
            cwd=PROJECT_DIR,
            env=settings.environment(),
            check=False,
            capture_output=True,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        log.warning("The database is not up to date yet; it will be tried again.")


def main(_arguments: Sequence[str]) -> int:
    """Exit code: 0 done, 3 the database is held by another process."""
    try:
        catch_up(load_settings())
    except LiobError as error:
        log.error("%s", error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
