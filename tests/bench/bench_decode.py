"""Decode rate that LIOB reports against bare requests to the same server, interleaved.

    python tests/bench/bench_decode.py MODEL.gguf [ROUNDS] [THREADS]

Both sides ask one embedded server for 128 tokens after one; `bare` reads the stream and keeps only its last
event. Prints the medians of the engine's own rate and of the client's, and their ratios.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx

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
    rates: dict[str, list[tuple[float, float]]] = {"bare": [], "liob": []}
    for number in range(2 * n_rounds + 2):
        side = "bare" if (number // 2 + number) % 2 else "liob"  # ABBA
        rate = bare_rates(bare) if side == "bare" else liob_rates(engine)
        if number >= 2:
            rates[side].append(rate)
    medians = {
        side: [statistics.median(column) for column in zip(*pairs, strict=True)]
        for side, pairs in rates.items()
    }
    for index, name in enumerate(("engine's clock", "client's clock")):
        ours, theirs = medians["liob"][index], medians["bare"][index]
        print(f"{name}: liob {ours:.1f} tok/s, bare {theirs:.1f} tok/s, ratio {ours / theirs:.3f}")


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
