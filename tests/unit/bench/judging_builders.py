"""A finished run whose answers can be judged, and a fake judge that says what a test wants."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from liob_core.bench.judging import JudgingSpec, graded_answers
from liob_core.models.variant import fake_variant
from liob_core.quality.judge.calibration import CalibrationItem, load_calibration
from liob_core.quality.judge.questions import Question, Task, pair_question, single_question
from liob_core.store.journal import Journal, read_lines, read_spec, write_spec
from liob_core.types import JudgeMode, LoadSettings, Message, Outcome, Prompt, RunSpec, Suite
from liob_core.types import Task as RunTask
from tests.unit.bench.builders import make_fake_spec
from tests.unit.store.builders import make_sample

RUN_ID = "20261130-120000-test"
QUESTIONS = {"colour": "Name a colour.", "river": "Name a river.", "plain": "Say anything."}


def make_judged_spec(**changes: Any) -> RunSpec:
    """Two prompts with a rubric, one without; three variants of which F16 is the reference."""
    prompts = tuple(
        Prompt(
            prompt_id=name,
            category="any",
            messages=(Message(role="user", content=text),),
            rubric=None if name == "plain" else f"9-10: a good {name}.",
        )
        for name, text in QUESTIONS.items()
    )
    suite = Suite(name="open", description="", version="1", sha256="0" * 64, prompts=prompts)
    return replace(make_fake_spec(RUN_ID, tasks=(RunTask.SUITE,), suite=suite, n_blocks=1), **changes)


def make_judged_run(
    runs_dir: Path, outcomes: Mapping[tuple[str, str], Outcome] | None = None, spec: RunSpec | None = None
) -> Path:
    """A finished run; every answer says who wrote it to what, and ended as `outcomes` says, else ok."""
    spec = spec or make_judged_spec()
    run_dir = runs_dir / spec.run_id
    run_dir.mkdir(parents=True)
    write_spec(run_dir, spec)
    with Journal(run_dir) as journal:
        journal.append_event("started")
        for variant in spec.variants:
            for prompt in spec.suite.prompts if spec.suite else ():
                append_answer(journal, spec, variant.label, prompt.prompt_id, outcomes or {})
        journal.append_event("finished")
    return run_dir


def append_answer(
    journal: Journal,
    spec: RunSpec,
    variant: str,
    prompt_id: str,
    outcomes: Mapping[tuple[str, str], Outcome],
    *,
    block: int = 0,
    session: int = 1,
) -> None:
    sample = make_sample()
    cell_id = f"b{block}/{variant}/suite/{prompt_id}"
    journal.append(
        replace(
            sample,
            run_id=spec.run_id,
            sample_id=f"{spec.run_id}/{cell_id}@{session}",
            load_id=None,
            cell=replace(sample.cell, cell_id=cell_id, variant=variant, prompt_id=prompt_id, block=block),
            outcome=outcomes.get((variant, prompt_id), Outcome.OK),
            response=f"{variant} says something about {prompt_id}, session {session}.",
            check=None,
        )
    )


def make_judging(mode: JudgeMode = JudgeMode.SINGLE, name: str = "judge", **changes: Any) -> JudgingSpec:
    judge = fake_variant(name, bpw=4.0, settings=LoadSettings(n_ctx=8192, threads=1))
    return replace(JudgingSpec(run_id=RUN_ID, judge=judge, engine="fake", mode=mode), **changes)


def reply_to(question: Question, **fields: object) -> tuple[str, str]:
    """The fake engine's script for one question: a piece of its text, and the reply."""
    return question.marker, json.dumps({"id": question.marker, "reason": "as scripted", **fields})


Grade = Callable[[str, str], int]  # variant, prompt -> score


def script(run_dir: Path, mode: JudgeMode, grade: Grade, *, knows: bool = True) -> dict[str, Any]:
    """A fake engine that grades as asked; where it `knows`, it gets its whole calibration right."""
    answers = dict(
        pair for item in load_calibration(mode).items for pair in _calibration_replies(item, knows=knows)
    )
    graded = graded_answers(read_spec(run_dir), read_lines(run_dir)[0])
    for (variant, prompt_id), answer in graded.items():
        task = Task(messages=answer.prompt.messages, rubric=answer.prompt.rubric)
        mine = grade(variant, prompt_id)
        if mode is JudgeMode.SINGLE:
            answers.update([reply_to(single_question(task, answer.text, _never), score=mine)])
            continue
        base = graded.get(("F16", prompt_id))
        if base is not None and variant != "F16":
            other = grade("F16", prompt_id)
            answers.update(_pair_replies(task, answer.text, base.text, mine - other))
    return {"sleep": False, "answers": answers}


def _pair_replies(task: Task, mine: str, base: str, lead: int) -> list[tuple[str, str]]:
    first = "tie" if lead == 0 else "A" if lead > 0 else "B"
    second = "tie" if lead == 0 else "B" if lead > 0 else "A"
    return [
        reply_to(pair_question(task, mine, base, _never), winner=first),
        reply_to(pair_question(task, base, mine, _never, turn=2), winner=second),
    ]


def _calibration_replies(item: CalibrationItem, *, knows: bool) -> list[tuple[str, str]]:
    if item.expected in {"win", "tie", "loss"}:
        lead = {"win": 1, "tie": 0, "loss": -1}[item.expected] if knows else 0
        return _pair_replies(item.task, item.answer, item.other or "", lead)
    worth = {"good": 9, "bad": 2, "same": 6, "lower": 3}[item.expected] if knows else 7
    replies = [reply_to(single_question(item.task, item.answer, _never), score=worth)]
    if item.other is not None:
        other = 6 if item.expected == "same" and knows else 8 if knows else 7
        replies.append(reply_to(single_question(item.task, item.other, _never, turn=2), score=other))
    return replies


def _never(_piece: str) -> bool:
    return False
