"""Decode rate with LIOB's monitor at work against without it, interleaved, on one embedded server.

    python -m tests.bench.bench_monitor MODEL.gguf [ROUNDS] [THREADS]

Each round asks for 128 tokens after one, twice with the monitor at 10 Hz and twice without (ABBA). Prints the
ratio of the engine's own rates, paired by round, and the monitor's cost as a share of one core.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from liob_core import stats
from liob_core.engines.embedded import EmbeddedEngine
from liob_core.monitor.sampler import Sampler
from liob_core.types import LoadSettings, Variant
from tests.bench.bench_decode import liob_rates


def main() -> None:
    path = Path(sys.argv[1])
    n_rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    settings = LoadSettings(n_ctx=512, threads=int(sys.argv[3]) if len(sys.argv) > 3 else 2)
    variant = Variant(
        key="", label="", quant="", engine="embedded", engine_model=str(path), load_settings=settings,
        weights_sha256=None, file_sha256=None, model=None, need=None,
    )  # fmt: skip
    ratios: list[float] = []
    costs: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        engine = EmbeddedEngine(Path(folder) / "machine")
        try:
            report = engine.load(variant, settings, log_path=Path(folder) / "engine.log", load_s=60)
            liob_rates(engine)
            for _ in range(n_rounds):
                rates: dict[bool, list[float]] = {True: [], False: []}
                for is_watched in (True, False, False, True):
                    sampler = Sampler(10.0, Path(folder) / "readings.jsonl")
                    if is_watched:
                        sampler.start()
                        sampler.watch(engine.pids(), report.host_rss_bytes)
                    rates[is_watched].append(liob_rates(engine)[0])
                    if is_watched:
                        costs.append(sampler.cpu_share() or 0.0)
                        sampler.stop()
                ratios.append(sum(rates[True]) / sum(rates[False]))
        finally:
            engine.close()
    ratio = stats.mean_interval(ratios)
    low, high = ratio.interval or (float("nan"), float("nan"))
    print(f"with the monitor {ratio.mean:.4f} ({low:.4f} to {high:.4f}) of without, n = {n_rounds} rounds")
    print(f"monitor: {statistics.median(costs):.2%} of one core")


if __name__ == "__main__":
    main()
