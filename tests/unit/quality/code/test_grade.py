"""Unit tests as a check: passes, failures, what is not allowed, and code that would deceive."""

import time

import pytest

from liob_core.quality.checks import run_check
from liob_core.quality.code import grade
from liob_core.quality.code.grade import code_note
from liob_core.quality.code.sandbox import CodeRun
from liob_core.suites.load import load_suite
from liob_core.types import Check, CheckOutcome, CheckResult

TESTS = """
import math
assert double(4) == 8
assert double("ab") == "abab"
assert double([1]) == [1, 1]
assert raises(TypeError, double, None)
"""
ODD = "class Odd(Exception):\n    def __str__(self): raise self\nraise Odd"
ENDLESS = "def double(x):\n    while True: pass"
RIGHT = "```python\ndef double(x):\n    return x * 2\n```"


def run(answer: str, tests: str = TESTS, **params: object) -> CheckOutcome:
    check = Check(kind="unit_tests", params={"tests": tests, **params})
    return run_check(check, answer, allow_code=True)


def code(body: str) -> str:
    return f"```python\n{body}\n```"


def test_right_code_passes() -> None:
    outcome = run(f"Here:\n{RIGHT}")
    assert (outcome.result, outcome.score) == (CheckResult.PASS, 1.0)
    assert outcome.reason.startswith("all 4 tests passed")
    assert outcome.extracted.startswith("def double(x):")


def test_wrong_code_fails_with_the_first_wrong_value() -> None:
    outcome = run(code("def double(x):\n    return x + x if isinstance(x, int) else 2"))
    assert (outcome.result, outcome.score) == (CheckResult.FAIL, 0.25)
    assert outcome.reason.startswith("1 of 4 tests passed; double('ab') == 'abab': it gave 2")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "the answer is empty"),
        ("I can't.", "there is no code in the answer"),
        (code("def double(x:"), "0 of 4 tests passed; the code ends with SyntaxError"),
        (code("def triple(x): pass"), "0 of 4 tests passed; double(4) == 8 raised NameError: name 'double'"),
        (code("print(input())"), "0 of 4 tests passed; the code ends with EOFError"),
        (code("import numpy"), "0 of 4 tests passed; the code ends with ModuleNotFoundError"),
        (code(ODD), "0 of 4 tests passed; the code ends with Odd"),
        (code("while True: pass"), "0 of 4 tests passed; the code itself: it did not end within 0.5 s"),
        (code(ENDLESS), "0 of 4 tests passed; double(4) == 8: it did not end within 0.5 s"),
        (code("\0"), "0 of 4 tests passed; the code ends with "),
        (code("x = '\ud800'"), "0 of 4 tests passed; "),
        (code("(" * 50_000), "0 of 4 tests passed; "),
    ],
)  # fmt: skip
def test_code_that_cannot_pass_says_why(answer: str, reason: str) -> None:
    outcome = run(answer, time_limit_s=0.5)
    assert outcome.result is CheckResult.FAIL
    assert outcome.reason.startswith(reason)


@pytest.mark.parametrize(
    "body",
    [
        "class double:\n    def __init__(self, x): pass\n    def __eq__(self, other): return True",
        "class S(str):\n    def __eq__(self, other): return True\ndouble = S",
        "import os\ndef double(x): os._exit(0)",
        "def double(x): raise SystemExit(0)",
        "def double(x): exit()",
        "import builtins\nbuiltins.AssertionError = ValueError\ndef double(x): raise AssertionError",
        "import sys\nsys.modules['json'].dumps = lambda *_: '{\"value\": 8}'\ndef double(x): return 0",
        "import types\ndef double(x): return types.SimpleNamespace(value=8)",
        # It finds the reporter itself and claims success for whatever it is asked.
        "import sys\nframe = sys._getframe()\nwhile 'report' not in frame.f_locals: frame = frame.f_back\n"
        "say = frame.f_locals['report']\nsay({'loaded': True})\n"
        "for i in range(5): say({'step': i, 'value': True})\nsay({'done': True})",
    ],
)
def test_deceit_does_not_pass(body: str) -> None:
    outcome = run(code(body))
    assert outcome.result is CheckResult.FAIL, outcome


def test_code_is_not_run_unless_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grade, "run_code", lambda *_, **__: pytest.fail("it was run"))
    outcome = run_check(Check(kind="unit_tests", params={"tests": TESTS}), RIGHT)
    assert (outcome.result, outcome.score) == (CheckResult.UNCHECKED, None)
    assert "--allow-code" in outcome.reason


def test_cancelled_check_is_unchecked() -> None:
    until = time.monotonic() + 0.5
    check = Check(kind="unit_tests", params={"tests": TESTS, "time_limit_s": 60})
    outcome = run_check(
        check, code("while True: pass"), allow_code=True, is_cancelled=lambda: time.monotonic() > until
    )
    assert outcome.result is CheckResult.UNCHECKED
    assert outcome.reason == "the code was not tested: the run was cancelled"


def test_sandbox_that_does_not_start_is_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grade, "run_code", lambda *_, **__: CodeRun(ended="the process ended early"))
    outcome = run(RIGHT)
    assert (outcome.result, outcome.score) == (CheckResult.UNCHECKED, None)
    assert outcome.reason == "the code was not tested: the process ended early"
    assert "cannot be run here" in code_note(load_suite("code"), allow_code=True)


def test_limits_that_do_not_hold_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [{"step": 0}, {"step": 1, "value": 8}]
    bare = CodeRun(
        enforced={"network": False, "memory": False, "reading files": True}, is_loaded=True, results=results
    )
    monkeypatch.setattr(grade, "run_code", lambda *_, **__: bare)
    outcome = run(RIGHT, "import math\nassert double(4) == 8")
    assert outcome.reason == "all 1 tests passed (not limited on this system: network)"
    assert code_note(load_suite("code"), allow_code=True).endswith("without a limit on: network.")


def test_note_before_a_run_names_the_way_to_allow_it() -> None:
    assert code_note(None, allow_code=False) is None
    assert code_note(load_suite("quick"), allow_code=True) is None
    assert "8 prompts will stay unchecked" in code_note(load_suite("code"), allow_code=False)


def test_tests_without_asserts_at_the_top_count_as_statements() -> None:
    tests = "def check(f):\n    assert f(2) == 4\ncheck(double)"
    assert run(RIGHT, tests).result is CheckResult.PASS
    assert run(code("def double(x): return 5"), tests).reason.startswith(
        "1 of 2 tests passed; check(double) raised AssertionError"
    )
