"""The parent's side of one engine child: start it, talk to it, end it, say how it ended."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from liob_core.config import PROJECT_DIR
from liob_core.engines import windows_job
from liob_core.engines.children import register_child
from liob_core.engines.exits import explain_exit, oom_kills
from liob_core.errors import MissingError
from liob_core.types import JsonValue

COMMAND = (sys.executable, "-P", "-m", "liob_core.engines.embedded_child")
SIGILL_CODES = (-4, 0xC000001D)  # POSIX, Windows
OTHER_ENGINE = "or use your own llama-server: --engine llama-server --url http://127.0.0.1:8080"


def child_environment() -> dict[str, str]:
    """The environment of a child: this copy of LIOB importable, no debugger on a crash."""
    paths = [str(PROJECT_DIR), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "GGML_NO_BACKTRACE": "1",
    }


class ChildGoneError(Exception):
    """The child ended, or was ended, before it replied."""


class EngineChild:
    """One child process with the pipes its orders and replies go through."""

    def __init__(self, process: subprocess.Popen[bytes], machine_dir: Path, log_offset: int) -> None:
        self.process = process
        self.is_timed_out = False
        self.log_offset = log_offset
        self._oom_before = oom_kills()
        self._note: Path | None = None
        with suppress(OSError):  # the note only serves where the system's own mechanism failed
            self._note = register_child(machine_dir, process.pid)
        self._job = windows_job.kill_on_close(process)

    @classmethod
    def start(cls, spawner: ThreadPoolExecutor, log_path: Path, machine_dir: Path) -> "EngineChild":
        """A new child. Linux ends it with the thread that started it, so `spawner`'s thread does that."""
        log_path.parent.mkdir(parents=True, exist_ok=True)
        log_offset = log_path.stat().st_size if log_path.exists() else 0

        def spawn() -> subprocess.Popen[bytes]:
            with log_path.open("ab") as log:
                return subprocess.Popen(
                    [*COMMAND, str(os.getpid())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=child_environment(),
                    start_new_session=True,  # Ctrl-C in a terminal is the worker's to handle
                )

        return cls(spawner.submit(spawn).result(), machine_dir, log_offset)

    @contextmanager
    def deadline(self, seconds: float) -> Iterator[None]:
        """Within it the child is killed after `seconds`."""

        def expire() -> None:
            self.is_timed_out = True
            self.kill()

        timer = threading.Timer(seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def order(self, message: Mapping[str, JsonValue]) -> None:
        """Send one JSON line to the child."""
        if self.process.stdin is None:
            raise ChildGoneError
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise ChildGoneError from error

    def reply(self) -> dict[str, Any]:
        """The child's next reply; blocks until it comes or the child ends."""
        line = self.process.stdout.readline() if self.process.stdout else b""
        if not line.endswith(b"\n"):
            raise ChildGoneError
        reply: dict[str, Any] = json.loads(line)
        return reply

    def is_running(self) -> bool:
        """Whether the process has not ended yet."""
        return self.process.poll() is None

    def kill(self) -> None:
        """End the child at once."""
        with suppress(OSError):
            self.process.kill()

    def exit_sentence(self, wait_s: float) -> str | None:
        """How the child ended, in words; None where it still runs after `wait_s` seconds."""
        try:
            returncode = self.process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return None
        return explain_exit(returncode, self._oom_before, oom_kills())

    def end(self) -> None:
        """Kill and reap the child, and remove what it leaves."""
        self.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        windows_job.close(self._job)
        if self._note is not None:
            self._note.unlink(missing_ok=True)


def missing_library(reply: Mapping[str, Any]) -> MissingError:
    """What to do where the child could not import xllamacpp, from its reply."""
    text = str(reply.get("error", ""))
    if reply.get("no_module"):
        return MissingError(
            "The embedded engine's package xllamacpp is not installed: there is no prebuilt wheel for every "
            f"platform, so try `pip install -r requirements.txt` {OTHER_ENGINE}."
        )
    if "libgomp" in text:
        return MissingError(
            "The embedded engine needs the system library libgomp: install libgomp1 "
            f"(Debian and Ubuntu: apt-get install libgomp1) {OTHER_ENGINE}."
        )
    if "DLL load failed" in text:
        return MissingError(
            "The embedded engine needs the Microsoft Visual C++ Redistributable: install it "
            f"{OTHER_ENGINE}. ({text})"
        )
    return MissingError(
        f"The embedded engine cannot be started on this machine ({text}): repair it {OTHER_ENGINE}."
    )


def unusable_processor() -> MissingError:
    """What to do where importing xllamacpp ended the child by an illegal instruction."""
    return MissingError(
        "This processor lacks an instruction set (AVX2) that the embedded engine was built with: "
        f"build xllamacpp from source {OTHER_ENGINE}."
    )
