"""Where the variants of a run ran, in words, from what their engines told."""

import json

import pytest

from liob_core.analysis.offload import offload_line
from liob_core.analysis.runs import run_facts
from liob_core.rendering.run_words import how
from liob_core.store import database


def line(writer, *effectives, asked=None):
    """The words for a run of a variant for each of `effectives`, which are those of its loads."""
    writer.run()
    for number, loads in enumerate(effectives):
        writer.variant(f"V{number}", 16.0 - number, gpu_layers=asked)
        for block, effective in enumerate(loads):
            writer.load(f"V{number}", block, effective=json.dumps(effective))
    writer.flush()
    with database.read(writer.close()) as con:
        return offload_line(con, writer.run_id)


@pytest.mark.parametrize(
    ("loads", "asked", "words"),
    [
        ([{"gpu_layers": 0}], None, "on the processor"),
        ([{"gpu_share": 0.0}], None, "on the processor"),
        ([{"gpu_share": 1.0}], None, "100 % on the GPU"),
        ([{"gpu_share": 0.5}, {"gpu_share": 0.75}], None, "50 % to 75 % on the GPU"),
        ([{"gpu_layers": 12}], 12, "12 layers on the GPU"),
        ([{}], None, "offload not known"),
        ([{}], 0, "on the processor"),
        ([{}], 12, "12 layers asked for on the GPU, offload not known"),
        ([{"gpu_layers": "many", "gpu_share": "x"}], None, "offload not known"),
    ],
)
def test_one_variant(writer, loads, asked, words):
    assert line(writer, loads, asked=asked) == words


def test_variants_that_differ_are_told_apart(writer):
    assert (
        line(writer, [{"gpu_share": 0.62}], [{"gpu_share": 1.0}]) == "V0 62 % on the GPU, V1 100 % on the GPU"
    )


def test_variants_alike_are_told_once(writer):
    assert line(writer, [{"gpu_layers": 0}], [{"gpu_share": 0}]) == "on the processor"


def test_nothing_loaded_is_nothing_told(writer):
    assert line(writer, []) is None


def test_pages_tell_it_among_how_a_run_was_made(writer):
    writer.run()
    writer.variant("F16", 16.0)
    writer.load("F16", effective=json.dumps({"gpu_share": 1.0}))
    writer.flush()
    assert "100 % on the GPU" in how(run_facts(writer.close(), writer.run_id))
