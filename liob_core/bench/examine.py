"""What works on this machine, what is missing, and the one thing that fixes it."""

import importlib.util
import os
import platform
import re
import shutil
from dataclasses import dataclass
from importlib import metadata

from liob_core import __version__
from liob_core.bench.lock import LOCK_FILE, shared_dir
from liob_core.config import Settings
from liob_core.engines.registry import describe_engines
from liob_core.errors import FileError
from liob_core.monitor.energy import NOT_ALLOWED, SCOPES, make_meter
from liob_core.monitor.machine import busy_neighbours
from liob_core.types import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at: `ok`, `missing` (something more would work) or `problem`."""

    what: str
    state: str
    sentence: str
    fix: str = ""  # the one command that makes it work; empty where no command can


# What decides how LIOB behaves; llama-cpp-python is the add-on.
_PACKAGES = ("streamlit", "duckdb", "altair", "xllamacpp", "llama-cpp-python", "ollama", "nvidia-ml-py")
_COMMAND = re.compile(r"start it \(`?([^`)]+)`?\)|`([^`]+)`")


def versions() -> dict[str, str | None]:
    """The versions of LIOB, Python and the packages it rests on; None where one is not installed."""
    found: dict[str, str | None] = {"LIOB": __version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def examine(settings: Settings, machine: Machine) -> list[Finding]:
    """Everything that decides what LIOB can do here."""
    findings = [
        Finding(
            what=f"engine {engine.name}",
            state="ok" if engine.available else "missing",
            sentence=engine.sentence,
            fix="" if engine.available else _named_command(engine.sentence),
        )
        for engine in describe_engines()
    ]
    findings += [
        _gpu(machine),
        _energy(),
        _ladder_types(),
        _data_folder(settings),
        _lock_folder(settings),
        _neighbours(),
    ]
    findings += [
        Finding(what=f"sensor {source}", state="missing", sentence=reason)
        for source, reason in machine.missing_sources.items()
    ]
    return findings


def _named_command(sentence: str) -> str:
    """The command that a sentence names; empty where it names none."""
    found = _COMMAND.search(sentence)
    return (found[1] or found[2]) if found else ""


def _gpu(machine: Machine) -> Finding:
    if machine.gpus:
        names = ", ".join(gpu.name for gpu in machine.gpus)
        return Finding(what="graphics device", state="ok", sentence=names)
    return Finding(what="graphics device", state="missing", sentence=machine.gpu_reason or "none found")


def _energy() -> Finding:
    """Which energy counters can be read; one that is there for root alone has a command that opens it."""
    meter = make_meter()
    meter.close()
    told = [f"{SCOPES[scope]} by {source}" for scope, source in meter.sources.items()]
    told += [NOT_ALLOWED] if meter.fix else []
    return Finding(
        what="energy",
        state="ok" if told and not meter.fix else "missing",
        sentence="; ".join(told) or meter.reason or "",
        fix=meter.fix,
    )


def _ladder_types() -> Finding:
    if importlib.util.find_spec("llama_cpp") is not None:
        return Finding(what="closeness, K and I types", state="ok", sentence="llama-cpp-python is installed")
    return Finding(
        what="closeness, K and I types",
        state="missing",
        sentence="the add-on llama-cpp-python makes them and measures closeness; it compiles for 5 minutes",
        fix="CMAKE_ARGS=-DGGML_NATIVE=OFF pip install -r requirements-closeness.txt",
    )


def _data_folder(settings: Settings) -> Finding:
    folder = settings.data_dir
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".liob-write-test"
        probe.touch()
        probe.unlink()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding(
            what="data folder",
            state="problem",
            sentence=f"{folder} cannot be written ({error.strerror}); set LIOB_DATA_DIR to one that can.",
        )
    return Finding(what="data folder", state="ok", sentence=f"{folder}, {free / 2**30:.1f} GiB free")


def _lock_folder(settings: Settings) -> Finding:
    """Where the lock lies that keeps two runs on one machine apart."""
    what = "run lock"
    try:
        path = shared_dir(settings.machine_dir) / LOCK_FILE
    except FileError as error:
        return Finding(what=what, state="problem", sentence=str(error))
    usable = path if path.exists() else path.parent
    if not os.access(usable, os.W_OK):
        return Finding(
            what=what,
            state="problem",
            sentence=f"{usable} belongs to another user; delete it or set LIOB_MACHINE_DIR",
        )
    return Finding(what=what, state="ok", sentence=f"{path}, shared by all users of this machine")


def _neighbours() -> Finding:
    busy = busy_neighbours()
    if not busy:
        return Finding(what="quiet machine", state="ok", sentence="no other process keeps a core busy")
    names = ", ".join(f"{neighbour.name} ({100 * neighbour.cpu_share:.0f} % of a core)" for neighbour in busy)
    return Finding(what="quiet machine", state="problem", sentence=f"close these before a run: {names}")
