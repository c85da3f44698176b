"""Downloads as the app starts them: in a process of their own, cancelled, killed, started again."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from liob_core.bench import downloads
from liob_core.bench.downloads import DownloadStatus
from liob_core.config import Settings
from liob_core.errors import UsageError
from liob_core.models.hub import list_variants
from liob_core.models.hub_repo import HubRef
from tests.integration.hub_server import REPO, ScriptedHub, scripted_hub

CONTENT = b"GGUF" + bytes(range(256)) * 1200
NAME = "tiny-Q4_0.gguf"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedHub]:
    with scripted_hub(tmp_path, monkeypatch) as hub:
        hub.files = {NAME: CONTENT}
        # What the child finds, as this process does.
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hf" / "hub"))
        monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
        yield hub


def start(settings: Settings) -> str:
    repo = list_variants(HubRef(repo_id=REPO))
    return downloads.start(repo, repo.variants[0], settings)


def wait(settings: Settings, until: Callable[[DownloadStatus], bool]) -> DownloadStatus:
    deadline = time.monotonic() + 60
    while True:
        (status,) = downloads.list_downloads(settings)
        if until(status):
            return status
        assert time.monotonic() < deadline, status
        time.sleep(0.05)


def is_over(status: DownloadStatus) -> bool:
    return not status.is_live


def test_download_ends_with_its_files_and_can_be_cleared(hub: ScriptedHub, settings: Settings) -> None:
    download_id = start(settings)
    status = wait(settings, is_over)
    assert (status.state, status.done_bytes, status.total_bytes) == ("finished", len(CONTENT), len(CONTENT))
    assert [Path(path).read_bytes() for path in status.paths] == [CONTENT]
    downloads.forget(download_id, settings)
    assert downloads.list_downloads(settings) == []
    assert Path(status.paths[0]).exists()


def test_cancel_keeps_what_came_and_a_new_start_goes_on(hub: ScriptedHub, settings: Settings) -> None:
    hub.stall_after = 100_000
    download_id = start(settings)
    wait(settings, lambda status: status.done_bytes >= 50_000)
    assert start(settings) == download_id, "one at a time of the same files"
    with pytest.raises(UsageError, match="cancel it first"):
        downloads.forget(download_id, settings)
    downloads.cancel(download_id, settings)
    hub.go_on.set()
    status = wait(settings, is_over)
    assert status.state == "cancelled"
    assert status.reason is not None
    assert "go on from there" in status.reason
    downloads.forget(download_id, settings)
    start(settings)
    assert wait(settings, is_over).state == "finished"
    assert int(hub.bytes_asked()[-1].removeprefix("bytes=").partition("-")[0]) > 0


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL")
def test_a_killed_download_is_interrupted_not_running(hub: ScriptedHub, settings: Settings) -> None:
    hub.stall_after = 100_000
    start(settings)
    status = wait(settings, lambda status: status.pid is not None and status.done_bytes > 0)
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    status = wait(settings, is_over)
    assert status.state == "interrupted"


def test_a_refusal_is_told(hub: ScriptedHub, settings: Settings) -> None:
    repo = list_variants(HubRef(repo_id=REPO))
    hub.gated = "manual"
    downloads.start(repo, repo.variants[0], settings)
    status = wait(settings, is_over)
    assert status.state == "failed"
    assert status.reason is not None
    assert "is gated" in status.reason


def test_a_damaged_status_is_left_out(settings: Settings) -> None:
    folder = settings.data_dir / "downloads" / "20260101-000000-0000"
    folder.mkdir(parents=True)
    (folder / downloads.STATUS_FILE).write_text("{")
    assert downloads.list_downloads(settings) == []
