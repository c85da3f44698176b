"""The shipped suite of programs: right ones pass their tests, wrong ones, echoes and silence fail."""

import tomllib
from pathlib import Path

import pytest

from liob_core.quality.checks import run_check
from liob_core.suites.load import load_suite
from liob_core.types import CheckResult, Prompt

CODE = load_suite("code")
WRONG = tomllib.loads(Path(__file__).with_name("code_wrong_answers.toml").read_text(encoding="utf-8"))


def _grade(prompt: Prompt, answer: str) -> CheckResult:
    return run_check(prompt.check, answer, allow_code=True).result


def _ids(prompt: Prompt) -> str:
    return prompt.prompt_id


def test_code_has_a_handful_of_prompts_each_with_tests() -> None:
    assert 6 <= len(CODE.prompts) <= 12
    assert {prompt.check.kind for prompt in CODE.prompts} == {"unit_tests"}
    assert set(WRONG) == {prompt.prompt_id for prompt in CODE.prompts}


@pytest.mark.parametrize("prompt", CODE.prompts, ids=_ids)
def test_code_reference_passes_in_the_forms_models_write(prompt: Prompt) -> None:
    answer = prompt.reference.strip()
    bare = answer.removeprefix("```python\n").removesuffix("```")
    for form in (answer, f"Sure!\n\n{answer}\n\nHope that helps.", answer.removesuffix("```"), bare):
        outcome = run_check(prompt.check, form, allow_code=True)
        assert (outcome.result, outcome.score) == (CheckResult.PASS, 1.0), outcome


@pytest.mark.parametrize("prompt", CODE.prompts, ids=_ids)
def test_code_plausible_wrong_answers_fail(prompt: Prompt) -> None:
    for answer in WRONG[prompt.prompt_id]:
        outcome = run_check(prompt.check, answer, allow_code=True)
        assert outcome.result is CheckResult.FAIL, answer
        assert 0 < outcome.score < 1, answer  # it runs, and some tests pass: the others tell it apart


@pytest.mark.parametrize("prompt", CODE.prompts, ids=_ids)
def test_code_fails_silence_echo_and_empty_bodies(prompt: Prompt) -> None:
    question = prompt.messages[-1].content
    name = prompt.check.params["tests"].split("(")[0].split()[-1]
    pretence = f"class {name}:\n    def __init__(self, *_): pass\n    def __eq__(self, other): return True\n"
    for answer in (
        "",
        question,
        question * 2,
        "I can't help with that.",
        f"def {name}(*_):\n    pass",
        pretence,
    ):
        assert _grade(prompt, answer) is CheckResult.FAIL, answer


@pytest.mark.parametrize("prompt", CODE.prompts, ids=_ids)
def test_code_is_not_run_unless_allowed(prompt: Prompt) -> None:
    outcome = run_check(prompt.check, prompt.reference)
    assert (outcome.result, outcome.score) == (CheckResult.UNCHECKED, None)
    assert "--allow-code" in outcome.reason
    assert "LIOB_ALLOW_CODE" in outcome.reason
