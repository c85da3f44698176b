"""Variants: a model file, an engine and load settings, with labels that are unique in a run."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

from liob_core.errors import UsageError
from liob_core.models.digests import file_sha256, weights_sha256
from liob_core.models.family import by_model
from liob_core.models.gguf import model_of, read_headers
from liob_core.models.labels import is_blob, plain_stem
from liob_core.models.memory import memory_need
from liob_core.types import LoadSettings, ModelFile, Variant


def make_variant(
    path: Path,
    engine: str,
    settings: LoadSettings,
    cache_dir: Path,
    *,
    label: str | None = None,
) -> Variant:
    """The variant that `path` is on an engine; reads the whole file for its digests."""
    headers = read_headers(path)
    model = model_of(headers)
    first = Path(model.paths[0]).resolve()
    # Side by side both read the same pages of the disk's cache, and each has a core.
    with ThreadPoolExecutor(max_workers=2) as pool:
        whole = pool.submit(file_sha256, first, cache_dir)
        weights = weights_sha256(first, cache_dir, headers=headers)
    return Variant(
        key=variant_key(weights, engine, settings),
        label=label or first.stem,
        quant=quant_of(model),
        engine=engine,
        engine_model=str(first),
        load_settings=settings,
        weights_sha256=weights,
        file_sha256=whole.result(),
        model=model,
        need=memory_need(model, settings),
    )


def fake_variant(name: str, *, bpw: float, settings: LoadSettings | None = None) -> Variant:
    """A variant of the fake engine, which needs no file; `bpw` is its made-up bits per weight."""
    settings = settings or LoadSettings()
    weights = hashlib.sha256(f"fake:{name}:{bpw}".encode()).hexdigest()
    n_params = 1_000_000
    tensor_bytes = round(n_params * bpw / 8)
    model = ModelFile(
        paths=(),
        file_bytes=tensor_bytes,
        tensor_bytes=tensor_bytes,
        n_params=n_params,
        bpw=bpw,
        n_tensors=0,
        tensor_groups=(),
        architecture="fake",
        name=name,
        published_label=name,
        content_label=None,
        label_warning=None,
        fallback_tensors=None,
        fallback_warning=None,
        n_layers=None,
        n_ctx_train=None,
        n_embd=None,
        n_heads=None,
        n_kv_heads=None,
        head_dim_k=None,
        head_dim_v=None,
        sliding_window=None,
        n_experts=None,
        n_experts_used=None,
        vocab_size=None,
        has_chat_template=False,
        chat_template_sha256=None,
        adds_bos=None,
        imatrix=None,
        quantized_by=None,
        repo_url=None,
        base_model=None,
    )
    return Variant(
        key=variant_key(weights, "fake", settings),
        label=name,
        quant=name,
        engine="fake",
        engine_model=name,
        load_settings=settings,
        weights_sha256=weights,
        file_sha256=None,
        model=model,
        need=None,
    )


def variant_key(weights: str | None, engine: str, settings: LoadSettings) -> str:
    """The identity of a variant, in hex: the same weights with other load settings are another one."""
    text = json.dumps([weights, engine, asdict(settings)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def quant_of(model: ModelFile) -> str:
    """The quantization as published; where the name says nothing, as the header or the tensors say."""
    largest = model.tensor_groups[0].type_name if model.tensor_groups else "unknown"
    return model.published_label or model.content_label or largest


def order_by_bits(variants: Iterable[Variant]) -> list[Variant]:
    """The variants from most to fewest true bits per weight, then of the cache; those not known come last."""

    def place(variant: Variant) -> tuple[float, int, str]:
        bits = variant.model.bpw if variant.model else 0.0
        cache_bytes = (variant.need.kv_bytes if variant.need else None) or 0
        return -bits, -cache_bytes, variant.label

    return sorted(variants, key=place)


def unique_labels(variants: Sequence[Variant]) -> list[Variant]:
    """The variants with labels that are unique in a run: the quantization where that suffices.

    In a run of several models the model's name comes first. Where that does not suffice, load settings that
    differ and then the file's name are added. The same variant twice is the user's mistake.
    """
    twice = [key for key, count in Counter(variant.key for variant in variants).items() if count > 1]
    if twice:
        names = " and ".join(variant.engine_model for variant in variants if variant.key == twice[0])
        raise UsageError(f"The same weights with the same settings are named twice ({names}). Leave one out.")
    return [replace(variant, label=label) for variant, label in zip(variants, _labels(variants), strict=True)]


def _labels(variants: Sequence[Variant]) -> list[str]:
    labels = [_short_label(variant, variants) for variant in variants]
    taken = Counter(labels)
    labels = [
        label if taken[label] == 1 else f"{label} ({_file_name(variant)})"
        for variant, label in zip(variants, labels, strict=True)
    ]
    taken = Counter(labels)
    return [
        label if taken[label] == 1 else f"{label} {variant.key[:6]}"
        for variant, label in zip(variants, labels, strict=True)
    ]


def _short_label(variant: Variant, variants: Sequence[Variant]) -> str:
    """The quantization and only so much more as tells the variant from others of the same one."""
    models = by_model(variants)
    own = next(members for members in models if variant in members)
    alike = [one for one in own if one.quant == variant.quant]
    parts = [f"{model_name_of(variant)} {variant.quant}" if len(models) > 1 else variant.quant]
    if len({one.engine for one in alike}) > 1:
        parts.append(variant.engine)
        alike = [one for one in alike if one.engine == variant.engine]
    return " ".join([*parts, *_settings(variant, _differing_settings(alike))])


def _file_name(variant: Variant) -> str:
    # The name of a model on Ollama may hold dots that begin no ending.
    return variant.engine_model if variant.engine == "ollama" else Path(variant.engine_model).stem


def model_name_of(variant: Variant) -> str:
    """What people call the model, without its quantization: by its file, or as Ollama names it."""
    model = variant.model
    if model is not None and model.name and (not model.paths or is_blob(model.paths[0])):
        return model.name
    return plain_stem(Path(model.paths[0] if model and model.paths else variant.engine_model))


def _differing_settings(variants: Sequence[Variant]) -> list[str]:
    settings = [asdict(variant.load_settings) for variant in variants]
    return [name for name in settings[0] if len({one[name] for one in settings}) > 1] if settings else []


def _settings(variant: Variant, names: Sequence[str]) -> list[str]:
    values = {
        name: "auto" if setting is None else setting
        for name, setting in asdict(variant.load_settings).items()
    }
    key, value = "kv_type_k", "kv_type_v"
    if {key, value} <= set(names) and values[key] == values[value]:
        others = [f"{name}={values[name]}" for name in names if name not in {key, value}]
        return [*others, f"KV {values[key]}"]
    return [f"{name}={values[name]}" for name in names]
