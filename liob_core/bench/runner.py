"""The measuring loop: load a variant, warm it up, send its cells, store each one, go on whatever happens."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from time import perf_counter_ns

from liob_core.bench.energy import EnergyWindows
from liob_core.bench.engines import renders_as_the_file_says
from liob_core.bench.loading import Loader, Session, reason_of
from liob_core.bench.measure import Ending, Recording, ending_of, prompt_sha256, record, shape_ending
from liob_core.bench.prompts import read_prompts, render_suite, write_prompts
from liob_core.bench.requests import make_request, prompt_of
from liob_core.bench.supervisor import Supervisor
from liob_core.bench.wording import Calibration
from liob_core.engines.protocol import Engine, Request
from liob_core.errors import EngineFailure, LiobError
from liob_core.models.family import families
from liob_core.monitor import clock
from liob_core.monitor.sampler import Sampler
from liob_core.quality.checks import run_check
from liob_core.store.journal import Journal
from liob_core.types import (
    Cell,
    CheckOutcome,
    CheckResult,
    Counters,
    Outcome,
    RenderedPrompt,
    RunSpec,
    Sample,
    Surroundings,
    Task,
    Variant,
)

# After this many breakdowns in a row without one finished cell, the rest of the block is given up.
MAX_BREAKDOWNS = 3
# What the candidate itself did, and so is graded; everything else is the engine's doing.
GRADED = frozenset(
    {
        Outcome.OK,
        Outcome.LENGTH,
        Outcome.EMPTY,
        Outcome.THINKING_ONLY,
        Outcome.TRUNCATED_THINKING,
        Outcome.REPETITION,
    }
)
FAILED = frozenset(Outcome) - GRADED


class Cancelled(Exception):  # noqa: N818 - not an error: the user asked for it
    """The user asked for the end of the run."""


@dataclass(frozen=True, slots=True)
class _Breakdown:
    """Why a load ended before its cells were done."""

    failure: EngineFailure
    load_failed: bool = False


class Runner:
    """Runs cells of one spec on one engine. One thread: nothing else happens while it measures."""

    def __init__(
        self,
        spec: RunSpec,
        run_dir: Path,
        *,
        engine: Engine,
        loader: Loader,
        journal: Journal,
        sampler: Sampler,
        supervisor: Supervisor,
        energy: EnergyWindows | None = None,
    ) -> None:
        self._spec = spec
        self._run_dir = run_dir
        self._engine = engine
        self._loader = loader
        self._journal = journal
        self._sampler = sampler
        self._supervisor = supervisor
        self._energy = energy
        self._variants = {variant.label: variant for variant in spec.variants}
        # Another model reads other turns, so that its prompts are rendered with its own template.
        self._same_model = {one.label for one in families(spec.variants, spec.reference)[0]}
        self._shared_prompts: Mapping[str, RenderedPrompt] = {}
        self._prompts: Mapping[str, RenderedPrompt] = {}
        self._calibrations: dict[str, Calibration] = {}

    def run(self, cells: Sequence[Cell], after_block: Callable[[], None]) -> None:
        """Do every cell; raises `Cancelled`, or LiobError where the run as a whole cannot go on."""
        if any(cell.task is Task.SUITE and not cell.warmup for cell in cells):
            self._shared_prompts = self._reference_prompts()
        for (_, label), group in groupby(cells, key=lambda cell: (cell.block, cell.variant)):
            self._run_block(self._variants[label], list(group))
            after_block()

    # --- prompts ------------------------------------------------------------------------------

    def _reference_prompts(self) -> Mapping[str, RenderedPrompt]:
        stored = read_prompts(self._run_dir)
        if stored is not None:
            return stored
        if self._spec.prompt_mode != "reference":
            return {}
        prompts = self._render_with_reference()
        write_prompts(self._run_dir, prompts)
        return prompts

    def _render_with_reference(self) -> Mapping[str, RenderedPrompt]:
        """Rendered by the reference, or by another variant whose file holds the very same template."""
        reference = self._variants[self._spec.reference]
        template = reference.model.chat_template_sha256 if reference.model else None
        others = (
            variant
            for variant in self._spec.variants
            if variant is not reference and variant.model and variant.model.chat_template_sha256 == template
        )
        # Where the run has an engine that uses the template in the file, that one renders for all.
        able = sorted(
            (reference, *others), key=lambda variant: not renders_as_the_file_says(self._engine, variant)
        )
        problem = ""
        for variant in able:
            self._stop_if_cancelled()
            self._supervisor.say("rendering the prompts", variant.label)
            try:
                self._loader.load_engine(variant, self._run_dir / "engine-render.log")
                return self._render_all(variant)
            except EngineFailure as failure:
                problem = problem or f"{variant.label}: {failure}"
            finally:
                self._engine.unload()
        self._stop_if_cancelled()
        raise LiobError(f"No file with the reference's chat template could be loaded: {problem}")

    def _render_all(self, variant: Variant) -> Mapping[str, RenderedPrompt]:
        by_engine = self._spec.prompt_mode == "engine"
        suite = self._spec.suite
        return render_suite(suite, variant, self._engine, by_engine=by_engine) if suite else {}

    # --- blocks -------------------------------------------------------------------------------

    def _run_block(self, variant: Variant, cells: Iterable[Cell]) -> None:
        cells = list(cells)
        warmups = [cell for cell in cells if cell.warmup]
        todo = [cell for cell in cells if not cell.warmup]
        n_breakdowns = 0
        while todo:
            n_before = len(todo)
            breakdown = self._run_session(variant, warmups, todo)
            if breakdown is None:
                return
            # The cell in which it broke down is stored too, so one cell fewer is no progress.
            n_breakdowns = 1 if n_before - len(todo) > 1 else n_breakdowns + 1
            if breakdown.load_failed or n_breakdowns >= MAX_BREAKDOWNS:
                self._give_up(variant, todo, breakdown)
                return

    def _run_session(self, variant: Variant, warmups: Sequence[Cell], todo: list[Cell]) -> _Breakdown | None:
        """One load and the cells it survives, taken off `todo`; what ended it early, if anything."""
        self._stop_if_cancelled()
        self._supervisor.say("loading", variant.label)
        block = todo[0].block
        try:
            session = self._loader.load(variant, block)
        except EngineFailure as failure:
            self._stop_if_cancelled()
            return _Breakdown(failure, load_failed=True)
        try:
            is_own = self._spec.prompt_mode != "reference" or variant.label not in self._same_model
            self._prompts = self._render_all(variant) if is_own else self._shared_prompts
            for cell in warmups:
                failure_or_none = self._execute(session, cell)
                if failure_or_none is not None:
                    return _Breakdown(failure_or_none)
            while todo:
                failure_or_none = self._execute(session, todo[0])
                todo.pop(0)
                if failure_or_none is not None:
                    return _Breakdown(failure_or_none)
            if self._energy is not None:
                self._energy.measure(session, block, self._calibration(variant))
                self._stop_if_cancelled()
        except EngineFailure as failure:
            self._stop_if_cancelled()
            return _Breakdown(failure)
        finally:
            self._loader.unload(session)
        return None

    def _give_up(self, variant: Variant, todo: Iterable[Cell], breakdown: _Breakdown) -> None:
        """Every cell left in the block becomes a sample that says why it was not run."""
        failure = breakdown.failure
        if breakdown.load_failed:
            reason = reason_of(failure, "the variant could not be loaded: ")
        else:
            reason = reason_of(failure, f"not run, since the engine broke down {MAX_BREAKDOWNS} times: ")
        session = self._loader.last_session(variant)
        for cell in todo:
            recording, ending = Recording(clock.utc_ns()), Ending(failure.outcome, reason)
            self._journal.append(self._sample(session, cell, None, recording, ending))
            self._supervisor.count(cell, failed=True)

    # --- one cell -----------------------------------------------------------------------------

    def _execute(self, session: Session, cell: Cell) -> EngineFailure | None:
        """Send, record and store one cell; the failure after which the engine must be loaded again."""
        self._stop_if_cancelled()
        calibration = self._calibration(session.variant)
        request = make_request(self._spec, session.variant, cell, self._prompts, calibration)
        recording, failure = Recording(clock.utc_ns()), None
        self._supervisor.begin(cell, request.limits)
        sent_ns = perf_counter_ns()
        try:
            chunks = self._engine.generate(request)
            sent_ns = perf_counter_ns()  # what the engine had to ask before is no part of the request
            record(recording, chunks, sent_ns, self._supervisor.beat)
        except EngineFailure as error:
            recording.end_ns = perf_counter_ns() - sent_ns
            failure = error
        aborted = self._supervisor.end()
        if failure is None:
            ending = _ending(request, recording)
        else:
            ending = aborted or Ending(failure.outcome, reason_of(failure))
        self._journal.append(self._sample(session, cell, request, recording, ending))
        session.is_cold = False
        self._loader.follow()
        if calibration is not None:
            _learn(calibration, request, recording.counters)
        if ending.outcome is Outcome.CANCELLED:
            raise Cancelled
        if not cell.warmup:
            self._supervisor.count(cell, failed=ending.outcome in FAILED)
        if aborted is not None:  # even where the answer was whole by then, the engine was stopped
            return failure or EngineFailure(aborted.outcome, aborted.reason or "", needs_reload=True)
        return failure if failure is not None and failure.needs_reload else None

    def _sample(
        self, session: Session, cell: Cell, request: Request | None, recording: Recording, ending: Ending
    ) -> Sample:
        """The record of one cell; without a request, of one that was not run."""
        prompt = request.prompt if request else None
        began_ns = recording.started_utc_ns
        ended_ns = began_ns + (recording.end_ns or 0)
        return Sample(
            sample_id=f"{self._spec.run_id}/{cell.cell_id}@{session.number}",
            run_id=self._spec.run_id,
            load_id=session.load_id,
            cell=cell,
            suite=self._spec.suite.name if self._spec.suite and cell.task is Task.SUITE else None,
            started_utc=clock.utc_iso(began_ns),
            outcome=ending.outcome,
            reason=ending.reason,
            cold=session.is_cold or bool(recording.counters and recording.counters.cold),
            prompt=prompt if isinstance(prompt, str) else None,
            prompt_sha256=prompt_sha256(prompt) if prompt is not None else None,
            response=recording.response,
            thinking=recording.thoughts,
            stamps=recording.stamps(),
            counters=recording.counters or Counters(),
            surroundings=self._sampler.window(began_ns, ended_ns) if request else Surroundings(),
            check=self._check(cell, ending.outcome, recording.response),
        )

    def _calibration(self, variant: Variant) -> Calibration | None:
        """What is known of words and tokens, where the engine takes no token ids."""
        if self._engine.capabilities.takes_token_ids:
            return None
        return self._calibrations.setdefault(variant.label, Calibration())

    def _check(self, cell: Cell, outcome: Outcome, response: str) -> CheckOutcome | None:
        if cell.prompt_id is None or outcome not in GRADED:
            return None
        check = prompt_of(self._spec, cell).check
        if check is None:
            return None
        graded = run_check(
            check,
            response,
            allow_code=self._spec.allow_code,
            is_cancelled=lambda: self._supervisor.is_cancelled,
        )
        if graded.result is CheckResult.UNCHECKED:
            # Perhaps only because a cancel cut it short: then the cell is left to a resumed run.
            self._stop_if_cancelled()
        return graded

    def _stop_if_cancelled(self) -> None:
        if self._supervisor.is_cancelled:
            raise Cancelled


def _learn(calibration: Calibration, request: Request, counters: Counters | None) -> None:
    is_speed_text = request.fixed_length is not None and isinstance(request.prompt, str)
    if is_speed_text and counters is not None and counters.prompt_tokens is not None:
        calibration.learn(str(request.prompt), counters.prompt_tokens)


def _ending(request: Request, recording: Recording) -> Ending:
    ending = ending_of(recording, fixed_length=request.fixed_length is not None)
    return shape_ending(request, recording, ending)
