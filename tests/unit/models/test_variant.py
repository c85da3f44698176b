import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from liob_core.errors import FileError, UsageError
from liob_core.models.digests import weights_sha256
from liob_core.models.variant import fake_variant, make_variant, order_by_bits, unique_labels, variant_key
from liob_core.types import LoadSettings, MemoryNeed, Variant


def test_variant_of_a_file(gguf: Callable[..., Path], tmp_path: Path) -> None:
    path, cache = gguf(), tmp_path / "cache"
    variant = make_variant(path, "embedded", LoadSettings(n_ctx=512), cache)
    assert (variant.engine, variant.quant, variant.label) == ("embedded", "Q4_0", "tiny-Q4_0")
    assert variant.engine_model == str(path.resolve())
    assert variant.weights_sha256 == weights_sha256(path, cache)
    assert variant.file_sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert variant.model is not None
    assert variant.need is not None
    assert variant.need.weights_bytes == variant.model.tensor_bytes
    assert make_variant(path, "embedded", LoadSettings(n_ctx=512), cache, label="mine").label == "mine"


def test_variant_of_a_file_without_labels_is_named_by_its_tensors(
    gguf: Callable[..., Path], tmp_path: Path
) -> None:
    assert make_variant(gguf("m.gguf", file_type=None), "embedded", LoadSettings(), tmp_path).quant == "Q4_1"


def test_variant_of_a_bad_file(tmp_path: Path) -> None:
    path = tmp_path / "page.gguf"
    path.write_bytes(b"<html>")
    with pytest.raises(FileError, match="web page"):
        make_variant(path, "embedded", LoadSettings(), tmp_path)


def test_key_tells_weights_engine_and_settings_apart() -> None:
    settings = LoadSettings()
    keys = [
        variant_key("a", "embedded", settings),
        variant_key("b", "embedded", settings),
        variant_key("a", "ollama", settings),
        variant_key("a", "embedded", replace(settings, kv_type_k="q8_0")),
    ]
    assert len(set(keys)) == 4
    assert variant_key("a", "embedded", LoadSettings()) == keys[0]


def test_labels_are_the_quantization_where_that_is_enough() -> None:
    variants = [fake_variant("Q8_0", bpw=8.5), fake_variant("Q4_0", bpw=4.5)]
    assert [variant.label for variant in unique_labels(variants)] == ["Q8_0", "Q4_0"]


def test_labels_of_one_file_with_two_settings() -> None:
    plain = fake_variant("Q8_0", bpw=8.5)
    compressed = fake_variant("Q8_0", bpw=8.5, settings=LoadSettings(kv_type_k="q8_0"))
    assert [v.label for v in unique_labels([plain, compressed])] == [
        "Q8_0 kv_type_k=f16",
        "Q8_0 kv_type_k=q8_0",
    ]


def test_labels_of_two_publishers_of_one_quantization() -> None:
    first = replace(fake_variant("Q4_0", bpw=4.5), engine_model="/a/one-Q4_0.gguf")
    second = replace(fake_variant("Q4_0", bpw=4.6), engine_model="/a/two-Q4_0.gguf")
    same_name = replace(fake_variant("Q4_0", bpw=4.7), engine_model="/b/one-Q4_0.gguf")
    assert [v.label for v in unique_labels([first, second])] == ["Q4_0 (one-Q4_0)", "Q4_0 (two-Q4_0)"]
    assert len({v.label for v in unique_labels([first, second, same_name])}) == 3


def test_same_variant_twice_is_refused() -> None:
    variant = fake_variant("Q8_0", bpw=8.5)
    with pytest.raises(UsageError, match="named twice"):
        unique_labels([variant, variant])
    assert unique_labels([]) == []


def test_order_by_bits() -> None:
    unknown = replace(fake_variant("x", bpw=9), model=None)
    variants = [
        fake_variant("Q4_0", bpw=4.5),
        unknown,
        fake_variant("F16", bpw=16),
        fake_variant("Q8_0", bpw=8.5),
    ]
    assert [variant.label for variant in order_by_bits(variants)] == ["F16", "Q8_0", "Q4_0", "x"]


def test_the_same_weights_are_ordered_by_the_size_of_their_cache() -> None:
    caches = {"f16": 96, "q8_0": 51, "q4_0": 27}
    variants = [
        replace(
            fake_variant("F16", bpw=16),
            label=label,
            need=MemoryNeed(weights_bytes=1, kv_bytes=size, compute_bytes=0, need_bytes=None, reason=None),
        )
        for label, size in sorted(caches.items())
    ]
    assert [one.label for one in order_by_bits(variants)] == list(caches)


def test_fake_variant_is_repeatable() -> None:
    assert fake_variant("a", bpw=4) == fake_variant("a", bpw=4)
    assert fake_variant("a", bpw=4).key != fake_variant("b", bpw=4).key
    model = fake_variant("a", bpw=4.5).model
    assert model is not None
    assert model.bpw == pytest.approx(8 * model.tensor_bytes / model.n_params)


def on(variant: Variant, engine: str, **settings: object) -> Variant:
    asked = replace(variant.load_settings, **settings)
    return replace(variant, key=variant_key(variant.key, engine, asked), engine=engine, load_settings=asked)


def test_labels_stay_short_where_engines_differ_in_context_too() -> None:
    first, second = fake_variant("Q8_0", bpw=8.5), fake_variant("Q4_0", bpw=4.5)
    variants = [
        on(first, "embedded", n_ctx=4096),
        on(first, "ollama", n_ctx=2048),
        on(second, "embedded", n_ctx=1024),
    ]
    assert [one.label for one in unique_labels(variants)] == ["Q8_0 embedded", "Q8_0 ollama", "Q4_0"]


def test_labels_name_only_settings_that_differ_among_variants_alike() -> None:
    first, second = fake_variant("Q8_0", bpw=8.5), fake_variant("Q4_0", bpw=4.5)
    variants = [
        on(first, "ollama", gpu_layers=None),
        on(first, "ollama", gpu_layers=7),
        on(second, "ollama", n_ctx=1024),
    ]
    assert [one.label for one in unique_labels(variants)] == [
        "Q8_0 gpu_layers=auto",
        "Q8_0 gpu_layers=7",
        "Q4_0",
    ]
