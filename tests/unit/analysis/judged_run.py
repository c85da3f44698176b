"""Rows of a run with opinions of judges, for tests of what is said of them."""

from datetime import timedelta

from tests.unit.analysis.conftest import START, RunWriter

N_ITEMS = 10


def suite_run(writer: RunWriter, labels: dict[str, float], categories: dict[str, str]) -> None:
    """A run whose variants all answered the prompts (prompt -> category)."""
    writer.run(tasks=["suite"])
    for label, bpw in labels.items():
        writer.variant(label, bpw)
        for prompt, category in categories.items():
            writer.answer(label, prompt, sample_id=f"{label}/{prompt}", category=category)
    for position, (prompt, category) in enumerate(categories.items()):
        writer.prompt(prompt, position, category=category, rubric="a rubric")


def calibrated(writer: RunWriter, n_right: int, judge: str = "judge", mode: str = "single") -> None:
    """What a judge said to ten questions whose answer is known."""
    for number in range(N_ITEMS):
        writer.insert(
            "calibrations",
            calibration_id=f"{judge}/{mode}/{number}",
            run_id=writer.run_id,
            judge=judge,
            judge_key=judge,
            mode=mode,
            item_id=f"item{number}",
            item_kind="gold",
            expected="good",
            got="8",
            is_right=number < n_right,
            state="scored",
            judged_utc=START,
        )


def opinion(
    writer: RunWriter, variant: str, prompt: str, judge: str = "judge", *, minute: int = 1, **changes: object
) -> None:
    """One opinion, scored unless `changes` say otherwise."""
    row = {
        "judgement_id": f"{judge}/{variant}/{prompt}/{minute}",
        "run_id": writer.run_id,
        "sample_id": f"{variant}/{prompt}",
        "variant": variant,
        "prompt_id": prompt,
        "judge": judge,
        "judge_key": judge,
        "mode": "single",
        "state": "scored",
        "judged_utc": START + timedelta(minutes=minute),
    }
    writer.insert("judgements", **(row | changes))
