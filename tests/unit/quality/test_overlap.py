"""ROUGE-L, BLEU and token F1 against figures of the reference implementations and hand computations."""

import pytest

from liob_core.quality.checks import run_check, validate_check
from liob_core.quality.overlap import bleu, rouge_l, token_f1
from liob_core.types import Check, CheckResult

MAT = "the cat sat on the mat"
FOX = "The quick brown fox jumps over the lazy dog."
SLOW = "A quick brown dog jumped over the lazy fox!"


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [  # as the package rouge-score 0.1.2 gives them without stemming
        ("the cat", MAT, 0.5),
        (SLOW, FOX, 0.5555555555555556),
        (MAT, MAT, 1.0),
        ("police killed the gunman", "police kill the gunman", 0.75),
        ("the gunman kill police", "police kill the gunman", 0.5),
        ("dog cat", MAT, 0.25),
        ("on the mat sat the cat", MAT, 0.5),
        ("nothing shared", MAT, 0.0),
        ("", MAT, 0.0),
    ],
)
def test_rouge_l_equals_rouge_score(answer: str, reference: str, expected: float) -> None:
    assert rouge_l(answer, [reference]) == pytest.approx(expected, abs=1e-12)


def test_rouge_l_counts_words_of_every_script() -> None:
    assert rouge_l("быстрая лиса", ["быстрая рыжая лиса"]) == pytest.approx(0.8)
    assert rouge_l("Größe", ["GRÖSSE"]) == 1


@pytest.mark.parametrize(
    ("answer", "references", "expected"),
    [  # as sacreBLEU 2.6.0 gives them, as a share of 100
        ("the cat", [MAT], 0.13533528323661276),
        (SLOW, [FOX], 0.2136435031981171),
        (SLOW, [FOX, "A quick dog jumped over the fox!"], 0.45180100180492246),
        ("police killed the gunman", ["police kill the gunman"], 0.3535533905932737),
        (MAT, [MAT], 1.0),
        ("nothing shared", [MAT], 0.0),
    ],
)
def test_bleu_equals_sacrebleu(answer: str, references: list[str], expected: float) -> None:
    assert bleu(answer, references) == pytest.approx(expected, abs=1e-9)
    assert bleu(answer, references) <= 1


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [  # by hand: 2PR / (P + R) over the words without articles and punctuation
        ("The Eiffel Tower!", "eiffel tower", 1.0),
        ("in Paris, France", "Paris", 0.5),  # P 1/3, R 1
        ("a b c c", "c c c d", 4 / 7),  # "a" is an article: P 2/3, R 2/4
        ("London", "Paris", 0.0),
        ("the", "a", 1.0),  # nothing is left of either
        ("the", "Paris", 0.0),
        ("state-of-the-art", "stateoftheart", 1.0),  # punctuation goes before words are told apart
    ],
)
def test_token_f1_is_squads(answer: str, reference: str, expected: float) -> None:
    assert token_f1(answer, [reference]) == pytest.approx(expected)


def test_best_reference_counts() -> None:
    assert rouge_l("the cat", ["a dog", MAT]) == 0.5
    assert token_f1("Paris", ["London", "Paris"]) == 1


def _check(kind: str, **params: object) -> Check:
    return Check(kind=kind, params={"references": [MAT], "min_score": 0.5, **params})


def test_check_passes_from_its_threshold_on_and_keeps_the_score() -> None:
    at_threshold = run_check(_check("rouge_l"), "The cat.")
    assert (at_threshold.result, at_threshold.score) == (CheckResult.PASS, 0.5)
    assert at_threshold.reason == "its ROUGE-L is 0.500, asked for 0.5"
    below = run_check(_check("rouge_l", min_score=0.51), "The cat.")
    assert (below.result, below.score) == (CheckResult.FAIL, 0.5)
    assert run_check(_check("bleu"), "the cat").reason == "its BLEU is 0.135, asked for 0.5"
    assert run_check(_check("token_f1"), "The mat, the cat: sat on!").score == 1
    empty = run_check(_check("token_f1"), " ")
    assert (empty.result, empty.score) == (CheckResult.FAIL, None)


def test_check_reads_the_answers_line_where_asked() -> None:
    answer = "Let me think about animals.\nAnswer: the cat sat on the mat"
    assert run_check(_check("token_f1", part="answer"), answer).score == 1
    assert run_check(_check("token_f1"), answer).score < 1


def test_check_of_a_very_long_answer_ends_soon() -> None:
    for kind in ("rouge_l", "bleu", "token_f1"):
        assert run_check(_check(kind), "the cat sat " * 100_000).result is CheckResult.FAIL


def test_check_without_a_reference_is_unchecked() -> None:
    outcome = run_check(Check(kind="bleu", params={"min_score": 0.5}), "the cat")
    assert (outcome.result, outcome.score) == (CheckResult.UNCHECKED, None)


@pytest.mark.parametrize("score", [0, -0.1, 1.1, "0.5", True, float("nan")])
def test_threshold_out_of_range_is_told(score: object) -> None:
    assert "min_score" in str(validate_check(_check("rouge_l", min_score=score)))
