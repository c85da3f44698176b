"""The process that judges: `python -m liob_core.bench.judge_worker RUN_DIR`, started by `judge_jobs.start`.

It works in the run's folder under the machine's lock, so that no judge is ever in flight beside a
measurement. Every opinion is in the run's journal before the next question is asked.
"""

import contextlib
import logging
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

import psutil

from liob_core.analysis.ingest import ingest_run
from liob_core.bench.judge_jobs import JUDGING_DIR, read_request
from liob_core.bench.judge_model import EngineJudge
from liob_core.bench.judging import JudgingSpec, Target, is_self, of_pair, of_score, targets
from liob_core.bench.lock import machine_lock
from liob_core.bench.runner import Cancelled
from liob_core.bench.status import Progress, RunStatus, read_status_file, write_status
from liob_core.bench.supervisor import Supervisor
from liob_core.config import Settings, load_settings
from liob_core.engines.embedded import kill_leftovers
from liob_core.engines.protocol import Engine
from liob_core.engines.registry import make_engine
from liob_core.errors import LiobError
from liob_core.monitor import clock
from liob_core.quality.judge import calibration
from liob_core.quality.judge.calibration import CalibrationItem, CalibrationSet
from liob_core.quality.judge.judge import compare, score
from liob_core.quality.judge.questions import Task
from liob_core.store.journal import Journal, read_lines, read_spec
from liob_core.types import CalibrationResult, JsonValue, Judgement, JudgeState, RunSpec

log = logging.getLogger("liob.judge")
LAST_INGEST_WAIT_S = 30.0
# So many questions in a row that could not even be asked mean that the engine is broken.
MAX_ERRORS_IN_A_ROW = 5
CALIBRATION = "calibration"

Lines = Sequence[Mapping[str, JsonValue]]


