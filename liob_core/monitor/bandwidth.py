"""How fast this machine reads its memory with so many threads: what bounds the decode rate on a processor."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil

from liob_core.types import Bandwidth

MIN_BUFFER_BYTES = 256 * 2**20
BUFFERS_PER_CACHE = 4  # as much again from the cache would flatter by a quarter at the most
MAX_MEMORY_SHARE = 0.125  # of what is free
_N_PASSES = 4
_APPLE_CACHES = ("hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize")


def measure_bandwidth(
    threads: int, *, cache_bytes: int | None = None, available_bytes: int | None = None
) -> Bandwidth:
    """Bytes a second that so many threads read from memory, the best of a few passes over a large buffer.

    Unknown, with the reason, where the buffer that leaves the caches behind does not fit. The two keywords
    stand in for what this machine has.
    """
    cache = last_level_cache_bytes() if cache_bytes is None else cache_bytes
    if cache is None:
        return _unknown(threads, None, "the size of the last-level cache is not known")
    available = psutil.virtual_memory().available if available_bytes is None else available_bytes
    n_bytes = max(MIN_BUFFER_BYTES, BUFFERS_PER_CACHE * cache)
    if n_bytes > MAX_MEMORY_SHARE * available:
        reason = f"too little free memory to outgrow a cache of {cache / 1e6:.0f} MB"
        return _unknown(threads, cache, reason)
    # Ones, not zeros: the system answers reads of untouched memory from one page of zeros.
    parts = np.array_split(np.ones(n_bytes // 4, dtype=np.int32), threads)
    with ThreadPoolExecutor(threads) as pool:
        best_s = min(_pass_s(pool, parts) for _ in range(_N_PASSES))
    return Bandwidth(threads=threads, read_bytes_per_s=n_bytes / best_s, cache_bytes=cache)


def _pass_s(pool: ThreadPoolExecutor, parts: list[np.ndarray]) -> float:
    began_s = time.perf_counter()
    list(pool.map(np.max, parts))  # numpy lets go of the interpreter's lock meanwhile
    return time.perf_counter() - began_s


def last_level_cache_bytes() -> int | None:
    """The bytes of all last-level caches together; None where the system does not tell."""
    try:
        if sys.platform.startswith("linux"):
            return linux_cache_bytes(Path("/"))
        return _apple_cache_bytes() if sys.platform == "darwin" else None
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def linux_cache_bytes(root: Path) -> int | None:
    """The same as the kernel under `root` tells it: each cache of the highest level once."""
    caches: dict[tuple[int, str], int] = {}
    for folder in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cache/index[0-9]*"):
        level = int((folder / "level").read_text())
        size, cores = ((folder / name).read_text().strip() for name in ("size", "shared_cpu_list"))
        caches[level, cores] = int(size.removesuffix("K")) * 1024
    highest = max((level for level, _ in caches), default=0)
    return sum(size for (level, _), size in caches.items() if level == highest) or None


def _apple_cache_bytes() -> int | None:
    for name in _APPLE_CACHES:
        done = subprocess.run(
            ["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=False
        )
        if done.returncode == 0 and done.stdout.strip():
            return int(done.stdout)
    return None


def _unknown(threads: int, cache_bytes: int | None, reason: str) -> Bandwidth:
    return Bandwidth(threads=threads, read_bytes_per_s=None, cache_bytes=cache_bytes, reason=reason)
