"""The shipped suites: every check passes the right answer, fails a wrong one, an echo and silence."""

import contextlib
import io
import itertools
import json
import math
import re
import sqlite3
import tomllib
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from liob_core.quality.checks import run_check
from liob_core.suites.load import list_suites, load_suite
from liob_core.types import CheckResult, Prompt

CORE = load_suite("core")
PROMPTS = {prompt.prompt_id: prompt for prompt in CORE.prompts}
CHECKED = [prompt for prompt in CORE.prompts if prompt.check is not None]
WRONG = tomllib.loads(Path(__file__).with_name("core_wrong_answers.toml").read_text(encoding="utf-8"))


def _ids(prompt: Prompt) -> str:
    return prompt.prompt_id


def _of_kind(kind: str) -> list[Prompt]:
    return [prompt for prompt in CHECKED if prompt.check.kind == kind]


def _grade(prompt: Prompt, answer: str) -> CheckResult:
    return run_check(prompt.check, answer).result


def _seats() -> Iterator[tuple[str, ...]]:
    return itertools.permutations("ABCDE")


def _weekday(start: str, days: int) -> str:
    names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    return names[(names.index(start) + days) % 7]


def _snail_day() -> int:
    height, day = 0, 0
    while True:
        day += 1
        height += 5
        if height >= 17:
            return day
        height -= 2


# Each right number computed another way than in the suite's own explanation.
COMPUTED = {
    "math-add-small": 7 + 5,
    "math-subtract-small": 50 - 18,
    "math-times-table": sum([9] * 6),
    "math-double-few-shot": 17 * 2,
    "math-two-prices": 35 + 45,
    "math-film-minutes": timedelta(hours=2, minutes=25) / timedelta(minutes=1),
    "math-sum-three-digits": 468 + 757,
    "math-change-notebooks": (1000 - 3 * 240) / 100,
    "math-product-two-digits": 37 * 24,
    "math-remainder": 1000 % 37,
    "math-discount": Fraction(80) * (1 - Fraction(15, 100)),
    "math-average": Fraction(12 + 15 + 23 + 8 + 22, 5),
    "math-fraction-sum": Fraction(1, 4) + Fraction(2, 5),
    "math-fence": 14 + 9.5 + 14 + 9.5,
    "math-train-speed": 210 / 2.5,
    "math-operations-order": 8 + 6 * (10 - 7) / 2,
    "math-linear-equation": next(x for x in range(-99, 99) if 5 * x - 7 == 3 * x + 19),
    "math-leaking-tank": 240 / (18 - 3),
    "math-binary": int("101101", 2),
    "math-price-before": Fraction(150) / Fraction(6, 5),
    "math-age": next(n for n in range(10, 99) if n + 6 == 3 * (n - 10)),
    "math-compound-interest": Fraction(2000) * Fraction(21, 20) ** 2,
    "math-committee": len(list(itertools.combinations(range(9), 3))),
    "math-two-red": Fraction(sum(p < 4 > q for p, q in itertools.permutations(range(10), 2)), 90),
    "math-prime-sum": sum(p for p in range(21, 40) if all(p % d for d in range(2, p))),
    "math-two-painters": 1 / (Fraction(1, 6) + Fraction(1, 4)),
    "math-altitude": 9 * 12 / math.hypot(9, 12),
    "math-multiples-sum": sum(n for n in range(1, 201) if n % 7 == 0),
    "math-power-remainder": pow(3, 20, 7),
    "math-not-adjacent": sum(abs(s.index("A") - s.index("B")) > 1 for s in _seats()),
    "math-digit-sum": sum(sum(map(int, str(n))) == 5 for n in range(100, 1000)),
    "reason-next-even": 8 + 2,
    "reason-count-letter": "possessiveness".count("s"),
    "reason-clubs": 18 + 15 - (30 - 4),
    "reason-snail": _snail_day(),
    "reason-clock-angle": abs((3 + 0.5) * 30 - 30 * 6),
    "reason-painted-cube": sum(
        sum(c in (0, 3) for c in cube) == 2 for cube in itertools.product(range(4), repeat=3)
    ),
    "sum-visitors-change": 48_200 - 31_700,
    "sum-expense-total": 1350 + 150 - (640 + 215 + 85),
}


def test_core_size_bounds_a_loss_of_a_few_points() -> None:
    categories = Counter(prompt.category for prompt in CORE.prompts)
    assert set(categories) == {"reasoning", "coding", "creative writing", "summarization", "math"}
    assert min(categories.values()) >= 20
    assert len(CORE.prompts) >= 120
    assert len(CHECKED) >= 100
    assert {prompt.check.kind for prompt in CHECKED} == {
        "number", "exact", "regex", "contains", "choice", "json_schema"
    }  # fmt: skip


