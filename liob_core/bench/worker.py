"""The process that measures: `python -m liob_core.bench.worker RUN_DIR`, started by `jobs.start`."""

import atexit
import contextlib
import gc
import json
import logging
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import FrameType

import psutil

from liob_core.bench.closeness import first_progress, run_closeness
from liob_core.bench.energy import EnergyWindows, stored_windows
from liob_core.bench.engines import open_engines
from liob_core.bench.loading import Loader
from liob_core.bench.lock import machine_lock
from liob_core.bench.plan import make_plan, remaining
from liob_core.bench.registering import register_files
from liob_core.bench.runner import FAILED, Cancelled, Runner
from liob_core.bench.status import Progress, RunStatus, read_status_file, write_status
from liob_core.bench.supervisor import Supervisor
from liob_core.config import Settings, load_settings
from liob_core.engines.embedded import kill_leftovers
from liob_core.engines.protocol import Engine
from liob_core.errors import BusyError, LiobError
from liob_core.monitor import clock
from liob_core.monitor.bandwidth import measure_bandwidth
from liob_core.monitor.energy import NOT_MEASURED, make_meter
from liob_core.monitor.machine import read_machine
from liob_core.monitor.sampler import Sampler
from liob_core.store import database
from liob_core.store.journal import (
    BANDWIDTH_FILE,
    MACHINE_FILE,
    READINGS_FILE,
    Journal,
    finished_cells,
    read_lines,
    read_spec,
    write_atomic,
)
from liob_core.types import Cell, Outcome, RunSpec, Task, to_json

log = logging.getLogger("liob.worker")
LAST_INGEST_WAIT_S = 30.0


