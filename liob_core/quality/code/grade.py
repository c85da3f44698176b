"""Unit tests of the code in an answer, as a check's outcome."""

import ast
from collections.abc import Callable

from liob_core.quality.code.extract import extract_python
from liob_core.quality.code.sandbox import CodeRun, run_code
from liob_core.quality.code.steps import Step, problem_of, read_steps, share_passed
from liob_core.suites.params import UnitTestsCheck
from liob_core.suites.tested_names import names_to_define
from liob_core.types import CheckOutcome, CheckResult, Suite

NOT_ALLOWED = (
    "code from answers is not run unless you allow it: use `run --allow-code`, or set LIOB_ALLOW_CODE=1"
)


def grade_unit_tests(
    params: UnitTestsCheck, answer: str, *, allow_code: bool, is_cancelled: Callable[[], bool]
) -> CheckOutcome:
    """What the tests say of the code in an answer; its score is the share of tests that passed, 0 to 1."""
    if not allow_code:
        return CheckOutcome(result=CheckResult.UNCHECKED, reason=NOT_ALLOWED)
    code = extract_python(answer, names_to_define(ast.parse(params.tests)))
    if code is None:
        return CheckOutcome(result=CheckResult.FAIL, reason="there is no code in the answer", score=0.0)
    steps = read_steps(params.tests)
    found = run_code(
        code,
        [(step.kind, step.code) for step in steps],
        time_limit_s=params.time_limit_s,
        is_cancelled=is_cancelled,
    )
    return _outcome(code, steps, found)


def _outcome(code: str, steps: tuple[Step, ...], found: CodeRun) -> CheckOutcome:
    if found.is_cancelled or found.enforced is None:
        why = found.ended or "its process did not start"
        return CheckOutcome(
            result=CheckResult.UNCHECKED, reason=f"the code was not tested: {why}", extracted=code
        )
    problems = [problem_of(step, result) for step, result in zip(steps, found.results, strict=False)]
    problem = _first_problem(steps, found, problems)
    n_tests = sum(step.is_test for step in steps) or len(steps)
    score = share_passed(steps, problems)
    if problem is None:
        result, reason = CheckResult.PASS, f"all {n_tests} tests passed"
    else:
        result = CheckResult.FAIL
        reason = f"{round(score * n_tests)} of {n_tests} tests passed; {problem}"
    if found.unenforced:
        reason += f" (not limited on this system: {', '.join(found.unenforced)})"
    return CheckOutcome(result=result, reason=reason, extracted=code, score=score)


def _first_problem(steps: tuple[Step, ...], found: CodeRun, problems: list[str | None]) -> str | None:
    if found.load_error is not None:
        return f"the code ends with {found.load_error}"
    known = next((problem for problem in problems if problem is not None), None)
    if known is not None:
        return known
    if len(problems) < len(steps):
        where = steps[len(problems)].shown if found.is_loaded else "the code itself"
        return f"{where}: {found.ended or 'no result'}"
    return None


def code_note(suite: Suite | None, *, allow_code: bool) -> str | None:
    """What a user should know before a suite's code is run, or not run; None where there is nothing."""
    prompts = suite.prompts if suite else ()
    n_tested = sum(prompt.check is not None and prompt.check.kind == "unit_tests" for prompt in prompts)
    if n_tested == 0:
        return None
    if not allow_code:
        return f"{n_tested} prompts will stay unchecked: {NOT_ALLOWED}."
    trial = run_code("", [], time_limit_s=10)
    if trial.enforced is None:
        return f"{n_tested} prompts will stay unchecked: code cannot be run here, {trial.ended}."
    if trial.unenforced:
        return f"Code from answers will run on this system without a limit on: {', '.join(trial.unenforced)}."
    return None
