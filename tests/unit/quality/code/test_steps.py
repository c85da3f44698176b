"""Tests as steps, values that travel, and what results mean."""

import ast
import enum
import math
from collections import Counter, OrderedDict, defaultdict, namedtuple

import pytest

from liob_core.quality.code.steps import problem_of, read_steps, share_passed
from liob_core.quality.code.values import MAX_DEPTH, NotPlainError, pack, unpack
from liob_core.suites.tested_names import names_to_define

Pair = namedtuple("Pair", "left right")


class Colour(enum.IntEnum):
    RED = 3


class Liar(str):
    def __str__(self) -> str:
        return "truth"

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -7, 10**100, 0.1, math.inf, "a\ud800é", b"\x00", 2 + 3j, [1, [2, (3,)]], (), {1, 2},
     frozenset({(1, 2)}), {"a": {2: [None]}, (1, 2): 3.0}],
    ids=repr,
)  # fmt: skip
def test_value_travels_unchanged(value: object) -> None:
    back = unpack(pack(value))
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    ("value", "plain"),
    [(Colour.RED, 3), (Pair(1, 2), (1, 2)), (Counter("aab"), {"a": 2, "b": 1}), (OrderedDict(a=1), {"a": 1}),
     (defaultdict(int, x=1), {"x": 1}), (bytearray(b"x"), b"x"), (Liar("lie"), "lie")],
    ids=repr,
)  # fmt: skip
def test_value_of_a_subclass_travels_as_its_content(value: object, plain: object) -> None:
    back = unpack(pack(value))
    assert back == plain
    assert type(back) is type(plain)


def test_value_that_is_not_plain_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    deep: object = 1
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    for value in (
        object(),
        range(3),
        iter([]),
        len,
        int,
        endless,
        deep,
        [0] * 30_000,
        10**20_000,
        [object()],
    ):
        with pytest.raises(NotPlainError):
            pack(value)


@pytest.mark.parametrize(
    "packed", [[1], {}, {"list": 3}, {"list": [1], "x": 1}, {"set": [{"list": []}]}, {"dict": [[1]]},
               {"bytes": "zz"}, {"complex": [1, 2, 3]}, {"os": []}, {"dict": [[{"list": []}, 1]]}]
)  # fmt: skip
def test_forged_value_is_refused(packed: object) -> None:
    with pytest.raises(NotPlainError):
        unpack(packed)


def _judge(statement: str, **result: object) -> str | None:
    (step,) = read_steps(statement)
    return problem_of(step, result)


def test_right_side_does_not_reach_the_child() -> None:
    steps = read_steps(
        "import math\nx = 3\nassert f(x) == [1, 'secret'], 'hint'\nassert f(1) in (1, 2)\nassert f(2)"
    )
    assert [step.kind for step in steps] == ["run", "run", "value", "value", "truth"]
    assert [step.code for step in steps] == ["import math", "x = 3", "f(x)", "f(1)", "f(2)"]


@pytest.mark.parametrize(
    ("statement", "right", "wrong"),
    [
        ("assert f() == 3", 3, 4),
        ("assert f() == 3", 3.0, "3"),
        ("assert f() == (1, 2)", (1, 2), [1, 2]),
        ("assert f() == {'a': 1}", {"a": 1}, {}),
        ("assert f() != 3", 4, 3),
        ("assert f() < 1e-9", 0.0, 1),
        ("assert f() <= 2", 2, 3),
        ("assert f() > 2", 3, "x"),
        ("assert f() >= -2", -2, -3),
        ("assert f() is None", None, 0),
        ("assert f() is True", True, 1),
        ("assert f() is not None", 0, None),
        ("assert f() in ('a', 'b')", "a", "c"),
        ("assert f() not in (1, 2)", 3, 2),
    ],
)
def test_value_is_compared_here(statement: str, right: object, wrong: object) -> None:
    assert _judge(statement, value=pack(right)) is None
    assert _judge(statement, value=pack(wrong)) is not None


def test_comparison_with_more_than_a_literal_is_left_to_the_child() -> None:
    for statement in ("assert f() == g()", "assert 1 < f() < 3", "assert f() is x", "assert not f()"):
        (step,) = read_steps(statement)
        assert step.kind == "truth"
        assert problem_of(step, {"value": True}) is None
        assert problem_of(step, {"value": False}) == f"{statement[7:]} does not hold"
        assert problem_of(step, {"value": 1}) is not None


def test_problem_says_what_came() -> None:
    assert _judge("assert f(1) == 3", value=4) == "f(1) == 3: it gave 4"
    assert _judge("assert f(1) == 3", error="ValueError: no") == "f(1) == 3 raised ValueError: no"
    assert _judge("assert f(1) == 3", other="a Foo") == "f(1) == 3: it gave a Foo"
    assert _judge("assert f(1) == 3", value={"list": 3}) == "f(1) == 3: the values cannot be compared"
    assert _judge("assert f(1) == 3") == "f(1) == 3: it gave None"
    assert _judge("check(f)") is None
    assert len(_judge("assert f(1) == 3", value="x" * 1000) or "") < 120


def test_share_counts_asserts_alone() -> None:
    steps = read_steps("import math\nassert f(1) == 1\nassert f(2) == 2\nassert f(3)")
    assert share_passed(steps, [None, None, "wrong", None]) == pytest.approx(2 / 3)
    assert share_passed(steps, [None, None]) == pytest.approx(1 / 3)
    assert share_passed(read_steps("check(f)"), [None]) == 1


def test_names_to_define_are_those_the_tests_lack() -> None:
    tests = """
import math
from collections import Counter as Count
def check(candidate):
    for i in range(3):
        assert candidate(i) == math.sqrt(i) + len(Count())
try:
    pass
except ValueError as problem:
    print(problem)
assert all(add(x, y) for x, y in [(1, 2)])
assert raises(TypeError, check, add) and (lambda z: z)(Stack)
"""
    assert set(names_to_define(ast.parse(tests))) == {"add", "Stack"}
