"""One point a variant, its standing on two axes, and nobody beaten inside the noise."""

import numpy as np
import pytest

from liob_core.analysis.tradeoff import axes_of, in_words, tradeoff
from tests.unit.analysis.test_closeness import GOOD, fidelity, run_of
from tests.unit.analysis.test_recommend import models

LABELS = ("F16", "Q8_0", "Q5_K_M", "Q2_K")


def four(writer, *, n_blocks=3, n_prompts=0, passes=(), noise=()):
    """Sizes 4, 3, 3 and 1 GiB; decoding takes 1000, 500, 800 and 400 ms a block."""
    writer.run()
    for place, (label, bpw) in enumerate(zip(LABELS, (16.0, 8.5, 5.5, 3.0), strict=True)):
        writer.variant(label, bpw)
        writer.load(label, peak_memory_bytes=(4, 3, 3, 1)[place] * 2**30)
        for block in range(n_blocks):
            extra = noise[block] if noise and place % 2 else block
            writer.speed(label, block, chat_ms=(1000, 500, 800, 400)[place] + extra)
        for prompt in range(n_prompts):
            writer.answer(label, f"p{prompt}", "pass" if prompt < passes[place] else "fail")
    writer.summarize()
    return writer.close(), writer.run_id


def standing(frame):
    return frame.set_index("variant")["standing"].to_dict()


def test_a_variant_that_is_slower_and_no_smaller_is_dominated(writer):
    frame = tradeoff(*four(writer), "peak_memory_bytes", "decode_tps")
    assert standing(frame) == {
        "F16": "dominated",
        "Q8_0": "dominated",
        "Q5_K_M": "dominated",
        "Q2_K": "front",
    }
    beaten_by = frame.set_index("variant")["beaten_by"]
    assert beaten_by["F16"] == "Q8_0, Q5_K_M, Q2_K"
    assert beaten_by["Q5_K_M"] == "Q8_0, Q2_K"
    assert "Q8_0 is beaten on peak memory and decode rate by Q2_K." in in_words(frame)


def test_one_block_shows_nothing(writer):
    frame = tradeoff(*four(writer, n_blocks=1), "peak_memory_bytes", "decode_tps")
    assert standing(frame)["F16"] == "inside the noise"
    assert "but inside the noise" in in_words(frame)[0]


def test_a_difference_inside_the_noise_dominates_nobody(writer):
    # Q2_K is four times smaller and faster on average, but not in every block: p of the paired t is 0.2.
    frame = tradeoff(*four(writer, noise=(0, 900, 60)), "peak_memory_bytes", "decode_tps")
    assert standing(frame)["Q5_K_M"] == "inside the noise"
    assert standing(frame)["Q2_K"] == "front"


def test_checks_dominate_only_where_flips_show_it(writer):
    # 40 of 60 against 41: one flip. 40 against 20: twenty one way.
    few = tradeoff(*four(writer, n_prompts=60, passes=(40, 20, 41, 40)), "peak_memory_bytes", "pass_rate")
    found = standing(few)
    assert found["Q8_0"] == "dominated"
    assert found["F16"] == "inside the noise"
    assert few.set_index("variant").loc["Q8_0", "beaten_by"] == "Q5_K_M, Q2_K"


def test_sizes_alone_need_no_interval(writer):
    frame = tradeoff(*four(writer, n_blocks=1), "peak_memory_bytes", "file_bytes")
    assert standing(frame) == dict.fromkeys(LABELS[:3], "dominated") | {"Q2_K": "front"}


def test_closeness_is_upwards_where_checks_tell_nothing_apart(writer):
    frame = tradeoff(*run_of(writer, n_prompts=20, **GOOD))
    assert set(frame["y"]) == {"kld_mean"}
    rows = frame.set_index("variant")
    assert rows.loc["F16", "kld_mean"] == 0.0
    # 0.031 +- 2.131 x 0.0031
    assert rows.loc["Q4_K_M", "kld_mean_low"] == pytest.approx(0.0244, abs=1e-4)
    assert axes_of(frame) == [
        "peak_memory_bytes", "file_bytes", "decode_tps", "pass_rate", "kld_mean", "ln_ratio",
    ]  # fmt: skip
    assert standing(frame) == dict.fromkeys(("F16", "Q8_0", "Q4_K_M", "Q2_K"), "front")


def test_checks_are_upwards_where_they_tell_variants_apart(writer):
    frame = tradeoff(*run_of(writer, n_prompts=120, lost=60, **GOOD))
    assert set(frame["y"]) == {"pass_rate"}


def test_closeness_of_several_models_is_no_axis(writer):
    frame = tradeoff(*models(writer))
    assert axes_of(frame) == ["peak_memory_bytes", "file_bytes", "decode_tps", "pass_rate"]
    assert set(frame["y"]) == {"pass_rate"}


def test_few_windows_dominate_nobody(writer):
    writer.run(tasks=["closeness"])
    for label, bpw in (("F16", 16.0), ("Q5_1", 6.0), ("Q5_K_M", 5.5)):
        writer.variant(label, bpw)
    few = {"n_windows": 4, "ln_ratio_p": None, "ln_ratio_bound": None}
    fidelity(writer, "F16")
    fidelity(writer, "Q5_1", 0.2, kld=0.2, **few)
    fidelity(writer, "Q5_K_M", 0.01, kld=0.01, **few)
    writer.summarize()
    frame = tradeoff(writer.close(), writer.run_id, "file_bytes", "kld_mean")
    assert standing(frame) == {"F16": "front", "Q5_1": "inside the noise", "Q5_K_M": "front"}


def test_what_was_not_measured_has_no_standing(writer):
    writer.run()
    for label, bpw in (("F16", 16.0), ("Q8_0", 8.5)):
        writer.variant(label, bpw)
    for block in range(3):
        writer.speed("F16", block)
    writer.summarize()
    frame = tradeoff(writer.close(), writer.run_id)
    assert standing(frame) == {"F16": "front", "Q8_0": "unknown"}
    assert frame["peak_memory_bytes"].isna().all()
    assert set(frame["x"]) == {"file_bytes"}


def test_dominance_is_claimed_no_more_often_than_its_level_where_nothing_differs():
    """Five variants alike but in size: over many runs, how often any is called dominated."""
    from liob_core.analysis import tradeoff as module

    rng = np.random.default_rng(5)
    names = [f"v{place}" for place in range(5)]
    claimed = 0
    n_runs = 400
    for _ in range(n_runs):
        rates = {name: dict(enumerate(np.exp(rng.normal(3, 0.05, 5)))) for name in names}
        points = {
            name: {"decode_tps": np.mean(list(rates[name].values())), "peak_memory_bytes": 5.0 - place}
            for place, name in enumerate(names)
        }
        measured = module._Measured(points, {"decode_tps": rates}, {})
        found = module._standings(measured, ("peak_memory_bytes", "decode_tps"))
        claimed += any(standing == "dominated" for standing, _ in found.values())
    # 5 % and three standard errors of 400 runs.
    assert claimed / n_runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_runs)
