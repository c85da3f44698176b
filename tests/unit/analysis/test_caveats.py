"""Each warning appears where it must, and a healthy run has none."""

import json

import pytest

from liob_core.analysis.results import warnings


def healthy(writer, *, run=None, variant=None, sample=None, machine=None):
    writer.run(**(run or {}))
    writer.machine(**(machine or {}))
    for label, bpw in (("F16", 16.0), ("Q8_0", 8.5)):
        writer.variant(label, **({"bpw": bpw} | ((variant or {}) if label == "Q8_0" else {})))
        writer.load(label)
        for block in range(2):
            changes = (sample or {}) if (label, block) == ("Q8_0", 0) else {}
            writer.speed(label, block, **changes)
        for prompt in range(60):
            writer.answer(label, f"p{prompt}", "pass")


def found(writer):
    writer.summarize()
    return warnings(writer.close(), writer.run_id)


def test_a_healthy_run_has_no_warnings(writer):
    healthy(writer)
    assert found(writer) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"run": {"state": "cancelled", "reason": "by the user"}}, "The run is cancelled (by the user)"),
        ({"run": {"n_skipped_lines": 2}}, "2 damaged lines"),
        ({"run": {"prompt_mode": "own"}}, "its own template"),
        ({"run": {"machine": json.dumps({"power_source": "battery"})}}, "on battery"),
        ({"variant": {"threads": 4}}, "4 threads on 4 cores leave none"),
        (
            {"variant": {"label_warning": "Called Q4, holds 6 bits"}},
            "Q8_0: Called Q4, holds 6 bits.",
        ),
        ({"variant": {"fallback_warning": "180 of 272 tensors fell back."}}, "180 of 272 tensors fell back."),
        ({"variant": {"bpw": 17.0}}, "Everything is relative to F16"),
        (
            {"sample": {"contended": True}},
            "samples ran beside a busy program and are left out of every time and rate: Q8_0 2.",
        ),
        ({"sample": {"overhead_ms": -1.0}}, "its clock is in doubt"),
        ({"sample": {"outcome": "timeout"}}, "are in no average of speed: Q8_0 2 timeout."),
        (
            {"sample": {"chat_ms": 1600.0}},
            "The decode rate varies between blocks: Q8_0 by 16 %. Likely cause",
        ),
        ({"machine": {"gpus": '[{"index": 0, "name": "GPU"}]'}}, "F16: device memory is unknown (no GPU)"),
    ],
)
def test_each_trouble_has_its_sentence(writer, changes, sentence):
    healthy(writer, **changes)
    assert any(sentence in warning for warning in found(writer)), sentence


def test_a_run_wholly_beside_a_busy_program_says_what_to_do(writer):
    writer.run()
    writer.variant("Q4_1", 5.7)
    for block in range(3):
        writer.speed("Q4_1", block, contended=True)

    told = found(writer)

    assert any(
        "beside a busy program, so no time or rate is known: close other programs" in one for one in told
    )
    assert not any(one.startswith("Some of") for one in told)
    assert not any("relative to" in one for one in told), "one variant is compared with nothing"


def test_a_single_block_and_few_prompts_are_told(writer):
    writer.run()
    writer.variant("F16", 16.0)
    writer.speed("F16", 0)
    writer.answer("F16", "p1", "pass", outcome="length")
    writer.prompt("p1", templated=False)
    sentences = " ".join(found(writer))
    assert "one block only" in sentences
    assert "1 checked prompts cannot bound a loss below 95 points" in sentences
    assert "Answers were cut off at 64 tokens: F16 100 %" in sentences
    assert "no chat template" in sentences


def test_an_unknown_neighbour_is_told(writer):
    writer.run()
    writer.variant("F16", 16.0)
    for block in range(2):
        writer.speed("F16", block, contended=None)
    assert any("could not be told" in warning for warning in found(writer))


def test_a_prompt_rate_that_rises_over_the_blocks_is_in_doubt(writer):
    healthy(writer)
    writer.speed("Q8_0", 2, prefill_ms=256.0 / 2.5)
    assert any("Q8_0: its prompt rate rose to 2.5 times" in one for one in found(writer))


def test_a_prompt_rate_that_rises_a_little_is_not(writer):
    healthy(writer)
    writer.speed("Q8_0", 2, prefill_ms=256.0 / 1.9)
    assert not any("its prompt rate rose" in one for one in found(writer))


def test_sampled_answers_say_which_seed_counts(writer):
    writer.run(temperature=0.8, suite_repeats=5, n_seeds=5)
    writer.variant("F16", 16.0)
    writer.answer("F16", "p0", "pass")
    said = "temperature 0.8: checks passed are those of the first of 5 seeds"
    assert any(said in one for one in found(writer))


def test_answers_without_counters_are_counted(writer):
    healthy(writer, sample={"reason": "metrics_missing: the server's last line lacks eval_count"})
    assert any("2 answers came without all of the engine's counters" in one for one in found(writer))


@pytest.mark.parametrize(
    ("loads", "told"),
    [
        ({"F16": [0.62], "Q8_0": [1.0]}, "(F16 62 % on the GPU, Q8_0 100 % on the GPU)"),
        ({"F16": [0.62, 0.7], "Q8_0": []}, "(F16 62 % to 70 % on the GPU)"),
        ({"F16": [1.0, 1.0], "Q8_0": [1.0]}, None),
        ({"F16": [1.0], "Q8_0": [None]}, None),  # not known is no difference
    ],
)
def test_other_shares_on_the_gpu_are_told(writer, loads, told):
    healthy(writer, variant={"gpu_layers": None})
    for label, shares in loads.items():
        for block, share in enumerate(shares, start=1):
            writer.load(label, block, effective=json.dumps({"gpu_share": share}))
    sentences = [one for one in found(writer) if "offloaded alike" in one]
    assert len(sentences) == (told is not None)
    assert told is None or told in sentences[0]
