import os
import sys

import pytest

from liob_core.monitor.limits import read_cpu_limit, read_memory_limit_bytes

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="control groups are Linux's")


@pytest.fixture
def group(tmp_path, monkeypatch):
    """Writes control group files and says which group this process is in."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(os.cpu_count())))
    root, own = tmp_path / "cgroup", tmp_path / "own"
    root.mkdir()

    def write(own_text, **files):
        own.write_text(own_text)
        for name, text in files.items():
            path = root / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return root, own

    return write


def test_version_2_the_tightest_ancestor_counts(group):
    places = group(
        "0::/a/b\n",
        a__b__cpu_dot_max="max 100000\n",
        a__cpu_dot_max="150000 100000\n",
        a__b__memory_dot_max="8000000\n",
        a__memory_dot_max="9000000\n",
    )

    assert read_cpu_limit(*places) == 1.5
    assert read_memory_limit_bytes(*places) == 8_000_000


def test_version_1(group):
    places = group(
        "4:memory:/x\n2:cpu,cpuacct:/x\n0::/\n",
        cpu__x__cpu_dot_cfs_quota_us="50000\n",
        cpu__x__cpu_dot_cfs_period_us="100000\n",
        memory__x__memory_dot_limit_in_bytes="7000000\n",
        memory__memory_dot_limit_in_bytes="9223372036854771712\n",
    )

    assert read_cpu_limit(*places) == 0.5
    assert read_memory_limit_bytes(*places) == 7_000_000


def test_no_limit_is_none(group):
    places = group(
        "2:cpu,cpuacct:/\n4:memory:/\n0::/\n",
        cpu__cpu_dot_cfs_quota_us="-1\n",
        cpu__cpu_dot_cfs_period_us="100000\n",
        memory__memory_dot_limit_in_bytes="9223372036854771712\n",
        cpu_dot_max="max 100000\n",
        memory_dot_max="max\n",
    )

    assert read_cpu_limit(*places) is None
    assert read_memory_limit_bytes(*places) is None


def test_no_control_groups_is_none(group, tmp_path):
    root, _ = group("")

    assert read_cpu_limit(root, tmp_path / "absent") is None
    assert read_memory_limit_bytes(root, tmp_path / "absent") is None


def test_affinity_is_a_limit(group, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2})

    assert read_cpu_limit(*group("0::/\n")) == 3
