import json
from dataclasses import replace
from pathlib import Path

import pytest

from liob_core.bench.judging import (
    DEFAULT_OLLAMA_JUDGE,
    JudgingSpec,
    Target,
    graded_answers,
    is_self,
    make_judge,
    of_pair,
    of_score,
    targets,
)
from liob_core.models.variant import fake_variant
from liob_core.quality.judge.judge import compare, score
from liob_core.quality.judge.questions import Task
from liob_core.store.journal import Journal, read_lines
from liob_core.types import JudgeMode, JudgeState, Outcome, to_json
from tests.unit.bench.judging_builders import (
    RUN_ID,
    append_answer,
    make_judged_run,
    make_judged_spec,
    make_judging,
)
from tests.unit.quality.judge.scripted_judge import ScriptedJudge, verdict

RUN = make_judged_spec()


def asked(spec: JudgingSpec, run_dir: Path) -> list[tuple[str, str]]:
    found = targets(spec, RUN, read_lines(run_dir)[0])
    return [(target.answer.variant, target.answer.prompt.prompt_id) for target in found]


def opinion_line(spec: JudgingSpec, target: Target, state: JudgeState) -> dict[str, object]:
    judge = ScriptedJudge(lambda text: verdict(text, score=7))
    task = Task(messages=target.answer.prompt.messages)
    record = of_score(spec, target, score(judge, task, target.answer.text), judgement_id="j", utc="t")
    return {"kind": "judgement", "data": json.loads(json.dumps(to_json(replace(record, state=state))))}


def test_every_answer_to_a_prompt_with_a_rubric_is_judged_or_all(tmp_path: Path) -> None:
    run_dir = make_judged_run(tmp_path)
    labels = [variant.label for variant in RUN.variants]
    assert asked(make_judging(), run_dir) == [(v, p) for p in ("colour", "river") for v in labels]
    assert len(asked(make_judging(judge_all=True), run_dir)) == 9


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.OK])
def test_candidates_own_failure_is_never_judged(tmp_path: Path, outcome: Outcome) -> None:
    run_dir = make_judged_run(tmp_path, {("Q4_0", "colour"): outcome})
    assert ("Q4_0", "colour") not in asked(make_judging(), run_dir)
    assert ("Q4_0", "river") in asked(make_judging(), run_dir)


def test_pairs_need_an_answer_of_the_reference_and_never_pair_it_with_itself(tmp_path: Path) -> None:
    run_dir = make_judged_run(tmp_path, {("F16", "colour"): Outcome.LENGTH})
    found = targets(make_judging(JudgeMode.PAIRWISE), RUN, read_lines(run_dir)[0])
    assert {(t.answer.variant, t.answer.prompt.prompt_id) for t in found} == {
        ("Q8_0", "river"),
        ("Q4_0", "river"),
    }
    assert {t.reference.variant for t in found if t.reference} == {"F16"}


def test_latest_answer_of_the_first_block_is_the_graded_one(tmp_path: Path) -> None:
    run_dir = make_judged_run(tmp_path)
    with Journal(run_dir) as journal:
        append_answer(journal, RUN, "Q4_0", "colour", {}, session=2)
        append_answer(journal, RUN, "Q4_0", "colour", {}, block=1, session=3)
        append_answer(journal, RUN, "Q8_0", "colour", {("Q8_0", "colour"): Outcome.CANCELLED}, session=4)
    found = graded_answers(RUN, read_lines(run_dir)[0])
    assert found["Q4_0", "colour"].text.endswith("session 2.")
    assert found["Q8_0", "colour"].text.endswith("session 1."), "a cancelled one is no answer"


def test_what_this_judge_judged_is_not_repeated_but_what_it_could_not_is(tmp_path: Path) -> None:
    run_dir = make_judged_run(tmp_path)
    lines, _ = read_lines(run_dir)
    spec = make_judging()
    first, second, *_ = targets(spec, RUN, lines)
    for state in JudgeState:
        more = [*lines, opinion_line(spec, first, state)]
        left = {target.answer.sample_id for target in targets(spec, RUN, more)}
        assert (first.answer.sample_id in left) == (state is JudgeState.JUDGE_ERROR)
        assert second.answer.sample_id in left
    scored = [*lines, opinion_line(spec, first, JudgeState.SCORED)]
    for other in (make_judging(name="another"), make_judging(engine="embedded")):
        assert len(targets(other, RUN, scored)) == 6, "another judge has its own opinion"
    assert len(targets(make_judging(JudgeMode.PAIRWISE), RUN, scored)) == 4


def test_judge_is_known_by_weights_engine_and_wording(monkeypatch: pytest.MonkeyPatch) -> None:
    key = make_judging().judge_key
    assert key == make_judging(JudgeMode.PAIRWISE).judge_key
    monkeypatch.setattr("liob_core.bench.judging.RUBRIC_VERSION", "next")
    assert make_judging().judge_key != key


def test_self_judging_is_marked() -> None:
    small, large = fake_variant("Q4_0", bpw=4.5), fake_variant("F16", bpw=16.0)
    assert is_self(small, small) is True
    same_model = replace(large, model=replace(large.model, name="Q4_0"))  # type: ignore[type-var]
    assert is_self(small, same_model) is True, "the same model in another quantization"
    bigger = replace(large, model=replace(large.model, n_params=7))  # type: ignore[type-var]
    assert is_self(small, bigger) is False
    by_name = make_judge("ollama", DEFAULT_OLLAMA_JUDGE, Path(), threads=1)
    assert is_self(by_name, large) is None
    assert is_self(by_name, by_name) is True
    assert (by_name.engine_model, by_name.model) == ("llama3.2:3b", None)


def test_pair_record_marks_lengths_and_keeps_both_replies(tmp_path: Path) -> None:
    run_dir = make_judged_run(tmp_path)
    spec = make_judging(JudgeMode.PAIRWISE)
    target = targets(spec, RUN, read_lines(run_dir)[0])[0]
    target = replace(
        target,
        answer=replace(target.answer, text="x" * 130),
        reference=replace(target.reference, text="y" * 100),
    )  # type: ignore[type-var]
    judge = ScriptedJudge("what?", lambda text: verdict(text, winner="A"))
    pair = compare(judge, Task(messages=target.answer.prompt.messages), "x" * 130, "y" * 100)
    record = of_pair(spec, target, pair, judgement_id="j", utc="t", calibration_share=0.5, is_self=None)
    assert (record.run_id, record.mode, record.score) == (RUN_ID, JudgeMode.PAIRWISE, None)
    assert (record.result, record.preferred_first, record.preferred_second) == ("tie", "variant", "reference")
    assert (record.length_ratio, record.lengths_differ) == (1.3, True)
    assert (record.attempts, record.earlier_replies) == (3, ("what?",))
    assert '"winner": "A"' in record.raw_reply
    assert '"winner": "A"' in (record.raw_reply_second or "")
