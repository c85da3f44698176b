"""Energy of each shape: its requests back to back for ten seconds, between two rests of the loaded model."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns

from liob_core.bench.loading import Session, reason_of
from liob_core.bench.measure import Ending, Recording, ending_of, record, shape_ending
from liob_core.bench.requests import make_request
from liob_core.bench.supervisor import Supervisor
from liob_core.bench.wording import Calibration
from liob_core.engines.protocol import Engine
from liob_core.errors import EngineFailure
from liob_core.metrics import SPEED_OUTCOMES
from liob_core.monitor import clock
from liob_core.monitor.energy import GPU, NOT_MEASURED, EnergyMeter, Mark, make_meter
from liob_core.monitor.sampler import Sampler
from liob_core.store.journal import Journal, read_lines
from liob_core.types import Cell, EnergyWindow, RunSpec, Shape, Task

IDLE_S = 3.0
WINDOW_S = 10.0
# Less device memory than any model takes: an engine on the processor leaves the devices at rest.
LEAST_DEVICE_BYTES = 64 * 2**20
_ON_PROCESSOR = "the engine holds no memory on a graphics device"
_ELSEWHERE = "no process of the engine runs on this machine"

Stored = tuple[int, str, str, str]  # block, variant, shape, scope
_Rest = tuple[Mark, Mark]


@dataclass(slots=True)
class _Work:
    """The requests of one window, and why it ended early; `is_broken`: the load is of no further use."""

    first: Mark
    last: Mark
    began_ns: int
    n_requests: int = 0
    output_tokens: int = 0
    reason: str | None = None
    is_broken: bool = False


class EnergyWindows:
    """Measures what is left to measure of each load; what fails is stored as unknown and stops nothing."""

    def __init__(
        self,
        spec: RunSpec,
        meter: EnergyMeter,
        *,
        engine: Engine,
        journal: Journal,
        sampler: Sampler,
        supervisor: Supervisor,
        stored: Iterable[Stored] = (),
        idle_s: float = IDLE_S,
        window_s: float = WINDOW_S,
    ) -> None:
        self._spec = spec
        self._meter = meter
        self._engine = engine
        self._journal = journal
        self._sampler = sampler
        self._supervisor = supervisor
        self._stored = set(stored)
        self._idle_s = idle_s
        self._window_s = window_s
        self._has_told = False

    def measure(self, session: Session, block: int, calibration: Calibration | None) -> None:
        """One window for each shape of the block that has none; a cancel leaves out the one under way."""
        shapes = self._left(session.variant.label, block)
        if not shapes:
            return
        if not self._engine.pids():
            self._tell_elsewhere()
            return
        is_on_device = self._is_on_device()
        broken: str | None = None
        with self._meter.running():
            before: _Rest | None = self._rest(session)
            for shape in shapes:
                work = self._work(session, block, shape, calibration, broken)
                after = None if work.is_broken else self._rest(session)
                if self._supervisor.is_cancelled:
                    return
                self._store(session, block, shape, work, (before, after), is_on_device=is_on_device)
                broken, before = (work.reason if work.is_broken else None), after

    def _left(self, variant: str, block: int) -> list[Shape]:
        if Task.SPEED not in self._spec.tasks or block >= self._spec.n_blocks:
            return []
        scopes = self._meter.sources
        return [
            shape
            for shape in self._spec.shapes
            if any((block, variant, shape.value, scope) not in self._stored for scope in scopes)
        ]

    def _is_on_device(self) -> bool:
        """Whether the engine uses a graphics device, as far as its memory tells."""
        held = self._sampler.peaks().peak_vram_bytes
        return held is None or held >= LEAST_DEVICE_BYTES

    def _tell_elsewhere(self) -> None:
        if not self._has_told:
            self._journal.append_event(NOT_MEASURED, _ELSEWHERE)
            self._has_told = True

    def _rest(self, session: Session) -> _Rest:
        """The marks around a pause in which nothing is asked; shorter where the run is cancelled."""
        self._supervisor.say("resting, to measure its power", session.variant.label)
        first = self._meter.mark()
        self._supervisor.cancelled.wait(self._idle_s)
        return first, self._meter.mark()

    def _work(
        self, session: Session, block: int, shape: Shape, calibration: Calibration | None, broken: str | None
    ) -> _Work:
        """Requests of the shape one after another, until the window is long enough or one goes wrong."""
        first = self._meter.mark()
        work = _Work(first, first, clock.utc_ns(), reason=broken, is_broken=broken is not None)
        while work.reason is None and _seconds(work) < self._window_s and not self._supervisor.is_cancelled:
            # Numbered by load, too: a window that is done again after a cancel has other prompts.
            number = f"{session.number}-{work.n_requests}"
            cell = _cell(self._spec, session, block, shape, number)
            self._request(session, cell, calibration, work)
            work.last = self._meter.mark()
        return work

    def _request(self, session: Session, cell: Cell, calibration: Calibration | None, work: _Work) -> None:
        request = make_request(self._spec, session.variant, cell, {}, calibration)
        recording, failure = Recording(clock.utc_ns()), None
        shape = cell.shape.value if cell.shape else ""
        self._supervisor.begin_request(request.limits, variant=cell.variant, task="energy", prompt=shape)
        sent_ns = perf_counter_ns()
        try:
            record(recording, self._engine.generate(request), sent_ns, self._supervisor.beat)
        except EngineFailure as error:
            failure = error
        aborted = self._supervisor.end()
        if failure is None:
            ending = shape_ending(request, recording, ending_of(recording, fixed_length=True))
        else:
            ending = Ending(failure.outcome, reason_of(failure))
        ending = aborted or ending
        work.is_broken = aborted is not None or (failure is not None and failure.needs_reload)
        if ending.outcome not in SPEED_OUTCOMES:
            work.reason = (
                f"a request ended as {ending.outcome.value}: {ending.reason or 'no reason was told'}"
            )
        elif recording.counters is None or recording.counters.output_tokens is None:
            work.reason = "the engine did not count the tokens of a request"
        else:
            work.n_requests += 1
            work.output_tokens += recording.counters.output_tokens

    def _store(
        self,
        session: Session,
        block: int,
        shape: Shape,
        work: _Work,
        rests: tuple[_Rest | None, _Rest | None],
        *,
        is_on_device: bool,
    ) -> None:
        ended_ns = work.began_ns + int(_seconds(work) * 1e9)
        contended = self._sampler.window(work.began_ns, ended_ns).contended
        for scope, source in self._meter.sources.items():
            spent = self._meter.spent(scope, work.first, work.last)
            off_device = _ON_PROCESSOR if scope == GPU and not is_on_device else None
            reason = work.reason or off_device or spent.reason
            before, after = (self._meter.power_w(scope, *rest) if rest else None for rest in rests)
            self._journal.append(
                EnergyWindow(
                    run_id=self._spec.run_id,
                    load_id=session.load_id,
                    variant=session.variant.label,
                    block=block,
                    shape=shape,
                    scope=scope,
                    source=source,
                    started_utc=clock.utc_iso(work.began_ns),
                    window_s=_seconds(work),
                    n_requests=work.n_requests,
                    output_tokens=work.output_tokens,
                    energy_j=None if reason else spent.joules,
                    idle_before_w=before,
                    idle_after_w=after,
                    contended=contended,
                    reason=reason,
                )
            )
            self._stored.add((block, session.variant.label, shape.value, scope))


def stored_windows(run_dir: Path) -> set[Stored]:
    """The windows that a run's journal holds, whatever came of them."""
    lines, _ = read_lines(run_dir)
    return {
        (one["block"], one["variant"], one["shape"], one["scope"])
        for one in (line["data"] for line in lines if line["kind"] == "energy")
    }


def energy_problem() -> str | None:
    """Why no energy can be measured on this machine; None where some can."""
    meter = make_meter()
    meter.close()
    return meter.reason


def windows_s(request_s: Sequence[float]) -> float:
    """How long the windows of one load take, in s, from how long one request of each shape does."""
    # A window ends with the request that is under way.
    return IDLE_S + sum(one * math.ceil(WINDOW_S / one) + IDLE_S for one in request_s)


def _seconds(work: _Work) -> float:
    return work.last.at_s - work.first.at_s


def _cell(spec: RunSpec, session: Session, block: int, shape: Shape, number: str) -> Cell:
    label = session.variant.label
    return Cell(
        cell_id=f"b{block}/{label}/energy/{shape}-{number}",
        index=0,
        variant=label,
        block=block,
        task=Task.SPEED,
        shape=shape,
        prompt_id=None,
        category=None,
        repeat=block,
        warmup=False,
        seed=spec.sampling.seed,
    )
