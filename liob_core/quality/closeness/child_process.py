"""Starting the closeness child, and what to tell where it cannot be started."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from liob_core.engines.engine_child import SIGILL_CODES, EngineChild, child_environment
from liob_core.errors import MissingError

BUILD_COMMAND = "CMAKE_ARGS=-DGGML_NATIVE=OFF pip install -r requirements-closeness.txt"
ADD_ON = f"Closeness needs the add-on llama-cpp-python: {BUILD_COMMAND} (compiles for about 5 minutes)."
COMMAND = (sys.executable, "-P", "-m", "liob_core.quality.closeness.closeness_child")
_POLL_S = 0.5


@contextmanager
def closeness_child(work_dir: Path, machine_dir: Path, cancel: threading.Event) -> Iterator[EngineChild]:
    """A child, killed when `cancel` is set and gone at the end; its log goes into `work_dir`."""
    work_dir.mkdir(parents=True, exist_ok=True)
    # Linux ends the child with the thread that starts it: this one, which waits for it.
    with (work_dir / "closeness.log").open("ab") as log:
        process = subprocess.Popen(
            [*COMMAND, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=child_environment(),
            start_new_session=True,
        )
    child = EngineChild(process, machine_dir, 0)

    def watch() -> None:
        while child.is_running():
            if cancel.wait(_POLL_S):
                child.kill()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield child
    finally:
        child.end()
        watcher.join()


def missing_add_on(message: Mapping[str, Any]) -> MissingError:
    """What to do where the child could not import the add-on, from its reply."""
    if message["no_module"]:
        return MissingError(ADD_ON)
    return MissingError(f"The add-on llama-cpp-python does not load ({message['error']}). {ADD_ON}")


def unusable_add_on(code: int, reason: str) -> MissingError:
    """What to do where importing the add-on ended the child."""
    if code in SIGILL_CODES:
        return MissingError(
            "The add-on llama-cpp-python was built for another processor: build it again with "
            f"{BUILD_COMMAND} --force-reinstall --no-cache-dir"
        )
    return MissingError(f"The add-on llama-cpp-python cannot be started: {reason}. {ADD_ON}")
