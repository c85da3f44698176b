"""Windows of energy on the scripted engine and a scripted meter, at the runner itself."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from liob_core.bench import examine
from liob_core.bench.energy import EnergyWindows, stored_windows, windows_s
from liob_core.bench.estimate import estimate
from liob_core.bench.examine import Finding
from liob_core.bench.loading import Loader
from liob_core.bench.plan import make_plan, remaining
from liob_core.bench.runner import Cancelled, Runner
from liob_core.bench.spec import Choices, make_spec
from liob_core.bench.status import Progress, RunStatus
from liob_core.bench.supervisor import Supervisor
from liob_core.cli.app import app
from liob_core.engines.fake import FakeEngine
from liob_core.engines.protocol import Request
from liob_core.monitor.energy import NOT_ALLOWED, RAPL_FIX, EnergyMeter
from liob_core.monitor.highwater import Peaks
from liob_core.store.journal import Journal, finished_cells, read_lines
from liob_core.types import RunSpec, Shape, Surroundings, Task
from tests.unit.bench.builders import make_fake_spec, make_suite

POWER_W = {"package": 50.0, "gpu": 200.0}


class Steady:
    """A counter that rises by a fixed power, and says when it is first wanted."""

    source = "rapl"

    def __init__(self, power_w: float, began: threading.Event | None = None) -> None:
        self._power_w = power_w
        self._began = began or threading.Event()

    def begin(self) -> None:
        self._began.set()

    def read(self, at_s: float) -> float:
        return self._power_w * at_s


class Here(FakeEngine):
    """The scripted engine with a process on this machine, which notes what it is asked."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        super().__init__({"sleep": False, **script})
        self.asked: list[Request] = []

    def pids(self) -> tuple[int, ...]:
        return (1,)

    def generate(self, request: Request) -> Iterator[Any]:
        self.asked.append(request)
        return super().generate(request)


class Watcher:
    """Stands in for the sampler."""

    vram_bytes: int | None = None

    def watch(self, pids: object, host_rss_bytes: int | None = None) -> None: ...

    def follow(self, pids: object) -> None: ...

    def mark_loaded(self) -> None: ...

    def peaks(self) -> Peaks:
        return Peaks(peak_vram_bytes=self.vram_bytes)

    def cpu_share(self) -> None: ...

    def latest(self) -> None: ...

    def window(self, start_ns: int, end_ns: int) -> Surroundings:
        return Surroundings(contended=False)


@contextmanager
def watched(spec: RunSpec, folder: Path, engine: FakeEngine) -> Iterator[Supervisor]:
    per_cell = {f"{one.label}|{task}": Progress(total=99) for one in spec.variants for task in spec.tasks}
    status = RunStatus(run_id=spec.run_id, title="", state="running", per_cell=per_cell)
    supervisor = Supervisor(folder, status, abort=engine.abort, latest=lambda: None)
    supervisor.start()
    try:
        yield supervisor
    finally:
        supervisor.stop("finished", None)


def go(
    spec: RunSpec,
    folder: Path,
    engine: FakeEngine,
    *,
    sampler: Watcher | None = None,
    began: threading.Event | None = None,
    **times: float,
) -> None:
    """Run what is left of the spec."""
    sampler = sampler or Watcher()
    cells = remaining(make_plan(spec), finished_cells(folder))
    with Journal(folder) as journal, watched(spec, folder, engine) as supervisor:
        shared: dict[str, Any] = {"engine": engine, "journal": journal, "sampler": sampler}
        meter = EnergyMeter({scope: Steady(power_w, began) for scope, power_w in POWER_W.items()}, {})
        energy = EnergyWindows(
            spec,
            meter,
            supervisor=supervisor,
            stored=stored_windows(folder),
            **shared,
            **{"idle_s": 0.02, "window_s": 0.05, **times},
        )
        loader = Loader(spec, folder, n_loads_before=0, **shared)
        Runner(spec, folder, loader=loader, supervisor=supervisor, energy=energy, **shared).run(
            cells, after_block=lambda: None
        )


def windows(folder: Path) -> list[dict[str, Any]]:
    return [line["data"] for line in read_lines(folder)[0] if line["kind"] == "energy"]


def speed_spec(**changes: Any) -> RunSpec:
    own = {"tasks": (Task.SPEED,), "suite": None, "n_blocks": 2, "energy": True}
    return make_fake_spec(**{**own, "variants": make_fake_spec().variants[:1], **changes})


