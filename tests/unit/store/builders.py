"""Records and run folders for tests of the store room."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from liob_core.store.journal import (
    MACHINE_FILE,
    PROMPTS_FILE,
    READINGS_FILE,
    Journal,
    write_atomic,
    write_spec,
)
from liob_core.types import (
    CalibrationResult,
    Cell,
    Check,
    CheckOutcome,
    CheckResult,
    Counters,
    GpuReading,
    Judgement,
    JudgeMode,
    JudgeState,
    Load,
    LoadSettings,
    Machine,
    MemoryNeed,
    Message,
    ModelFile,
    Outcome,
    Prompt,
    Reading,
    RenderedPrompt,
    RunSpec,
    Sample,
    Sampling,
    Stamps,
    Suite,
    Surroundings,
    Task,
    TensorGroup,
    Unload,
    Variant,
    to_json,
)

RUN_ID = "20261130-120000-abcd"
MODEL_FOLDER = "/home/jane doe/secret models"


def make_model(name: str) -> ModelFile:
    group = TensorGroup(
        type_name="Q4_0",
        n_tensors=1,
        n_elements=100,
        tensor_bytes=56,
        bits=4.5,
        block_size=32,
        has_offset=False,
    )
    values: dict[str, Any] = dict.fromkeys(ModelFile.__dataclass_fields__)
    values |= {
        "paths": (f"{MODEL_FOLDER}/{name}.gguf",),
        "file_bytes": 1000,
        "tensor_bytes": 900,
        "n_params": 1600,
        "bpw": 4.5,
        "n_tensors": 1,
        "tensor_groups": (group,),
        "architecture": "llama",
        "has_chat_template": True,
        "published_label": name,
    }
    return ModelFile(**values)


def make_variant(label: str) -> Variant:
    return Variant(
        key=f"key-{label}",
        label=label,
        quant=label,
        engine="embedded",
        engine_model=f"{MODEL_FOLDER}/{label}.gguf",
        load_settings=LoadSettings(threads=2),
        weights_sha256="w" * 64,
        file_sha256="f" * 64,
        model=make_model(label),
        need=MemoryNeed(weights_bytes=900, kv_bytes=50, compute_bytes=50, need_bytes=1000),
    )


def make_spec(**changes: Any) -> RunSpec:
    suite = Suite(
        name="tiny",
        description="",
        version="1",
        sha256="s" * 64,
        prompts=(
            Prompt(
                prompt_id="p0",
                category="math",
                messages=(Message(role="user", content="1 + 1?"),),
                check=Check(kind="number", params={"value": 2}),
            ),
        ),
    )
    spec = RunSpec(
        run_id=RUN_ID,
        title="A run",
        created_utc="2026-11-30T12:00:00Z",
        engine="embedded",
        engine_url=None,
        variants=(make_variant("F16"), make_variant("Q4_0")),
        reference="F16",
        tasks=(Task.SUITE,),
        suite=suite,
        sampling=Sampling(max_tokens=32),
    )
    return replace(spec, **changes)


def make_sample(number: int = 0, **changes: Any) -> Sample:
    """Times and counts whose metrics are easy: TTFT 100 ms, E2E 1100 ms, 11 tokens in 1000 ms."""
    cell = Cell(
        cell_id=f"c{number}",
        index=number,
        variant="Q4_0",
        block=0,
        task=Task.SUITE,
        shape=None,
        prompt_id="p0",
        category="math",
        repeat=0,
        warmup=False,
        seed=1,
    )
    sample = Sample(
        sample_id=f"{RUN_ID}/c{number}@1",
        run_id=RUN_ID,
        load_id=f"{RUN_ID}/1",
        cell=cell,
        suite="tiny",
        started_utc="2026-11-30T12:00:01.500000Z",
        outcome=Outcome.OK,
        reason=None,
        cold=False,
        prompt="1 + 1?",
        prompt_sha256="p" * 64,
        response="2",
        thinking="",
        stamps=Stamps(
            first_token_ns=100_000_000,
            first_text_ns=100_000_000,
            first_output_ns=100_000_000,
            last_token_ns=1_100_000_000,
            end_ns=1_100_000_000,
            first_event_tokens=1,
        ),
        counters=Counters(
            prompt_tokens=40, cached_tokens=0, output_tokens=11, engine_prompt_ms=100.0, engine_eval_ms=1000.0
        ),
        surroundings=Surroundings(cpu_mean_pct=50.0, contended=False, n_readings=11),
        check=CheckOutcome(result=CheckResult.PASS, reason="2 is 2", extracted="2", score=0.5),
    )
    return replace(sample, **changes)


def make_load(**changes: Any) -> Load:
    load = Load(
        load_id=f"{RUN_ID}/1",
        run_id=RUN_ID,
        variant="Q4_0",
        block=0,
        started_utc="2026-11-30T12:00:00.500000Z",
        outcome=Outcome.OK,
        reason=None,
        load_ms=250.0,
        asked={"n_ctx": 4096},
        effective={"n_ctx": 4096},
        weights_bytes=900,
        kv_bytes=50,
        compute_bytes=40,
        output_bytes=10,
        host_rss_bytes=70,
        engine_version="b1",
        system_info="AVX2",
        log_file=f"{MODEL_FOLDER}/engine-1.log",
    )
    return replace(load, **changes)


def make_unload() -> Unload:
    return Unload(
        load_id=f"{RUN_ID}/1",
        ended_utc="2026-11-30T12:00:05Z",
        peak_rss_load_bytes=1100,
        peak_rss_run_bytes=1200,
        peak_anon_bytes=1000,
        peak_memory_bytes=1130,
        peak_vram_bytes=None,
        peak_vram_reason="no device",
        sampler_cpu_share=0.004,
    )


def make_judgement(number: int = 1, **changes: Any) -> Judgement:
    judgement = Judgement(
        judgement_id=f"{RUN_ID}/judgement-{number:05d}",
        run_id=RUN_ID,
        sample_id=f"{RUN_ID}/c0@1",
        variant="Q4_0",
        prompt_id="p0",
        judge="a judge",
        judge_key="j1",
        mode=JudgeMode.SINGLE,
        state=JudgeState.SCORED,
        score=7,
        reason="It is right.",
        raw_reply='{"score": 7}',
        attempts=1,
        utc="2026-11-30T13:00:00Z",
        calibration_share=0.9,
        is_self=False,
    )
    return replace(judgement, **changes)


def make_calibration(number: int = 1, **changes: Any) -> CalibrationResult:
    result = CalibrationResult(
        calibration_id=f"{RUN_ID}/calibration-{number:05d}",
        run_id=RUN_ID,
        judge="a judge",
        judge_key="j1",
        mode=JudgeMode.SINGLE,
        set_sha256="c" * 64,
        item_id=f"gold-{number}",
        kind="gold",
        expected="good",
        got="9",
        is_right=True,
        state=JudgeState.SCORED,
        raw_reply='{"score": 9}',
        attempts=1,
        utc="2026-11-30T12:59:00Z",
    )
    return replace(result, **changes)


def make_reading(number: int) -> Reading:
    gpu = GpuReading(
        device=0,
        used_bytes=5,
        process_bytes=None,
        utilization_pct=1.0,
        power_w=None,
        energy_mj=None,
        temperature_c=None,
        sm_clock_mhz=None,
        mem_clock_mhz=None,
    )
    return Reading(utc_ns=1_796_040_000_000_000_000 + number * 100_000_000, rss_bytes=1000, gpus=(gpu,))


def make_machine() -> Machine:
    return Machine(
        machine_id="m1",
        cpu_name="A CPU",
        cpu_arch="x86_64",
        physical_cores=2,
        logical_cores=4,
        ram_bytes=1 << 34,
        swap_bytes=0,
        os_name="Linux",
        os_version="6",
        python_version="3.11",
        gpus=(),
        gpu_reason="no driver",
        power_source=None,
        cpu_governor=None,
        is_virtual=True,
    )


def append_readings(run_dir: Path, numbers: range) -> None:
    with (run_dir / READINGS_FILE).open("a", encoding="utf-8") as file:
        for number in numbers:
            file.write(json.dumps(to_json(make_reading(number))) + "\n")


def make_run_folder(parent: Path, n_samples: int = 2, **changes: Any) -> Path:
    """A finished run: one load, samples, an unload and five readings."""
    spec = make_spec(**changes)
    run_dir = parent / spec.run_id
    run_dir.mkdir(parents=True)
    write_spec(run_dir, spec)
    write_atomic(run_dir / MACHINE_FILE, json.dumps(to_json(make_machine())))
    rendered = RenderedPrompt(
        prompt_id="p0", text="1 + 1?", sha256="p" * 64, n_tokens=4, templated=False, template_sha256=None
    )
    write_atomic(run_dir / PROMPTS_FILE, json.dumps([to_json(rendered)]))
    load_id = f"{spec.run_id}/1"
    with Journal(run_dir) as journal:
        journal.append_event("started")
        journal.append(make_load(load_id=load_id, run_id=spec.run_id))
        for number in range(n_samples):
            sample_id = f"{spec.run_id}/c{number}@1"
            journal.append(make_sample(number, sample_id=sample_id, run_id=spec.run_id, load_id=load_id))
        journal.append(replace(make_unload(), load_id=load_id))
        journal.append_event("finished")
    append_readings(run_dir, range(5))
    return run_dir
