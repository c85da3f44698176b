"""Code run in a process of its own with limits, and which of them hold on this system."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

import psutil

from liob_core.engines import windows_job

MEMORY_BYTES = 512 * 2**20
START_LIMIT_S = 60.0  # until the child is ready: a loaded machine may take long to start Python
MAX_REPORT_BYTES = 4 * 2**20
TICK_S = 0.05

_CHILD = Path(__file__).with_name("runner_child.py")
_SANDBOX_EXEC = "/usr/bin/sandbox-exec"


@dataclass(slots=True)
class CodeRun:
    """What became of one program: what its child reported, and why it ended early, if it did."""

    enforced: Mapping[str, bool] | None = None  # limit -> holds here; None: the child did not start
    is_loaded: bool = False
    load_error: str | None = None
    results: list[Mapping[str, Any]] = field(default_factory=list)  # one a step, in order
    is_done: bool = False
    ended: str | None = None  # why it ended before all was reported
    is_cancelled: bool = False

    @property
    def unenforced(self) -> tuple[str, ...]:
        """The limits that do not hold on this system; memory is watched from outside where it is one."""
        enforced = self.enforced or {}
        return tuple(name for name, holds in enforced.items() if not holds and name != "memory")


def run_code(
    code: str,
    steps: Sequence[tuple[str, str]],
    *,
    time_limit_s: float,
    is_cancelled: Callable[[], bool] = lambda: False,
    leave_out: Collection[str] = (),
) -> CodeRun:
    """What came of a program and of each step (its kind and its source) after it.

    The time limit counts from when the child is ready. Everything it started and wrote is gone when
    this returns. `leave_out` names protections to go without, so that tests can prove the others.
    """
    found = CodeRun()
    with _folders() as (folder, outside):
        nonce = secrets.token_hex(16)
        order = {
            "nonce": nonce,
            "folder": str(folder),
            "outside": str(outside),
            "parent": os.getpid(),
            "code": code,
            "steps": steps,
            "cpu_s": ceil(time_limit_s) + 1,
            "memory_bytes": MEMORY_BYTES,
            "leave_out": list(leave_out),
        }
        process = _start(folder)
        job = windows_job.kill_on_close(process)
        reader = _Reader(process, nonce, found)
        try:
            _send(process, order)
            found.ended = _watch(process, reader, time_limit_s, is_cancelled)
        finally:
            _end(process, job)
            reader.join()
    if found.is_done or found.load_error is not None:
        found.ended = None
    return found


class _Reader(threading.Thread):
    """Takes the child's reports off its pipe. Only this thread changes the run while the child lives."""

    def __init__(self, process: subprocess.Popen[bytes], nonce: str, found: CodeRun) -> None:
        super().__init__(name="code-reader", daemon=True)
        self._process, self._nonce, self._found = process, nonce.encode() + b" ", found
        self.ready = threading.Event()
        self.over = threading.Event()
        self.is_flooded = False
        self.start()

    def run(self) -> None:
        """Read until all is reported, the pipe ends or too much came."""
        pipe, room = self._process.stdout, MAX_REPORT_BYTES
        while pipe is not None and not self.is_complete() and room > 0:
            line = pipe.readline(room)
            if not line:
                break
            room -= len(line)
            if line.startswith(self._nonce):
                # What follows the word may still be the tested code's, were it to find the word.
                with contextlib.suppress(ValueError, RecursionError, KeyError, TypeError, AttributeError):
                    self._take(json.loads(line[len(self._nonce) :]))
        self.is_flooded = room <= 0
        self.over.set()

    def is_complete(self) -> bool:
        """Whether nothing more will be reported."""
        return self._found.is_done or self._found.load_error is not None

    def _take(self, facts: Mapping[str, Any]) -> None:
        found = self._found
        if "ready" in facts and found.enforced is None:
            found.enforced = {str(name): bool(holds) for name, holds in facts["ready"].items()}
            self.ready.set()
        elif "load_error" in facts:
            found.load_error = str(facts["load_error"])
        elif "loaded" in facts:
            found.is_loaded = True
        elif "step" in facts and facts["step"] == len(found.results):
            found.results.append(facts)
        elif "done" in facts:
            found.is_done = True


