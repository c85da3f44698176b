"""Start, cancel, resume and read runs. The run folder is the only contract with the worker."""

from dataclasses import replace
from pathlib import Path

from liob_core.bench.detached import launch
from liob_core.bench.lock import check_free
from liob_core.bench.status import RunStatus, read_status_file, write_status
from liob_core.bench.supervisor import CANCEL_FILE
from liob_core.config import Settings
from liob_core.errors import FileError, MissingError, UsageError
from liob_core.monitor import clock
from liob_core.store.journal import read_spec, write_spec
from liob_core.types import RunSpec

WORKER_LOG = "worker.log"


def start(spec: RunSpec, settings: Settings) -> str:
    """The id of a run that is now at work in a process of its own; raises BusyError while another is."""
    check_free(settings.machine_dir)
    run_dir = settings.runs_dir / spec.run_id
    try:
        run_dir.mkdir(parents=True)
        write_spec(run_dir, spec)
    except FileExistsError as error:
        raise UsageError(f"Run {spec.run_id} exists; resume it or start a new one.") from error
    except OSError as error:
        raise FileError(f"The run's folder {run_dir} cannot be written: {error.strerror}.") from error
    _launch(run_dir, spec, settings)
    return spec.run_id


def resume(run_id: str, settings: Settings) -> str:
    """The same id, with what was left of its plan at work again; nothing finished is done twice."""
    run_dir = find_run(run_id, settings)
    spec = read_spec(run_dir)
    status = read_status_file(run_dir)
    if status is not None and status.is_live:
        raise UsageError(f"Run {spec.run_id} is still at work; there is nothing to resume.")
    if status is not None and status.state == "finished":
        raise UsageError(f"Run {spec.run_id} is finished; start a new one to measure again.")
    check_free(settings.machine_dir)
    (run_dir / CANCEL_FILE).unlink(missing_ok=True)
    _launch(run_dir, spec, settings)
    return spec.run_id


def cancel(run_id: str, settings: Settings) -> None:
    """Ask a run's worker to end; it does within a second and keeps every finished sample."""
    run_dir = find_run(run_id, settings)
    status = read_status_file(run_dir)
    if status is None or not status.is_live:
        raise UsageError(f"Run {run_dir.name} is not at work.")
    (run_dir / CANCEL_FILE).touch()


def is_cancelling(run_id: str, settings: Settings) -> bool:
    """Whether the end of a run was asked for; of use while its worker is at it."""
    return (find_run(run_id, settings) / CANCEL_FILE).exists()


def read_status(run_id: str, settings: Settings) -> RunStatus:
    """What a run is doing now; `orphaned` where its worker is gone."""
    run_dir = find_run(run_id, settings)
    status = read_status_file(run_dir)
    if status is not None:
        return status
    spec = read_spec(run_dir)
    reason = "It was never started, or a power cut took its status; resume it."
    return RunStatus(run_id=spec.run_id, title=spec.title, state="orphaned", reason=reason)


def list_runs(settings: Settings) -> list[RunStatus]:
    """Every run that has a folder here, newest first."""
    folders = sorted(settings.runs_dir.glob("*/spec.json"), reverse=True)
    return [read_status(path.parent.name, settings) for path in folders]


def running(settings: Settings) -> RunStatus | None:
    """The run of this data folder that is at work, or None."""
    return next((status for status in list_runs(settings) if status.is_live), None)


def find_run(run_id: str, settings: Settings) -> Path:
    """The folder of a run, named in full or by the only beginning that fits; `last` is the newest."""
    names = sorted(path.parent.name for path in settings.runs_dir.glob("*/spec.json"))
    if run_id == "last" and names:
        return settings.runs_dir / names[-1]
    found = [name for name in names if name == run_id] or [n for n in names if n.startswith(run_id)]
    if len(found) == 1 and run_id:
        return settings.runs_dir / found[0]
    if not found:
        raise MissingError(f"There is no run {run_id!r} in {settings.runs_dir}; `list` shows what there is.")
    raise UsageError(f"{run_id!r} fits {len(found)} runs: {', '.join(found)}; give more of its name.")


def _launch(run_dir: Path, spec: RunSpec, settings: Settings) -> None:
    """Start the worker detached, so that it outlives the page, the browser and the server."""
    now = clock.utc_iso(clock.utc_ns())
    before = read_status_file(run_dir) or RunStatus(run_id=spec.run_id, title=spec.title, state="starting")
    # Written before the worker exists, which then only ever writes after this.
    write_status(
        run_dir,
        replace(before, state="starting", reason=None, pid=None, started_utc=now, updated_utc=now),
    )
    launch("liob_core.bench.worker", run_dir, run_dir / WORKER_LOG, settings)
