"""Graders read what models write, and say why; see `test_checks_hostile` for what must not break them."""

from typing import Any

import pytest

from liob_core.quality.checks import run_check, validate_check
from liob_core.types import Check, CheckResult

PASS, FAIL, UNCHECKED = CheckResult.PASS, CheckResult.FAIL, CheckResult.UNCHECKED


def _grade(kind: str, answer: str, **params: Any) -> CheckResult:
    return run_check(Check(kind=kind, params=params), answer).result


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("42", 42),
        ("The result is 42.", 42),
        ("6 times 7 makes 42, so I say:\nAnswer: 42", 42),
        ("**Answer:** 42", 42),
        ("**Answer: 42**", 42),
        ("*Answer*: `42`", 42),
        ("### Answer\n\n42", 42),
        ("Final answer: $42$", 42),
        ("answer = 42", 42),
        ("The answer is 42 km, as 6 x 7 shows.", 42),
        ("Answer: 42 (that is 6 x 7)", 42),
        ("Answer: 6 x 7 = 42", 42),
        ("Answer: The total is $42.", 42),
        ("Answer: 12\nNo, I was wrong.\nAnswer: 42", 42),
        ("Answer: <b>42</b>", 42),
        (r"Thus \boxed{42}, and 43 is wrong", 42),
        (r"Answer: \boxed{42}", 42),
        (r"\[ x = \frac{3}{4} \]", 0.75),
        (r"\boxed{\dfrac{3}{4}}", 0.75),
        ("Answer: 3/4", 0.75),
        ("Answer: 3 / 4.", 0.75),
        ("Answer: 1 1/2 hours", 1.5),
        ("Answer: 1½", 1.5),
        ("Answer: 1,234,567", 1234567),
        ("Answer: 1{,}234", 1234),
        ("Answer: 12 345", 12345),
        ("Answer: 12\u202f345", 12345),
        ("Answer: 12'345", 12345),
        ("Answer: 1.234,5", 1234.5),
        ("Answer: 1 234 567,5", 1234567.5),
        ("Answer: 2,80 €", 2.8),
        ("Answer: -$1,000.50", -1000.5),
        ("Answer: −7", -7),
        ("Answer: .5", 0.5),
        ("Answer: 1.5e3", 1500),
        (r"Answer: 1.5 \times 10^{3}", 1500),
        ("Answer: 1.5 × 10^3", 1500),
        ("Answer: 25%", 25),
        ("Answer: 25 %", 0.25),
        ("Answer: seven", 7),
        ("Answer: **Twelve.**", 12),
        ("The first 3, then 4, in all 7", 7),
        ("in 2024 it was 1,000", 1000),
        ("1, 2, 3", 3),
        ("1,2,3", 3),
        ("42\x00\x1b[1m", 42),
    ],
)
def test_number_is_read_as_people_write_it(answer: str, value: float) -> None:
    outcome = run_check(Check(kind="number", params={"value": value}), answer)
    assert outcome.result is PASS, outcome.reason
    assert outcome.extracted


@pytest.mark.parametrize(
    "answer",
    [
        "43",
        "420",
        "4.2",
        "-42",
        "Answer: 41 or 42",
        "Answer: 42 or 43",
        "Answer: 42 and 43",
        "It is 42. Answer: unknown",
        "It is 42. Answer:",
        "Answer: 42/0",
        "H42 x42 42nd-rate no: 1",
        "1.2.42",
        "forty-two",
        "no digits",
        "4" * 100,
        "1e999",
        "Answer: 42e999",
    ],
)
def test_number_other_than_the_right_one_fails(answer: str) -> None:
    assert _grade("number", answer, value=42) is FAIL


@pytest.mark.parametrize(
    ("answer", "params", "expected"),
    [
        ("3.14", {"value": 3.14159}, FAIL),
        ("3.14", {"value": 3.14159, "tolerance": 0.002}, PASS),
        ("3.14", {"value": 3.14159, "tolerance": 0.001}, FAIL),
        ("101", {"value": 100, "rel_tolerance": 0.01}, PASS),
        ("101.1", {"value": 100, "rel_tolerance": 0.01}, FAIL),
        ("-99", {"value": -100, "rel_tolerance": 0.01}, PASS),
        ("0.3", {"value": 0.3}, PASS),
        ("1/3", {"value": 0.3333, "tolerance": 0.0001}, PASS),
        ("101", {"value": 100, "rel_tolerance": 0.001, "tolerance": 1}, PASS),
    ],
)
def test_number_tolerances_are_absolute_and_relative(
    answer: str, params: dict[str, float], expected: CheckResult
) -> None:
    assert _grade("number", answer, **params) is expected


