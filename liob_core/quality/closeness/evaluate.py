"""The parent's side of closeness: plan, run the child, gather its windows, turn every ending into a result.

A crash of the child ends one variant, not the evaluation: another child goes on with the others from the
windows that are done.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from liob_core.engines.engine_child import SIGILL_CODES, ChildGoneError, EngineChild
from liob_core.errors import FileError, UsageError
from liob_core.models.memory import available_bytes
from liob_core.quality.closeness.child_process import closeness_child, missing_add_on, unusable_add_on
from liob_core.quality.closeness.corpora import read_bytes
from liob_core.quality.closeness.plan import N_BATCH, Plan, free_disk_bytes, make_plan
from liob_core.quality.closeness.records import (
    Build,
    Candidate,
    ClosenessSpec,
    Ending,
    WindowScore,
    check_spec,
    score_from_json,
)
from liob_core.quality.closeness.results import Done, Evaluation, Progress, Result, fidelity_of
from liob_core.quality.closeness.running import RunningEstimates
from liob_core.types import ModelFile

_KILLED = -9
_EXIT_WAIT_S = 10.0


def evaluate(
    spec: ClosenessSpec,
    models: Mapping[str, ModelFile],
    *,
    work_dir: Path,
    machine_dir: Path,
    on_score: Callable[[WindowScore], None],
    on_progress: Callable[[Progress], None],
    cancel: threading.Event,
    done: Done | None = None,
    memory_bytes: int | None = None,
) -> Evaluation:
    """The results of all variants; blocks until they are there or `cancel` is set.

    `models` are the headers by label. Each window goes to `on_score` as soon as it is there; given back as
    `done`, it is not evaluated again. `memory_bytes` is the memory to plan with; None: what is free now.
    """
    check_spec(spec)
    read_bytes(spec.text)
    session = _Session(spec, models, on_score, on_progress, cancel)
    if done is not None:
        session.take_over(done)
    session.run(work_dir, machine_dir, memory_bytes)
    return session.evaluation()


class _Session:
    """The state of one evaluation over as many children as it takes."""

    def __init__(
        self,
        spec: ClosenessSpec,
        models: Mapping[str, ModelFile],
        on_score: Callable[[WindowScore], None],
        on_progress: Callable[[Progress], None],
        cancel: threading.Event,
    ) -> None:
        self._spec, self._models = spec, models
        self._on_score, self._on_progress, self._cancel = on_score, on_progress, cancel
        self._build: Build | None = None
        self._scores: dict[str, dict[int, WindowScore]] = {one.label: {} for one in spec.candidates}
        self._estimates = RunningEstimates(spec.reference.label)
        self._failures: dict[str, tuple[Ending, str]] = {}
        self._windows: list[int] | None = None
        self._n_text_tokens: int | None = None
        self._at: tuple[str, str] | None = None
        self._is_stopped = False

    def take_over(self, done: Done) -> None:
        """Keep the windows of an earlier part."""
        self._build = done.build
        for score in done.scores:
            self._scores[score.variant][score.window] = score
            self._estimates.add(score)

    def run(self, work_dir: Path, machine_dir: Path, memory_bytes: int | None) -> None:
        """Run children until every variant is done, failed, stopped or cancelled."""
        one_at_a_time = False
        while not self._cancel.is_set():
            plan = make_plan(
                replace(self._spec, variants=self._alive_variants()),
                self._models,
                available_bytes=available_bytes() if memory_bytes is None else memory_bytes,
                free_disk_bytes=free_disk_bytes(work_dir),
                one_at_a_time=one_at_a_time,
            )
            self._at = None
            with closeness_child(work_dir, machine_dir, self._cancel) as child:
                if self._follow(child, plan, work_dir):
                    return
                reason = child.exit_sentence(_EXIT_WAIT_S) or "it closed its output"
                code = child.process.returncode
            if self._is_stopped or self._cancel.is_set():
                return
            if code == _KILLED and plan.spill_bytes is None and self._alive_variants():
                one_at_a_time = True  # most likely memory did not hold them together after all
            elif self._blame(code, reason):
                return

    def _follow(self, child: EngineChild, plan: Plan, work_dir: Path) -> bool:
        """True when the child carried out its order, False when it ended before."""
        try:
            child.order(self._order(plan, work_dir))
            while True:
                message = child.reply()
                if message["event"] in ("done", "reference_failed"):
                    self._take(message)
                    return True
                self._take(message)
                if self._is_enough():
                    self._is_stopped = True
                    child.kill()
        except ChildGoneError:
            return False

    def _order(self, plan: Plan, work_dir: Path) -> dict[str, Any]:
        return {
            "text": self._spec.text.path,
            "n_ctx": self._spec.n_ctx,
            "n_batch": N_BATCH,
            "n_windows": self._spec.n_windows,
            "from_start": self._spec.from_start,
            "threads": self._spec.threads,
            "reference": asdict(self._spec.reference),
            "batches": [[asdict(one) for one in batch] for batch in plan.batches],
            "spill_bytes": plan.spill_bytes,
            "temp_dir": str(work_dir),
            "done": {label: sorted(scores) for label, scores in self._scores.items()},
        }

    def _take(self, message: Mapping[str, Any]) -> None:
        """Take in one line of the child."""
        match message["event"]:
            case "missing":
                raise missing_add_on(message)
            case "host":
                self._check_build(Build(version=message["version"], cpu_features=message["cpu_features"]))
            case "text":
                self._check_text(message)
            case "at":
                self._at = (message["variant"], message["doing"])
                self._tell()
            case "failed":
                self._failures[message["variant"]] = (Ending(message["ending"]), message["reason"])
            case "reference_failed":
                self._fail_all(Ending(message["ending"]), message["reason"])
            case "score":
                score = score_from_json({key: value for key, value in message.items() if key != "event"})
                self._scores[score.variant][score.window] = score
                self._estimates.add(score)
                self._on_score(score)
                self._tell()

    def _check_build(self, build: Build) -> None:
        if self._build is not None and self._build != build:
            raise UsageError(
                "The add-on llama-cpp-python was changed since this evaluation began, and figures of two "
                "builds are never mixed: start a new run."
            )
        self._build = build

    def _check_text(self, message: Mapping[str, Any]) -> None:
        self._windows, self._n_text_tokens = message["windows"], message["n_tokens"]
        if not self._windows:
            raise FileError(
                f"{self._spec.text.name} has {self._n_text_tokens} tokens, fewer than one window of "
                f"{self._spec.n_ctx}: use a longer text or a smaller --context."
            )

    def _tell(self) -> None:
        if self._at is None:
            return
        labels = [one.label for one in self._spec.candidates if one.label not in self._failures]
        known = {label: self._estimates.of(label) for label in labels}
        self._on_progress(
            Progress(
                variant=self._at[0],
                doing=self._at[1],
                n_done=sum(len(self._scores[label]) for label in labels),
                n_total=None if self._windows is None else len(self._windows) * len(labels),
                running={label: running for label, running in known.items() if running is not None},
                n_windows=None if self._windows is None else len(self._windows),
                build=self._build,
            )
        )

    def _is_enough(self) -> bool:
        target = self._spec.stop_half_width
        if target is None:
            return False
        labels = [one.label for one in self._alive_variants()] or [self._spec.reference.label]
        return all(self._estimates.is_narrow(label, target) for label in labels)

    def _alive_variants(self) -> tuple[Candidate, ...]:
        return tuple(one for one in self._spec.variants if one.label not in self._failures)

    def _blame(self, code: int, reason: str) -> bool:
        """Record whose fault a crash was; True where nothing is left to evaluate."""
        if self._at is None:
            raise unusable_add_on(code, reason)
        label, doing = self._at
        ending = Ending.ILLEGAL_INSTRUCTION if code in SIGILL_CODES else Ending.DIED
        why = f"while {doing} {label}, {reason}"
        if label == self._spec.reference.label:
            self._fail_all(ending, why)
            return True
        self._failures[label] = (ending, why)
        return False

    def _fail_all(self, ending: Ending, reason: str) -> None:
        self._failures[self._spec.reference.label] = (ending, reason)
        for one in self._alive_variants():
            self._failures[one.label] = (Ending.NO_REFERENCE, f"the reference failed: {reason}")

    def evaluation(self) -> Evaluation:
        """The results as far as they came."""
        results = tuple(self._result(one.label) for one in self._spec.candidates)
        return Evaluation(build=self._build, n_text_tokens=self._n_text_tokens, results=results)

    def _result(self, label: str) -> Result:
        if label in self._failures:
            ending, why = self._failures[label]
            return Result(label=label, ending=ending, reason=why, fidelity=None)
        found = fidelity_of(self._spec, label, self._scores, self._build)
        if self._windows is not None and set(self._windows) <= self._scores[label].keys():
            return Result(label=label, ending=Ending.DONE, reason=None, fidelity=found)
        if self._is_stopped:
            reason = "the interval was narrow enough"
            return Result(label=label, ending=Ending.STOPPED, reason=reason, fidelity=found)
        return Result(label=label, ending=Ending.CANCELLED, reason=None, fidelity=found)
