"""What the sampler costs: its CPU share at 10 Hz beside a process tree of about 300 MB.

    python -m tests.bench.bench_sampler [--seconds 20] [--hz 10]

Prints one JSON document. `cpu_share` is of one core, from the thread's own clock; `window_ms` is what
asking for a sample's surroundings costs the measuring loop.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from liob_core.monitor import clock
from liob_core.monitor.sampler import Sampler

# The parent holds 200 MB and its child 100 MB; the parent works on two threads as an engine would.
ENGINE = """
import hashlib, subprocess, sys, threading, time
held = b"x" * (200 << 20)
child = subprocess.Popen([sys.executable, "-c", "import time; held = b'x' * (100 << 20); time.sleep(600)"])
print("ready", flush=True)
def work():
    while True:
        hashlib.sha256(held[: 1 << 20]).digest()
        if sys.argv[1] == "idle":
            time.sleep(0.1)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
try:
    sys.stdin.read()
finally:
    child.kill()
"""


def measure(load: str, hz: float, seconds: float) -> dict[str, float | int | None]:
    engine = subprocess.Popen(
        [sys.executable, "-c", ENGINE, load], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with tempfile.TemporaryDirectory() as folder:
        sampler = Sampler(hz, Path(folder) / "readings.jsonl")
        try:
            engine.stdout.readline()
            time.sleep(1)  # the child fills its memory
            sampler.start()
            sampler.watch((engine.pid,), 0)
            sampler.mark_loaded()
            window_ms = []
            stop = time.monotonic() + seconds
            while time.monotonic() < stop:
                start = clock.utc_ns()
                time.sleep(min(2.0, seconds / 4))
                before = time.perf_counter()
                surroundings = sampler.window(start, clock.utc_ns())
                window_ms.append(1000 * (time.perf_counter() - before))
            return {
                "load": load,
                "hz": hz,
                "seconds": seconds,
                "cpu_share": sampler.cpu_share(),
                "window_ms_median": statistics.median(window_ms),
                "window_ms_max": max(window_ms),
                "tree_rss_mb": round((surroundings.peak_rss_bytes or 0) / 2**20),
                "cpu_other_share": surroundings.cpu_other_share,
                "n_readings_of_last_window": surroundings.n_readings,
            }
        finally:
            sampler.stop()
            engine.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--hz", type=float, default=10.0)
    args = parser.parse_args()
    print(json.dumps([measure(load, args.hz, args.seconds) for load in ("idle", "busy")], indent=2))


if __name__ == "__main__":
    main()
