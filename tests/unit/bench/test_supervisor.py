import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from liob_core.bench.plan import make_plan
from liob_core.bench.status import Progress, RunStatus, read_status_file
from liob_core.bench.supervisor import CANCEL_FILE, Supervisor
from liob_core.types import Limits, Outcome
from tests.unit.bench.builders import make_fake_spec

CELL = next(cell for cell in make_plan(make_fake_spec()) if not cell.warmup)
KEY = f"{CELL.variant}|{CELL.task.value}"
STATUS = RunStatus(run_id="r", title="t", state="running", n_cells=10, per_cell={KEY: Progress(total=10)})


def wait_until(settled: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not settled():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def make_supervisor(run_dir: Path, aborts: list[float]) -> Supervisor:
    return Supervisor(run_dir, STATUS, abort=lambda: aborts.append(time.monotonic()), latest=lambda: None)


def test_cancel_file_aborts_the_request_in_flight(tmp_path: Path) -> None:
    aborts: list[float] = []
    supervisor = make_supervisor(tmp_path, aborts)
    supervisor.start()
    supervisor.begin(CELL, Limits())
    (tmp_path / CANCEL_FILE).touch()
    wait_until(lambda: bool(aborts))
    ending = supervisor.end()
    assert ending is not None
    assert ending.outcome is Outcome.CANCELLED
    assert supervisor.is_cancelled
    supervisor.stop("cancelled", None)


@pytest.mark.parametrize(
    ("limits", "n_beats", "words"),
    [
        (Limits(first_token_s=0.05), 0, "no first token"),
        (Limits(between_tokens_s=0.05), 2, "no further token"),
        (Limits(request_s=0.05), 2, "longer than"),
    ],
)
def test_deadline_aborts_and_says_which_one(tmp_path: Path, limits: Limits, n_beats: int, words: str) -> None:
    aborts: list[float] = []
    supervisor = make_supervisor(tmp_path, aborts)
    supervisor.start()
    supervisor.begin(CELL, limits)
    for _ in range(n_beats):
        supervisor.beat(1, "a")
    wait_until(lambda: bool(aborts))
    ending = supervisor.end()
    assert ending is not None
    assert ending.outcome is Outcome.TIMEOUT
    assert ending.reason is not None
    assert words in ending.reason
    supervisor.stop("finished", None)
    assert len(aborts) == 1


def test_tokens_in_time_abort_nothing(tmp_path: Path) -> None:
    aborts: list[float] = []
    supervisor = make_supervisor(tmp_path, aborts)
    supervisor.start()
    supervisor.begin(CELL, Limits(first_token_s=30, between_tokens_s=30))
    supervisor.beat(1, "hello")
    wait_until(lambda: "hello" in (getattr(read_status_file(tmp_path), "text_tail", "") or ""))
    assert supervisor.end() is None
    assert aborts == []
    supervisor.stop("finished", None)


def test_status_counts_what_is_done_and_failed(tmp_path: Path) -> None:
    supervisor = make_supervisor(tmp_path, [])
    supervisor.start()
    supervisor.count(CELL, failed=False)
    supervisor.count(CELL, failed=True)
    supervisor.stop("finished", "all of it")
    status = read_status_file(tmp_path)
    assert status is not None
    assert (status.n_done, status.n_failed, status.state, status.reason) == (2, 1, "finished", "all of it")
    assert status.per_cell[KEY] == Progress(total=10, done=2, failed=1)


def test_live_rate_counts_tokens_and_is_unknown_for_pieces(tmp_path: Path) -> None:
    supervisor = make_supervisor(tmp_path, [])
    supervisor.begin(replace(CELL), Limits())
    supervisor.beat(1, "a")
    supervisor.beat(None, "bcd")
    supervisor.start()
    wait_until(lambda: getattr(read_status_file(tmp_path), "text_tail", "") == "abcd")
    status = read_status_file(tmp_path)
    assert status is not None
    assert status.decode_tps_live is None
    supervisor.end()
    supervisor.stop("finished", None)
