"""What a run is doing now, as one small file that any page or command can read at any time."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import psutil

from liob_core.errors import FileError
from liob_core.store.journal import read_record, write_atomic

STATUS_FILE = "status.json"
START_ALLOWANCE_S = 30.0  # until a new worker has written its own number


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How many cells of one variant and task are planned, done, and done with a failure."""

    total: int
    done: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """The state of a run: starting, running, finished, failed, cancelled or orphaned."""

    run_id: str
    title: str
    state: str
    reason: str | None = None
    n_cells: int = 0
    n_done: int = 0
    n_failed: int = 0
    current_variant: str | None = None
    current_task: str | None = None
    current_prompt: str | None = None
    activity: str | None = None  # what it does between requests: loading, storing
    text_tail: str = ""
    decode_tps_live: float | None = None  # chunks are not tokens: NULL where the engine sends pieces
    rss_bytes: int | None = None
    system_ram_bytes: int | None = None
    cpu_pct: float | None = None
    started_utc: str = ""
    updated_utc: str = ""
    eta_s: float | None = None
    pid: int | None = None
    pid_created: float | None = None
    per_cell: Mapping[str, Progress] = field(default_factory=dict)  # "variant|task"

    @property
    def is_live(self) -> bool:
        """Whether a worker is at it."""
        return self.state in {"starting", "running"}


def write_status(run_dir: Path, status: RunStatus) -> None:
    """Replace the run's status file at once, so that no reader sees half of it."""
    # Once a second while a run lives, beside what is measured: no waiting for the disk then.
    text = json.dumps(asdict(status))
    write_atomic(run_dir / STATUS_FILE, text, outlives_power_cut=not status.is_live)


def read_status_file(run_dir: Path) -> RunStatus | None:
    """The run's status, `orphaned` where it says running but its worker is gone; None where it has none."""
    path = run_dir / STATUS_FILE
    try:
        status: RunStatus = read_record(RunStatus, path.read_text(encoding="utf-8"))
    except (FileNotFoundError, FileError):  # never written, or emptied by a power cut
        return None
    if status.state == "starting" and _age_s(status) < START_ALLOWANCE_S:
        return status
    if status.is_live and not is_alive(status.pid, status.pid_created):
        return replace(
            status, state="orphaned", reason="Its worker is gone; every finished sample is kept. Resume it."
        )
    return status


def wait_for_end(status: RunStatus, timeout_s: float) -> None:
    """Nothing, as soon as the run's worker is gone, or once the time is over."""
    try:
        if status.pid is None:
            time.sleep(timeout_s)
        else:
            psutil.Process(status.pid).wait(timeout_s)
    except psutil.Error:  # the time is over, or it is gone already
        return


def _age_s(status: RunStatus) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(status.updated_utc)).total_seconds()


def is_alive(pid: int | None, created: float | None) -> bool:
    """Whether that very process runs: a zombie does not, nor does another one that got its number."""
    if pid is None or created is None:
        return False
    try:
        process = psutil.Process(pid)
        # psutil reads the start time to a clock tick.
        same = abs(process.create_time() - created) < 1.0
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