def test_every_shape_of_every_block_has_one_window_a_scope(tmp_path: Path) -> None:
    engine = Here({"sleep": True, "tokens_per_s": 20_000, "prompt_tokens_per_s": 100_000})
    go(speed_spec(), tmp_path, engine)
    found = windows(tmp_path)
    assert [(one["block"], one["shape"], one["scope"]) for one in found] == [
        (block, shape, scope)
        for block in (0, 1)
        for shape in ("pp512", "chat512")
        for scope in ("package", "gpu")
    ]
    for one in found:
        assert one["reason"] is None
        assert one["window_s"] >= 0.05
        # The scripted power for as long as the window lasted.
        assert one["energy_j"] == pytest.approx(POWER_W[one["scope"]] * one["window_s"])
        assert one["idle_before_w"] == pytest.approx(POWER_W[one["scope"]])
        assert one["idle_after_w"] == pytest.approx(POWER_W[one["scope"]])
        assert one["output_tokens"] == one["n_requests"] * (1 if one["shape"] == "pp512" else 128)
        assert one["n_requests"] >= 1
        assert (one["load_id"], one["contended"]) == (
            f"{speed_spec().run_id}/load-000{one['block'] + 1}",
            False,
        )
    samples = [line for line in read_lines(tmp_path)[0] if line["kind"] == "sample"]
    assert len(samples) == 2 * (1 + 2), "what a window asks is no sample"
    prompts = [request.prompt for request in engine.asked]
    assert len(set(prompts)) == len(prompts), "no prompt comes twice"
    assert not any(request.sampling.cache_prompt for request in engine.asked)


def test_windows_come_before_the_unload_and_after_the_measured_cells(tmp_path: Path) -> None:
    go(speed_spec(n_blocks=1), tmp_path, Here({}))
    kinds = [line["kind"] for line in read_lines(tmp_path)[0]]
    assert kinds == ["load", *["sample"] * 3, *["energy"] * 4, "unload"]


def test_a_suite_alone_and_blocks_beyond_speed_have_none(tmp_path: Path) -> None:
    go(make_fake_spec(tasks=(Task.SUITE,), n_blocks=1, energy=True), tmp_path, Here({}))
    assert windows(tmp_path) == []


def test_an_engine_elsewhere_has_none_and_the_journal_says_why(tmp_path: Path) -> None:
    go(speed_spec(), tmp_path, FakeEngine({"sleep": False}))
    assert windows(tmp_path) == []
    events = [line["data"] for line in read_lines(tmp_path)[0] if line["kind"] == "event"]
    assert [(one["event"], one["detail"]) for one in events] == [
        ("energy not measured", "no process of the engine runs on this machine")
    ]


def test_an_engine_on_the_processor_has_no_energy_of_the_devices(tmp_path: Path) -> None:
    sampler = Watcher()
    sampler.vram_bytes = 0
    go(speed_spec(n_blocks=1), tmp_path, Here({}), sampler=sampler)
    reasons = {one["scope"]: (one["energy_j"] is None, one["reason"]) for one in windows(tmp_path)}
    assert reasons == {
        "package": (False, None),
        "gpu": (True, "the engine holds no memory on a graphics device"),
    }


@pytest.mark.parametrize(
    ("kind", "outcome", "goes_on"), [("error", "engine_error", True), ("die", "engine_died", False)]
)
def test_a_request_that_fails_ends_its_window_and_the_run_goes_on(
    tmp_path: Path, kind: str, outcome: str, goes_on: bool
) -> None:
    # The fifth request is the second of the first window: after one warm-up and two cells.
    engine = Here({"faults": [{"kind": kind, "request": 5, "after_tokens": 0}]})
    go(speed_spec(), tmp_path, engine)
    found = [one for one in windows(tmp_path) if one["scope"] == "package"]
    assert len(found) == 4
    assert found[0]["energy_j"] is None
    assert found[0]["n_requests"] == 1
    assert found[0]["reason"].startswith(f"a request ended as {outcome}: ")
    # After a death the other shape of this load cannot be measured, but the next block can.
    assert [one["energy_j"] is not None for one in found[1:]] == [goes_on, True, True]
    assert len(finished_cells(tmp_path)) == 2 * (1 + 2)


def test_an_answer_that_stops_early_ends_its_window(tmp_path: Path) -> None:
    class Short(Here):
        def generate(self, request: Request) -> Iterator[Any]:
            chunks = list(super().generate(request))
            return iter(chunks if len(self.asked) < 5 else chunks[:-1])

    go(speed_spec(n_blocks=1), tmp_path, Short({}))
    assert windows(tmp_path)[0]["reason"] == (
        "a request ended as incomplete: the stream ended without its end mark"
    )


