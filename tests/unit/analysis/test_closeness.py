"""Closeness in words and verdicts, on rows written by hand."""

import math

import pytest

from liob_core.analysis import closeness
from liob_core.analysis.overview import headline
from liob_core.analysis.results import results_table, warnings
from liob_core.store import database

LADDER = (("F16", 16.0), ("Q8_0", 8.5), ("Q4_K_M", 4.8), ("Q2_K", 3.0))


def fidelity(writer, variant, ln_ratio=None, *, se=0.001, kld=None, n_windows=16, **changes):
    """One result at 16 windows; t(0.95, 15) = 1.753 and t(0.975, 15) = 2.131."""
    row = {
        "run_id": writer.run_id,
        "variant": variant,
        "reference": None if variant == "F16" else "F16",
        "text": "bundled",
        "text_sha256": "t",
        "n_ctx": 512,
        "n_windows": n_windows,
        "n_tokens": 255 * n_windows,
        "window_choice": "spread",
        "ppl": 20.0 * math.exp(ln_ratio or 0.0),
        "ppl_se": 1.0,
        "ppl_se_iid": 0.5,
        "build": "a build",
        "cpu_features": "CPU : AVX2 = 1 | AVX512 = 0 | FMA = 1",
        "ending": "done",
        "unknown": "{}",
    }
    if ln_ratio is not None:
        row |= {
            "ln_ratio": ln_ratio,
            "ln_ratio_se": se,
            "ln_ratio_low": ln_ratio - 2.131 * se,
            "ln_ratio_high": ln_ratio + 2.131 * se,
            "ln_ratio_bound": ln_ratio + 1.753 * se,
            "ln_ratio_p": math.erfc(abs(ln_ratio) / se / math.sqrt(2)),
            "kld_mean": kld,
            "kld_se": 0.1 * kld if kld else None,
            "same_top": 0.9,
        }
    writer.insert("fidelities", **(row | changes))


def run_of(writer, *, n_prompts=0, lost=0, **ratios):
    """A run of the ladder with three speed blocks and what `ratios` say of each variant."""
    writer.run(tasks=["speed", "suite", "closeness"])
    writer.machine()
    for number, (label, bpw) in enumerate(LADDER):
        writer.variant(label, bpw)
        writer.load(label, peak_memory_bytes=(10 - 2 * number) * 2**28)
        for block in range(3):
            writer.speed(label, block, chat_ms=(1000.0 + block) / (1 + number))
        for prompt in range(n_prompts):
            writer.answer(label, f"p{prompt}", "fail" if label == "Q4_K_M" and prompt < lost else "pass")
    fidelity(writer, "F16")
    for variant, given in ratios.items():
        fidelity(writer, variant, given[0], kld=given[1], **(given[2] if len(given) > 2 else {}))
    writer.summarize()
    return writer.close(), writer.run_id


GOOD = {"Q8_0": (0.0005, 0.0014), "Q4_K_M": (0.02, 0.031), "Q2_K": (0.6, 0.5)}


def test_paired_deltas_hold_the_ln_ratio_with_holm(writer):
    db, _ = run_of(writer, Q8_0=(0.0021, 0.0014), Q4_K_M=(0.0022, 0.031), Q2_K=(0.6, 0.5))
    rows = database.query(db, "SELECT * FROM paired_deltas WHERE metric = 'ln_ratio' ORDER BY estimate")
    assert rows["variant"].tolist() == ["Q8_0", "Q4_K_M", "Q2_K"]
    # Two-sided normal p of z = 2.1 and 2.2: each below 5 % alone, not after Holm (twice the smaller).
    assert rows["p_value"].tolist()[:2] == pytest.approx([0.0357, 0.0278], abs=1e-4)
    assert rows["p_holm"].tolist()[:2] == pytest.approx([0.0556, 0.0556], abs=1e-4)
    assert rows["verdict"].tolist() == ["not distinguishable", "not distinguishable", "worse"]
    assert rows["n"].tolist() == [16, 16, 16]
    assert rows["loss_bound"].tolist()[2] == pytest.approx(0.6 + 1.753e-3)


