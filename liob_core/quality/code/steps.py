"""A suite's tests as steps, and what their results mean.

The right side of `assert expression == literal` never reaches the process that runs the answer: the
child evaluates the expression, its value travels back, and it is compared here. So code that does not
know the right value cannot pass by redefining `==`, by printing, or by ending early.
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from liob_core.quality.code.values import NotPlainError, unpack

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda value, expected: value in expected,
    ast.NotIn: lambda value, expected: value not in expected,
}
_SINGLETONS = (None, True, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One statement of the tests; `kind` is run (a statement), truth or value (of an assert)."""

    kind: str
    code: str  # what the child executes or evaluates
    shown: str  # the statement as the suite has it
    compare: Callable[[Any, Any], Any] | None = None
    expected: Any = None

    @property
    def is_test(self) -> bool:
        """Whether it is an assert, not a preparation."""
        return self.kind != "run"


def read_steps(tests: str) -> tuple[Step, ...]:
    """The tests' top-level statements in order; raises SyntaxError or ValueError for no program."""
    return tuple(_step(node) for node in ast.parse(tests).body)


def problem_of(step: Step, result: Mapping[str, Any]) -> str | None:
    """Why a step failed, by what the child reported of it; None where it holds."""
    error = result.get("error")
    if isinstance(error, str):
        return f"{step.shown} raised {error}"
    if step.kind == "run":
        return None
    if step.kind == "truth":
        return None if result.get("value") is True else f"{step.shown} does not hold"
    if "other" in result:
        return f"{step.shown}: it gave {result['other']}"
    try:
        value = unpack(result.get("value"))
        holds = step.compare is not None and bool(step.compare(value, step.expected))
    except (NotPlainError, TypeError, RecursionError, OverflowError):
        return f"{step.shown}: the values cannot be compared"
    return None if holds else f"{step.shown}: it gave {_shown(value)}"


def share_passed(steps: Sequence[Step], problems: Sequence[str | None]) -> float:
    """The share of the asserts that hold, 0 to 1; of all statements where none is an assert."""
    counted = [i for i, step in enumerate(steps) if step.is_test] or list(range(len(steps)))
    return sum(i < len(problems) and problems[i] is None for i in counted) / len(counted)


def _step(node: ast.stmt) -> Step:
    shown = ast.unparse(node)
    if not isinstance(node, ast.Assert):
        return Step(kind="run", code=shown, shown=shown)
    shown = ast.unparse(node.test)
    test = node.test
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        compare = _COMPARISONS[type(test.ops[0])]
        is_identity = isinstance(test.ops[0], ast.Is | ast.IsNot)
        try:
            expected = ast.literal_eval(test.comparators[0])
        except ValueError:
            return Step(kind="truth", code=shown, shown=shown)
        if not is_identity or any(expected is single for single in _SINGLETONS):
            return Step(
                kind="value",
                code=ast.unparse(test.left),
                shown=shown,
                compare=compare,
                expected=expected,
            )
    return Step(kind="truth", code=shown, shown=shown)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, a deep nest
        return "a value too large to show"
    return text if len(text) <= 80 else text[:79] + "…"