@pytest.mark.parametrize(
    ("answer", "params", "expected"),
    [
        ("Paris", {}, PASS),
        ("  paris. ", {}, PASS),
        ("**Paris**", {}, PASS),
        ('"Paris"', {}, PASS),
        ("```text\nParis\n```", {}, PASS),
        ("I think so.\nAnswer: Paris", {}, PASS),
        (r"Answer: \boxed{Paris}", {}, PASS),
        ("Paris is the capital", {}, FAIL),
        ("Paris\nLyon", {}, FAIL),
        ("Answer: Lyon (not Paris)", {}, FAIL),
        ("paris", {"ignore_case": False}, FAIL),
        ("Paris.", {"ignore_punctuation": False}, FAIL),
        ("New  York", {"values": ["New York"]}, PASS),
        ("New  York", {"values": ["New York"], "ignore_space": False}, FAIL),
        ("Rome", {"values": ["Paris", "Rome"]}, PASS),
    ],
)
def test_exact_flags(answer: str, params: dict[str, Any], expected: CheckResult) -> None:
    assert _grade("exact", answer, **{"values": ["Paris"], **params}) is expected


@pytest.mark.parametrize(
    ("answer", "params", "expected"),
    [
        ("abc", {"pattern": "b"}, PASS),
        ("abc", {"pattern": "b", "mode": "fullmatch"}, FAIL),
        (" abc\r\n", {"pattern": "abc", "mode": "fullmatch"}, PASS),
        ("ABC", {"pattern": "b"}, FAIL),
        ("ABC", {"pattern": "b", "flags": "i"}, PASS),
        ("a\nb", {"pattern": "a.b"}, FAIL),
        ("a\nb", {"pattern": "a.b", "flags": "s"}, PASS),
        ("a\nb", {"pattern": "^b$"}, FAIL),
        ("a\nb", {"pattern": "^b$", "flags": "m"}, PASS),
        ("not b\nAnswer: c", {"pattern": "b", "part": "answer"}, FAIL),
        ("not b\nAnswer: b", {"pattern": "b", "part": "answer"}, PASS),
        ("no mark: b", {"pattern": "b", "part": "answer"}, PASS),
    ],
)
def test_regex_modes_flags_and_parts(answer: str, params: dict[str, Any], expected: CheckResult) -> None:
    assert _grade("regex", answer, **params) is expected


@pytest.mark.parametrize(
    ("answer", "params", "expected"),
    [
        ("The cat sat.", {"all": ["cat"]}, PASS),
        ("The CAT sat.", {"all": ["cat"], "ignore_case": False}, FAIL),
        ("A category", {"all": ["cat"]}, FAIL),
        ("A category", {"all": ["cat"], "whole_words": False}, PASS),
        ("_cat_ and **dog**", {"all": ["cat", "dog"]}, PASS),
        ("cat", {"all": ["cat", "dog"]}, FAIL),
        ("cats", {"all": [["cat", "cats"]]}, PASS),
        ("dog", {"any": ["cat", "dog"]}, PASS),
        ("cow", {"any": ["cat", "dog"]}, FAIL),
        ("cat, not dog", {"all": ["cat"], "none": ["dog"]}, FAIL),
        ("New\nYork", {"all": ["new york"]}, PASS),
        ("it’s “fine”", {"all": ["it's", '"fine"']}, PASS),
        ("costs $5", {"all": ["$5"]}, PASS),
        ("costs $50", {"all": ["$5"]}, FAIL),
        ("one two three", {"all": ["two"], "min_words": 4}, FAIL),
        ("one two three", {"all": ["two"], "max_words": 2}, FAIL),
        ("one two three", {"all": ["two"], "min_words": 3, "max_words": 3}, PASS),
        ("dog\nAnswer: cat", {"all": ["cat"], "none": ["dog"], "part": "answer"}, PASS),
    ],
)
def test_contains_words_and_lengths(answer: str, params: dict[str, Any], expected: CheckResult) -> None:
    assert _grade("contains", answer, **params) is expected


CITIES = {"A": "Rome", "B": "Paris", "C": "New York", "D": "York"}


