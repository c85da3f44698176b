"""Start, cancel and read judgings. A run's folder holds one at a time, in a folder of its own."""

import json
from pathlib import Path

from liob_core.bench.detached import launch
from liob_core.bench.judging import JudgingSpec, targets
from liob_core.bench.lock import check_free
from liob_core.bench.status import RunStatus, read_status_file, write_status
from liob_core.bench.supervisor import CANCEL_FILE
from liob_core.config import Settings
from liob_core.errors import FileError, MissingError, UsageError
from liob_core.monitor import clock
from liob_core.store.journal import read_lines, read_record, read_spec, write_atomic
from liob_core.types import JudgeMode, Task, to_json

JUDGING_DIR = "judging"
REQUEST_FILE = "request.json"
LOG_FILE = "judge.log"


def start(spec: JudgingSpec, settings: Settings) -> int:
    """How many answers a judge now looks at, in a process of its own; 0: nothing is left, none was started.

    Started again with the same judge it does what is left, with another one it adds its opinions.
    """
    run_dir = settings.runs_dir / spec.run_id
    run = read_spec(run_dir)
    status = read_status_file(run_dir)
    if status is not None and status.is_live:
        raise UsageError(f"Run {spec.run_id} is still at work; judge it once it has ended.")
    if Task.SUITE not in run.tasks or run.suite is None:
        raise UsageError(f"Run {spec.run_id} has no suite, so there are no answers to judge.")
    if spec.mode is JudgeMode.PAIRWISE and len(run.variants) < 2:
        raise UsageError(f"Run {spec.run_id} has one variant only; there is no pair to compare.")
    if not spec.judge_all and not any(prompt.rubric for prompt in run.suite.prompts):
        raise UsageError(f"No prompt of suite {run.suite.name!r} has a rubric; judge all with --all.")
    n_targets = len(targets(spec, run, read_lines(run_dir)[0]))
    if n_targets == 0:
        return 0
    check_free(settings.machine_dir)
    folder = run_dir / JUDGING_DIR
    try:
        folder.mkdir(exist_ok=True)
        (folder / CANCEL_FILE).unlink(missing_ok=True)
        write_atomic(folder / REQUEST_FILE, json.dumps(to_json(spec)))
    except OSError as error:
        raise FileError(f"The folder {folder} cannot be written: {error.strerror}.") from error
    now = clock.utc_iso(clock.utc_ns())
    title = f"Judging by {spec.judge_name}"
    # Written before the worker exists, which then only ever writes after this.
    write_status(
        folder,
        RunStatus(run_id=spec.run_id, title=title, state="starting", started_utc=now, updated_utc=now),
    )
    launch("liob_core.bench.judge_worker", run_dir, folder / LOG_FILE, settings)
    return n_targets


def cancel(run_id: str, settings: Settings) -> None:
    """Ask the judge of a run to end; it does within a second and every opinion is kept."""
    folder = settings.runs_dir / run_id / JUDGING_DIR
    status = read_status_file(folder)
    if status is None or not status.is_live:
        raise UsageError(f"No judge is at work on run {run_id}.")
    (folder / CANCEL_FILE).touch()


def read_status(run_id: str, settings: Settings) -> RunStatus | None:
    """What the judge of a run is doing or how it ended; None where none was ever asked."""
    return read_status_file(settings.runs_dir / run_id / JUDGING_DIR)


def read_request(run_dir: Path) -> JudgingSpec:
    """What was asked of the judge of the run in that folder."""
    path = run_dir / JUDGING_DIR / REQUEST_FILE
    try:
        spec: JudgingSpec = read_record(JudgingSpec, path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MissingError(f"{run_dir} holds no judging; start one with `judge`.") from error
    return spec
