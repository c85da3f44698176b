"""What a judge is to do on a finished run: which answers, which are done, and what becomes a record. Pure."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from liob_core.bench.spec import default_threads, variants_of_files
from liob_core.errors import UsageError
from liob_core.models.variant import fake_variant, variant_key
from liob_core.quality.judge.judge import Opinion, PairOpinion, lengths_differ
from liob_core.quality.judge.rubric import RUBRIC_VERSION
from liob_core.types import (
    JsonValue,
    Judgement,
    JudgeMode,
    JudgeState,
    Limits,
    LoadSettings,
    Outcome,
    Prompt,
    RunSpec,
    Task,
    Variant,
)

JUDGE_CTX = 8192  # two long answers, the task and its rubric
DEFAULT_OLLAMA_JUDGE = "llama3.2:3b"
BY_FILE = ("embedded", "llama-server")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingSpec:
    """What was asked of a judge; written before it starts."""

    run_id: str
    judge: Variant
    engine: str
    mode: JudgeMode = JudgeMode.SINGLE
    engine_url: str | None = None
    judge_all: bool = False  # prompts without a rubric of their own too
    limits: Limits = field(default_factory=Limits)
    engine_options: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def judge_name(self) -> str:
        """The judge, for people."""
        return f"{self.judge.label} on {self.engine}"

    @property
    def judge_key(self) -> str:
        """The identity of the judge, in hex: its weights, its engine and the wording of what it is told."""
        what = [self.judge.weights_sha256 or self.judge.engine_model, self.engine, RUBRIC_VERSION]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One graded answer of a run."""

    sample_id: str
    variant: str
    prompt: Prompt
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One answer to judge; `reference` is the one it is compared with, in mode pairwise."""

    answer: Answer
    reference: Answer | None = None


def make_judge(
    engine: str,
    model: str,
    cache_dir: Path,
    *,
    threads: int | None = None,
    n_ctx: int = JUDGE_CTX,
    gpu_layers: int | None = None,
) -> Variant:
    """The judge's model on an engine: a GGUF file, or the name that the engine knows it by."""
    settings = LoadSettings(n_ctx=n_ctx, threads=threads or default_threads(), gpu_layers=gpu_layers)
    if engine in BY_FILE:
        variants = variants_of_files([Path(model)], engine, settings, cache_dir)
        if len(variants) != 1:
            raise UsageError(f"{model} holds {len(variants)} models; name the one file of the judge.")
        return replace(variants[0], label=Path(variants[0].engine_model).stem)
    if engine == "fake":
        return fake_variant(model, bpw=4.0, settings=settings)
    return Variant(
        key=variant_key(f"{engine}:{model}", engine, settings),
        label=model,
        quant="unknown",
        engine=engine,
        engine_model=model,
        load_settings=settings,
        weights_sha256=None,
        file_sha256=None,
        model=None,
        need=None,
    )


def targets(spec: JudgingSpec, run: RunSpec, lines: Sequence[Mapping[str, JsonValue]]) -> list[Target]:
    """The answers to judge, prompt by prompt, without those this judge has an opinion on already.

    Only answers that ended by themselves: one that is empty, cut off or a loop is the candidate's own
    failure, which no judge decides.
    """
    answers = graded_answers(run, lines)
    done = _judged(spec, lines)
    found = []
    for prompt in run.suite.prompts if run.suite else ():
        if not spec.judge_all and prompt.rubric is None:
            continue
        reference = answers.get((run.reference, prompt.prompt_id))
        for variant in run.variants:
            answer = answers.get((variant.label, prompt.prompt_id))
            if answer is None or answer.sample_id in done:
                continue
            if spec.mode is JudgeMode.SINGLE:
                found.append(Target(answer=answer))
            elif reference is not None and variant.label != run.reference:
                found.append(Target(answer=answer, reference=reference))
    return found


