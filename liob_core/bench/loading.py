"""Loads and unloads of variants, each kept as a record with what it took."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from liob_core.engines.protocol import Engine, LoadReport
from liob_core.errors import EngineFailure
from liob_core.monitor import clock
from liob_core.monitor.sampler import Sampler
from liob_core.store.journal import Journal
from liob_core.types import Load, Outcome, RunSpec, Unload, Variant, to_json


@dataclass(slots=True)
class Session:
    """One load in use; `is_cold` until its first request was sent."""

    load_id: str
    number: int
    variant: Variant
    is_cold: bool = True


class Loader:
    """Loads one variant at a time, numbered through the whole life of a run, resumes included."""

    def __init__(
        self,
        spec: RunSpec,
        run_dir: Path,
        *,
        engine: Engine,
        journal: Journal,
        sampler: Sampler,
        n_loads_before: int,
    ) -> None:
        self._spec = spec
        self._run_dir = run_dir
        self._engine = engine
        self._journal = journal
        self._sampler = sampler
        self._n_loads = n_loads_before
        self._watched: tuple[int, ...] = ()

    def load(self, variant: Variant, block: int) -> Session:
        """The loaded variant; raises EngineFailure after storing why it could not be loaded."""
        self._n_loads += 1
        session = Session(self._load_id(), self._n_loads, variant)
        log_path = self._run_dir / f"engine-load-{self._n_loads:04d}.log"
        load = self._asked(session, block, log_path.name)
        try:
            report = self.load_engine(variant, log_path)
        except EngineFailure as failure:
            self._journal.append(replace(load, outcome=failure.outcome, reason=reason_of(failure)))
            raise
        self._watched = self._engine.pids()
        self._sampler.watch(self._watched, report.host_rss_bytes)
        self._sampler.mark_loaded()
        self._journal.append(_with_report(load, report))
        return session

    def follow(self) -> None:
        """Watch the engine's processes as they are now: a server can load its model anew in silence."""
        pids = self._engine.pids()
        if pids and self._watched and pids != self._watched:
            self._watched = pids
            self._sampler.follow(pids)

    def load_engine(self, variant: Variant, log_path: Path) -> LoadReport:
        """What the load took; not stored, for a load that measures nothing."""
        limit_s = self._spec.limits.load_s
        return self._engine.load(variant, variant.load_settings, log_path=log_path, load_s=limit_s)

    def unload(self, session: Session) -> None:
        """Free the variant and store the memory peaks of its load."""
        peaks = self._sampler.peaks()
        cost = self._sampler.cpu_share()
        self._sampler.watch((), None)
        self._engine.unload()
        self._journal.append(
            Unload(
                load_id=session.load_id,
                ended_utc=clock.utc_iso(clock.utc_ns()),
                peak_rss_load_bytes=peaks.peak_rss_load_bytes,
                peak_rss_run_bytes=peaks.peak_rss_run_bytes,
                peak_anon_bytes=peaks.peak_anon_bytes,
                peak_memory_bytes=peaks.peak_memory_bytes,
                peak_memory_reason=peaks.peak_memory_reason,
                peak_vram_bytes=peaks.peak_vram_bytes,
                peak_vram_reason=peaks.peak_vram_reason,
                sampler_cpu_share=cost,
            )
        )

    def last_session(self, variant: Variant) -> Session:
        """The session of the latest load, for cells that it could not run."""
        return Session(self._load_id(), self._n_loads, variant, is_cold=False)

    def _load_id(self) -> str:
        return f"{self._spec.run_id}/load-{self._n_loads:04d}"

    def _asked(self, session: Session, block: int, log_file: str) -> Load:
        return Load(
            load_id=session.load_id,
            run_id=self._spec.run_id,
            variant=session.variant.label,
            block=block,
            started_utc=clock.utc_iso(clock.utc_ns()),
            outcome=Outcome.OK,
            reason=None,
            load_ms=None,
            asked=to_json(session.variant.load_settings),
            effective=None,
            weights_bytes=None,
            kv_bytes=None,
            compute_bytes=None,
            output_bytes=None,
            host_rss_bytes=None,
            engine_version=None,
            system_info=None,
            log_file=log_file,
        )


def reason_of(failure: EngineFailure, prefix: str = "") -> str:
    """A failure in words, with the last lines the engine wrote."""
    parts: Iterable[str] = (f"{prefix}{failure}", failure.log_tail)
    return "\n".join(part for part in parts if part)


def _with_report(load: Load, report: LoadReport) -> Load:
    return replace(
        load,
        load_ms=report.load_ms,
        effective=report.effective,
        weights_bytes=report.weights_bytes,
        kv_bytes=report.kv_bytes,
        compute_bytes=report.compute_bytes,
        output_bytes=report.output_bytes,
        host_rss_bytes=report.host_rss_bytes,
        engine_version=report.engine_version,
        system_info=report.system_info,
    )
