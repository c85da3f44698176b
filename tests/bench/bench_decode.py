"""Decode rate that LIOB reports against bare requests to the same server, interleaved.

    python tests/bench/bench_decode.py MODEL.gguf [ROUNDS] [THREADS]

Both sides ask one embedded server for 128 tokens after one; `bare` reads the stream and keeps only its last
event. Prints the ratio of the rates by the engine's own clock and by the client's, paired by round.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import httpx

from liob_core import stats
from liob_core.engines.embedded import EmbeddedEngine
from liob_core.engines.protocol import Request
from liob_core.types import LoadSettings, Sampling, Variant

N_OUT = 128


def main() -> None:
    path = Path(sys.argv[1])
    n_rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    settings = LoadSettings(n_ctx=512, threads=int(sys.argv[3]) if len(sys.argv) > 3 else 2)
    variant = Variant(
        key="", label="", quant="", engine="embedded", engine_model=str(path), load_settings=settings,
        weights_sha256=None, file_sha256=None, model=None, need=None,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        engine = EmbeddedEngine(Path(folder) / "machine")
        try:
            engine.load(variant, settings, log_path=Path(folder) / "engine.log", load_s=60)
            compare(engine, n_rounds)
        finally:
            engine.close()


def compare(engine: EmbeddedEngine, n_rounds: int) -> None:
    client = engine._client
    bare = httpx.Client(base_url=client.url, headers=client._http.headers, trust_env=False, timeout=60)
    bare_rates(bare)
    ratios: dict[str, list[float]] = {"engine's clock": [], "client's clock": []}
    for _ in range(n_rounds):
        ours, theirs = liob_rates(engine), bare_rates(bare)
        theirs_again, ours_again = bare_rates(bare), liob_rates(engine)
        # ABBA within one round cancels the drift of a shared machine, which is larger than the effect.
        for name, *values in zip(ratios, ours, ours_again, theirs, theirs_again, strict=True):
            ratios[name].append((values[0] + values[1]) / (values[2] + values[3]))
        print(f"liob {ours[0]:.1f} {ours_again[0]:.1f}, bare {theirs[0]:.1f} {theirs_again[0]:.1f} tok/s")
    for name, values in ratios.items():
        ratio = stats.mean_interval(values)
        low, high = ratio.interval or (float("nan"), float("nan"))
        print(f"{name}: ratio {ratio.mean:.4f} ({low:.4f} to {high:.4f}), n = {n_rounds} rounds")


def liob_rates(engine: EmbeddedEngine) -> tuple[float, float]:
    request = Request(prompt=(1,), sampling=Sampling(max_tokens=N_OUT, ignore_eos=True))
    stamps = []
    for chunk in engine.generate(request):
        if chunk.n_tokens:
            stamps.append(time.perf_counter())
        counters = chunk.counters
    return 1000 * (N_OUT - 1) / counters.engine_eval_ms, (N_OUT - 1) / (stamps[-1] - stamps[0])


def bare_rates(client: httpx.Client) -> tuple[float, float]:
    body = {
        "prompt": [1], "n_predict": N_OUT, "ignore_eos": True, "stream": True, "temperature": 0,
        "cache_prompt": False, "seed": 1,
    }  # fmt: skip
    headers = {"Connection": "close"}
    stamps, last = [], b""
    with client.stream("POST", "/completion", json=body, headers=headers) as response:
        for piece in response.iter_raw():
            stamps.append(time.perf_counter())
            last += piece
    timings = json.loads(last.split(b"data: ")[-1])["timings"]
    return 1000 * (N_OUT - 1) / timings["predicted_ms"], (N_OUT - 1) / (stamps[N_OUT - 1] - stamps[0])


if __name__ == "__main__":
    main()
