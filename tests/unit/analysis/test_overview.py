"""The headline: the pick and its evidence, or why there is none."""

import pytest

from liob_core.analysis.overview import headline
from liob_core.analysis.recommend_words import needed_prompts
from liob_core.errors import UsageError


def ladder(writer, n_prompts, *, lost=None):
    """F16, Q8_0, Q4_K_M, Q2_K with three speed blocks; `lost` says how many checks each variant loses."""
    writer.run()
    lost = lost or {}
    for number, (label, bpw) in enumerate((("F16", 16.0), ("Q8_0", 8.5), ("Q4_K_M", 4.8), ("Q2_K", 3.0))):
        writer.variant(label, bpw)
        writer.load(label, peak_memory_bytes=(10 - 3 * number) * 2**28)
        for block in range(3):
            writer.speed(label, block, chat_ms=(1000.0 + block) / (1 + 0.6 * number))
        for prompt in range(n_prompts):
            writer.answer(label, f"p{prompt}", "fail" if prompt < lost.get(label, 0) else "pass")
    writer.summarize()
    return writer.close(), writer.run_id


def test_the_pick_is_the_last_that_holds_the_margin(writer):
    found = headline(*ladder(writer, 120, lost={"Q4_K_M": 1, "Q2_K": 30}))
    assert (found.kind, found.pick) == ("pick", "Q4_K_M")
    # One flip in 120: the one-sided score bound is 3.9 points, said as 4.
    assert found.sentence == (
        "Q4_K_M: 2.2 times as fast as F16 in 40 % of its memory; "
        "loses at most 4 points on 120 prompts (95 %)."
    )
    assert found.detail.startswith("Closeness not measured")
    assert found.command == "llama-server --model model-Q4_K_M.gguf --ctx-size 4096 --threads 2"
    assert [line.split(":")[0] for line in found.evidence] == ["Q8_0", "Q4_K_M", "Q2_K"]


def test_the_first_failure_stops_the_ladder(writer):
    found = headline(*ladder(writer, 120, lost={"Q4_K_M": 30, "Q2_K": 0}))
    assert found.pick == "Q8_0"


def test_nothing_meets_it(writer):
    found = headline(*ladder(writer, 120, lost={"Q8_0": 10, "Q4_K_M": 0, "Q2_K": 0}))
    assert (found.kind, found.pick) == ("nothing meets it", None)
    assert found.sentence == (
        "Nothing below F16 is shown to lose at most 5 points: "
        "Q8_0 may lose up to 14 points on 120 prompts (95 %)."
    )
    assert "Closeness not measured" in found.detail


def test_too_few_prompts_says_how_many_it_takes(writer):
    found = headline(*ladder(writer, 12))
    assert (found.kind, found.pick, needed_prompts(0.05)) == ("too few prompts", None, 59)
    assert found.sentence == (
        "Too few prompts to pick: 12 checked ones leave a loss of 23 points open even without a flip; "
        "59 can rule out 5 points."
    )
    assert "Q2_K is 2.8 times as fast as F16" in found.detail


def test_without_checks_nothing_is_picked(writer):
    found = headline(*ladder(writer, 0))
    assert (found.kind, found.pick) == ("not checked", None)


def test_a_variant_alone_has_nothing_to_choose_from(writer):
    writer.run()
    writer.variant("F16", 16.0)
    writer.speed("F16", 0)
    writer.summarize()
    found = headline(writer.close(), writer.run_id)
    assert found.kind == "nothing to compare"
    assert found.sentence.startswith("F16: 100 tok/s; it is the only variant")


def test_noise_in_speed_is_never_said_as_faster(writer):
    writer.run()
    for label, bpw in (("F16", 16.0), ("Q8_0", 8.5)):
        writer.variant(label, bpw)
        for block, chat_ms in enumerate((1000.0, 1300.0, 800.0)):
            shift = 0 if label == "F16" else (200, -250, 90)[block]
            writer.speed(label, block, chat_ms=chat_ms + shift)
        for prompt in range(60):
            writer.answer(label, f"p{prompt}", "pass")
    writer.summarize()
    found = headline(writer.close(), writer.run_id)
    assert found.pick == "Q8_0"
    assert "no difference in speed from F16 was found" in found.sentence


def test_an_unknown_run_is_said_in_one_sentence(writer):
    writer.summarize()
    with pytest.raises(UsageError, match="There is no run 'nope'"):
        headline(writer.close(), "nope")
