"""Downloads from the Hub, each in a process of its own: no page waits for one, and no rerun ends it.

What Ollama pulls or is given goes the same way (`ollama_transfers`).

A folder under `downloads/` is the only contract: `request.json`, `status.json`, and `cancel` as a flag.
"""

import json
import logging
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import psutil

from liob_core.bench.detached import launch
from liob_core.bench.status import START_ALLOWANCE_S, is_alive
from liob_core.config import Settings
from liob_core.errors import FileError, LiobError, UsageError
from liob_core.models.hub_download import DownloadCancelledError, DownloadProgress, download
from liob_core.models.hub_repo import HubRepo, HubVariant
from liob_core.store.journal import read_record, write_atomic

log = logging.getLogger("liob.downloads")
REQUEST_FILE, STATUS_FILE, CANCEL_FILE = "request.json", "status.json", "cancel"
STATUS_EVERY_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadStatus:
    """How far a download is: starting, running, finished, failed, cancelled or interrupted."""

    download_id: str
    repo_id: str
    label: str
    state: str
    total_bytes: int
    done_bytes: int = 0
    reason: str | None = None
    paths: tuple[str, ...] = ()
    started_s: float = 0.0  # epoch time
    pid: int | None = None
    pid_created: float | None = None
    ollama_name: str | None = None  # what Ollama calls it, once it has it

    @property
    def is_live(self) -> bool:
        """Whether a process is at it."""
        return self.state in {"starting", "running"}


def start(repo: HubRepo, variant: HubVariant, settings: Settings) -> str:
    """The id of the download of one variant, at work in a process of its own; the same while it is live."""
    if variant.problem:
        raise UsageError(f"{variant.label} of {repo.repo_id}: {variant.problem}")
    asked = DownloadStatus(
        download_id="",
        repo_id=repo.repo_id,
        label=variant.label,
        state="starting",
        total_bytes=variant.file_bytes,
    )
    request = json.dumps(asdict(replace(repo, variants=(variant,))))
    return begin("liob_core.bench.downloads", asked, request, settings)


def begin(module: str, asked: DownloadStatus, request: str, settings: Settings) -> str:
    """The id of what `module` carries out in a process of its own; while the same is live, of that."""
    for status in list_downloads(settings):
        if status.is_live and (status.repo_id, status.label) == (asked.repo_id, asked.label):
            return status.download_id
    download_id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    folder = _folder(settings) / download_id
    try:
        folder.mkdir(parents=True)
        write_atomic(folder / REQUEST_FILE, request)
        _write(folder, replace(asked, download_id=download_id, started_s=time.time()))
    except OSError as error:
        raise FileError(f"The download's folder {folder} cannot be written: {error.strerror}.") from error
    launch(module, folder, folder / "worker.log", settings)
    return download_id


def list_downloads(settings: Settings) -> list[DownloadStatus]:
    """Every download that has a folder here, newest first."""
    folders = sorted(_folder(settings).glob(f"*/{STATUS_FILE}"), reverse=True)
    return [status for path in folders if (status := _read(path.parent)) is not None]


def cancel(download_id: str, settings: Settings) -> None:
    """Ask a download to end; what came is kept for the next time."""
    (_folder(settings) / download_id / CANCEL_FILE).touch()


def forget(download_id: str, settings: Settings) -> None:
    """Take a download that is over off the list; files that came stay."""
    folder = _folder(settings) / download_id
    status = _read(folder)
    if status is not None and status.is_live:
        raise UsageError(f"The download of {status.label} is at work: cancel it first.")
    shutil.rmtree(folder, ignore_errors=True)


def main(arguments: Sequence[str]) -> int:
    """Exit code of one download: 0 done, else that of the error."""
    folder = Path(arguments[0])
    repo: HubRepo = read_record(HubRepo, (folder / REQUEST_FILE).read_text(encoding="utf-8"))

    def work(told: Told) -> DownloadStatus:
        def tell(progress: DownloadProgress) -> None:
            told(progress.done_bytes, progress.total_bytes)

        paths = download(repo, repo.variants[0], on_progress=tell, cancel=(folder / CANCEL_FILE).exists)
        return replace(told.status, paths=tuple(str(path) for path in paths))

    return carry_out(folder, work)


def carry_out(folder: Path, work: Callable[["Told"], DownloadStatus]) -> int:
    """Exit code of what a folder asks for, 0 once it is done; its status file tells how it goes."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    status = _read(folder)
    if status is None:
        raise FileError(f"{folder} holds no status. Start the download again.")
    process = psutil.Process()
    status = replace(status, state="running", pid=process.pid, pid_created=process.create_time())
    _write(folder, status)
    told = Told(folder, status)
    try:
        done = work(told)
    except DownloadCancelledError as error:
        _write(folder, replace(told.status, state="cancelled", reason=str(error)))
        return error.exit_code
    except LiobError as error:
        log.error("%s", error)
        _write(folder, replace(told.status, state="failed", reason=str(error)))
        return error.exit_code
    except BaseException as error:
        reason = f"A bug in LIOB ended the download: {error!r}. See worker.log in {folder}."
        _write(folder, replace(told.status, state="failed", reason=reason))
        raise
    _write(folder, replace(done, state="finished", done_bytes=done.total_bytes))
    return 0


class Told:
    """Takes progress in bytes and keeps the status file fresh, not more often than a reader looks."""

    def __init__(self, folder: Path, status: DownloadStatus) -> None:
        self._folder = folder
        self.status = status
        self._next_s = 0.0

    def __call__(self, done_bytes: int, total_bytes: int) -> None:
        """So much is done."""
        self.status = replace(self.status, done_bytes=done_bytes, total_bytes=total_bytes)
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + STATUS_EVERY_S
            _write(self._folder, self.status)


def _folder(settings: Settings) -> Path:
    return settings.data_dir / "downloads"


def _write(folder: Path, status: DownloadStatus) -> None:
    write_atomic(folder / STATUS_FILE, json.dumps(asdict(status)))


def _read(folder: Path) -> DownloadStatus | None:
    """The status, `interrupted` where it says running but its process is gone; None without one."""
    try:
        status: DownloadStatus = read_record(
            DownloadStatus, (folder / STATUS_FILE).read_text(encoding="utf-8")
        )
    except (OSError, FileError):  # removed meanwhile, or from another version of LIOB
        return None
    if status.state == "starting" and time.time() - status.started_s < START_ALLOWANCE_S:
        return status
    if status.is_live and not is_alive(status.pid, status.pid_created):
        reason = "Its process is gone. Start it again; it goes on from where it was."
        return replace(status, state="interrupted", reason=reason)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
