from typing import Any

import altair as alt
import pandas as pd
import pytest

from liob_core.charts.theme import (
    DARK,
    LIGHT,
    Caption,
    Ladder,
    Look,
    dressed,
    look_of,
    memory_scale,
    ramp,
    variant_colours,
)

LOOKS = pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])


def luminance(colour: str) -> float:
    """WCAG's relative luminance."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_agrees_with_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@LOOKS
def test_every_mark_can_be_told_from_the_page(look: Look) -> None:
    for colour in [*ramp(8, look), look.reference, look.accent]:
        assert contrast(colour, look.page) >= 3.0, colour


@LOOKS
def test_words_can_be_read(look: Look) -> None:
    for colour in (look.ink, look.muted, look.better, look.worse, look.same):
        assert contrast(colour, look.page) >= 4.5, colour


@LOOKS
@pytest.mark.parametrize("n", [2, 3, 4, 7, 12])
def test_more_bits_have_more_contrast(look: Look, n: int) -> None:
    contrasts = [contrast(colour, look.page) for colour in ramp(n, look)]

    assert len(set(ramp(n, look))) == n
    assert contrasts == sorted(contrasts, reverse=True)


@LOOKS
def test_reference_is_neutral_and_its_own(look: Look) -> None:
    colours = variant_colours(["F16", "Q8_0", "Q4_0"], "F16", look)

    assert colours["F16"] == look.reference
    assert len(set(colours.values())) == 3


def test_ladder_orders_by_true_bits_whatever_the_rows() -> None:
    table = pd.DataFrame(
        {
            "variant": ["Q2_K", "unknown", "F16", "Q8_0"],
            "is_reference": [False, False, True, False],
            "bpw": [5.1, None, 16.0, 8.5],
        }
    )

    assert Ladder.of(table, LIGHT).labels == ("F16", "Q8_0", "Q2_K", "unknown")


def test_engines_are_shapes_and_the_same_bits_keep_their_colour() -> None:
    table = pd.DataFrame(
        {
            "variant": ["F16 embedded", "Q4_0 embedded", "Q4_0 ollama", "unknown"],
            "is_reference": [True, False, False, False],
            "bpw": [16.0, 4.5, 4.5, None],
            "engine": ["embedded", "embedded", "ollama", "ollama"],
        }
    )
    ladder = Ladder.of(table, LIGHT)
    shapes = dict(zip(ladder.labels, ladder.shape.to_dict()["scale"]["range"], strict=True))
    colours = dict(zip(ladder.labels, ladder.colour.to_dict()["scale"]["range"], strict=True))

    assert shapes == {
        "F16 embedded": "circle", "Q4_0 embedded": "circle", "Q4_0 ollama": "square", "unknown": "square",
    }  # fmt: skip
    assert colours["Q4_0 embedded"] == colours["Q4_0 ollama"]
    assert colours["F16 embedded"] == LIGHT.reference
    assert len(set(colours.values())) == 3


def test_look_follows_the_reader() -> None:
    assert look_of("dark") is DARK
    assert look_of("light") is LIGHT
    assert look_of(None) is LIGHT


def test_memory_scale_avoids_long_fractions() -> None:
    assert memory_scale(300 * 2**20) == (2**20, "MiB")
    assert memory_scale(3 * 2**30) == (2**30, "GiB")


def test_a_layer_without_rows_is_left_out_because_it_would_be_an_image_without_a_name() -> None:
    filled, empty = (alt.Chart(pd.DataFrame({"x": xs})).mark_tick().encode(x="x:Q") for xs in ([1.0], []))

    def marks(*layers: alt.Chart) -> int:
        return len(dressed(layers, LIGHT, height=100, title="t", caption=Caption()).to_dict()["layer"])

    assert marks(filled, empty) == 1
    assert marks(empty) == 1  # a picture needs one all the same


def test_words_in_a_picture_are_broken_where_a_phone_would_cut_them_off() -> None:
    note = "Dotted guides: what these quantizations cost Llama-3-8B, for comparison only"
    caption = Caption(notes=(note, "short"), origin=("SmolLM2 · LIOB", "a machine"))
    layer = alt.Chart(pd.DataFrame({"x": [1.0]})).mark_tick().encode(x="x:Q")

    def drawn(title: str, caption: Caption, **more: int) -> dict[str, Any]:
        return dressed([layer], LIGHT, height=100, title=title, caption=caption, **more).to_dict()

    spec = drawn("KL divergence from the reference against memory", caption)

    head = spec["title"]
    assert head["text"] == ["KL divergence from the reference against", "memory"]
    assert head["subtitle"] == [
        "Dotted guides: what these quantizations cost",
        "Llama-3-8B, for comparison only",
        "short",
    ]
    # The words' lines are beside the 100 pixels of the marks, and an axis that is elsewhere takes none.
    lines = 32 + 18 + 3 * 16 + 48 + 2 * 14
    assert spec["height"] == 100 + lines
    assert drawn("t", Caption(origin=("o",)), axis_height=0)["height"] == 100 + 32 + 14
