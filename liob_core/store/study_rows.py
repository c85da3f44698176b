"""The original study's rows as rows of LIOB's tables, unknown where the study does not tell."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from liob_core.monitor import clock
from liob_core.store.kinds import STUDY
from liob_core.store.rows import json_text, to_utc
from liob_core.types import JudgeMode, JudgeState, Outcome, Task

Row = dict[str, object]

# The study's MB are MiB: only then do its memory figures differ between variants as the published files do.
_MB = 2**20
# Its limit of an answer's tokens; an answer of that length was cut off there.
_MAX_TOKENS = 512
_SUITE = "original study"
_JUDGE = "Judge of the original study"
JUDGE_KEY = "original-study"
_NOT_PUBLISHED = "the original study did not publish it"
_UNKNOWN = ("ttfot_ms", "tpot_ms", "e2e_ms", "prefill_tps", "decode_tps_client", "output_tps", "overhead_ms")


Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\w .:/()+-]+$")]
Amount = Annotated[float, Field(ge=0, le=1e12)] | None


_RUN: Row = {
    "kind": STUDY,
    "engine": "ollama",
    "tasks": [Task.SUITE.value],
    "shapes": [],
    "suite": _SUITE,
    "n_blocks": 1,
    "state": "finished",
    "left_out": "prompts and answers",
    "n_skipped_lines": 0,
    "journal_offset": 0,
    "readings_offset": 0,
}


class StudyRow(BaseModel):
    """One answer of one variant as the study published it; None where a cell is empty."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    model_id: Name
    model_name: Name
    quantization: Name
    prompt_id: Annotated[int, Field(ge=0, le=1_000_000)]
    category: Name
    ttft_sec: Amount
    tokens_per_sec: Amount
    eval_count: Annotated[int, Field(ge=0, le=10_000_000)] | None
    generation_time_sec: Amount
    peak_vram_mb: Amount
    peak_ram_mb: Amount
    peak_cpu_percent: Amount
    judge_score: Annotated[int, Field(ge=1, le=10)] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyVariant:
    """One variant: its label, its nominal bits, and its answers."""

    label: str
    bits: int
    rows: Sequence[StudyRow]


def tables_of(model_name: str, variants: Sequence[StudyVariant], machine: str | None) -> dict[str, list[Row]]:
    """The rows of one run by table; the same answers on the same machine make the same run again."""
    answers = [[variant.label, *_facts(row)] for variant in variants for row in variant.rows]
    run_id = f"study-{_hash([model_name, machine, sorted(answers, key=str)])[:12]}"
    # A machine without a name is like no other, so that nothing is compared with it as if it were the same.
    machine_id = _hash(["machine", machine or run_id])[:16]
    prompts = {row.prompt_id: row.category for variant in variants for row in variant.rows}
    counts = [row.eval_count or 0 for variant in variants for row in variant.rows]
    limit = _MAX_TOKENS if max(counts) == _MAX_TOKENS else None
    return {
        "machines": [{"machine_id": machine_id, "cpu_name": machine, "gpu_reason": _NOT_PUBLISHED}],
        "runs": [
            {
                "run_id": run_id,
                "title": f"{model_name}, original study",
                "reference": variants[0].label,
                "suite_sha256": _hash(sorted(prompts.items())),
                "n_suite_prompts": len(prompts),
                "max_tokens": limit,
                "machine_id": machine_id,
                "ingested_utc": to_utc(clock.utc_iso(clock.utc_ns())),
                **_RUN,
            }
        ],
        "variants": [
            _variant_row(run_id, model_name, place, variant) for place, variant in enumerate(variants)
        ],
        "prompts": [
            {
                "run_id": run_id,
                "prompt_id": str(prompt_id),
                "position": place,
                "suite": _SUITE,
                "category": category,
            }
            for place, (prompt_id, category) in enumerate(sorted(prompts.items()))
        ],
        "loads": [_load_row(run_id, variant) for variant in variants],
        "samples": [
            _sample_row(run_id, variant.label, row, limit) for variant in variants for row in variant.rows
        ],
        "judgements": [
            _judgement_row(run_id, variant.label, row) for variant in variants for row in variant.rows
        ],
    }