@pytest.mark.parametrize(
    "answer",
    [
        "B",
        "b",
        "**B**",
        "(B)",
        "[B]",
        "B.",
        "B) Paris",
        "B: Paris",
        "B Paris",
        "B - it is Paris",
        "Option B",
        "The answer is (B).",
        "The answer is B, because A is in Italy.",
        "Answer: B",
        "answer: b",
        "**Answer:** **B) Paris**",
        "Answer: (B) Paris",
        "Answer: Paris",
        "Answer: option B",
        r"\boxed{B}",
        r"Answer: $\boxed{\text{B}}$",
        "I would choose option B here.",
        "It must be (B), I think.",
        "The city is Paris.",
        "A) no\nB) yes\nC) no\nAnswer: B",
        "A) is in Italy\nC) is in America\n\nB",
        "First I thought so.\nAnswer: A\nBut no.\nAnswer: B",
    ],
)
def test_choice_is_read_from_messy_answers(answer: str) -> None:
    outcome = run_check(Check(kind="choice", params={"options": CITIES, "correct": "B"}), answer)
    assert (outcome.result, outcome.extracted) == (PASS, "B"), outcome.reason


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("A", "A is not B"),
        ("Answer: A) Rome", "A is not B"),
        ("Answer: A and B", "several options"),
        ("Answer: A or B", "several options"),
        ("Answer: B, C", "several options"),
        ("Answer: B/C", "several options"),
        ("B or C", "several options"),
        ("A) Rome B) Paris C) New York D) York", "several options"),
        ("A) Rome\nB) Paris\nC) New York", "settles on none"),
        ("Rome and Paris are cities.", "several options"),
        ("E", "none of the options"),
        ("A city in France.", "none of the options"),
        ("Bees like it", "none of the options"),
        ("I cannot say.", "none of the options"),
        ("Answer: New York", "C is not B"),
    ],
)
def test_choice_ambiguous_or_other_answer_fails_with_a_reason(answer: str, why: str) -> None:
    outcome = run_check(Check(kind="choice", params={"options": CITIES, "correct": "B"}), answer)
    assert outcome.result is FAIL
    assert why in outcome.reason


def test_choice_a_is_not_the_article() -> None:
    options = {"A": "a cat", "B": "a dog"}
    assert _grade("choice", "A dog, of course", options=options, correct="A") is FAIL
    assert _grade("choice", "A dog, of course", options=options, correct="B") is PASS
    assert _grade("choice", "A cat", options=options, correct="A") is PASS


PERSON = {"type": "object", "required": ["age"], "properties": {"age": {"type": "integer"}}}


@pytest.mark.parametrize(
    "answer",
    [
        '{"age": 3}',
        ' \n{"age": 3.0}\n',
        '```json\n{"age": 3}\n```',
        'Here it is:\n```\n{"age": 3}\n```\nI hope it helps!',
        '```json\n{"age": 3}',
        'Sure! {"age": 3} is the object.',
        'Not {this}, but {"age": 3}.',
        'First {"age": "x"}, better {"age": 3}',
        '[{"age": 3}] no: {"age": 3, "extra": {"deep": [1]}}',
    ],
)
def test_json_is_found_in_fences_and_between_words(answer: str) -> None:
    assert _grade("json_schema", answer, schema=PERSON) is PASS


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ('{"age": "3"}', "age: '3' is not of type 'integer'"),
        ("{}", "'age' is a required property"),
        ('{"age": 3', "no JSON"),
        ("{'age': 3}", "no JSON"),
        ('{"age": NaN}', "no JSON"),
        ("age is 3", "no JSON"),
        ('[{"age": 3}]', "not of type 'object'"),
        ('{"age": 3} or {"age": "x"}', "not of type 'integer'"),
    ],
)
def test_json_that_does_not_fit_fails_with_where_and_why(answer: str, why: str) -> None:
    outcome = run_check(Check(kind="json_schema", params={"schema": PERSON}), answer)
    assert outcome.result is FAIL
    assert why in outcome.reason


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"patternProperties": {"^x": {"type": "integer"}}}, '{"x1": 1, "y": "a"}', '{"x1": "a"}'),
        (
            {"properties": {"a": {}}, "patternProperties": {"^x": {}}, "additionalProperties": False},
            '{"a": 1, "x2": 2}',
            '{"a": 1, "b": 2}',
        ),
        ({"additionalProperties": {"type": "integer"}}, '{"a": 1}', '{"a": "b"}'),
        ({"uniqueItems": True}, '[1, "1", [1], {"a": 1}]', '[{"a": 1, "b": 2}, {"b": 2, "a": 1}]'),
        ({"pattern": "^a+$"}, '"aa"', '"ab"'),
    ],
)
def test_json_bounded_keywords_follow_the_standard(schema: dict[str, Any], good: str, bad: str) -> None:
    assert _grade("json_schema", good, schema=schema) is PASS
    assert _grade("json_schema", bad, schema=schema) is FAIL


def test_validate_check_says_what_is_wrong() -> None:
    assert validate_check(Check(kind="number", params={"value": 1})) is None
    assert validate_check(Check(kind="number", params={})) == "field 'value' is missing"
    assert "'meteor' is unknown" in str(validate_check(Check(kind="meteor", params={})))
    assert "not a regular expression" in str(validate_check(Check(kind="regex", params={"pattern": "("})))


def test_unusable_check_is_unchecked_not_failed() -> None:
    outcome = run_check(Check(kind="number", params={"value": "x"}), "1")
    assert outcome.result is UNCHECKED
    assert "must be a number" in outcome.reason
