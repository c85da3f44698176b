import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from liob_core.analysis.comparing import compare_runs
from liob_core.errors import UsageError
from tests.unit.analysis.conftest import RUN, RunWriter

SETTINGS = json.dumps({"n_ctx": 4096, "threads": 2})
Made = Callable[..., tuple[Path, str]]


@pytest.fixture
def made(tmp_path: Path, empty_database: Path) -> Made:
    """A run in a file of its own: ms of 127 tokens per block, check results per prompt."""

    def make(
        name: str,
        chat_ms: list[float],
        checks: str = "",
        variants: tuple[str, ...] = ("F16",),
        **changes: Any,
    ) -> tuple[Path, str]:
        writer = RunWriter(shutil.copy(empty_database, tmp_path / f"{name}.duckdb"))
        writer.run(**({"sampling": json.dumps({"seed": 1}), "suite_sha256": "s"} | changes))
        for label in variants:
            writer.variant(label, 16, load_settings=SETTINGS, weights_sha256="w")
            for block, ms in enumerate(chat_ms):
                writer.speed(label, block, chat_ms=ms, prefill_ms=256.0 + block)
            for number, letter in enumerate(checks):
                result = {"p": "pass", "f": "fail", "-": None}[letter]
                writer.answer(label, f"p{number}", result, prompt_sha256=f"text{number}")
        writer.flush()
        return writer.close(), RUN

    return make


def verdicts(found: Any) -> dict[str, str]:
    return {change.metric: change.verdict for change in found.changes}


def test_same_runs_show_no_regression(made: Made) -> None:
    ms, checks = [1270.0, 1275.0, 1265.0], "p" * 70 + "f" * 30
    found = compare_runs(made("a", ms, checks), made("b", ms, checks))
    assert found.verdict == "no regression"
    assert verdicts(found) == dict.fromkeys(("decode_tps", "prefill_tps", "pass_rate"), "no regression")
    [decode] = [change for change in found.changes if change.metric == "decode_tps"]
    assert (decode.value_a, decode.value_b) == pytest.approx((100.0, 100.0), rel=1e-3)
    assert decode.estimate == pytest.approx(0.0)


def test_clearly_slower_is_a_regression_and_speed_alone_decides_it(made: Made) -> None:
    found = compare_runs(made("a", [1270.0, 1275.0, 1265.0]), made("b", [1588.0, 1590.0, 1586.0]))
    assert found.verdict == "regression"
    assert verdicts(found) == {"decode_tps": "regression", "prefill_tps": "no regression"}
    [decode] = [change for change in found.changes if change.metric == "decode_tps"]
    assert decode.estimate == pytest.approx(-0.2, abs=1e-2)
    assert decode.high is not None
    assert decode.high < -0.05


def test_wider_margin_lets_it_pass(made: Made) -> None:
    a, b = made("a", [1270.0, 1275.0, 1265.0]), made("b", [1588.0, 1590.0, 1586.0])
    assert compare_runs(a, b, margin_speed=0.3).verdict == "no regression"


def test_noise_is_inconclusive(made: Made) -> None:
    found = compare_runs(made("a", [1000.0, 1300.0, 1600.0]), made("b", [1100.0, 1400.0, 1500.0]))
    assert (found.verdict, verdicts(found)["decode_tps"]) == ("inconclusive", "inconclusive")


def test_one_block_is_inconclusive_with_a_reason(made: Made) -> None:
    found = compare_runs(made("a", [1270.0]), made("b", [1270.0]))
    assert found.verdict == "inconclusive"
    assert {change.reason for change in found.changes} == {"one block has no interval"}


def test_lost_checks_are_a_regression_by_prompt(made: Made) -> None:
    ms = [1270.0, 1275.0, 1265.0]
    # 30 of 100 prompts flip to fail: Tango's interval of -0.30 is about (-0.40, -0.21).
    found = compare_runs(made("a", ms, "p" * 100), made("b", ms, "p" * 70 + "f" * 30))
    [change] = [change for change in found.changes if change.metric == "pass_rate"]
    assert (found.verdict, change.verdict, change.n_a) == ("regression", "regression", 100)
    assert (change.value_a, change.value_b, change.estimate) == pytest.approx((1.0, 0.7, -0.3))


def test_few_prompts_are_inconclusive_and_other_texts_are_left_out(made: Made, tmp_path: Path) -> None:
    ms = [1270.0, 1275.0, 1265.0]
    found = compare_runs(made("a", ms, "pppp"), made("b", ms, "ppp-"))
    [change] = [change for change in found.changes if change.metric == "pass_rate"]
    assert (change.verdict, change.n_a) == ("inconclusive", 3)
    assert change.reason == "1 prompts were not checked with the same text in both"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"machine_id": "m2"}, "other machine"),
        ({"machine_id": None}, "the machine of a run is not known"),
        ({"engine_version": "2"}, "other engine version (1 against 2)"),
        ({"suite_sha256": "t"}, "other suite"),
        ({"sampling": json.dumps({"seed": 2})}, "other sampling (seed: 1 against 2)"),
    ],
)
def test_what_was_not_measured_alike_is_named(made: Made, changes: dict[str, Any], words: str) -> None:
    found = compare_runs(made("a", [1270.0, 1271.0]), made("b", [1270.0, 1271.0], **changes))
    assert (found.verdict, found.differences, found.changes) == ("not comparable", (words,), ())


def test_variants_that_are_not_in_both(made: Made) -> None:
    ms = [1270.0, 1275.0, 1265.0]
    a, b = made("a", ms, variants=("F16", "Q4_0")), made("b", ms)
    found = compare_runs(a, b)
    assert (found.verdict, found.notes) == ("inconclusive", ("Only in A, so not compared: Q4_0.",))
    assert compare_runs(b, a).verdict == "no regression"
    other = made("c", ms, variants=("Q8_0",))
    assert compare_runs(a, other).differences == ("no variant of that name in both",)


def test_unknown_run_is_told(made: Made) -> None:
    path, _ = made("a", [1270.0])
    with pytest.raises(UsageError, match="no run 'nope'"):
        compare_runs((path, "nope"), (path, RUN))