def test_core_prompts_have_a_check_or_a_rubric_with_anchors() -> None:
    for prompt in CORE.prompts:
        if prompt.check is None:
            assert re.search(r"(?m)^9-10: .*\n(?:.*\n)*^1-2: ", prompt.rubric), prompt.prompt_id


def test_core_has_few_shot_and_system_prompts() -> None:
    assert sum(len(prompt.messages) > 2 for prompt in CORE.prompts) >= 3
    assert sum(prompt.messages[0].role == "system" for prompt in CORE.prompts) >= 5


def test_quick_is_a_dozen_prompts_of_core_from_every_category() -> None:
    quick = load_suite("quick")
    assert 10 <= len(quick.prompts) <= 15
    assert all(prompt == PROMPTS[prompt.prompt_id] for prompt in quick.prompts)
    assert {prompt.category for prompt in quick.prompts} == {prompt.category for prompt in CORE.prompts}


def test_shipped_suites_are_all_usable() -> None:
    assert {info.name: info.error for info in list_suites()} == {"code": None, "core": None, "quick": None}


@pytest.mark.parametrize("prompt", CHECKED, ids=_ids)
def test_core_reference_passes_in_the_forms_models_write(prompt: Prompt) -> None:
    assert _grade(prompt, prompt.reference) is CheckResult.PASS
    assert _grade(prompt, f"\n{prompt.reference}\r\n") is CheckResult.PASS
    if "Answer: " in prompt.reference:
        before, _, last = prompt.reference.partition("Answer: ")
        assert _grade(prompt, f"{before}\n\n**Answer:** {last}.") is CheckResult.PASS
        assert _grade(prompt, f"{before}\n\n**Answer: {last}**") is CheckResult.PASS
        assert _grade(prompt, f"The final answer is: \n\n{last}") is CheckResult.PASS


@pytest.mark.parametrize("prompt", CHECKED, ids=_ids)
def test_core_wrong_answer_fails(prompt: Prompt) -> None:
    params = prompt.check.params
    if prompt.check.kind == "number":
        wrong = [f"Answer: {params['value'] + 1}", f"Answer: {-params['value']}", "Answer: unknown"]
    elif prompt.check.kind == "choice":
        wrong = [f"Answer: {label}" for label in params["options"] if label != params["correct"]]
    else:
        wrong = [WRONG[prompt.prompt_id]]
    assert {_grade(prompt, answer) for answer in wrong} == {CheckResult.FAIL}


@pytest.mark.parametrize("prompt", CHECKED, ids=_ids)
def test_core_check_fails_silence_and_every_echo_of_the_prompt(prompt: Prompt) -> None:
    turns = [message.content for message in prompt.messages]
    echoes = ["", " \n", turns[-1], "\n".join(turns), turns[-1] * 3, f"User: {turns[-1]}\nAssistant:"]
    echoes += [turns[0], turns[-1].split("End with:")[0], "I'm sorry, but I can't help with that."]
    assert {_grade(prompt, echo) for echo in echoes} == {CheckResult.FAIL}


def test_core_no_constant_answer_passes_many_checks() -> None:
    constants = [*"ABCDE", *(f"Answer: {n}" for n in range(101)), "yes", "no", "{}", "[]", "None", "1."]
    constants += ["A) B) C) D)", "Answer: A or B", "Answer: A, B, C, D", "Answer: <letter>"]
    passed = {c: sum(_grade(prompt, c) is CheckResult.PASS for prompt in CHECKED) for c in constants}
    assert max(passed.values()) <= 6
    labels = Counter(prompt.check.params["correct"] for prompt in _of_kind("choice"))
    assert max(labels.values()) <= 0.4 * len(_of_kind("choice"))


def test_core_numbers_are_recomputed() -> None:
    programs = {prompt.prompt_id for prompt in CHECKED if _program(prompt)}
    assert {prompt.prompt_id for prompt in _of_kind("number")} == set(COMPUTED) | (
        programs & {prompt.prompt_id for prompt in _of_kind("number")}
    )
    for prompt_id, value in COMPUTED.items():
        params = PROMPTS[prompt_id].check.params
        assert abs(params["value"] - float(value)) <= params.get("tolerance", 1e-9), prompt_id


