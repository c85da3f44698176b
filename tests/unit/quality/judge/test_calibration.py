from pathlib import Path

import pytest

from liob_core.errors import FileError
from liob_core.quality.judge.calibration import CalibrationSet, calibrate, load_calibration, passed
from liob_core.types import JudgeMode, JudgeState
from tests.unit.quality.judge.scripted_judge import ScriptedJudge, block_of, verdict

FILE = """
[[gold]]
id = "sum"
task = "1 + 1?"
reference = "2"
good = "2"
bad = "3"

[[identical]]
id = "same"
task = "A colour?"
answer = "Red."

[[damaged]]
id = "cut"
task = "Count to three."
answer = "1 2 3"
damaged = "1"
damage = "cut off"
"""
WORTH = {"2": 9, "3": 1, "Red.": 6, "1 2 3": 8, "1": 2}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "calibration.toml"
    file.write_text(FILE)
    return file


def knows(text: str) -> str:
    """A judge that knows what each answer is worth."""
    if "answer A ===" in text:
        worth = [WORTH[block_of(text, f"answer {name}")] for name in "AB"]
        return verdict(text, winner="tie" if worth[0] == worth[1] else "A" if worth[0] > worth[1] else "B")
    return verdict(text, score=WORTH[block_of(text, "answer")])


def n_right(items: CalibrationSet, judge: ScriptedJudge) -> int:
    return sum(calibrate(judge, item).is_right for item in items.items)


@pytest.mark.parametrize(("mode", "n"), [(JudgeMode.SINGLE, 4), (JudgeMode.PAIRWISE, 3)])
def test_judge_that_knows_gets_all_right(path: Path, mode: JudgeMode, n: int) -> None:
    items = load_calibration(mode, path)
    assert (len(items.items), n_right(items, ScriptedJudge(knows))) == (n, n)


@pytest.mark.parametrize(
    ("step", "right"),
    [
        (lambda text: verdict(text, score=7), {"sum/good", "same"}),
        (lambda text: verdict(text, score=1), {"sum/bad", "same"}),
        ("nonsense", set()),
    ],
)
def test_judge_that_says_the_same_to_all_gets_few_right_alone(path: Path, step, right: set[str]) -> None:  # type: ignore[no-untyped-def]
    items = load_calibration(JudgeMode.SINGLE, path)
    told = [calibrate(ScriptedJudge(step), item) for item in items.items]
    assert {result.item.item_id for result in told if result.is_right} == right
    assert not passed(len(right), len(items.items))


@pytest.mark.parametrize(("winner", "right"), [("A", set()), ("B", set()), ("tie", {"same"})])
def test_judge_that_always_names_the_same_place_loses_its_calibration(
    path: Path, winner: str, right: set[str]
) -> None:
    items = load_calibration(JudgeMode.PAIRWISE, path)
    told = [calibrate(ScriptedJudge(lambda text: verdict(text, winner=winner)), item) for item in items.items]
    assert {result.item.item_id for result in told if result.is_right} == right
    assert not passed(len(right), len(items.items))


def test_same_answer_is_asked_in_two_wordings(path: Path) -> None:
    """Asked the very same, any judge would agree with itself."""
    [item] = [item for item in load_calibration(JudgeMode.SINGLE, path).items if item.kind == "identical"]
    judge = ScriptedJudge(lambda text: verdict(text, score=6))
    assert calibrate(judge, item).is_right
    assert judge.asked[0] != judge.asked[1]
    moody = ScriptedJudge(lambda text: verdict(text, score=6), lambda text: verdict(text, score=7))
    result = calibrate(moody, item)
    assert (result.is_right, result.got) == (False, "7 against 6")


def test_unusable_reply_is_not_right_and_has_no_number(path: Path) -> None:
    for mode in JudgeMode:
        for item in load_calibration(mode, path).items:
            result = calibrate(ScriptedJudge("nonsense"), item)
            assert (result.is_right, result.got, result.state) == (False, None, JudgeState.PARSE_ERROR)
            assert "nonsense" in result.raw_reply


@pytest.mark.parametrize(
    ("right", "n", "is_passed"),
    [(8, 10, True), (7, 10, False), (19, 24, False), (20, 24, True), (0, 0, False)],
)
def test_four_fifths_pass(right: int, n: int, is_passed: bool) -> None:
    assert passed(right, n) is is_passed


def test_shipped_set_has_all_three_kinds_and_distinct_ids() -> None:
    for mode, n in ((JudgeMode.SINGLE, 24), (JudgeMode.PAIRWISE, 18)):
        items = load_calibration(mode).items
        assert len({item.item_id for item in items}) == len(items) == n
        assert {item.kind for item in items} == {"gold", "identical", "damaged"}


def test_judge_that_says_one_thing_only_fails_the_shipped_set() -> None:
    single = load_calibration(JudgeMode.SINGLE)
    for score in range(1, 11):
        right = n_right(single, ScriptedJudge(lambda text, s=score: verdict(text, score=s)))
        assert not passed(right, len(single.items)), score
    pairs = load_calibration(JudgeMode.PAIRWISE)
    for winner in ("A", "B", "tie"):
        right = n_right(pairs, ScriptedJudge(lambda text, w=winner: verdict(text, winner=w)))
        assert not passed(right, len(pairs.items)), winner


@pytest.mark.parametrize("text", ["gold = 1", "[[gold]]\nid = 'x'", "not toml ["])
def test_damaged_file_is_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "calibration.toml"
    file.write_text(text)
    with pytest.raises(FileError, match="calibration set"):
        load_calibration(JudgeMode.SINGLE, file)


def test_same_text_twice_must_be_called_a_tie_not_only_end_in_one(path: Path) -> None:
    [item] = [item for item in load_calibration(JudgeMode.PAIRWISE, path).items if item.kind == "identical"]
    first = calibrate(ScriptedJudge(lambda text: verdict(text, winner="A")), item)
    assert (first.is_right, first.got) == (False, "tie (variant, reference)")
    assert calibrate(ScriptedJudge(lambda text: verdict(text, winner="tie")), item).is_right
