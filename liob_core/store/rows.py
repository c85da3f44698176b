"""Records as rows: which field of which record fills which column.

Columns are named after fields wherever one record's field means the same, so the maps below only say
where a value lies.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from operator import attrgetter

from liob_core.metrics import SampleMetrics, sample_metrics
from liob_core.models.hub_origin import hub_origin
from liob_core.models.memory import token_read_bytes
from liob_core.models.variant import model_name_of
from liob_core.quality.closeness.fidelity import Fidelity
from liob_core.quality.closeness.results import Result
from liob_core.types import (
    Bandwidth,
    CalibrationResult,
    EnergyWindow,
    JsonValue,
    Judgement,
    Load,
    Machine,
    Reading,
    RenderedPrompt,
    RunSpec,
    Sample,
    Unload,
    Variant,
    to_json,
)

_CELL = ("cell_id", "variant", "block", "task", "shape", "category", "prompt_id", "repeat", "warmup", "seed")
_STAMPS = (
    *("first_token_ns", "first_text_ns", "first_output_ns", "last_token_ns", "end_ns"),
    "first_event_tokens",
)
_COUNTERS = (
    *("prompt_tokens", "cached_tokens", "output_tokens", "engine_prompt_ms", "engine_eval_ms"),
    *("engine_load_ms", "engine_total_ms", "stop_type", "eval_excludes_first_token"),
)
_SURROUNDINGS = (
    *("cpu_mean_pct", "cpu_peak_pct", "cpu_other_share", "cpu_steal_share", "peak_rss_bytes"),
    *("peak_system_ram_bytes", "peak_vram_bytes", "contended", "n_readings"),
)
_OWN = (
    *("sample_id", "run_id", "load_id", "suite", "outcome", "reason", "cold", "prompt", "prompt_sha256"),
    *("response", "thinking"),
)
_SAMPLE_PATHS = {
    **{name: name for name in _OWN},
    "cell_index": "cell.index",
    **{name: f"cell.{name}" for name in _CELL},
    **{name: f"stamps.{name}" for name in _STAMPS},
    **{name: f"counters.{name}" for name in _COUNTERS},
    **{name: f"surroundings.{name}" for name in _SURROUNDINGS},
}
_METRICS = tuple(name for name in SampleMetrics.__dataclass_fields__ if name != "unknown")
_FIDELITY = tuple(name for name in Fidelity.__dataclass_fields__ if name not in {"variant", "unknown"})
_CHECK = ("check_result", "check_reason", "check_extracted", "check_score")

SAMPLE_COLUMNS = (*_SAMPLE_PATHS, *_METRICS, *_CHECK, "started_utc", "exact_text", "unknown")

_sample_values = attrgetter(*_SAMPLE_PATHS.values())
_metric_values = attrgetter(*_METRICS)
_check_values = attrgetter("result", "reason", "extracted", "score")
_NO_CHECK = (None, None, None, None)

_LOAD = (
    *("load_id", "run_id", "variant", "block", "outcome", "reason", "load_ms", "weights_bytes", "kv_bytes"),
    *("compute_bytes", "output_bytes", "host_rss_bytes", "engine_version", "system_info"),
)
_UNLOAD = (
    *("ended_utc", "peak_rss_load_bytes", "peak_rss_run_bytes", "peak_anon_bytes", "peak_memory_bytes"),
    *("peak_vram_bytes", "peak_vram_reason", "sampler_cpu_share"),
)
_READING = tuple(name for name in Reading.__dataclass_fields__ if name != "gpus")
READING_COLUMNS = ("run_id", *_READING)
_reading_values = attrgetter(*_READING)
_MODEL = (
    *("architecture", "file_bytes", "tensor_bytes", "n_params", "bpw", "published_label", "content_label"),
    *("label_warning", "fallback_tensors", "fallback_warning", "n_layers", "n_ctx_train", "n_experts"),
    *("n_experts_used", "has_chat_template", "chat_template_sha256", "imatrix", "quantized_by", "repo_url"),
    "base_model",
)
MEAN_DEPTH_TOKENS = 576  # of the headline shape chat512: 512 tokens in, then 128 out one by one
_LOAD_SETTINGS = ("n_ctx", "threads", "gpu_layers", "kv_type_k", "kv_type_v")


def sample_row(sample: Sample, exact_text: str | None) -> tuple[object, ...]:
    """One row of raw.samples in the order of SAMPLE_COLUMNS, with its metrics in ms and tokens/s.

    A tuple, where the rarer records are dicts: samples and readings come by the hundred thousand.
    """
    metrics = sample_metrics(sample)
    return (
        *_sample_values(sample),
        *_metric_values(metrics),
        *(_check_values(sample.check) if sample.check else _NO_CHECK),
        to_utc(sample.started_utc),
        exact_text,
        json_text(dict(metrics.unknown) or None),
    )


def load_row(load: Load) -> dict[str, object]:
    """One row of raw.loads, without what the end of the load tells."""
    return {
        **{name: getattr(load, name) for name in _LOAD},
        "started_utc": to_utc(load.started_utc),
        "asked": json_text(load.asked),
        "effective": json_text(load.effective),
        "log_file": base_name(load.log_file),
    }


def unload_row(unload: Unload) -> dict[str, object]:
    """What the end of a load adds to its row."""
    row = {name: getattr(unload, name) for name in ("load_id", *_UNLOAD)}
    return {**row, "ended_utc": to_utc(unload.ended_utc)}


def energy_row(window: EnergyWindow) -> dict[str, object]:
    """One row of raw.energy."""
    return {**to_json(window), "started_utc": to_utc(window.started_utc)}


def judgement_row(judgement: Judgement) -> dict[str, object]:
    """One row of raw.judgements."""
    row: dict[str, object] = dict(to_json(judgement))
    row["judged_utc"] = to_utc(str(row.pop("utc")))
    return {**row, "earlier_replies": json_text(list(judgement.earlier_replies) or None)}


def calibration_row(result: CalibrationResult) -> dict[str, object]:
    """One row of raw.calibrations."""
    row: dict[str, object] = dict(to_json(result))
    row["judged_utc"], row["item_kind"] = to_utc(str(row.pop("utc"))), row.pop("kind")
    return row


def reading_row(run_id: str, reading: Reading) -> tuple[object, ...]:
    """One row of raw.readings in the order of READING_COLUMNS."""
    return (run_id, *_reading_values(reading))


def gpu_rows(run_id: str, reading: Reading) -> Iterator[dict[str, object]]:
    """The rows of raw.gpu_readings, one per device."""
    for gpu in reading.gpus:
        yield {"run_id": run_id, "utc_ns": reading.utc_ns, **to_json(gpu)}


def machine_row(machine: Machine) -> dict[str, object]:
    """One row of raw.machines."""
    row: dict[str, object] = dict(to_json(machine))
    return {**row, "gpus": json_text(row["gpus"]), "missing_sources": json_text(row["missing_sources"])}


def run_row(spec: RunSpec, machine: Machine | None, bandwidth: Bandwidth | None) -> dict[str, object]:
    """One row of raw.runs as far as the spec and what was read before the run tell."""
    suite = spec.suite
    return {
        "run_id": spec.run_id,
        "title": spec.title,
        "created_utc": to_utc(spec.created_utc),
        "engine": ", ".join(dict.fromkeys((spec.engine, *(variant.engine for variant in spec.variants)))),
        "engine_url": spec.engine_url,
        "reference": spec.reference,
        "tasks": list(spec.tasks),
        "shapes": list(spec.shapes) if "speed" in spec.tasks else [],
        "suite": suite.name if suite else None,
        "suite_version": suite.version if suite else None,
        "suite_sha256": suite.sha256 if suite else None,
        "n_suite_prompts": len(suite.prompts) if suite else None,
        "max_tokens": spec.sampling.max_tokens,
        "temperature": spec.sampling.temperature,
        "seed": spec.sampling.seed,
        "sampling": json_text(to_json(spec.sampling)),
        "n_blocks": spec.n_blocks,
        "suite_repeats": spec.suite_repeats,
        "n_seeds": spec.n_seeds,
        "n_warmups": spec.n_warmups,
        "order_seed": spec.order_seed,
        "prompt_mode": spec.prompt_mode,
        "limits": json_text(to_json(spec.limits)),
        "monitor_hz": spec.monitor_hz,
        "engine_options": json_text(spec.engine_options),
        "liob_version": spec.liob_version,
        "closeness": json_text(_without_path(spec)),
        "machine_id": machine.machine_id if machine else None,
        "machine": json_text(to_json(machine)) if machine else None,
        "read_bytes_per_s": bandwidth.read_bytes_per_s if bandwidth else None,
        "read_threads": bandwidth.threads if bandwidth else None,
        "cache_bytes": bandwidth.cache_bytes if bandwidth else None,
        "read_reason": bandwidth.reason if bandwidth else None,
    }


def _without_path(spec: RunSpec) -> JsonValue:
    asked = to_json(spec.closeness) if spec.closeness else None
    return None if asked is None else {name: value for name, value in asked.items() if name != "text_path"}


def fidelity_row(run_id: str, result: Result) -> dict[str, object]:
    """One row of raw.fidelities: the figures where there are any, and how it ended."""
    found = result.fidelity
    return {
        **{name: getattr(found, name, None) for name in _FIDELITY},
        "run_id": run_id,
        "variant": result.label,
        "ending": result.ending.value,
        "reason": result.reason,
        "unknown": json_text(dict(found.unknown) if found else {}),
    }


def variant_rows(spec: RunSpec) -> Iterator[dict[str, object]]:
    """The rows of raw.variants."""
    for position, variant in enumerate(spec.variants):
        yield {
            "run_id": spec.run_id,
            "variant": variant.label,
            "position": position,
            "is_reference": variant.label == spec.reference,
            "variant_key": variant.key,
            "quant": variant.quant,
            "engine": variant.engine,
            "engine_model": variant.engine_model,
            "weights_sha256": variant.weights_sha256,
            "file_sha256": variant.file_sha256,
            **{name: getattr(variant.load_settings, name) for name in _LOAD_SETTINGS},
            "load_settings": json_text(to_json(variant.load_settings)),
            **_model_columns(variant),
            **_need_columns(variant),
        }


def prompt_rows(spec: RunSpec, rendered: Mapping[str, RenderedPrompt]) -> Iterator[dict[str, object]]:
    """The rows of raw.prompts: a prompt of the suite and, once it was rendered, the text sent."""
    if spec.suite is None:
        return
    for position, prompt in enumerate(spec.suite.prompts):
        text = rendered.get(prompt.prompt_id)
        yield {
            "run_id": spec.run_id,
            "prompt_id": prompt.prompt_id,
            "position": position,
            "suite": spec.suite.name,
            "category": prompt.category,
            "messages": json_text([to_json(message) for message in prompt.messages]),
            "check_kind": prompt.check.kind if prompt.check else None,
            "check_params": json_text(prompt.check.params) if prompt.check else None,
            "rubric": prompt.rubric,
            "reference_answer": prompt.reference,
            "max_tokens": prompt.max_tokens,
            "prompt": text.text if text else None,
            "prompt_sha256": text.sha256 if text else None,
            "prompt_tokens": text.n_tokens if text else None,
            "templated": text.templated if text else None,
            "template_sha256": text.template_sha256 if text else None,
        }


def _model_columns(variant: Variant) -> dict[str, object]:
    model = variant.model
    if model is None:
        return {}
    origin = hub_origin(model.paths[0]) if model.paths else None
    return {
        **{name: getattr(model, name) for name in _MODEL},
        "hub_repo": origin.repo_id if origin else None,
        "hub_commit": origin.commit if origin else None,
        # People know a model by its file; headers hold working titles such as "Smollm2 135M 8k Mix1 Ep2".
        "model_name": model_name_of(variant),
        "file_name": base_name(model.paths[0]) if model.paths else None,
        "tensor_groups": json_text([to_json(group) for group in model.tensor_groups]),
        "model": json_text(to_json(model)),
        "token_read_bytes": token_read_bytes(model, variant.load_settings, MEAN_DEPTH_TOKENS),
    }


def _need_columns(variant: Variant) -> dict[str, object]:
    need = variant.need
    if need is None:
        return {}
    return {
        "need_bytes": need.need_bytes,
        "need_weights_bytes": need.weights_bytes,
        "need_kv_bytes": need.kv_bytes,
        "need_compute_bytes": need.compute_bytes,
        "need_reason": need.reason,
    }


def to_utc(stamp: str) -> datetime:
    """An ISO 8601 stamp as UTC without a zone, as the database keeps it."""
    moment = datetime.fromisoformat(stamp)
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def json_text(value: JsonValue) -> str | None:
    """A JSON column's text; None stays NULL."""
    return None if value is None else json.dumps(value, ensure_ascii=False)


def base_name(path: str | None) -> str | None:
    """The last part of a path of any system."""
    return None if path is None else re.split(r"[\\/]", path)[-1]