def test_a_difference_inside_the_noise_is_not_distinguishable(writer):
    db, run_id = run_of(writer, **GOOD)
    table = closeness.closeness_table(db, run_id).set_index("variant")
    assert table["verdict"].fillna("").to_dict() == {
        "F16": "",
        "Q8_0": "not distinguishable",
        "Q4_K_M": "worse",
        "Q2_K": "worse",
    }
    assert table.loc["Q4_K_M", "words"] == "perplexity 2.0 % higher"
    assert table.loc["Q2_K", "words"] == "perplexity 82 % higher"
    # 0.031 +- 2.131 x 0.0031
    assert table.loc["Q4_K_M", "kld_low"] == pytest.approx(0.0244, abs=1e-4)
    assert table.index.tolist() == ["F16", "Q8_0", "Q4_K_M", "Q2_K"]


def test_the_sentence_goes_down_the_ladder_until_the_margin(writer):
    facts = closeness.closeness_facts(*run_of(writer, **GOOD))
    # e^(0.02 + 1.753 x 0.001) - 1 = 2.199 %, rounded up.
    assert facts.sentence == "Down to Q4_K_M: perplexity at most 2.2 % higher than F16's (95 %)."
    assert facts.basis == "16 windows of 512 tokens, spread, of bundled: 4,080 scored tokens"
    assert facts.build == "a build, AVX2, FMA"
    assert facts.broken == ()
    assert "Below 0.03, KL divergence does not rank variants: Q8_0." in facts.notes


def test_broken_variants_are_named_with_the_bits_at_which_it_starts(writer):
    broken = {"broken": "perplexity 240, where the reference has 20.0"}
    facts = closeness.closeness_facts(
        *run_of(writer, Q8_0=GOOD["Q8_0"], Q4_K_M=(0.02, 0.03), Q2_K=(2.5, 3.0, broken))
    )
    assert facts.broken == (
        "Q2_K is broken at this size: perplexity 240, where the reference has 20.0.",
        "On this ladder it starts at 3.00 true bits per weight.",
    )


def test_answers_that_loop_are_broken_too(writer):
    for number in range(4):
        writer.answer("Q2_K", f"loop{number}", outcome="repetition")
    facts = closeness.closeness_facts(*run_of(writer, **GOOD))
    assert facts.broken[0] == "Q2_K is broken at this size: 100 % of its answers loop."


def test_the_headline_picks_by_the_ln_ratio(writer):
    found = headline(*run_of(writer, **GOOD))
    assert (found.kind, found.pick) == ("pick", "Q4_K_M")
    assert found.sentence == (
        "Q4_K_M: 3.0 times as fast as F16 in 60 % of its memory; perplexity at most 2.2 % higher (95 %)."
    )
    assert found.detail == "On 16 windows of text; 3.0 % more is allowed; answers not checked."
    assert found.ln_ratio_bound == pytest.approx(0.021753)
    assert [line.split(":")[0] for line in found.evidence] == ["Q8_0", "Q4_K_M", "Q2_K"]


def test_few_checks_are_told_but_do_not_count(writer):
    found = headline(*run_of(writer, n_prompts=10, **GOOD))
    assert found.pick == "Q4_K_M"
    assert "checks: loses at most 26 points on 10 prompts (95 %), too few prompts to count" in found.detail


def test_checks_that_show_a_loss_stop_the_ladder(writer):
    found = headline(*run_of(writer, n_prompts=120, lost=30, **GOOD))
    assert found.pick == "Q8_0"
    assert "may lose" in found.evidence[-1]


def test_nothing_meets_the_margin(writer):
    found = headline(*run_of(writer, Q8_0=(0.1, 0.03), Q4_K_M=(0.001, 0.03), Q2_K=(0.6, 0.5)))
    assert (found.kind, found.pick) == ("nothing meets it", None)
    assert found.sentence == (
        "Nothing below F16 is shown to raise perplexity by at most 3.0 %: "
        "Q8_0: perplexity at most 10.8 % higher on 16 windows (95 %)."
    )


def test_a_variant_that_failed_has_its_reason_and_ends_the_ladder(writer):
    failed = {"ppl": None, "ending": "died", "reason": "it crashed", "ln_ratio_bound": None}
    db, run_id = run_of(writer, Q8_0=GOOD["Q8_0"], Q4_K_M=(None, None, failed), Q2_K=GOOD["Q2_K"])
    assert "Q4_K_M: closeness is unknown (died): it crashed." in warnings(db, run_id)
    assert headline(db, run_id).pick == "Q8_0"
    table = results_table(db, run_id).set_index("variant")
    assert table.loc["Q4_K_M", "ln_ratio_reason"] == "died: it crashed"
    assert table.loc["Q8_0", "kld_mean"] == 0.0014