def _program(prompt: Prompt) -> str | None:
    """The Python program whose output a prompt asks for."""
    text = prompt.messages[-1].content
    found = re.match(r"What does this Python (?:program|line) print\?.*?\n(.*?)(?:\nEnd with:|$)", text, re.S)
    return found[1] if found else None


@pytest.mark.parametrize("prompt", [prompt for prompt in CHECKED if _program(prompt)], ids=_ids)
def test_core_program_prints_what_the_check_expects(prompt: Prompt) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(_program(prompt), {})
    assert _grade(prompt, printed.getvalue()) is CheckResult.PASS
    assert _grade(prompt, f"Answer: {printed.getvalue()}") is CheckResult.PASS


def test_core_sql_references_give_the_right_rows() -> None:
    con = sqlite3.connect(":memory:")
    con.execute("CREATE TABLE books (id INTEGER, title TEXT, year INTEGER)")
    con.executemany("INSERT INTO books VALUES (?, 't', ?)", enumerate([1999, 2000, 2001, 2024]))
    con.execute("CREATE TABLE goods (name TEXT, price REAL)")
    con.executemany("INSERT INTO goods VALUES (?, ?)", [("a", 1), ("b", 4), ("c", 3), ("d", 2)])
    assert con.execute(PROMPTS["code-sql-count"].reference).fetchall() == [(2,)]
    assert con.execute(PROMPTS["code-sql-order"].reference).fetchall() == [("b",), ("c",), ("d",)]
    con.close()


def test_core_regex_choice_has_one_right_pattern() -> None:
    params = PROMPTS["code-regex-phone"].check.params
    wanted = {"555-1234": True, "x555-1234": False, "555-12345": False, "abc-1234": False, "55-1234": False}
    right = [
        label
        for label, pattern in params["options"].items()
        if all(bool(re.search(pattern, text)) is expected for text, expected in wanted.items())
    ]
    assert right == [params["correct"]]


def _truths(*statements: bool) -> int:
    return sum(statements)


def test_core_puzzles_have_exactly_one_solution() -> None:
    boxes = [c for c in ("red", "blue", "green") if _truths(c == "red", c != "blue", c != "red") == 1]
    assert boxes == PROMPTS["reason-three-boxes"].check.params["all"][0]
    broke = [c for c in ("Ada", "Ben", "Cas") if _truths(c == "Ada", c != "Ada", c != "Cas") == 1]
    assert broke == PROMPTS["reason-who-did-it"].check.params["all"][0]
    places = [
        dict(zip(["Mia", "Ivo", "Jan", "Kai", "Lea"], order, strict=True))
        for order in itertools.permutations(range(1, 6))
    ]
    races = [p for p in places if p["Mia"] == 1 and p["Ivo"] < p["Jan"] < p["Kai"] < p["Lea"]]
    third = [name for race in races for name, place in race.items() if place == 3]
    assert third == PROMPTS["reason-race-third"].check.params["all"][0]
    island = [(k, lo) for k in (True, False) for lo in (True, False) if k is (not (k and lo))]
    assert island == [(True, False)]  # option B: Kim tells the truth, Lou lies
    assert PROMPTS["reason-kim-lou"].check.params["correct"] == "B"


def test_core_words_and_days_are_recomputed() -> None:
    def right(prompt_id: str, answer: str) -> bool:
        return _grade(PROMPTS[prompt_id], f"Answer: {answer}") is CheckResult.PASS

    assert right("reason-reverse-word", "planet"[::-1])
    assert right("reason-third-in-alphabet", sorted(["melon", "grape", "cherry", "lemon", "apple"])[2])
    assert right("reason-ten-days-on", _weekday("Wednesday", 10))
    tuesday = date(2022, 3, 1)
    assert tuesday.strftime("%A") == "Tuesday"
    assert right("reason-march-weekday", date(2022, 3, 30).strftime("%A"))
    free = [
        {h / 2 for h in range(48) if lo <= h / 2 < hi}
        for lo, hi in [(9, 11), (14, 16), (10, 12), (15, 17), (10.5, 14.5)]
    ]
    first = min((free[0] | free[1]) & (free[2] | free[3]) & free[4])
    assert right("reason-common-slot", f"{int(first)}:{int(first % 1 * 60):02d}")
    north_clockwise = ["north", "east", "south", "west"]
    assert right("reason-turns", north_clockwise[(0 + 1 + 1 - 1) % 4])


def test_core_json_references_are_json_documents() -> None:
    for prompt in _of_kind("json_schema"):
        json.loads(prompt.reference)
