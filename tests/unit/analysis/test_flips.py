"""Is it real? Flips on the graded answer, the reference's own flips, and what seeds make of a win."""

import duckdb
import pytest

from liob_core.analysis.flips import flip_facts, flip_table
from tests.unit.analysis.conftest import RUN

LETTERS = {"p": "pass", "f": "fail", "-": "unchecked"}


def fill(writer, answers, *, n_seeds=1, temperature=0.0):
    """A run; `answers` maps a variant to one pattern a prompt, one letter a seed."""
    writer.run(n_seeds=n_seeds, temperature=temperature, suite_repeats=n_seeds)
    writer.machine()
    for label, bits in (("F16", 16.0), ("Q8_0", 8.5), ("Q2_K", 2.6)):
        if label not in answers:
            continue
        writer.variant(label, bits)
        for number, pattern in enumerate(answers[label]):
            for block, letter in enumerate(pattern):
                writer.answer(label, f"p{number:02}", LETTERS[letter], block=block, seed=1 + block)
    for number in range(len(answers["F16"])):
        writer.prompt(f"p{number:02}", number)
    writer.summarize()
    return writer.close()


def row_of(path, variant):
    return next(row for row in flip_table(path, RUN).to_dict("records") if row["variant"] == variant)


def test_flips_are_named_both_ways_and_chance_explains_a_small_win(writer):
    """3 gained, 1 lost of 12: McNemar 2 x (1 + 4) / 16 = 0.625."""
    path = fill(writer, {"F16": "ppppffffffff", "Q2_K": "fpppfffffppp"})
    row = row_of(path, "Q2_K")
    assert (row["n"], row["n_lost"], row["n_gained"]) == (12, 1, 3)
    assert (row["lost_prompts"], row["gained_prompts"]) == ("p00", "p09, p10, p11")
    assert row["p_holm"] == pytest.approx(0.625)
    assert (row["verdict"], row["is_surprise"]) == ("not distinguishable", True)
    assert row["sentence"] == (
        "3 gained, 1 lost of 12 prompts, 2 more than F16: chance explains that (McNemar, p = 0.62)."
    )
    facts = flip_facts(path, RUN)
    assert facts.sentence == "Q2_K passes more prompts than F16 on one answer each; chance explains that win."
    assert facts.noise_flips is None
    assert facts.command == (
        "python -m liob_core run --model model-F16.gguf --model model-Q2_K.gguf --engine fake "
        "--task suite --suite core --seeds 5"
    )


def test_without_a_flip_the_loss_is_bounded_and_never_at_0(writer):
    path = fill(writer, {"F16": "p" * 40, "Q8_0": "p" * 40})
    row = row_of(path, "Q8_0")
    assert row["loss_bound"] == pytest.approx(1 - 0.05 ** (1 / 40))
    said = "No flip against F16 on 40 prompts: that bounds a loss at 8 points (95 %), not at 0."
    assert row["sentence"] == said
    assert flip_facts(path, RUN).sentence == "No smaller variant passes more prompts than F16."


def test_several_variants_share_their_level(writer):
    answers = {"F16": "f" * 10, "Q8_0": "p" * 6 + "f" * 4, "Q2_K": "p" * 6 + "f" * 4}
    path = fill(writer, answers)
    # 6 flips one way: 2 x 0.5^6 = 0.03125, twice that for two variants.
    assert [row["p_holm"] for row in flip_table(path, RUN).to_dict("records")] == [0.0625, 0.0625]
    assert row_of(path, "Q2_K")["verdict"] == "not distinguishable"


def test_a_win_that_chance_does_not_explain_is_still_one_answer_a_prompt(writer):
    path = fill(writer, {"F16": "f" * 12, "Q2_K": "p" * 8 + "f" * 4})
    assert row_of(path, "Q2_K")["sentence"].endswith("Whether that survives other seeds is not known.")
    assert flip_facts(path, RUN).sentence.endswith("other seeds are yet to be tried.")


def test_over_seeds_a_win_of_the_first_answer_does_not_survive(writer):
    """First answers: Q2_K wins 8 of 16 and loses none. Over three seeds both pass a third of each."""
    path = fill(
        writer,
        {"F16": ["fpf"] * 8 + ["ffp"] * 8, "Q2_K": ["pff"] * 8 + ["ffp"] * 8},
        n_seeds=3,
        temperature=0.8,
    )
    row = row_of(path, "Q2_K")
    assert (row["n_gained"], row["verdict"]) == (8, "better")
    assert (row["seed_n"], row["seed_estimate"]) == (16, 0.0)
    assert row["sentence"].endswith("the win does not survive.")
    facts = flip_facts(path, RUN)
    # Each prompt passes 1 of 3: 2 of its 3 pairs of answers differ, so 16 x 2/3 prompts.
    assert facts.noise_flips == pytest.approx(16 * 2 / 3)
    assert "from one seed to another 10.7 of 16 prompts flip" in facts.noise
    assert "temperature 0.8" in facts.noise
    assert facts.missing is None
    assert facts.sentence.endswith("chance explains that win.")


def test_over_seeds_a_clear_win_survives(writer):
    patterns = ["ppp", "ppf", "pfp", "ppp"] * 5
    path = fill(writer, {"F16": ["fff", "ffp"] * 10, "Q2_K": patterns}, n_seeds=3, temperature=0.8)
    row = row_of(path, "Q2_K")
    assert row["seed_estimate"] == pytest.approx((1 + 2 / 3 + 2 / 3 + 1) / 4 - 1 / 6)
    assert row["seed_verdict"] == "better"
    assert row["sentence"].endswith("better: the win survives.")
    assert row["seed_rate"] == pytest.approx(5 / 6)
    assert row["seed_rate_low"] < 5 / 6 < row["seed_rate_high"]


def test_greedy_repeats_are_no_seeds(writer):
    path = fill(writer, {"F16": ["pp"] * 4, "Q2_K": ["pp"] * 4})
    facts = flip_facts(path, RUN)
    assert facts.n_seeds == 1
    assert facts.noise_flips is None
    assert "between 2 greedy answers" in facts.noise
    assert row_of(path, "Q2_K")["seed_estimate"] is None


def test_what_was_not_checked_says_so(writer):
    path = fill(writer, {"F16": "----", "Q2_K": "pppp"})
    assert flip_facts(path, RUN) is None
    assert row_of(path, "Q2_K")["sentence"] == "No prompt was checked for both it and F16."


def test_the_view_of_seeds_has_one_row_a_prompt_with_its_own_interval(writer):
    fill(writer, {"F16": ["ppf", "p-p"], "Q2_K": ["fff", "---"]}, n_seeds=3, temperature=0.8)
    with duckdb.connect(str(writer.path), read_only=True) as con:
        rows = con.execute(
            "SELECT variant, prompt_id, n_answers, n_checked, n_passed, pass_share FROM seeds ORDER BY ALL"
        ).fetchall()
        (low, high) = con.execute(
            "SELECT pass_share_ci_low, pass_share_ci_high FROM seeds "
            "WHERE variant = 'F16' AND prompt_id = 'p00'"
        ).fetchone()
    assert rows == [
        ("F16", "p00", 3, 3, 2, pytest.approx(2 / 3)),
        ("F16", "p01", 3, 2, 2, 1.0),
        ("Q2_K", "p00", 3, 3, 0, 0.0),
        ("Q2_K", "p01", 3, 0, 0, None),
    ]
    # Wilson for 2 of 3.
    assert (low, high) == (pytest.approx(0.2077, abs=1e-4), pytest.approx(0.9385, abs=1e-4))
