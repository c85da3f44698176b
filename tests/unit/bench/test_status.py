"""The status file: what a power cut leaves of it, and waiting for the worker that it names."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from liob_core.bench.status import (
    STATUS_FILE,
    RunStatus,
    read_status_file,
    wait_for_end,
    write_status,
)


def running(pid: int | None, created: float | None = None) -> RunStatus:
    return RunStatus(run_id="r", title="t", state="running", pid=pid, pid_created=created)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    own = psutil.Process()
    status = running(own.pid, own.create_time())
    write_status(tmp_path, status)
    assert read_status_file(tmp_path) == status


def test_only_the_last_status_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr("liob_core.store.journal.os.fsync", synced.append)
    write_status(tmp_path, running(1))
    assert synced == []
    write_status(tmp_path, RunStatus(run_id="r", title="t", state="finished"))
    assert synced


@pytest.mark.parametrize("left", ["", '{"run_id": "r", "ti', "[]"])
def test_a_file_emptied_by_a_power_cut_is_no_status(tmp_path: Path, left: str) -> None:
    (tmp_path / STATUS_FILE).write_text(left)
    assert read_status_file(tmp_path) is None


def test_waiting_ends_with_the_worker() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        status = running(process.pid)
        begin_s = time.monotonic()
        wait_for_end(status, 0.2)  # it lives on
        assert time.monotonic() - begin_s >= 0.15
        process.communicate(b"\n")
        wait_for_end(status, 60.0)
        assert time.monotonic() - begin_s < 30.0


def test_waiting_without_a_worker_takes_the_time() -> None:
    begin_s = time.monotonic()
    wait_for_end(running(None), 0.2)
    assert time.monotonic() - begin_s >= 0.15