def _variant_row(run_id: str, model_name: str, place: int, variant: StudyVariant) -> Row:
    return {
        "run_id": run_id,
        "variant": variant.label,
        "position": place,
        "is_reference": place == 0,
        "quant": variant.label,
        "engine": "ollama",
        "engine_model": variant.rows[0].model_id,
        "model_name": model_name,
        "published_label": variant.rows[0].quantization,
        "need_reason": "the file was not read",
    }


def _load_row(run_id: str, variant: StudyVariant) -> Row:
    """Its one load, with what the engine said of its own memory: an estimate, never a measured peak."""
    told = max((row.peak_vram_mb for row in variant.rows if row.peak_vram_mb is not None), default=None)
    effective = None if told is None else json_text({"engine_vram_bytes": round(told * _MB)})
    return {
        "load_id": f"{run_id}/{variant.label}",
        "run_id": run_id,
        "variant": variant.label,
        "block": 0,
        "outcome": Outcome.OK.value,
        "effective": effective,
        "peak_vram_reason": _NOT_PUBLISHED
        if told is None
        else f"not measured; the engine itself named {told:,.0f} MiB",
    }


def _sample_row(run_id: str, label: str, row: StudyRow, limit: int | None) -> Row:
    is_cut = limit is not None and row.eval_count == limit
    values: dict[str, float | int | None] = {
        "ttft_ms": None if row.ttft_sec is None else row.ttft_sec * 1e3,
        "decode_tps": row.tokens_per_sec,
        "output_tokens": row.eval_count,
        "engine_eval_ms": None if row.generation_time_sec is None else row.generation_time_sec * 1e3,
        "peak_system_ram_bytes": None if row.peak_ram_mb is None else round(row.peak_ram_mb * _MB),
        "cpu_peak_pct": row.peak_cpu_percent,
    }
    missing = [*_UNKNOWN, *(name for name, value in values.items() if value is None)]
    return {
        "sample_id": _sample_id(run_id, label, row),
        "run_id": run_id,
        "load_id": f"{run_id}/{label}",
        "cell_id": f"{label}-{row.prompt_id}",
        "variant": label,
        "block": 0,
        "task": Task.SUITE.value,
        "suite": _SUITE,
        "category": row.category,
        "prompt_id": str(row.prompt_id),
        "repeat": 0,
        "warmup": False,
        "cold": False,
        "outcome": (Outcome.LENGTH if is_cut else Outcome.OK).value,
        "eval_excludes_first_token": False,
        **values,
        "unknown": json_text(dict.fromkeys(missing, _NOT_PUBLISHED)),
    }


def _judgement_row(run_id: str, label: str, row: StudyRow) -> Row:
    is_scored = row.judge_score is not None
    return {
        "judgement_id": f"{_sample_id(run_id, label, row)}/judge",
        "run_id": run_id,
        "sample_id": _sample_id(run_id, label, row),
        "variant": label,
        "prompt_id": str(row.prompt_id),
        "judge": _JUDGE,
        "judge_key": JUDGE_KEY,
        "mode": JudgeMode.SINGLE.value,
        "state": (JudgeState.SCORED if is_scored else JudgeState.JUDGE_ERROR).value,
        "score": row.judge_score,
        "reason": None if is_scored else "the study has no score of it",
    }


def _sample_id(run_id: str, label: str, row: StudyRow) -> str:
    return f"{run_id}/{label}-{row.prompt_id}"


def _facts(row: StudyRow) -> list[object]:
    """What a row tells, in a fixed order."""
    return list(row.model_dump().values())


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode()).hexdigest()