def _watch(
    process: subprocess.Popen[bytes],
    reader: _Reader,
    time_limit_s: float,
    is_cancelled: Callable[[], bool],
) -> str | None:
    """Why the child's time is over; None once all is reported. Waits until it is."""
    found, deadline, is_ready = reader._found, time.monotonic() + START_LIMIT_S, False
    while not reader.over.wait(TICK_S):
        if not is_ready and reader.ready.is_set():
            is_ready, deadline = True, time.monotonic() + time_limit_s
        if is_cancelled():
            found.is_cancelled = True
            return "the run was cancelled"
        if time.monotonic() > deadline:
            return f"it did not end within {time_limit_s:g} s"
        if found.enforced and not found.enforced.get("memory") and _rss_bytes(process) > MEMORY_BYTES:
            return f"it took more than {MEMORY_BYTES // 2**20} MiB of memory"
        if process.poll() is not None and not reader.over.wait(1.0):
            return "it left a process behind that kept its output open"
    if reader.is_complete():
        return None  # the child stays for a while, for what it started to be found: nothing to wait for
    return "it reported too much" if reader.is_flooded else _how_it_ended(process)


def _how_it_ended(process: subprocess.Popen[bytes]) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=1.0)
    code = process.poll()
    if code is None or code >= 0:
        return "the process ended early"
    with contextlib.suppress(ValueError):
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process was ended by signal {-code}"


def _start(folder: Path) -> subprocess.Popen[bytes]:
    # Isolated as by -I, but with a fixed hash seed: the same answer shall give the same verdict.
    command = [sys.executable, "-P", "-s", "-S", "-B", "-X", "utf8", str(_CHILD)]
    if sys.platform == "darwin" and Path(_SANDBOX_EXEC).exists():
        command = [_SANDBOX_EXEC, "-p", _macos_profile(folder), *command]
    environment = {"HOME": str(folder), "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    environment |= {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "PATH": ""}
    if "SYSTEMROOT" in os.environ:  # without it Windows starts no Python
        environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )


def _macos_profile(folder: Path) -> str:
    """Rules for `sandbox-exec`, the last that matches counts: read the system and Python, write `folder`."""
    private = ("/Users", "/Volumes", "/private/etc", "/private/tmp", "/private/var", "/Network")
    own = (sys.base_prefix, str(Path(sys.executable).parent), str(_CHILD.parents[2]), str(folder))

    def paths(names: Sequence[str]) -> str:
        return " ".join(f"(subpath {json.dumps(os.path.realpath(name))})" for name in names)

    return (
        "(version 1)(allow default)(deny network*)(deny process-fork)"
        "(deny signal (target others))(deny file-write*)"
        f"(deny file-read-data {paths(private)})(allow file-read* {paths(own)})"
        f'(allow file-write* {paths([str(folder)])} (literal "/dev/null"))'
    )


def _send(process: subprocess.Popen[bytes], order: Mapping[str, Any]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):  # it is gone; its reports, or their lack, tell why
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.close()


def _rss_bytes(process: subprocess.Popen[bytes]) -> int:
    try:
        return int(psutil.Process(process.pid).memory_info().rss)
    except psutil.Error:
        return 0


def _end(process: subprocess.Popen[bytes], job: int | None) -> None:
    """End the child and all that it started."""
    started: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        started = psutil.Process(process.pid).children(recursive=True)
    if sys.platform != "win32":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    for child in started:
        with contextlib.suppress(psutil.Error):
            child.kill()
    windows_job.close(job)
    process.wait()


@contextmanager
def _folders() -> Iterator[tuple[Path, Path]]:
    """The child's own folder, and one beside it on which it is tried out what the child can reach."""
    folder, outside = (Path(tempfile.mkdtemp(prefix="liob-")).resolve() for _ in range(2))
    listener = socket.socket(socket.AF_UNIX) if hasattr(socket, "AF_UNIX") else None
    try:
        (outside / "read").write_text("private", encoding="utf-8")
        if listener is not None:
            listener.bind(str(outside / "socket"))
            listener.listen()
        yield folder, outside
    finally:
        if listener is not None:
            listener.close()
        for path in (folder, outside):
            _remove(path)


def _remove(folder: Path) -> None:
    for parent, names, _ in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if not path.is_symlink():  # a link may lead out of the folder
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
