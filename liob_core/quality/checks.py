"""Deterministic graders: what a check says of an answer.

PASS and FAIL are about the answer. UNCHECKED says that the check itself could not decide: its pattern
or schema ran out of time, its parameters are unusable, the JSON is too long to validate, or code may
not be run.
"""

import re
from collections.abc import Callable
from fractions import Fraction

import regex
from pydantic import ValidationError
from referencing.exceptions import Unresolvable

from liob_core.quality.answer_text import answer_line, clean, holds, shorten
from liob_core.quality.choices import chosen
from liob_core.quality.code.grade import grade_unit_tests
from liob_core.quality.json_values import MAX_JSON_CHARS, find_json
from liob_core.quality.numbers import Found, final_number
from liob_core.quality.overlap import bleu, rouge_l, token_f1
from liob_core.suites.bounded_schema import make_validator
from liob_core.suites.params import (
    AnyCheck,
    ChoiceCheck,
    ContainsCheck,
    ExactCheck,
    JsonSchemaCheck,
    NumberCheck,
    OverlapCheck,
    RegexCheck,
    UnitTestsCheck,
    compile_pattern,
    parse_check,
    validate_check,
)
from liob_core.types import Check, CheckOutcome, CheckResult

__all__ = ["TIME_LIMIT_S", "run_check", "validate_check"]

TIME_LIMIT_S = 1.0  # of one pattern or schema on one answer

_OVERLAPS = {"rouge_l": ("ROUGE-L", rouge_l), "bleu": ("BLEU", bleu), "token_f1": ("token F1", token_f1)}

_EDGES = " \t\n.,;:!?\"'`*_()[]{}<>#$\\"

# The line that opens a code fence with its language, and LaTeX's boxes.
_WRAPPING = re.compile(r"(?m)^```\w{0,20}$|\\(?:boxed|text|textbf|mathrm)\s?\{")


