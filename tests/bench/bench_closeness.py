"""Time of a closeness run against llama.cpp's own tool: same files, text, windows and threads, interleaved.

    python tests/bench/bench_closeness.py TOOL TEXT REFERENCE.gguf VARIANT.gguf... [--windows N] [--rounds N]

`TOOL` is a `llama-perplexity` built from the sources inside the sdist of `llama-cpp-python`, with the flags
of the add-on. It stores the reference's logits (`--kl-divergence-base`) and reads them for each variant;
LIOB's side is the command a user types, its start, plan and database included. Prints the ratio of the wall
times, paired by round, and what each side left on disk.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from liob_core import stats

N_CTX = 512


def main() -> None:
    options = read_options()
    ratios: list[float] = []
    for number in range(options.rounds):
        # ABBA: a drift of the machine that is linear within a round cancels.
        liob, tool = liob_s(options), tool_s(options)
        tool_again, liob_again = tool_s(options), liob_s(options)
        ratios.append((liob + liob_again) / (tool + tool_again))
        print(
            f"round {number + 1}: LIOB {liob:.1f} {liob_again:.1f} s, tool {tool:.1f} {tool_again:.1f} s",
            flush=True,
        )
    ratio = stats.mean_interval(ratios)
    low, high = ratio.interval or (float("nan"), float("nan"))
    print(
        f"LIOB takes {ratio.mean:.3f} ({low:.3f} to {high:.3f}) of the tool's time, n = {len(ratios)} rounds"
    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("variants", type=Path, nargs="+")
    parser.add_argument("--windows", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def tool_s(options: argparse.Namespace) -> float:
    """Seconds of the tool for the base file and each variant against it."""
    shared = ["-c", str(N_CTX), "-t", str(options.threads), "--chunks", str(options.windows)]
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        begin = time.monotonic()
        run(
            [options.tool, "-m", options.reference, "-f", options.text, "--kl-divergence-base", base, *shared]
        )
        for variant in options.variants:
            run([options.tool, "-m", variant, "--kl-divergence-base", base, "--kl-divergence", *shared])
        seconds = time.monotonic() - begin
        print(f"  tool: base file {base.stat().st_size / 1e6:.0f} MB")
    return seconds


def liob_s(options: argparse.Namespace) -> float:
    """Seconds of LIOB's command for the same."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "liob_core", "run", "--task", "closeness"]
        command += ["--reference", options.reference]
        for path in options.variants:
            command += ["--model", path]
        command += ["--text", options.text, "--context", N_CTX, "--windows", options.windows, "--from-start"]
        command += ["--threads", options.threads]
        begin = time.monotonic()
        run(command, {**os.environ, "LIOB_DATA_DIR": folder})
        seconds = time.monotonic() - begin
        stored = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        print(f"  LIOB: data folder {stored / 1e6:.1f} MB")
    return seconds


def run(command: list[object], environment: dict[str, str] | None = None) -> None:
    subprocess.run([str(word) for word in command], env=environment, check=True, capture_output=True)


if __name__ == "__main__":
    main()
