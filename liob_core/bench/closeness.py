"""Task `closeness` of a run: after all measurements, in a child process, window by window.

Every window is in the journal before the next one begins, so that a killed run goes on where it was.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from liob_core.bench.runner import Cancelled
from liob_core.bench.status import Progress
from liob_core.bench.supervisor import Supervisor
from liob_core.errors import MissingError, UsageError
from liob_core.models.family import families
from liob_core.models.memory import available_bytes
from liob_core.quality.closeness import plan as planning
from liob_core.quality.closeness import results
from liob_core.quality.closeness.child_process import ADD_ON
from liob_core.quality.closeness.corpora import find_text
from liob_core.quality.closeness.evaluate import evaluate
from liob_core.quality.closeness.records import (
    Build,
    Candidate,
    ClosenessSpec,
    Ending,
    Text,
    WindowScore,
    check_spec,
    score_from_json,
)
from liob_core.quality.closeness.running import Running
from liob_core.store.journal import Journal, read_lines
from liob_core.types import ClosenessAsk, ModelFile, RunSpec, Task, Variant

DEFAULT_WINDOW = 512
_FINE = frozenset({Ending.DONE, Ending.STOPPED, Ending.CANCELLED})


def check_add_on() -> None:
    """Nothing where the add-on is installed; else MissingError with the one command that adds it."""
    if find_spec("llama_cpp") is None:
        raise MissingError(ADD_ON)


def make_ask(
    text: str,
    cache_dir: Path,
    *,
    n_ctx: int = DEFAULT_WINDOW,
    n_windows: int | None = 32,
    from_start: bool = False,
    stop_half_width: float | None = None,
) -> ClosenessAsk:
    """What the task is asked for; `text` is `bundled`, `wikitext-2` or a file."""
    found = find_text(text, cache_dir)
    return ClosenessAsk(
        text_name=found.name,
        text_path=found.path,
        text_sha256=found.sha256,
        text_bytes=found.n_bytes,
        n_ctx=n_ctx,
        n_windows=n_windows,
        from_start=from_start,
        stop_half_width=stop_half_width,
    )


def closeness_specs(spec: RunSpec) -> tuple[ClosenessSpec, ...]:
    """What is evaluated for a run that has the task, one a model; raises UsageError for what cannot be.

    Divergence and perplexity mean something only against a reference with the same vocabulary.
    """
    return tuple(_of_model(spec, members) for members in families(spec.variants, spec.reference))


def _of_model(spec: RunSpec, members: Sequence[Variant]) -> ClosenessSpec:
    ask = spec.closeness
    if ask is None:
        raise UsageError("Task `closeness` needs a text.")
    reference, *others = (_candidate(variant) for variant in members)
    asked = ClosenessSpec(
        reference=reference,
        variants=tuple(others),
        text=Text(name=ask.text_name, path=ask.text_path, sha256=ask.text_sha256, n_bytes=ask.text_bytes),
        n_ctx=ask.n_ctx,
        n_windows=ask.n_windows,
        from_start=ask.from_start,
        threads=max(variant.load_settings.threads for variant in spec.variants),
        stop_half_width=ask.stop_half_width,
    )
    check_spec(asked)
    return asked


def plan_closeness(spec: RunSpec, folder: Path, prefill_tps: Mapping[str, float]) -> list[planning.Plan]:
    """What the task will cost on this machine, a plan a model, one after another.

    `prefill_tps` are known rates in tokens/s, by label.
    """
    return [
        planning.make_plan(
            asked,
            _models(spec),
            available_bytes=available_bytes(),
            free_disk_bytes=planning.free_disk_bytes(folder),
            prefill_tps=prefill_tps,
        )
        for asked in closeness_specs(spec)
    ]


def first_progress(spec: RunSpec, run_dir: Path) -> dict[str, Progress]:
    """The windows planned and done per variant, as a status counts them; empty without the task."""
    ask = spec.closeness
    if ask is None:
        return {}
    planned = planning.planned_windows(ask.text_bytes, ask.n_ctx, ask.n_windows)
    done = read_done(run_dir)
    counts = Counter(score.variant for score in done.scores) if done else Counter[str]()
    return {
        _key(variant.label): Progress(total=max(planned, counts[variant.label]), done=counts[variant.label])
        for variant in spec.variants
    }


def read_done(run_dir: Path) -> results.Done | None:
    """The windows that the journal has; None where there are none."""
    lines, _ = read_lines(run_dir)
    windows = [line["data"] for line in lines if line["kind"] == "window"]
    if not windows:
        return None
    build = Build(version=windows[0]["build"], cpu_features=windows[0]["cpu_features"])
    return results.Done(build=build, scores=[score_from_json(window) for window in windows])


def run_closeness(
    spec: RunSpec, run_dir: Path, *, journal: Journal, supervisor: Supervisor, machine_dir: Path
) -> None:
    """Nothing, once every variant's result is stored; raises `Cancelled`, or LiobError where it cannot be."""
    done = read_done(run_dir)
    for asked in closeness_specs(spec):
        labels = {one.label for one in asked.candidates}
        mine = None
        if done is not None:
            scores = [score for score in done.scores if score.variant in labels]
            mine = results.Done(build=done.build, scores=scores)
        recorder = _Recorder(asked, journal, supervisor, mine)
        evaluation = evaluate(
            asked,
            _models(spec),
            work_dir=run_dir,
            machine_dir=machine_dir,
            on_score=recorder.keep,
            on_progress=recorder.tell,
            cancel=supervisor.cancelled,
            done=mine,
        )
        for result in evaluation.results:
            recorder.finish(result)
        if supervisor.is_cancelled:
            raise Cancelled


