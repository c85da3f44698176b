"""Which variants belong to one model, and which of each model all others are compared with."""

from dataclasses import replace

import pytest

from liob_core.models.family import default_reference, families, is_same_model
from liob_core.models.variant import fake_variant, unique_labels
from liob_core.types import Variant


def variant(name: str, bpw: float, **shape: object) -> Variant:
    made = fake_variant(name, bpw=bpw)
    assert made.model is not None
    shaped = {"architecture": "llama", "n_layers": 32, "n_embd": 4096, "vocab_size": 128_256} | shape
    return replace(made, model=replace(made.model, **shaped))


SMALL = {"n_layers": 16, "n_embd": 2048}


def test_each_model_has_its_own_reference_and_the_runs_comes_first() -> None:
    variants = [
        variant("small F16", 16, **SMALL),
        variant("big Q8_0", 8.5),
        variant("small Q4_0", 4.5, **SMALL),
        variant("big Q4_0", 4.5),
    ]
    found = [[one.label for one in members] for members in families(variants, "big Q4_0")]
    assert found == [["big Q4_0", "big Q8_0"], ["small F16", "small Q4_0"]]


@pytest.mark.parametrize(
    "shape", [{"n_layers": 16}, {"n_embd": 1}, {"vocab_size": 9}, {"architecture": "gemma3"}]
)
def test_any_other_shape_is_another_model(shape: dict[str, object]) -> None:
    assert len(families([variant("a", 16), variant("b", 8, **shape)], "a")) == 2


def test_what_is_not_known_tells_nothing_apart() -> None:
    known = {"architecture": "llama", "n_layers": 32, "n_embd": 64, "vocab_size": 100}
    assert is_same_model(known, dict.fromkeys(known))
    assert is_same_model(known, known | {"n_embd": None})
    assert not is_same_model(known, dict.fromkeys(known) | {"n_layers": 8})


def test_labels_of_several_models_begin_with_the_model() -> None:
    names = ("/m/Tiny-1B-Q4_0.gguf", "/m/Big-8B-Q4_0.gguf", "/m/Big-8B-Q8_0.gguf")
    shapes = (SMALL, {}, {})
    made = []
    for path, shape in zip(names, shapes, strict=True):
        quant = path.rpartition("-")[2].removesuffix(".gguf")
        one = variant(quant, 4.5, **shape)
        assert one.model is not None
        made.append(replace(one, engine_model=path, key=path, model=replace(one.model, paths=(path,))))
    assert [one.label for one in unique_labels(made)] == ["Tiny-1B Q4_0", "Big-8B Q4_0", "Big-8B Q8_0"]
    assert [one.label for one in unique_labels(made[1:])] == ["Q4_0", "Q8_0"]


def test_the_reference_is_the_largest_model_with_the_most_bits() -> None:
    small, big = variant("small F16", 16, **SMALL), variant("big Q4_0", 4.5, n_params=8_000_000)
    assert default_reference([small, variant("big Q8_0", 8.5, n_params=8_000_000), big]).label == "big Q8_0"
    assert default_reference([small]).label == "small F16"