def main(arguments: Sequence[str]) -> int:
    """Exit code of one judging: 0 done, 1 something in it failed, 2 wrong use or missing thing, 3 busy."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    run_dir = Path(arguments[0])
    settings = load_settings()
    spec = read_request(run_dir)
    try:
        kill_leftovers(settings.machine_dir)
        with machine_lock(settings.machine_dir, spec.run_id):
            return _judge(spec, run_dir, settings)
    except LiobError as error:
        log.error("%s", error)
        _write_failed(run_dir, spec, str(error))
        return error.exit_code
    except BaseException as error:
        _write_failed(run_dir, spec, f"A bug in LIOB ended the judging: {error!r}. See judge.log there.")
        raise


def _judge(spec: JudgingSpec, run_dir: Path, settings: Settings) -> int:
    """Calibrate the judge and judge what is left, with everything that watches it."""
    run, (lines, _) = read_spec(run_dir), read_lines(run_dir)
    items = calibration.load_calibration(spec.mode)
    todo = targets(spec, run, lines)
    known = _calibrated(spec, items, lines)
    status = _first_status(spec, items, known, todo)
    folder = run_dir / JUDGING_DIR
    write_status(folder, status)
    engine = make_engine(
        spec.engine, url=spec.engine_url, options=spec.engine_options, machine_dir=settings.machine_dir
    )
    with Journal(run_dir) as journal, _watched(folder, status, engine) as supervisor:
        journal.append_event("judging started", f"{spec.judge_name}, {spec.mode}: {len(todo)} answers")
        model = EngineJudge(engine, spec.judge, supervisor=supervisor, folder=folder, limits=spec.limits)
        work = _Work(spec, run, journal=journal, model=model, supervisor=supervisor)
        state, reason = _run(work, items, known, todo)
        journal.append_event(f"judging {state}", reason or spec.judge_name)
        supervisor.say("storing")
        _ingest(settings, run_dir)
    supervisor.stop(state, reason)
    return 0 if state == "finished" and supervisor.n_failed == 0 else 1


def _run(
    work: "_Work", items: CalibrationSet, known: Mapping[str, bool], todo: Sequence[Target]
) -> tuple[str, str | None]:
    """The state in which the judging ended, and why."""
    if not todo:
        return "finished", "There is nothing left to judge."
    try:
        work.model.load()
        share = work.calibrate(items, known)
        for target in todo:
            work.judge(target, share)
    except Cancelled:
        return "cancelled", "Cancelled by the user; judge again to do the rest."
    except LiobError as error:
        log.error("%s", error)
        return "failed", str(error)
    return "finished", None


class _Work:
    """One judge at work on one run: each opinion goes to the journal as soon as there is one."""

    def __init__(
        self,
        spec: JudgingSpec,
        run: RunSpec,
        *,
        journal: Journal,
        model: EngineJudge,
        supervisor: Supervisor,
    ) -> None:
        self.model = model
        self._spec = spec
        self._journal = journal
        self._supervisor = supervisor
        self._is_self = {variant.label: is_self(spec.judge, variant) for variant in run.variants}
        self._n_errors_in_a_row = 0

    def calibrate(self, items: CalibrationSet, known: Mapping[str, bool]) -> float:
        """The share of the calibration that the judge gets right, 0 to 1; only what is not known is asked."""
        results = dict(known)
        for item in items.items:
            if item.item_id in results:
                continue
            self.model.about(CALIBRATION, item.item_id)
            result = self._calibration_result(items, item)
            self._journal.append(result)
            results[item.item_id] = result.is_right
            self._count(CALIBRATION, result.state)
        n_right, n = sum(results.values()), len(results)
        verdict = "" if calibration.passed(n_right, n) else "; below 80 %, so it gives no verdict"
        self._journal.append_event(
            "judge calibrated", f"{self._spec.judge_name}, {self._spec.mode}: {n_right} of {n} right{verdict}"
        )
        return n_right / n

    def judge(self, target: Target, share: float) -> None:
        """Ask about one answer and store the opinion."""
        answer = target.answer
        self.model.about(answer.variant, answer.prompt.prompt_id)
        prompt = answer.prompt
        task = Task(messages=prompt.messages, rubric=prompt.rubric, reference=prompt.reference)
        judgement = self._judgement(target, task, share)
        self._journal.append(judgement)
        self._count(answer.variant, judgement.state)

    def _judgement(self, target: Target, task: Task, share: float) -> Judgement:
        answer = target.answer
        if target.reference is None:
            opinion = score(self.model, task, answer.text)
            return of_score(self._spec, target, opinion, **self._known(answer.variant, share))
        pair = compare(self.model, task, answer.text, target.reference.text)
        return of_pair(self._spec, target, pair, **self._known(answer.variant, share))

    def _known(self, variant: str, share: float) -> dict[str, JsonValue]:
        return {
            "judgement_id": self._new_id("judgement"),
            "utc": clock.utc_iso(clock.utc_ns()),
            "calibration_share": share,
            "is_self": self._is_self[variant],
        }

    def _calibration_result(self, items: CalibrationSet, item: CalibrationItem) -> CalibrationResult:
        told = calibration.calibrate(self.model, item)
        return CalibrationResult(
            calibration_id=self._new_id("calibration"),
            run_id=self._spec.run_id,
            judge=self._spec.judge_name,
            judge_key=self._spec.judge_key,
            mode=self._spec.mode,
            set_sha256=items.sha256,
            item_id=item.item_id,
            kind=item.kind,
            expected=item.expected,
            got=told.got,
            is_right=told.is_right,
            state=told.state,
            raw_reply=told.raw_reply,
            attempts=told.attempts,
            utc=clock.utc_iso(clock.utc_ns()),
        )

    def _new_id(self, kind: str) -> str:
        # The clock, not a count: damaged lines of the journal must not make a number come twice.
        return f"{self._spec.run_id}/{kind}-{clock.utc_ns()}"

    def _count(self, topic: str, state: JudgeState) -> None:
        self._supervisor.count_done(f"{topic}|judge", failed=state is not JudgeState.SCORED)
        is_error = state is JudgeState.JUDGE_ERROR
        self._n_errors_in_a_row = self._n_errors_in_a_row + 1 if is_error else 0
        if self._n_errors_in_a_row >= MAX_ERRORS_IN_A_ROW:
            raise LiobError(
                f"The judge could not be asked {MAX_ERRORS_IN_A_ROW} times in a row; see the reasons stored "
                "with its judgements, and judge again to do the rest."
            )


def _calibrated(spec: JudgingSpec, items: CalibrationSet, lines: Lines) -> dict[str, bool]:
    """What this very judge said to the same questions before in this run, by item: right or not."""
    wanted = {item.item_id for item in items.items}
    found = {}
    for line in lines:
        told = line["data"]
        if line["kind"] != "calibration" or told["state"] == JudgeState.JUDGE_ERROR:
            continue
        identity = (told["judge_key"], told["mode"], told["set_sha256"])
        if identity == (spec.judge_key, spec.mode, items.sha256) and told["item_id"] in wanted:
            found[str(told["item_id"])] = bool(told["is_right"])
    return found


def _first_status(
    spec: JudgingSpec, items: CalibrationSet, known: Mapping[str, bool], todo: Sequence[Target]
) -> RunStatus:
    process, now = psutil.Process(), clock.utc_iso(clock.utc_ns())
    totals = Counter(f"{target.answer.variant}|judge" for target in todo)
    if todo:
        totals[f"{CALIBRATION}|judge"] = len(items.items) - len(known)
    return RunStatus(
        run_id=spec.run_id,
        title=f"Judging by {spec.judge_name}",
        state="running",
        n_cells=totals.total(),
        started_utc=now,
        updated_utc=now,
        pid=process.pid,
        pid_created=process.create_time(),
        per_cell={key: Progress(total=total) for key, total in totals.items()},
    )


@contextlib.contextmanager
def _watched(folder: Path, status: RunStatus, engine: Engine) -> Iterator[Supervisor]:
    """The supervisor at work; the engine is closed whatever happens."""
    supervisor = Supervisor(folder, status, abort=engine.abort, latest=lambda: None)

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        supervisor.cancel()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    supervisor.start()
    try:
        yield supervisor
    finally:
        engine.close()


def _ingest(settings: Settings, run_dir: Path) -> None:
    """Move the journal into the database; a busy or broken database never ends a judging."""
    try:
        ingest_run(settings.database, run_dir, wait_s=LAST_INGEST_WAIT_S)
    except LiobError as error:
        log.error("%s", error)


def _write_failed(run_dir: Path, spec: JudgingSpec, reason: str) -> None:
    folder, now = run_dir / JUDGING_DIR, clock.utc_iso(clock.utc_ns())
    before = read_status_file(folder) or RunStatus(run_id=spec.run_id, title="Judging", state="failed")
    with contextlib.suppress(OSError):
        write_status(folder, replace(before, state="failed", reason=reason, activity=None, updated_utc=now))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
