"""What storing costs: appends to the journal, ingest of a large run, connections.

    python -m tests.bench.bench_store [--samples 100000] [--readings 1000000] [--appends 500]

Prints one JSON document. Wanted: an append under 5 ms, an ingest of 100,000 samples under 10 s. The
readings are ingested apart, since a run of that many samples has far fewer.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from liob_core.analysis.summary import summarize
from liob_core.store import database
from liob_core.store.journal import (
    JOURNAL_FILE,
    READINGS_FILE,
    Journal,
    finished_cells,
    read_lines,
    read_record,
)
from liob_core.types import Sample
from tests.bench.make_big_database import make_spec, write_run_folder


def seconds(work: Callable[[], object]) -> float:
    """How long it takes, in s."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def bench_appends(folder: Path, sample: Sample, n_appends: int) -> dict[str, float]:
    """What one append costs the measuring loop, and how much of it is the disk's own fsync, in ms."""
    times, plain_times = [], []
    with Journal(folder) as journal, (folder / "plain").open("ab", buffering=0) as plain:

        def write_plain() -> None:
            plain.write(b"x" * 2400)
            os.fsync(plain.fileno())

        for _ in range(n_appends):  # in turn, since a shared disk has moods
            times.append(seconds(lambda: journal.append(sample)) * 1e3)
            plain_times.append(seconds(write_plain) * 1e3)
    cuts = statistics.quantiles(times, n=100)
    size = (folder / JOURNAL_FILE).stat().st_size / n_appends
    return {
        "append_ms_p50": cuts[49],
        "append_ms_p95": cuts[94],
        "append_ms_max": max(times),
        "plain_fsync_ms_p50": statistics.median(plain_times),
        "line_bytes": size,
    }


def bench_ingest(folder: Path, run_dir: Path, readings: Path) -> dict[str, float]:
    """What moving a finished run into a new database costs, in s, and the sizes of both in bytes."""
    db = folder / "liob.duckdb"

    def ingest() -> None:
        with database.write(db) as con:
            database.ingest(con, run_dir)

    def summarize_run() -> None:
        with database.write(db) as con:
            summarize(con, run_dir.name)

    cpu_before = time.process_time()
    figures = {"ingest_samples_s": seconds(ingest)}
    figures["ingest_samples_cpu_s"] = time.process_time() - cpu_before
    readings.rename(run_dir / READINGS_FILE)
    figures["ingest_readings_s"] = seconds(ingest)
    figures["ingest_nothing_new_s"] = seconds(ingest)
    figures["summarize_s"] = seconds(summarize_run)
    figures["is_behind_s"] = seconds(lambda: database.is_behind(db, run_dir))
    figures["results_query_s"] = seconds(lambda: database.query(db, "SELECT * FROM results"))
    figures["finished_cells_s"] = seconds(lambda: finished_cells(run_dir))
    figures["journal_bytes"] = (run_dir / JOURNAL_FILE).stat().st_size
    figures["database_bytes"] = db.stat().st_size
    return figures


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--readings", type=int, default=1_000_000)
    parser.add_argument("--appends", type=int, default=500)
    parser.add_argument("--dir", type=Path, help="a folder on the disk to measure; else the temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as name:
        folder = Path(name)
        run_dir = write_run_folder(folder / "runs", make_spec(0, options.samples), options.readings)
        readings = (run_dir / READINGS_FILE).rename(folder / READINGS_FILE)
        records, _ = read_lines(run_dir)
        n_samples = sum(record["kind"] == "sample" for record in records)
        line = next(record for record in records if record["kind"] == "sample" and record["data"]["prompt"])
        sample = read_record(Sample, json.dumps(line["data"]))
        figures = bench_appends(folder, sample, options.appends)
        figures |= bench_ingest(folder, run_dir, readings)
    print(json.dumps({"n_samples": n_samples, "n_readings": options.readings, **figures}, indent=1))


if __name__ == "__main__":
    main()
