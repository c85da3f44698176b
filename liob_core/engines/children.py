"""A note on disk for each engine child, so that a child whose worker is gone can be found and ended."""

import contextlib
import json
import os
from pathlib import Path

import psutil

SAME_TIME_S = 1.0  # start times are derived from the boot time, which two processes may round apart


def register_child(machine_dir: Path, pid: int) -> Path:
    """The note that says this process started child `pid`; remove it when the child has ended."""
    folder = machine_dir / "children"
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            folder.chmod(0o1777)  # other users of this machine keep their notes here too
    note = folder / f"{pid}.json"
    worker = os.getpid()
    facts = {
        "pid": pid,
        "create_time": _create_time(pid),
        "worker_pid": worker,
        "worker_create_time": _create_time(worker),
    }
    note.write_text(json.dumps(facts), encoding="utf-8")
    return note


def kill_leftovers(machine_dir: Path) -> list[int]:
    """Ids of the children just ended because the worker that started them is gone."""
    ended = []
    for note in sorted((machine_dir / "children").glob("*.json")):
        try:
            facts = json.loads(note.read_text(encoding="utf-8"))
            child = (int(facts["pid"]), facts["create_time"])
            worker = (int(facts["worker_pid"]), facts["worker_create_time"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # being written or removed at this moment, or not ours
        if is_alive(*worker):
            continue
        if is_alive(*child):
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(child[0])
                process.kill()
                process.wait(timeout=5)
                ended.append(child[0])
        with contextlib.suppress(OSError):
            note.unlink()
    return ended


def is_alive(pid: int, create_time: float | None) -> bool:
    """Whether that very process still runs: no zombie, and no other one that got the same id."""
    if create_time is None:
        return False
    try:
        process = psutil.Process(pid)
        return (
            abs(process.create_time() - create_time) < SAME_TIME_S
            and process.status() != psutil.STATUS_ZOMBIE
        )
    except psutil.Error:
        return False


def _create_time(pid: int) -> float | None:
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None