@pytest.mark.parametrize("where", ["rest", "window"])
def test_cancel_ends_within_a_second_and_a_resume_repeats_no_stored_window(
    tmp_path: Path, where: str
) -> None:
    spec = speed_spec(shapes=(Shape.PP512, Shape.TG128), n_blocks=1)
    slow: dict[str, float] = {"idle_s": 60.0} if where == "rest" else {"window_s": 60.0}
    seen_s: list[float] = []

    began = threading.Event()

    def cancel() -> None:
        began.wait(60)
        time.sleep(0.3)
        (tmp_path / "cancel").touch()
        seen_s.append(time.monotonic())

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(Cancelled):
        go(spec, tmp_path, Here({"sleep": True, "tokens_per_s": 3000}), began=began, **slow)
    # A second, and room for a loaded machine.
    assert time.monotonic() - seen_s[0] < 5.0
    thread.join()
    assert windows(tmp_path) == []
    (tmp_path / "cancel").unlink()
    # All cells are done, so that the block is not loaded again for its windows alone.
    go(spec, tmp_path, Here({}))
    assert windows(tmp_path) == []


def test_stored_windows_are_not_measured_again(tmp_path: Path) -> None:
    """Where a block is loaded again for its last cell, the window it has already stays as it is."""
    spec = speed_spec()
    go(spec, tmp_path, Here({}))
    lines = (tmp_path / "journal.jsonl").read_text().splitlines()
    kept = [
        line
        for line in lines
        if not ('"kind": "energy"' in line and '"chat512"' in line)
        and not ('"kind": "sample"' in line and "b0/F16/speed/chat512" in line)
    ]
    assert len(lines) - len(kept) == 2 * 2 + 1
    (tmp_path / "journal.jsonl").write_text("\n".join(kept) + "\n")
    before = windows(tmp_path)
    go(spec, tmp_path, Here({}))
    new = windows(tmp_path)[len(before) :]
    assert [(one["block"], one["shape"]) for one in new] == [(0, "chat512"), (0, "chat512")]


def test_estimate_counts_windows_and_rests() -> None:
    # 3 s of rest; 10 requests of 1 s and a rest; one of 40 s and a rest.
    assert windows_s([1.0, 40.0]) == pytest.approx(3 + 10 + 3 + 40 + 3)


@pytest.mark.parametrize(
    ("counters", "fix", "state", "sentence"),
    [
        ({"package": Steady(1.0)}, "", "ok", "processor by rapl"),
        ({}, RAPL_FIX, "missing", NOT_ALLOWED),
        ({"gpu": Steady(1.0)}, RAPL_FIX, "missing", f"graphics devices by rapl; {NOT_ALLOWED}"),
        ({}, "", "missing", "no energy counter that LIOB can read: none here"),
    ],
)
def test_doctor_says_what_is_read_and_what_opens_the_rest(
    monkeypatch: pytest.MonkeyPatch, counters: dict[str, Steady], fix: str, state: str, sentence: str
) -> None:
    meter = EnergyMeter(counters, {"package": "none here"}, fix=fix)
    monkeypatch.setattr(examine, "make_meter", lambda: meter)
    assert examine._energy() == Finding(what="energy", state=state, sentence=sentence, fix=fix)


def test_energy_is_asked_for_beside_speed_alone() -> None:
    chosen = {"engine": "fake", "variants": make_fake_spec().variants, "energy": True, "suite": make_suite()}
    specs = [make_spec(Choices(**chosen, tasks=tasks)) for tasks in ((Task.SPEED,), (Task.SUITE,))]
    assert [spec.energy for spec in specs] == [True, False]
    assert (
        estimate(specs[0], Path("none")).seconds
        > estimate(replace(specs[0], energy=False), Path("none")).seconds + 100
    )


@pytest.mark.parametrize(
    ("options", "problem", "is_asked"),
    [([], None, True), (["--no-energy"], None, False), ([], "none here", False)],
)
def test_run_measures_it_unless_told_otherwise_or_where_nothing_can_be_read(
    monkeypatch: pytest.MonkeyPatch, options: list[str], problem: str | None, is_asked: bool
) -> None:
    started: list[RunSpec] = []
    monkeypatch.setattr("liob_core.cli.run.energy_problem", lambda: problem)
    monkeypatch.setattr("liob_core.cli.run.choose_engines", lambda *_: (["fake"], None))
    monkeypatch.setattr("liob_core.cli.run._variants", lambda *_: make_fake_spec().variants)
    monkeypatch.setattr("liob_core.cli.run.jobs.start", lambda spec, _: started.append(spec))
    monkeypatch.setattr("liob_core.cli.run.follow", lambda *_, **__: None)
    result = CliRunner().invoke(app, ["run", "--model", "any", "--task", "speed", *options])
    assert result.exception is None
    assert [spec.energy for spec in started] == [is_asked]