def main(arguments: Sequence[str]) -> int:
    """Exit code of one run: 0 done, 1 something in it failed, 2 wrong use or missing thing, 3 busy."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # a line per request says nothing here
    run_dir = Path(arguments[0])
    settings = load_settings()
    spec = read_spec(run_dir)
    try:
        kill_leftovers(settings.machine_dir)
        with machine_lock(settings.machine_dir, spec.run_id):
            return _measure(spec, run_dir, settings)
    except LiobError as error:
        log.error("%s", error)
        _write_failed(run_dir, spec, str(error))
        return error.exit_code
    except BaseException as error:
        _write_failed(run_dir, spec, f"A bug in LIOB ended the run: {error!r}. See worker.log in its folder.")
        raise


def _measure(spec: RunSpec, run_dir: Path, settings: Settings) -> int:
    """Run what is left of the plan, with everything that watches it."""
    plan = make_plan(spec)
    status = _first_status(spec, plan, run_dir)
    write_status(run_dir, status)
    # Kept from the first start: a run resumed elsewhere would mix two machines.
    if not (run_dir / MACHINE_FILE).exists():
        write_atomic(run_dir / MACHINE_FILE, json.dumps(to_json(read_machine())))
    journal = Journal(run_dir)
    cells = remaining(plan, finished_cells(run_dir))
    _keep_bandwidth(spec, run_dir, cells)
    engine = open_engines(spec, settings.machine_dir)
    with _watched(spec, run_dir, status, engine) as (sampler, supervisor):
        loader = Loader(
            spec,
            run_dir,
            engine=engine,
            journal=journal,
            sampler=sampler,
            n_loads_before=_count_loads(run_dir),
        )
        runner = Runner(
            spec,
            run_dir,
            engine=engine,
            loader=loader,
            journal=journal,
            sampler=sampler,
            supervisor=supervisor,
            energy=_energy(
                spec, run_dir, engine=engine, journal=journal, sampler=sampler, supervisor=supervisor
            ),
        )
        journal.append_event("resumed" if status.n_done else "started", f"{len(cells)} cells to do")
        state, reason = _run(
            spec,
            runner,
            cells,
            settings=settings,
            run_dir=run_dir,
            journal=journal,
            sampler=sampler,
            supervisor=supervisor,
        )
        for source, why in sampler.missing.items():
            journal.append_event("sensor missing", f"{source}: {why}")
        if sampler.lost_readings:
            journal.append_event("readings lost", f"{sampler.lost_readings} could not be written")
        journal.append_event(state, reason or "")
    _ingest(settings, run_dir, wait_s=LAST_INGEST_WAIT_S)
    supervisor.stop(state, reason)
    return 0 if state == "finished" and supervisor.n_failed == 0 else 1


def _keep_bandwidth(spec: RunSpec, run_dir: Path, cells: Sequence[Cell]) -> None:
    """Measure how fast memory is read, once a run and only where it bounds what will be measured."""
    path = run_dir / BANDWIDTH_FILE
    is_timed = any(cell.task is Task.SPEED for cell in cells)
    reads_memory = any(variant.model and variant.model.read_bytes for variant in spec.variants)
    if is_timed and reads_memory and not path.exists():
        threads = max(variant.load_settings.threads for variant in spec.variants)
        write_atomic(path, json.dumps(to_json(measure_bandwidth(threads))))


def _energy(
    spec: RunSpec,
    run_dir: Path,
    *,
    engine: Engine,
    journal: Journal,
    sampler: Sampler,
    supervisor: Supervisor,
) -> EnergyWindows | None:
    """What measures energy beside task `speed`; where nothing does, the journal says why."""
    if Task.SPEED not in spec.tasks:
        return None
    meter = make_meter()
    reason = meter.reason or (None if spec.energy else "it was left out of this run")
    if reason is not None:
        journal.append_event(NOT_MEASURED, reason)
        meter.close()
        return None
    return EnergyWindows(
        spec,
        meter,
        engine=engine,
        journal=journal,
        sampler=sampler,
        supervisor=supervisor,
        stored=stored_windows(run_dir),
    )


def _run(
    spec: RunSpec,
    runner: Runner,
    cells: Sequence[Cell],
    *,
    settings: Settings,
    run_dir: Path,
    journal: Journal,
    sampler: Sampler,
    supervisor: Supervisor,
) -> tuple[str, str | None]:
    """The state in which the run ended, and why."""

    def stop_if_cancelled() -> None:
        if supervisor.is_cancelled:
            raise Cancelled

    def store_block() -> None:
        supervisor.say("storing")
        _ingest(settings, run_dir, wait_s=0.0)

    try:
        register_files(spec, settings, supervisor.say, stop_if_cancelled)
        if cells:  # now, since later it would delay the end that a user asked for
            _prepare_storing(settings)
        runner.run(cells, after_block=store_block)
        if spec.closeness is not None:
            # No request is measured from here on, and every reading takes time from the evaluation.
            sampler.read_slowly()
            with ThreadPoolExecutor(max_workers=1) as beside:
                beside.submit(_prepare_storing, settings)  # while the models are loaded
                run_closeness(
                    spec, run_dir, journal=journal, supervisor=supervisor, machine_dir=settings.machine_dir
                )
    except Cancelled:
        return "cancelled", "Cancelled by the user; resume it to do the rest."
    except LiobError as error:
        log.error("%s", error)
        return "failed", str(error)
    return "finished", None


@contextlib.contextmanager
def _watched(
    spec: RunSpec, run_dir: Path, status: RunStatus, engine: Engine
) -> Iterator[tuple[Sampler, Supervisor]]:
    """Sampler and supervisor at work; the engine is closed whatever happens."""
    sampler = Sampler(spec.monitor_hz, run_dir / READINGS_FILE)
    supervisor = Supervisor(run_dir, status, abort=engine.abort, latest=sampler.latest)

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        supervisor.cancel()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    sampler.start()
    supervisor.start()
    try:
        yield sampler, supervisor
    finally:
        engine.close()
        sampler.stop()


def _prepare_storing(settings: Settings) -> None:
    """Do what takes a second before the first result is stored."""
    import_module("scipy.special")  # for the intervals of running estimates
    import_module("liob_core.analysis.ingest")
    with contextlib.suppress(LiobError), database.write(settings.database, wait_s=0.0):
        pass  # a new file gets its tables, an old one its migrations


def _ingest(settings: Settings, run_dir: Path, *, wait_s: float) -> None:
    """Move what the journal has into the database; a busy or broken database never ends a run."""
    from liob_core.analysis.ingest import ingest_run  # noqa: PLC0415 - see `_prepare_storing`

    try:
        ingest_run(settings.database, run_dir, wait_s=wait_s)
    except BusyError as error:
        log.info("%s", error)
    except LiobError as error:
        log.error("%s", error)


def _first_status(spec: RunSpec, plan: Sequence[Cell], run_dir: Path) -> RunStatus:
    process = psutil.Process()
    finished = finished_cells(run_dir)
    failed = _failed_cells(run_dir)
    measured = [cell for cell in plan if not cell.warmup]
    keys = [f"{cell.variant}|{cell.task.value}" for cell in measured]
    done = Counter(k for k, cell in zip(keys, measured, strict=True) if cell.cell_id in finished)
    bad = Counter(k for k, cell in zip(keys, measured, strict=True) if cell.cell_id in failed)
    per_cell = {
        key: Progress(total=total, done=done[key], failed=bad[key]) for key, total in Counter(keys).items()
    } | first_progress(spec, run_dir)
    now = clock.utc_iso(clock.utc_ns())
    return RunStatus(
        run_id=spec.run_id,
        title=spec.title,
        state="running",
        n_cells=sum(progress.total for progress in per_cell.values()),
        n_done=sum(progress.done for progress in per_cell.values()),
        n_failed=sum(progress.failed for progress in per_cell.values()),
        started_utc=now,
        updated_utc=now,
        pid=process.pid,
        pid_created=process.create_time(),
        per_cell=per_cell,
    )


def _failed_cells(run_dir: Path) -> set[str]:
    lines, _ = read_lines(run_dir)
    return {
        line["data"]["cell"]["cell_id"]
        for line in lines
        if line["kind"] == "sample" and line["data"]["outcome"] in FAILED - {Outcome.CANCELLED}
    }


def _count_loads(run_dir: Path) -> int:
    lines, _ = read_lines(run_dir)
    return sum(line["kind"] == "load" for line in lines)


def _write_failed(run_dir: Path, spec: RunSpec, reason: str) -> None:
    now = clock.utc_iso(clock.utc_ns())
    before = read_status_file(run_dir) or RunStatus(run_id=spec.run_id, title=spec.title, state="failed")
    status = replace(before, state="failed", reason=reason, activity=None, updated_utc=now)
    with contextlib.suppress(OSError):
        write_status(run_dir, status)


if __name__ == "__main__":
    atexit.register(gc.freeze)  # else the end of Python searches all of pandas for garbage once more
    sys.exit(main(sys.argv[1:]))
