import os
import subprocess
import sys

import pytest

from liob_core.monitor.process import LinuxProcess, ProcessReading, ProcessTree, PsutilProcess, TreeReading

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

STATUS = """Name:\ta b) (c
State:\tS (sleeping)
VmHWM:\t    5000 kB
VmRSS:\t    4000 kB
RssAnon:\t    3000 kB
RssFile:\t    1000 kB
VmSwap:\t     200 kB
Threads:\t3
"""
ZOMBIE = "Name:\tgone\nState:\tZ (zombie)\nThreads:\t1\n"
# Fields 14 and 15 are utime and stime; the name holds brackets and spaces on purpose.
STAT = "42 (a b) (c) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 7 7 20 0 3 0 100 1000 1000"


def write_process(proc, pid=42, status=STATUS, stat=STAT, children=()):
    folder = proc / str(pid)
    task = folder / "task" / str(pid)
    task.mkdir(parents=True)
    (folder / "status").write_text(status)
    (folder / "stat").write_text(stat)
    (folder / "clear_refs").write_text("")
    (task / "children").write_text(" ".join(map(str, children)))
    return folder


@linux
def test_linux_process_read_takes_the_named_fields(tmp_path):
    write_process(tmp_path)

    reading = LinuxProcess(42, tmp_path).read()

    assert reading == ProcessReading(
        rss_bytes=4000 * 1024,
        anon_bytes=3000 * 1024,
        swap_bytes=200 * 1024,
        high_water_bytes=5000 * 1024,
        cpu_s=300 / os.sysconf("SC_CLK_TCK"),
    )


@linux
def test_linux_process_zombie_is_gone(tmp_path):
    write_process(tmp_path, status=ZOMBIE)

    assert LinuxProcess(42, tmp_path).read() is None


@linux
def test_linux_process_children_and_reset(tmp_path):
    folder = write_process(tmp_path, children=(7, 8))
    process = LinuxProcess(42, tmp_path)

    assert process.children() == [7, 8]
    assert process.reset_high_water() is True
    assert (folder / "clear_refs").read_bytes() == b"5"


@linux
def test_linux_process_reset_refused_says_so(tmp_path):
    folder = write_process(tmp_path)
    process = LinuxProcess(42, tmp_path)
    (folder / "clear_refs").unlink()
    (folder / "clear_refs").mkdir()

    assert process.reset_high_water() is False


def python(code):
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


HOLD = "held = b'x' * (64 << 20); print('ready', flush=True); input()"
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {HOLD!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print("ready", flush=True)
input()
child.communicate(b"\\n")
"""


@pytest.fixture
def parent():
    process = python(PARENT)
    process.stdout.readline()
    yield process
    if process.poll() is None:
        process.communicate(b"\n")


def test_tree_includes_children_and_forgets_the_ended(parent):
    tree = ProcessTree((parent.pid,))
    alive = tree.read()

    assert alive.n_processes == 2
    assert alive.rss_bytes > 64 << 20

    parent.communicate(b"\n")
    ended = tree.read()
    assert ended == TreeReading(cpu_s=ended.cpu_s)
    assert ended.rss_bytes is None
    assert tree.pids == ()
    tree.close()


@linux
def test_tree_agrees_with_psutil(parent):
    tree = ProcessTree((parent.pid,))

    by_files = tree.read().rss_bytes
    by_psutil = sum(PsutilProcess(pid).read().rss_bytes for pid in tree.pids)

    assert by_files == pytest.approx(by_psutil, rel=0.02)
    tree.close()


@linux
def test_tree_high_water_sees_memory_between_readings_and_starts_again():
    process = python("b = b'x' * (96 << 20); del b; print('ready', flush=True); input()")
    process.stdout.readline()
    tree = ProcessTree((process.pid,))
    try:
        before = tree.read()
        assert before.high_water_bytes - before.rss_bytes > 64 << 20
        if not tree.reset_high_water():
            pytest.skip("this system does not let the mark start again")
        assert tree.read().high_water_bytes - before.rss_bytes < 8 << 20
    finally:
        process.communicate(b"\n")
        tree.close()


def test_tree_cpu_counts_from_the_watch_on():
    process = python(
        "work = lambda: sum(range(10**7)); work(); print('ready', flush=True); input();"
        "work(); print('done', flush=True); input()"
    )
    process.stdout.readline()
    tree = ProcessTree((process.pid,))
    try:
        assert tree.read().cpu_s == 0.0
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        worked = tree.read().cpu_s
        assert worked > 0.0
    finally:
        process.communicate(b"\n")
    assert tree.read().cpu_s == pytest.approx(worked, abs=0.2)
    tree.close()


def test_tree_of_no_such_process_is_unknown():
    process = python("")
    process.communicate()

    assert ProcessTree((process.pid,)).read() == TreeReading()


@linux
def test_tree_part_that_one_process_does_not_tell_is_unknown(monkeypatch, tmp_path):
    write_process(tmp_path, pid=42, children=(43,))
    write_process(tmp_path, pid=43, status=STATUS.replace("RssAnon:\t    3000 kB\n", ""))
    monkeypatch.setattr("liob_core.monitor.process.open_process", lambda pid: LinuxProcess(pid, tmp_path))

    reading = ProcessTree((42,)).read()

    assert reading.n_processes == 2
    assert reading.rss_bytes == 2 * 4000 * 1024
    assert reading.swap_bytes == 2 * 200 * 1024
    assert reading.anon_bytes is None
    # A sum of marks would claim a peak that need not have happened at one time.
    assert reading.high_water_bytes == 5000 * 1024