class _Recorder:
    """Puts windows and results into the journal and counts them in the status."""

    def __init__(
        self, asked: ClosenessSpec, journal: Journal, supervisor: Supervisor, done: results.Done | None
    ) -> None:
        self._journal, self._supervisor = journal, supervisor
        self._labels = [one.label for one in asked.candidates]
        self._reference = asked.reference.label
        self._n_done = Counter(score.variant for score in done.scores) if done else Counter[str]()
        self._n_windows: int | None = None
        self._build = done.build if done else None

    def keep(self, score: WindowScore) -> None:
        """Store one window."""
        if self._build is None:
            raise RuntimeError("a window came before the build that made it")
        self._journal.append_window(score, self._build)
        self._n_done[score.variant] += 1
        self._supervisor.count_done(_key(score.variant), failed=False)

    def tell(self, progress: results.Progress) -> None:
        """Say what is known so far."""
        self._build = progress.build
        if self._n_windows is None and progress.n_windows is not None:
            self._n_windows = progress.n_windows
            for label in self._labels:
                self._supervisor.plan(_key(label), progress.n_windows)
        self._supervisor.say(f"{progress.doing}{self._estimate(progress)}", progress.variant)

    def finish(self, result: results.Result) -> None:
        """Store one result; the windows that a failed variant lacks count as failed."""
        if result.fidelity is not None or result.ending not in _FINE:
            self._journal.append(result)
        n_done, key = self._n_done[result.label], _key(result.label)
        if result.ending is Ending.STOPPED:
            self._supervisor.plan(key, n_done)
        if result.ending not in _FINE:
            if self._n_windows is None:  # it failed before the text was cut
                self._supervisor.plan(key, n_done + 1)
            for _ in range((self._n_windows or n_done + 1) - n_done):
                self._supervisor.count_done(key, failed=True)

    def _estimate(self, progress: results.Progress) -> str:
        """The running estimate of the variant at work, with its interval."""
        now = progress.running.get(progress.variant)
        return "" if now is None else f": {_in_words(now, is_reference=progress.variant == self._reference)}"


def _in_words(now: Running, *, is_reference: bool) -> str:
    """An estimate as it stands: perplexity, or its ratio to the reference's, and what it rests on."""
    value, digits = math.exp(now.ln), 2 if is_reference else 4
    text = f"{'PPL' if is_reference else 'PPL ratio'} {value:.{digits}f}"
    if now.ln_half_width is not None:
        low, high = (math.exp(now.ln + side * now.ln_half_width) for side in (-1, 1))
        text += f" ({low:.{digits}f} to {high:.{digits}f})"
    if now.kld is not None:
        text += f", KLD {now.kld:.4f}"
    return f"{text}, {now.n_windows} window{'' if now.n_windows == 1 else 's'}"


def _candidate(variant: Variant) -> Candidate:
    names = [variant.engine_model, *(variant.model.paths if variant.model else ())]
    path = next((name for name in names if Path(name).is_absolute()), None)
    if path is None or variant.model is None:
        raise UsageError(
            f"Task `closeness` reads GGUF files, and {variant.label} is none: name its file, or leave the "
            f"task `{Task.CLOSENESS}` out."
        )
    settings = variant.load_settings
    return Candidate(
        label=variant.label,
        path=path,
        kv_type_k=settings.kv_type_k,
        kv_type_v=settings.kv_type_v,
        gpu_layers=settings.gpu_layers or 0,  # its library has no automatic choice
    )


def _models(spec: RunSpec) -> dict[str, ModelFile]:
    return {variant.label: variant.model for variant in spec.variants if variant.model is not None}


def _key(label: str) -> str:
    return f"{label}|{Task.CLOSENESS}"
