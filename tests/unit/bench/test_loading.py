"""What is watched while a load is in use."""

from pathlib import Path

from liob_core.bench.loading import Loader
from liob_core.engines.fake import FakeEngine
from liob_core.monitor.highwater import Peaks
from liob_core.store.journal import Journal
from tests.unit.bench.builders import make_fake_spec


class Watcher:
    """Stands in for the sampler and notes what it is told to watch."""

    def __init__(self) -> None:
        self.told: list[tuple[str, tuple[int, ...]]] = []

    def watch(self, pids: tuple[int, ...], host_rss_bytes: int | None = None) -> None:
        self.told.append(("watch", pids))

    def follow(self, pids: tuple[int, ...]) -> None:
        self.told.append(("follow", pids))

    def mark_loaded(self) -> None: ...

    def peaks(self) -> Peaks:
        return Peaks()

    def cpu_share(self) -> None: ...


class Reloading(FakeEngine):
    """An engine whose process is another one whenever the test says so."""

    process: tuple[int, ...] = (1,)

    def pids(self) -> tuple[int, ...]:
        return self.process


def test_process_of_a_silent_reload_is_watched_as_the_same_load(tmp_path: Path) -> None:
    spec, watcher, engine = make_fake_spec(), Watcher(), Reloading({"sleep": False})
    loader = Loader(
        spec,
        tmp_path,
        engine=engine,
        journal=Journal(tmp_path),
        sampler=watcher,  # type: ignore[arg-type]
        n_loads_before=0,
    )
    session = loader.load(spec.variants[0], 0)
    loader.follow()
    engine.process = ()  # it cannot be seen: what was watched stays
    loader.follow()
    engine.process = (2,)
    loader.follow()
    loader.follow()
    loader.unload(session)
    assert watcher.told == [("watch", (1,)), ("follow", (2,)), ("watch", ())]
