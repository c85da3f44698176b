"""Answers: the prompts by disagreement, and the answers to one of them with each seed."""

import pytest

from liob_core.analysis.answers import answer_seeds, answers, prompt_seeds, prompts
from tests.unit.analysis.conftest import RUN, START


def judge(writer, prompt, variant, **opinion):
    writer.insert(
        "judgements",
        judgement_id=f"j{len(writer.rows.get('judgements', [])):03}",
        run_id=RUN,
        sample_id=f"{variant}-{prompt}",
        variant=variant,
        prompt_id=prompt,
        judge="j",
        judge_key="k",
        mode="single" if "score" in opinion else "pairwise",
        state="scored",
        judged_utc=START,
        **opinion,
    )


def fill(writer, checks=None):
    writer.run()
    writer.machine()
    for label, bits in (("F16", 16.0), ("Q8_0", 8.5), ("Q2_K", 2.6)):
        writer.variant(label, bits)
        for prompt in ("a", "b", "c", "d"):
            check = (checks or {}).get((label, prompt))
            writer.answer(label, prompt, check, sample_id=f"{label}-{prompt}", response=f"{label} {prompt}")
    for place, prompt in enumerate(("a", "b", "c", "d")):
        writer.prompt(prompt, place)


def test_prompts_go_by_checks_then_by_judges(writer):
    fill(writer, {("F16", "d"): "pass", ("Q8_0", "d"): "pass", ("Q2_K", "d"): "fail"})
    for label, score in (("F16", 8), ("Q8_0", 7), ("Q2_K", 5)):
        judge(writer, "b", label, score=score)  # one point apart is nothing, three are
    judge(writer, "c", "Q8_0", result="loss", reference_sample_id="F16-c")
    judge(writer, "c", "Q2_K", result="win", reference_sample_id="F16-c")
    judge(writer, "a", "Q2_K", result="tie", reference_sample_id="F16-a")
    writer.flush()
    frame = prompts(writer.close(), RUN)
    assert frame["prompt_id"].tolist() == ["d", "c", "b", "a"]
    assert frame["n_flips"].tolist() == [1, 0, 0, 0]
    assert frame["n_judged_otherwise"].tolist() == [0, 2, 1, 0]


def test_the_latest_opinion_of_a_judge_counts(writer):
    fill(writer)
    judge(writer, "b", "Q2_K", result="loss", reference_sample_id="F16-b")
    judge(writer, "b", "Q2_K", result="tie", reference_sample_id="F16-b")
    writer.flush()
    assert prompts(writer.close(), RUN)["n_judged_otherwise"].tolist() == [0, 0, 0, 0]


def test_without_a_seed_the_graded_answers_are_given_and_with_one_its_own(writer):
    writer.run(n_seeds=2, suite_repeats=2, temperature=0.8)
    writer.machine()
    writer.variant("F16", 16.0)
    writer.variant("Q2_K", 2.6)
    for label in ("F16", "Q2_K"):
        for block, result in enumerate(("pass", "fail")):
            text = "both" if block else label
            writer.answer(label, "p0", result, block=block, seed=5 + block, response=text)
    writer.prompt("p0")
    writer.summarize()
    path = writer.close()
    assert prompt_seeds(path, RUN, "p0")["seed"].tolist() == [5, 6]
    graded, other = answers(path, RUN, "p0"), answers(path, RUN, "p0", 6)
    assert graded["response"].tolist() == ["F16", "Q2_K"]
    assert other["response"].tolist() == ["both", "both"]
    assert (graded["same_text"].tolist(), other["same_text"].tolist()) == ([True, False], [True, True])
    counted = answer_seeds(path, RUN, "p0").set_index("variant")
    assert (counted.loc["Q2_K", "n_passed"], counted.loc["Q2_K", "n_checked"]) == (1, 2)
    # Wilson for 1 of 2.
    assert counted.loc["Q2_K", "pass_share_ci_low"] == pytest.approx(0.0945, abs=1e-4)
