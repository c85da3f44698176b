"""Whatever a model writes, a grader answers, and soon."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from liob_core.quality import checks
from liob_core.quality.checks import run_check
from liob_core.types import Check, CheckResult

CHECKS = [
    Check(kind="number", params={"value": 42}),
    Check(kind="exact", params={"values": ["42"]}),
    Check(kind="regex", params={"pattern": r"(\w+\s?)+!$"}),
    Check(kind="contains", params={"all": ["42", ["x", "y"]], "none": ["z"]}),
    Check(kind="choice", params={"options": {"A": "one", "B": "two"}, "correct": "A"}),
    Check(
        kind="json_schema",
        params={"schema": {"type": "object", "patternProperties": {"(a+)+$": {"uniqueItems": True}}}},
    ),
]
PIECES = [
    *("Answer:", "answer is", "\n", " ", "42", "1,", "/", "e9", ".", "-", "%", "A)", "(B)", "{", "[", '"'),
    *(
        "}",
        "]",
        "```json\n",
        "\\boxed{",
        "\\frac{1}{",
        "**",
        "\x00",
        "\x1b[31m",
        "\x1b[",
        "\ud800",
        "<script>",
    ),
    *("<script>", "ß", "½", "٣", "\u202e", "aaaa", "=", "or", "1" * 30),
]


@pytest.fixture(autouse=True, scope="module")
def short_time_limit() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "TIME_LIMIT_S", 0.1)
        yield


def _assert_storable(text: str | None) -> None:
    if text is not None:
        text.encode()
        assert "\x00" not in text
        assert len(text) < 2000


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=40).map("".join)))
def test_any_text_gets_an_outcome_that_can_be_stored(answer: str) -> None:
    for check in CHECKS:
        outcome = run_check(check, answer)
        assert isinstance(outcome.result, CheckResult)
        _assert_storable(outcome.reason)
        _assert_storable(outcome.extracted)


@settings(max_examples=200, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_any_number_written_by_python_is_read_back(value: float) -> None:
    check = Check(kind="number", params={"value": value})
    assert run_check(check, f"So I get this.\n**Answer:** {value!r} units").result is CheckResult.PASS


@settings(max_examples=200, deadline=None)
@given(st.integers(-(10**15), 10**15))
def test_any_integer_with_thousand_separators_is_read_back(value: int) -> None:
    check = Check(kind="number", params={"value": value})
    assert run_check(check, f"Answer: {value:,}").result is CheckResult.PASS
    assert run_check(check, f"Answer: {value + 1:,}").result is CheckResult.FAIL


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=5,
        ),
        min_size=1,
        max_size=3,
    )
)
def test_any_json_object_between_words_is_found(value: dict[str, Any]) -> None:
    check = Check(kind="json_schema", params={"schema": {"const": value}})
    text = json.dumps(value)
    assert run_check(check, f"Here you are: {text} - enjoy").result is CheckResult.PASS
    assert run_check(check, f"```json\n{text}\n```").result is CheckResult.PASS


def _megabyte(piece: str) -> str:
    return piece * (1_000_000 // len(piece))


HEAVY = [
    *("a", "1", "1,", "1,111,", "1/", "1 ", "Answer: ", "Answer", "A) ", "A or ", "[", "{", '{"a":', '["'),
    *("\x1b[", "\x1b[0", "*", "\n", " ", "\x00", "`", "```json\n", "\\boxed{", "\\frac{", "42 x ", "1."),
    *("- $", "1e1", "answer "),
]
NOISE = "".join(random.Random(1).choices("aA1 ,.\n{}[]\"'*_=:/\\()$%", k=1_000_000))


# The limit is generous: what it must catch takes minutes or never ends.
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "answer",
    [
        *map(_megabyte, HEAVY),
        *("1," + "1" * 1_000_000, "Answer:" + " " * 1_000_000 + "42", "[" * 500_000 + "]" * 500_000, NOISE),
    ],
    ids=range(len(HEAVY) + 4),
)
def test_a_megabyte_is_graded_soon(answer: str) -> None:
    for check in CHECKS:
        assert isinstance(run_check(check, answer).result, CheckResult)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "check",
    [
        Check(kind="regex", params={"pattern": "(x+x+)+y"}),
        Check(kind="regex", params={"pattern": "(.*a){25}$", "flags": "s"}),
        Check(kind="json_schema", params={"schema": {"items": {"pattern": "(x+x+)+y"}}}),
        Check(kind="json_schema", params={"schema": {"items": {"patternProperties": {"(x+x+)+y": {}}}}}),
    ],
)
def test_runaway_pattern_is_unchecked(check: Check) -> None:
    text = "x" * 5000
    answer = json.dumps([text, {text: 1}]) if check.kind == "json_schema" else text + "a" * 40 + "b"
    outcome = run_check(check, answer)
    assert outcome.result is CheckResult.UNCHECKED
    assert outcome.reason


@pytest.mark.timeout(60)
def test_unique_items_of_a_long_mixed_list_ends() -> None:
    check = Check(kind="json_schema", params={"schema": {"uniqueItems": True}})
    items = json.dumps([x for i in range(4000) for x in (i, str(i), [i])])
    assert run_check(check, items).result is CheckResult.PASS


def test_json_too_long_to_validate_is_unchecked() -> None:
    check = Check(kind="json_schema", params={"schema": {"type": "array"}})
    outcome = run_check(check, json.dumps(["x" * 100] * 2000))
    assert outcome.result is CheckResult.UNCHECKED
    assert "too long" in outcome.reason


def test_schema_that_recurses_with_the_answer_is_unchecked() -> None:
    schema = {"type": "array", "items": {"$ref": "#"}}
    answer = "[" * 400 + "]" * 400
    outcome = run_check(Check(kind="json_schema", params={"schema": schema}), answer)
    assert outcome.result is CheckResult.UNCHECKED
    assert "RecursionError" in outcome.reason


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.kind)
@pytest.mark.parametrize("answer", ["", " ", "\x00", "\u200b\n", "\x1b[0m"])
def test_an_answer_of_nothing_fails(check: Check, answer: str) -> None:
    outcome = run_check(check, answer)
    assert (outcome.result, outcome.reason) == (CheckResult.FAIL, "the answer is empty")
