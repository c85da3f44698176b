"""One run at a time on a machine: an OS lock that a crash releases, in a place all data folders share."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from liob_core.errors import BusyError, FileError

LOCK_FILE = "run.lock"
HOLDER_FILE = "run.json"
# A killed process can look gone while its last threads still hold its files.
GONE_WAIT_S = 0.5


def shared_dir(machine_dir: Path) -> Path:
    """The per-machine folder, made if needed so that every user of the machine can use it."""
    try:
        machine_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"The folder {machine_dir} for the machine's run lock cannot be made ({error.strerror}); "
            "set LIOB_MACHINE_DIR to a folder you can write."
        ) from error
    with contextlib.suppress(OSError):  # another user's folder: already open to all, or not ours to open
        machine_dir.chmod(0o777)
    return machine_dir


@contextlib.contextmanager
def machine_lock(machine_dir: Path, run_id: str) -> Iterator[None]:
    """Hold the machine for one run; raises BusyError that names the run which holds it."""
    folder = shared_dir(machine_dir)
    lock = FileLock(folder / LOCK_FILE, timeout=GONE_WAIT_S, mode=0o666)
    try:
        lock.acquire()
    except Timeout as error:
        raise BusyError(_busy_sentence(folder)) from error
    except PermissionError as error:
        raise FileError(
            f"The run lock {folder / LOCK_FILE} belongs to another user; delete it or set LIOB_MACHINE_DIR."
        ) from error
    try:
        with contextlib.suppress(OSError):  # only a courtesy to who waits
            (folder / HOLDER_FILE).write_text(json.dumps({"run_id": run_id, "pid": os.getpid()}))
        yield
    finally:
        lock.release()


def check_free(machine_dir: Path) -> None:
    """Raise BusyError now if a run holds the machine."""
    with machine_lock(machine_dir, ""):
        pass


def _busy_sentence(folder: Path) -> str:
    try:
        holder = json.loads((folder / HOLDER_FILE).read_text())
        who = f"run {holder['run_id']} (process {holder['pid']})"
    except (OSError, ValueError, KeyError):
        who = "another run"
    return f"This machine is busy with {who}: two runs at once would spoil both; wait for it or cancel it."