def run_check(
    check: Check,
    answer: str,
    *,
    allow_code: bool = False,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> CheckOutcome:
    """What the check says of a model's answer, whatever the answer holds.

    Code in it is run only with `allow_code`; as that may take seconds, it asks `is_cancelled` meanwhile.
    """
    try:
        params = parse_check(check)
    except ValidationError:
        return _unchecked(f"the check is not usable: {validate_check(check)}")
    text = clean(answer)
    if not text:
        return _failed("the answer is empty")
    if isinstance(params, UnitTestsCheck):
        # The answer as it is: quotes made plain would change what its code says.
        outcome = grade_unit_tests(params, answer, allow_code=allow_code, is_cancelled=is_cancelled)
        return _outcome(outcome.result, outcome.reason, outcome.extracted, outcome.score)
    return _grade(params, text)


def _grade(params: AnyCheck, text: str) -> CheckOutcome:  # noqa: PLR0911 - one a kind
    match params:
        case NumberCheck():
            return _grade_number(params, text)
        case ExactCheck():
            return _grade_exact(params, text)
        case RegexCheck():
            return _grade_regex(params, text)
        case ContainsCheck():
            return _grade_contains(params, text)
        case ChoiceCheck():
            return _grade_choice(params, text)
        case OverlapCheck():
            return _grade_overlap(params, text)
        case JsonSchemaCheck():
            return _grade_json(params, text)
    raise TypeError(f"no grader for {type(params).__name__}")


def _grade_number(params: NumberCheck, text: str) -> CheckOutcome:
    found = final_number(text)
    if isinstance(found, str):
        return _failed(found)
    wanted = Fraction(str(params.value))
    room = max(Fraction(str(params.tolerance)), Fraction(str(params.rel_tolerance)) * abs(wanted))
    if any(abs(value - wanted) <= room for value in _readings(found)):
        return _passed(f"{found.text} is {params.value} within the tolerance", found.text)
    return _failed(f"{found.text} is not {params.value}", found.text)


def _readings(found: Found) -> tuple[Fraction, ...]:
    # "25%" answers both "how many percent?" (25) and "what share?" (0.25).
    return (found.value, found.value / 100) if found.is_percent else (found.value,)


def _grade_exact(params: ExactCheck, text: str) -> CheckOutcome:
    candidates = [text] if (line := answer_line(text)) is None else [line, text]
    wanted = {_normal(value, params) for value in params.values}
    for candidate in candidates:
        if _normal(candidate, params) in wanted:
            return _passed("it is the expected text", candidate)
    return _failed(f"it is not {shorten(params.values[0])!r}", candidates[0])


def _normal(text: str, params: ExactCheck) -> str:
    if params.ignore_punctuation:
        text = _WRAPPING.sub("", text).strip(_EDGES)
    if params.ignore_space:
        text = " ".join(text.split())
    return text.casefold() if params.ignore_case else text


def _grade_regex(params: RegexCheck, text: str) -> CheckOutcome:
    pattern = compile_pattern(params.pattern, params.flags)
    subject = _part(params.part, text)
    find = pattern.fullmatch if params.mode == "fullmatch" else pattern.search
    try:
        match = find(subject, timeout=TIME_LIMIT_S)
    except (TimeoutError, MemoryError):
        return _unchecked(f"the pattern did not finish within {TIME_LIMIT_S:g} s on this answer")
    except regex.error as error:
        return _unchecked(f"the pattern failed: {error}")
    if match is None:
        return _failed("the pattern does not match", subject)
    return _passed("the pattern matches", match[0])


def _grade_contains(params: ContainsCheck, text: str) -> CheckOutcome:
    part = _part(params.part, text)
    n_words = len(part.split())
    if n_words < params.min_words:
        return _failed(f"it has {n_words} words, fewer than {params.min_words}")
    if params.max_words is not None and n_words > params.max_words:
        return _failed(f"it has {n_words} words, more than {params.max_words}")
    subject = _spelling(part, params)

    def has(item: str) -> bool:
        return holds(subject, _spelling(item, params), whole_words=params.whole_words)

    for spellings in params.all or []:
        if not any(has(spelling) for spelling in spellings):
            return _failed(f"it lacks {shorten(spellings[0])!r}")
    if params.any is not None and not any(has(item) for item in params.any):
        return _failed(f"it has none of {shorten(', '.join(params.any))}")
    for item in params.none:
        if has(item):
            return _failed(f"it has {shorten(item)!r}, which it must not", item)
    return _passed("it has what it must have")


def _spelling(text: str, params: ContainsCheck) -> str:
    plain = " ".join(clean(text).split())
    return plain.casefold() if params.ignore_case else plain


def _grade_choice(params: ChoiceCheck, text: str) -> CheckOutcome:
    label, why = chosen(text, params.options)
    if label is None:
        return _failed(why)
    if label == params.correct:
        return _passed(f"{label} is right ({why})", label)
    return _failed(f"{label} is not {params.correct} ({why})", label)


def _grade_json(params: JsonSchemaCheck, text: str) -> CheckOutcome:
    if len(text) > MAX_JSON_CHARS:
        return _unchecked(f"the answer is over {MAX_JSON_CHARS} characters, too long to validate")
    found = find_json(text)
    if found is None:
        return _failed("there is no JSON in the answer")
    try:
        error = next(make_validator(params.schema_, TIME_LIMIT_S).iter_errors(found.value), None)
    except (TimeoutError, RecursionError, MemoryError, OverflowError, Unresolvable, regex.error) as problem:
        return _unchecked(f"the schema could not be evaluated: {type(problem).__name__}")
    if error is None:
        return _passed("the JSON fits the schema", found.text)
    where = "/".join(str(step) for step in error.absolute_path) or "the JSON"
    return _failed(f"{shorten(where)}: {shorten(error.message)}", found.text)


def _grade_overlap(params: OverlapCheck, text: str) -> CheckOutcome:
    if params.references is None:
        return _unchecked("there is no reference to compare with")
    part = _part(params.part, text)
    name, measure = _OVERLAPS[params.kind]
    score = measure(part, [clean(reference) for reference in params.references])
    result = CheckResult.PASS if score >= params.min_score else CheckResult.FAIL
    return _outcome(result, f"its {name} is {score:.3f}, asked for {params.min_score:g}", part, score)


def _part(part: str, text: str) -> str:
    line = answer_line(text) if part == "answer" else None
    return text if line is None else line


def _passed(reason: str, extracted: str | None = None) -> CheckOutcome:
    return _outcome(CheckResult.PASS, reason, extracted)


def _failed(reason: str, extracted: str | None = None) -> CheckOutcome:
    return _outcome(CheckResult.FAIL, reason, extracted)


def _unchecked(reason: str) -> CheckOutcome:
    return _outcome(CheckResult.UNCHECKED, reason, None)


def _outcome(
    result: CheckResult, reason: str, extracted: str | None, score: float | None = None
) -> CheckOutcome:
    # JSON may spell half a character ("\\ud800"), which no database stores.
    plain = re.sub("[\ud800-\udfff]", "\ufffd", reason)
    return CheckOutcome(
        result=result,
        reason=plain,
        extracted=None if extracted is None else shorten(extracted),
        score=score,
    )
