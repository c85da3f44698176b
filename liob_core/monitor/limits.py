"""What a container or scheduler lets this process use, below what the machine has (Linux control groups)."""

import os
from pathlib import Path

_CGROUP_ROOT = Path("/sys/fs/cgroup")
_NO_LIMIT_BYTES = 1 << 60  # version 1 says "none" with a number near 2^63


def read_cpu_limit(root: Path = _CGROUP_ROOT, own: Path = Path("/proc/self/cgroup")) -> float | None:
    """How many cores this process may use at once, or None where nothing limits it."""
    limits: list[float] = []
    for folder in _folders(root, own, "cpu"):
        words = _words(folder / "cpu.max")
        if not words:
            words = _words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us")
        if len(words) == 2 and words[0] not in ("max", "-1"):
            limits.append(int(words[0]) / int(words[1]))
    n_allowed = _affinity()
    if n_allowed is not None and n_allowed < (os.cpu_count() or 1):
        limits.append(n_allowed)
    return min(limits, default=None)


def read_memory_limit_bytes(root: Path = _CGROUP_ROOT, own: Path = Path("/proc/self/cgroup")) -> int | None:
    """How many bytes of memory this process may use, or None where nothing limits it."""
    limits: list[int] = []
    for folder in _folders(root, own, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            words = _words(folder / name)
            if words and words[0] != "max" and int(words[0]) < _NO_LIMIT_BYTES:
                limits.append(int(words[0]))
    return min(limits, default=None)


def _folders(root: Path, own: Path, controller: str) -> list[Path]:
    """The group of this process and its ancestors, in both versions; a limit anywhere above counts."""
    folders: list[Path] = []
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return folders
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        base = root / controller if controllers else root
        group = base / path.strip("/")
        folders += [group, *(parent for parent in group.parents if parent.is_relative_to(base))]
    return folders


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _affinity() -> int | None:
    """How many cores the scheduler may use for this process; None where the system does not tell."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return len(os.sched_getaffinity(0))
