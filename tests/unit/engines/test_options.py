from dataclasses import replace

import pytest

from liob_core.engines.options import (
    request_body,
    sampling_problem,
    schema_problem,
    unaccepted_option,
)
from liob_core.engines.protocol import Request
from liob_core.types import Sampling

PLAIN = Sampling(max_tokens=8)
OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 2])
def test_sampling_problem_seed_in_range_is_none(seed):
    assert sampling_problem(replace(PLAIN, seed=seed)) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": -1}, "Seed -1"),
        ({"seed": 2**32 - 1}, "0 to 4294967294"),
        ({"seed": 2**40}, "Seed"),
        ({"max_tokens": 0}, "at least 1"),
        ({"temperature": float("inf")}, "Temperature"),
        ({"json_schema": {"type": "bogus"}}, "not valid at type"),
        ({"json_schema": OBJECT, "ignore_eos": True}, "exclude each other"),
    ],
)
def test_sampling_problem_unusable_option_is_named(change, words):
    assert words in (sampling_problem(replace(PLAIN, **change)) or "")


def test_request_body_says_every_option():
    body = request_body(Request(prompt=(5, 6), sampling=replace(PLAIN, stop=("x",), json_schema=OBJECT)))
    assert body["prompt"] == [5, 6]
    assert body["cache_prompt"] is False
    assert body["json_schema"] == OBJECT
    assert {"seed", "temperature", "top_k", "top_p", "min_p", "repeat_penalty", "n_predict"} <= body.keys()
    assert body["stop"] == ["x"]


def echo_of(sampling):
    body = request_body(Request(prompt="x", sampling=sampling))
    return {**body, "top_p": 0.949999988079071, "min_p": 0.05000000074505806, "grammar": ""}


def test_unaccepted_option_rounded_floats_are_accepted():
    assert unaccepted_option(PLAIN, echo_of(PLAIN)) is None


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"seed": 0}, "seed"),
        ({"top_p": 1.0}, "top_p"),
        ({"stop": ["y"]}, "stop"),
        ({"mirostat": 2}, "mirostat"),
    ],
)
def test_unaccepted_option_other_value_is_named(change, name):
    assert f"'{name}'" in (unaccepted_option(PLAIN, {**echo_of(PLAIN), **change}) or "")


def test_unaccepted_option_missing_in_echo_is_named():
    echoed = echo_of(PLAIN)
    del echoed["ignore_eos"]
    assert "did not confirm the option 'ignore_eos'" in (unaccepted_option(PLAIN, echoed) or "")


def test_unaccepted_option_schema_without_grammar_is_told():
    asked = replace(PLAIN, json_schema=OBJECT)
    assert "JSON schema" in (unaccepted_option(asked, echo_of(asked)) or "")
    assert unaccepted_option(asked, {**echo_of(asked), "grammar": "root ::= x"}) is None


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ('{"a": 3}', None),
        ('{"a": "3"}', "not of type 'integer'"),
        ("{}", "'a' is a required property"),
        ("Sure! {", "not JSON"),
    ],
)
def test_schema_problem_is_none_only_where_the_answer_follows(answer, words):
    problem = schema_problem(OBJECT, answer)
    assert problem is None if words is None else words in (problem or "")


def test_schema_problem_reference_to_elsewhere_is_told():
    assert "refers to" in (schema_problem({"$ref": "#/nowhere"}, "1") or "")