def graded_answers(run: RunSpec, lines: Sequence[Mapping[str, JsonValue]]) -> dict[tuple[str, str], Answer]:
    """The answer to each variant and prompt that ended by itself: the latest of the first block."""
    prompts = {prompt.prompt_id: prompt for prompt in run.suite.prompts} if run.suite else {}
    samples = [line["data"] for line in lines if line["kind"] == "sample"]
    samples = [s for s in samples if s["cell"]["task"] == Task.SUITE and not s["cell"]["warmup"]]
    first_block = min((s["cell"]["block"] for s in samples), default=0)
    found: dict[tuple[str, str], Answer] = {}
    for sample in samples:
        cell = sample["cell"]
        prompt = prompts.get(cell["prompt_id"])
        if cell["block"] != first_block or prompt is None or sample["outcome"] == Outcome.CANCELLED:
            continue
        key = (cell["variant"], cell["prompt_id"])
        found.pop(key, None)
        if sample["outcome"] == Outcome.OK:
            found[key] = Answer(
                sample_id=sample["sample_id"], variant=key[0], prompt=prompt, text=sample["response"]
            )
    return found


def is_self(judge: Variant, variant: Variant) -> bool | None:
    """Whether a judge is the judged model itself, maybe in another quantization; None: not known."""
    if judge.weights_sha256 is not None and judge.weights_sha256 == variant.weights_sha256:
        return True
    if judge.engine == variant.engine and judge.engine_model == variant.engine_model:
        return True
    if judge.model is None or variant.model is None:
        return None
    mine, other = judge.model, variant.model
    if mine.architecture != other.architecture or mine.n_params != other.n_params:
        return False
    return True if mine.name == other.name else None


def of_score(spec: JudgingSpec, target: Target, opinion: Opinion, **known: JsonValue) -> Judgement:
    """The record of a score."""
    return Judgement(
        **_common(spec, target),
        state=opinion.verdict.state,
        score=opinion.verdict.score,
        reason=opinion.verdict.reason,
        raw_reply=opinion.raw_reply,
        attempts=opinion.attempts,
        earlier_replies=opinion.earlier_replies,
        **known,
    )


def of_pair(spec: JudgingSpec, target: Target, pair: PairOpinion, **known: JsonValue) -> Judgement:
    """The record of a comparison in both orders."""
    if target.reference is None:
        raise LookupError(f"{target.answer.sample_id} is compared with nothing")
    mine, base = target.answer.text, target.reference.text
    earlier = [reply for o in (pair.first, pair.second) if o for reply in o.earlier_replies]
    return Judgement(
        **_common(spec, target),
        state=pair.state,
        score=None,
        reason=pair.reason,
        raw_reply=pair.first.raw_reply if pair.first else "",
        raw_reply_second=pair.second.raw_reply if pair.second else None,
        attempts=pair.attempts,
        earlier_replies=tuple(earlier),
        reference_sample_id=target.reference.sample_id,
        result=pair.result,
        preferred_first=pair.preferred_first,
        preferred_second=pair.preferred_second,
        length_ratio=len(mine) / len(base) if base else None,
        lengths_differ=lengths_differ(mine, base),
        **known,
    )


def _common(spec: JudgingSpec, target: Target) -> dict[str, JsonValue]:
    return {
        "run_id": spec.run_id,
        "sample_id": target.answer.sample_id,
        "variant": target.answer.variant,
        "prompt_id": target.answer.prompt.prompt_id,
        "judge": spec.judge_name,
        "judge_key": spec.judge_key,
        "mode": spec.mode,
    }


def _judged(spec: JudgingSpec, lines: Sequence[Mapping[str, JsonValue]]) -> set[str]:
    """Samples with an opinion of this very judge in this mode; where it could not be asked there is none."""
    return {
        line["data"]["sample_id"]
        for line in lines
        if line["kind"] == "judgement"
        and (line["data"]["judge_key"], line["data"]["mode"]) == (spec.judge_key, spec.mode)
        and line["data"]["state"] != JudgeState.JUDGE_ERROR
    }
