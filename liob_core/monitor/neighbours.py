"""What to warn about before a run: busy programs beside it, and an engine that wants every core."""

import time
from dataclasses import dataclass

import psutil

BUSY_CORE_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A busy program: its name, and its CPU time as a share of one core."""

    name: str
    core_share: float


def busy_neighbours(over_s: float = 0.5) -> list[Neighbour]:
    """Programs that use more than a quarter of a core, busiest first; this process is not one.

    Looks at every process twice, `over_s` seconds apart, so it belongs before a run, never in one.
    """
    before = {process.pid: (process, _cpu_s(process)) for process in psutil.process_iter()}
    before.pop(psutil.Process().pid, None)
    start_s = time.monotonic()
    time.sleep(over_s)
    passed_s = time.monotonic() - start_s
    found: list[Neighbour] = []
    for process, first_s in before.values():
        last_s = _cpu_s(process)
        if first_s is None or last_s is None:
            continue
        core_share = (last_s - first_s) / passed_s
        if core_share > BUSY_CORE_SHARE:
            found.append(Neighbour(name=_name(process), core_share=core_share))
    return sorted(found, key=lambda neighbour: neighbour.core_share, reverse=True)


def thread_warning(threads: int, physical_cores: int | None, logical_cores: int) -> str | None:
    """One sentence where the engine wants every core of the machine, else None."""
    n_cores = physical_cores or logical_cores
    if threads < n_cores:
        return None
    if threads > n_cores:
        return (
            f"{threads} threads on {n_cores} cores wait for each other: "
            f"use at most {max(1, n_cores - 1)} for speed and steady results."
        )
    if n_cores == 1:
        return "This machine has one core, so any other program slows the engine: close what you can."
    return (
        f"{threads} threads on {n_cores} cores leave none for other programs, and one busy program can make "
        f"the engine many times slower: use {n_cores - 1} for steady results, or close what you can."
    )


def _cpu_s(process: psutil.Process) -> float | None:
    try:
        times = process.cpu_times()
    except (psutil.Error, OSError):
        return None
    return float(times.user + times.system)


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except (psutil.Error, OSError):
        return "a program that has ended"
