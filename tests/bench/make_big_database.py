"""A large database of made-up runs, on which pages and ingest are timed.

    python -m tests.bench.make_big_database --samples 100000 --readings 1000000 OUT.duckdb

The runs are written as run folders and ingested as real ones are, with summaries and verdicts; the
biggest holds two fifths of all samples over four variants. Its numbers are invented: never ship it.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from liob_core.analysis.ingest import ingest_run
from liob_core.bench.plan import SHAPE_TOKENS, make_plan
from liob_core.models.variant import fake_variant
from liob_core.monitor.clock import utc_iso
from liob_core.store.journal import (
    JOURNAL_FILE,
    MACHINE_FILE,
    PROMPTS_FILE,
    READINGS_FILE,
    write_atomic,
    write_spec,
)
from liob_core.types import (
    Cell,
    Check,
    CheckOutcome,
    CheckResult,
    Counters,
    Load,
    LoadSettings,
    Message,
    Outcome,
    Prompt,
    Reading,
    RenderedPrompt,
    RunSpec,
    Sample,
    Sampling,
    Shape,
    Stamps,
    Suite,
    Surroundings,
    Task,
    Unload,
    to_json,
)
from tests.unit.store.builders import make_machine

BIGGEST_SHARE = 0.4
N_RUNS = 6
N_BLOCKS = 10
# name, bits per weight, tokens/s, bytes of weights, share of answers that pass
LADDER = (
    ("F16", 16.0, 22.0, 2_500_000_000, 0.62),
    ("Q8_0", 8.5, 38.0, 1_330_000_000, 0.62),
    ("Q4_K_M", 4.9, 60.0, 770_000_000, 0.59),
    ("Q2_K", 3.2, 74.0, 500_000_000, 0.41),
)
CATEGORIES = ("reasoning", "coding", "creative writing", "summarization", "math")
TEXT = (
    "the model answers with a number that follows from both parts of the question because every step is "
    "shown and checked before the next one so that a reader can see where it went wrong if it did"
)
WORDS = TEXT.split()
READING_FIELDS = tuple(Reading.__dataclass_fields__)
FIRST_RUN_NS = 1_790_000_000_000_000_000
RUN_EVERY_NS = 86_400_000_000_000


def make_spec(number: int, n_samples: int) -> RunSpec:
    """A run whose plan has about `n_samples` cells."""
    n_prompts = max(1, n_samples // (len(LADDER) * N_BLOCKS))
    prompts = tuple(
        Prompt(
            prompt_id=f"prompt-{index:04}",
            category=CATEGORIES[index % len(CATEGORIES)],
            messages=(Message(role="user", content=_words(random.Random(index), 60)),),
            check=Check(kind="number", params={"value": index}) if index % 6 else None,
        )
        for index in range(n_prompts)
    )
    suite = Suite(name="made-up", description="", version="1", sha256=f"{number:064}", prompts=prompts)
    created = utc_iso(FIRST_RUN_NS + number * RUN_EVERY_NS)
    settings = LoadSettings(threads=8)
    return RunSpec(
        run_id=f"{created[:10].replace('-', '')}-120000-{number:04}",
        title=f"Made-up run {number}",
        created_utc=created,
        engine="fake",
        engine_url=None,
        variants=tuple(fake_variant(name, bpw=bpw, settings=settings) for name, bpw, *_ in LADDER),
        reference="F16",
        tasks=(Task.SPEED, Task.SUITE),
        suite=suite,
        sampling=Sampling(max_tokens=1024),
        n_blocks=N_BLOCKS,
        suite_repeats=N_BLOCKS,
    )


def write_run_folder(runs_dir: Path, spec: RunSpec, n_readings: int) -> Path:
    """The folder of a finished run with a sample for every cell of its plan, and its readings."""
    run_dir = runs_dir / spec.run_id
    run_dir.mkdir(parents=True)
    write_spec(run_dir, spec)
    write_atomic(run_dir / MACHINE_FILE, json.dumps(to_json(make_machine())))
    prompts = spec.suite.prompts if spec.suite else ()
    write_atomic(run_dir / PROMPTS_FILE, json.dumps([to_json(_rendered(prompt)) for prompt in prompts]))
    now_ns = start_ns = FIRST_RUN_NS + RUN_EVERY_NS * int(spec.run_id[-4:])
    with (run_dir / JOURNAL_FILE).open("w", encoding="utf-8") as file:

        def write(kind: str, data: object) -> None:
            file.write(json.dumps({"kind": kind, "data": data, "schema_version": 1}) + "\n")

        write("event", {"utc": utc_iso(now_ns), "event": "started", "detail": ""})
        for (block, label), cells in groupby(make_plan(spec), key=lambda cell: (cell.block, cell.variant)):
            load = _load(spec, label, block, now_ns)
            write("load", to_json(load))
            for sample in _samples(spec, load, list(cells), now_ns):
                write("sample", to_json(sample))
                now_ns += sample.stamps.end_ns or 0
            write("unload", to_json(_unload(load, now_ns)))
        write("event", {"utc": utc_iso(now_ns), "event": "finished", "detail": ""})
    _write_readings(run_dir / READINGS_FILE, start_ns, now_ns, n_readings)
    return run_dir


def make_database(out: Path, n_samples: int, n_readings: int) -> None:
    """Write the database; run folders live only as long as it takes."""
    rest = (1 - BIGGEST_SHARE) / (N_RUNS - 1)
    for number in range(N_RUNS):
        share = BIGGEST_SHARE if number == N_RUNS - 1 else rest
        with tempfile.TemporaryDirectory() as folder:
            spec = make_spec(number, round(n_samples * share))
            run_dir = write_run_folder(Path(folder), spec, round(n_readings * share))
            ingest_run(out, run_dir)


def _samples(spec: RunSpec, load: Load, cells: Sequence[Cell], start_ns: int) -> Iterator[Sample]:
    picker = random.Random(load.load_id)
    prompts = {prompt.prompt_id: prompt for prompt in spec.suite.prompts} if spec.suite else {}
    _, _, tps, weights, pass_share = next(row for row in LADDER if row[0] == load.variant)
    now_ns = start_ns
    for cell in cells:
        n_in, n_out = SHAPE_TOKENS[cell.shape] if cell.shape else (90, picker.randrange(40, 300))
        rate = tps * picker.gauss(1, 0.02) * (0.85 if cell.shape is Shape.CHAT512 else 1)
        first_ns = round(n_in / (rate * 9) * 1e9)
        end_ns = first_ns + round((n_out - 1) / rate * 1e9) + 200_000
        prompt = prompts.get(cell.prompt_id or "")
        is_good = picker.random() < 0.99
        outcome = Outcome.LENGTH if cell.task is Task.SPEED else Outcome.OK
        has_passed = CheckResult.PASS if picker.random() < pass_share else CheckResult.FAIL
        yield Sample(
            sample_id=f"{spec.run_id}/{cell.cell_id}@{cell.block}",
            run_id=spec.run_id,
            load_id=load.load_id,
            cell=cell,
            suite=spec.suite.name if spec.suite and prompt else None,
            started_utc=utc_iso(now_ns),
            outcome=outcome if is_good else Outcome.TIMEOUT,
            reason=None if is_good else "no token for 120 s",
            cold=cell is cells[0],
            prompt=prompt.messages[0].content if prompt else None,
            prompt_sha256="0" * 64,
            response=_words(picker, n_out) if n_out > 1 else "",
            thinking="",
            stamps=Stamps(
                first_token_ns=first_ns,
                first_text_ns=first_ns,
                first_output_ns=first_ns,
                last_token_ns=end_ns,
                end_ns=end_ns,
                first_event_tokens=1,
            ),
            counters=Counters(
                prompt_tokens=n_in,
                cached_tokens=0,
                output_tokens=n_out,
                engine_prompt_ms=first_ns / 1e6,
                engine_eval_ms=max(0.01, (n_out - 1) / rate * 1e3),
                stop_type="eos",
            ),
            surroundings=Surroundings(
                cpu_mean_pct=95.0,
                cpu_peak_pct=picker.uniform(95, 100),
                cpu_other_share=picker.uniform(0, 0.03),
                cpu_steal_share=0.0,
                peak_rss_bytes=weights + picker.randrange(1 << 26),
                peak_system_ram_bytes=weights + (4 << 30),
                contended=picker.random() < 0.01,
                n_readings=round(end_ns / 1e8),
            ),
            check=CheckOutcome(result=has_passed, reason="") if prompt and prompt.check else None,
        )
        now_ns += end_ns


def _rendered(prompt: Prompt) -> RenderedPrompt:
    return RenderedPrompt(
        prompt_id=prompt.prompt_id,
        text=prompt.messages[0].content,
        sha256="0" * 64,
        n_tokens=90,
        templated=False,
        template_sha256=None,
    )


def _load(spec: RunSpec, label: str, block: int, now_ns: int) -> Load:
    weights = next(row[3] for row in LADDER if row[0] == label)
    return Load(
        load_id=f"{spec.run_id}/{label}/{block}",
        run_id=spec.run_id,
        variant=label,
        block=block,
        started_utc=utc_iso(now_ns),
        outcome=Outcome.OK,
        reason=None,
        load_ms=weights / 2e6,
        asked={"n_ctx": 4096},
        effective={"n_ctx": 4096},
        weights_bytes=weights,
        kv_bytes=100 << 20,
        compute_bytes=60 << 20,
        output_bytes=1 << 20,
        host_rss_bytes=70 << 20,
        engine_version="made-up",
        system_info=None,
        log_file=None,
    )


def _unload(load: Load, now_ns: int) -> Unload:
    weights = load.weights_bytes or 0
    return Unload(
        load_id=load.load_id,
        ended_utc=utc_iso(now_ns),
        peak_rss_load_bytes=weights + (100 << 20),
        peak_rss_run_bytes=weights + (230 << 20),
        peak_anon_bytes=weights + (200 << 20),
        peak_memory_bytes=weights + (160 << 20),
        peak_vram_bytes=None,
        peak_vram_reason="no graphics device",
        sampler_cpu_share=0.005,
    )


def _write_readings(path: Path, start_ns: int, end_ns: int, n_readings: int) -> None:
    picker = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for number in range(n_readings):
            reading = Reading(
                utc_ns=start_ns + (end_ns - start_ns) * number // n_readings,
                rss_bytes=900_000_000 + picker.randrange(1 << 26),
                anon_bytes=800_000_000 + picker.randrange(1 << 26),
                swap_bytes=0,
                engine_cpu_pct=picker.uniform(780, 800),
                system_cpu_pct=picker.uniform(95, 100),
                other_cpu_share=picker.uniform(0, 0.03),
                steal_share=0.0,
                system_ram_bytes=6_000_000_000 + picker.randrange(1 << 26),
            )
            file.write(json.dumps({name: getattr(reading, name) for name in READING_FIELDS}) + "\n")


def _words(picker: random.Random, n_words: int) -> str:
    return " ".join(picker.choices(WORDS, k=n_words))


def main() -> None:
    """Make it and print what it took, as one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--readings", type=int, default=1_000_000)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    began = time.perf_counter()
    make_database(options.out, options.samples, options.readings)
    print(json.dumps({"seconds": time.perf_counter() - began, "bytes": options.out.stat().st_size}))


if __name__ == "__main__":
    main()
