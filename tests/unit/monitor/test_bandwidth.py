"""The memory's speed: measured for real on this machine, and unknown where it could not be true."""

from pathlib import Path

import pytest

from liob_core.monitor.bandwidth import linux_cache_bytes, measure_bandwidth

GIB = 2**30


def test_reading_memory_takes_its_time() -> None:
    found = measure_bandwidth(1, cache_bytes=2**20, available_bytes=4 * GIB)
    assert (found.threads, found.cache_bytes, found.reason) == (1, 2**20, None)
    assert found.read_bytes_per_s is not None
    # One thread of any machine of these years: slower than a disk would be a bug, faster than a cache too.
    assert 5e8 < found.read_bytes_per_s < 1e12


def test_a_cache_that_no_buffer_leaves_behind_is_unknown() -> None:
    found = measure_bandwidth(2, cache_bytes=480 * 2**20, available_bytes=4 * GIB)
    assert found.read_bytes_per_s is None
    assert found.reason == "too little free memory to outgrow a cache of 503 MB"


def test_an_unknown_cache_makes_it_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liob_core.monitor.bandwidth.last_level_cache_bytes", lambda: None)
    found = measure_bandwidth(1)
    assert (found.read_bytes_per_s, found.reason) == (None, "the size of the last-level cache is not known")


def _cache(root: Path, core: int, index: int, level: int, size: str, cores: str) -> None:
    folder = root / f"sys/devices/system/cpu/cpu{core}/cache/index{index}"
    folder.mkdir(parents=True)
    for name, text in (("level", str(level)), ("size", size), ("shared_cpu_list", cores)):
        (folder / name).write_text(f"{text}\n")


def test_each_last_level_cache_counts_once(tmp_path: Path) -> None:
    for core, cores in ((0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")):
        _cache(tmp_path, core, 2, 2, "1024K", str(core))
        _cache(tmp_path, core, 3, 3, "32768K", cores)
    assert linux_cache_bytes(tmp_path) == 2 * 32 * 2**20


def test_a_kernel_that_tells_of_no_cache(tmp_path: Path) -> None:
    assert linux_cache_bytes(tmp_path) is None
