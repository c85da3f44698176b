"""Starting `ollama serve` where it is installed but not running, and stopping only what was started."""

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from liob_core.engines.children import is_alive
from liob_core.engines.ollama_host import HOST_VARIABLE, OllamaHost
from liob_core.engines.ollama_models import OllamaModels
from liob_core.engines.ollama_stream import OllamaStream
from liob_core.errors import EngineFailure, MissingError, UsageError

NOTE_FILE = "ollama-serve.json"
POLL_S = 0.1
STOP_WAIT_S = 5.0
# A prompt seen before would be served from the host's memory; the runner takes this from the server.
NO_PROMPT_CACHE = {"LLAMA_ARG_CACHE_RAM": "0"}


@dataclass(frozen=True, slots=True)
class StartedServer:
    """A server that LIOB started: its process, told apart from a later one by its start, and its address."""

    pid: int
    started_s: float
    url: str

    def process(self) -> psutil.Process | None:
        """Its process, or None once that has ended."""
        if not is_alive(self.pid, self.started_s):
            return None
        with suppress(psutil.Error):
            return psutil.Process(self.pid)
        return None


def find_binary() -> Path | None:
    """The `ollama` program on this machine, or None where it is not installed."""
    found = shutil.which("ollama")
    if found:
        return Path(found)
    usual = {
        "darwin": Path("/Applications/Ollama.app/Contents/Resources/ollama"),
        "win32": Path(os.environ.get("LOCALAPPDATA", "")) / "Programs" / "Ollama" / "ollama.exe",
    }.get(sys.platform, Path("/usr/local/bin/ollama"))
    return usual if usual.is_file() else None


def start_server(
    host: OllamaHost, machine_dir: Path, log_path: Path, *, wait_s: float = 20.0
) -> StartedServer:
    """The server once it answers. Raises where Ollama is not installed, runs elsewhere or does not start."""
    if not host.is_loopback:
        raise UsageError(f"{host.url} is another machine: start Ollama there.")
    binary = find_binary()
    if binary is None:
        raise MissingError(
            "Ollama is not installed here: get it from ollama.com, or use the embedded engine."
        )
    if _answers(host):
        raise UsageError(f"Ollama answers at {host.url} already.")
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("ab") as log:
        child = subprocess.Popen(
            [str(binary), "serve"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**NO_PROMPT_CACHE, **os.environ, HOST_VARIABLE: host.url},
            start_new_session=True,  # it serves until it is stopped, not until the app is
        )
    server = StartedServer(child.pid, psutil.Process(child.pid).create_time(), host.url)
    _write_note(machine_dir, server)
    until = time.monotonic() + wait_s
    while not _answers(host):
        if child.poll() is not None or time.monotonic() > until:
            stop_server(machine_dir)
            raise MissingError(f"`ollama serve` did not start: its last words are in {log_path}.")
        time.sleep(POLL_S)
    return server


def started_server(machine_dir: Path) -> StartedServer | None:
    """The server that LIOB started and that still runs, or None."""
    try:
        server = StartedServer(**json.loads((machine_dir / NOTE_FILE).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return server if server.process() is not None else None


def stop_server(machine_dir: Path) -> bool:
    """Whether there was a server that LIOB started; it and its runners are ended, and nothing else."""
    server = started_server(machine_dir)
    process = server.process() if server else None
    (machine_dir / NOTE_FILE).unlink(missing_ok=True)
    if process is None:
        return False
    with suppress(psutil.Error):
        family = [*process.children(recursive=True), process]
        process.terminate()
        _, alive = psutil.wait_procs(family, timeout=STOP_WAIT_S)
        for one in alive:
            with suppress(psutil.Error):
                one.kill()
    return True


def _write_note(machine_dir: Path, server: StartedServer) -> None:
    machine_dir.mkdir(parents=True, exist_ok=True)
    (machine_dir / NOTE_FILE).write_text(json.dumps(asdict(server)), encoding="utf-8")


def _answers(host: OllamaHost) -> bool:
    stream = OllamaStream(host)
    try:
        OllamaModels(stream).version()
    except EngineFailure:
        return False
    finally:
        stream.close()
    return True
