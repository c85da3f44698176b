"""Which variants are quantizations of one model: those whose tensors have the same shapes."""

from collections.abc import Mapping, Sequence
from typing import Any

from liob_core.types import Variant

# Names differ between publishers of the same weights, shapes do not.
SHAPE = ("architecture", "n_layers", "n_embd", "vocab_size")


def is_same_model(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether nothing that is known of the shapes of both tells them apart."""
    return all(a[name] == b[name] for name in SHAPE if a[name] is not None and b[name] is not None)


def by_model(variants: Sequence[Variant]) -> list[list[Variant]]:
    """The variants of each model together, in the order in which they come."""
    found: list[list[Variant]] = []
    for variant in variants:
        home = next((one for one in found if is_same_model(_shape(one[0]), _shape(variant))), None)
        if home is None:
            found.append([variant])
        else:
            home.append(variant)
    return found


def families(variants: Sequence[Variant], reference: str) -> list[list[Variant]]:
    """The variants of each model, its own reference first, and the model of `reference` (a label) first.

    Another model's own reference is the first of its variants, which come from many bits to few.
    """
    first = [variant for variant in variants if variant.label == reference]
    return by_model([*first, *(variant for variant in variants if variant.label != reference)])


def default_reference(variants: Sequence[Variant]) -> Variant:
    """The variant that all others are compared with, unless a user names one.

    They come from many bits to few, and the first is it; of several models it is the first of the largest,
    which has the most to lose.
    """
    return max(by_model(variants), key=_n_params)[0]


def _n_params(members: Sequence[Variant]) -> int:
    return max(variant.model.n_params if variant.model else 0 for variant in members)


def _shape(variant: Variant) -> dict[str, Any]:
    return {name: getattr(variant.model, name, None) for name in SHAPE}