def test_few_windows_give_no_verdict_and_the_headline_says_so(writer):
    few = {
        "n_windows": 4,
        "ln_ratio_bound": None,
        "ln_ratio_p": None,
        "unknown": '{"ln_ratio_p": "needs 8 windows, has 4"}',
    }
    db, run_id = run_of(writer, Q8_0=(0.001, 0.001, few), Q4_K_M=(0.02, 0.03, few), Q2_K=(0.6, 0.5, few))
    assert closeness.closeness_facts(db, run_id).sentence == (
        "4 windows are too few for a verdict: it takes 8."
    )
    assert headline(db, run_id).detail.endswith("Closeness measured on 4 windows, too few for a verdict.")


def test_a_run_without_closeness_has_none(writer):
    writer.run()
    writer.variant("F16", 16.0)
    writer.speed("F16", 0)
    writer.summarize()
    db = writer.close()
    assert closeness.closeness_table(db, writer.run_id).empty
    assert closeness.closeness_facts(db, writer.run_id) is None


def test_one_file_alone_has_its_perplexity(writer):
    writer.run(tasks=["closeness"])
    writer.variant("F16", 16.0)
    fidelity(writer, "F16")
    writer.summarize()
    facts = closeness.closeness_facts(writer.close(), writer.run_id)
    assert facts.sentence == "F16: perplexity 20.0 on bundled."


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (-0.01, "perplexity no higher"),
        (0.021, "perplexity at most 2.2 % higher"),  # 2.122 %, never rounded down
        (math.log(1.03), "perplexity at most 3.0 % higher"),
    ],
)
def test_a_bound_is_never_rounded_down(bound, words):
    assert closeness.at_most_higher(bound) == words


def test_a_pick_by_closeness_alone_says_that_speed_was_not_measured(writer):
    writer.run(tasks=["closeness"])
    for label, bpw in LADDER[:2]:
        writer.variant(label, bpw)
    fidelity(writer, "F16")
    fidelity(writer, "Q8_0", 0.0005, kld=0.0014)
    writer.summarize()
    assert headline(writer.close(), writer.run_id).sentence == (
        "Q8_0: its speed was not measured; it takes 53 % of F16's file size; "
        "perplexity at most 0.3 % higher (95 %)."
    )


def test_each_model_of_a_run_has_a_reference_and_a_sentence_of_its_own(writer):
    writer.run(reference="A F16", tasks=["closeness"])
    for label, bpw, layers in (
        ("A F16", 16.0, 30),
        ("A Q8_0", 8.5, 30),
        ("B Q8_0", 8.5, 18),
        ("B Q2_K", 3.0, 18),
    ):
        writer.variant(
            label,
            bpw,
            is_reference=label == "A F16",
            architecture="llama",
            n_layers=layers,
            weights_sha256=label,
        )
    fidelity(writer, "A F16", reference=None)
    fidelity(writer, "A Q8_0", 0.0005, kld=0.001, reference="A F16")
    fidelity(writer, "B Q8_0", reference=None)
    fidelity(writer, "B Q2_K", 0.6, kld=0.5, reference="B Q8_0")
    writer.summarize()
    db, run_id = writer.close(), writer.run_id
    table = closeness.closeness_table(db, run_id).set_index("variant")
    assert table.index.tolist() == ["A F16", "A Q8_0", "B Q8_0", "B Q2_K"]
    assert table["is_reference"].tolist() == [True, False, True, False]
    assert table["reference"].fillna("").tolist() == ["", "A F16", "", "B Q8_0"]
    facts = closeness.closeness_facts(db, run_id)
    assert facts.sentence == (
        "Down to A Q8_0: perplexity at most 0.3 % higher than A F16's (95 %). "
        "Nothing below B Q8_0 is shown to raise perplexity by at most 3.0 %."
    )
    assert "say nothing across them" in facts.notes[0]
    assert any("The 2 models of this run" in sentence for sentence in warnings(db, run_id))
