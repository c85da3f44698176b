"""The parent's side with a real child process: every way it can end becomes a result or a sentence."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from liob_core.errors import FileError, MissingError, UsageError
from liob_core.quality.closeness import child_process
from liob_core.quality.closeness.corpora import find_text
from liob_core.quality.closeness.evaluate import evaluate
from liob_core.quality.closeness.records import Build, Candidate, ClosenessSpec, Ending, WindowScore
from liob_core.quality.closeness.results import Done, Evaluation, Progress, Result
from liob_core.types import ModelFile
from tests.unit.quality.closeness.headers import header

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the scripted child ends itself by POSIX signals")
N_WINDOWS = 10
SCRIPTED = (sys.executable, "-P", "-m", "tests.unit.quality.closeness.scripted_child")


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child runs a scripted model instead of the library."""
    monkeypatch.setattr(child_process, "COMMAND", SCRIPTED)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[4]))


@dataclass
class Bench:
    """One evaluation and what it told."""

    folder: Path
    scores: list[WindowScore] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    cancel: threading.Event = field(default_factory=threading.Event)

    def run(
        self,
        *names: str,
        done: Done | None = None,
        memory_bytes: int | None = 10**12,
        cancel_after: int | None = None,
        **changes: Any,
    ) -> Evaluation:
        text = self.folder / "text.txt"
        text.write_bytes(bytes(range(32, 122)) * 2)
        candidates = [Candidate(label=name, path=f"{name}.gguf") for name in names]
        spec = ClosenessSpec(
            reference=candidates[0],
            variants=tuple(candidates[1:]),
            text=find_text(str(text), self.folder),
            **{"n_ctx": 16, "n_windows": N_WINDOWS, "from_start": True} | changes,
        )
        models: dict[str, ModelFile] = {name: header(vocab_size=60) for name in names}

        def on_score(score: WindowScore) -> None:
            self.scores.append(score)
            if cancel_after is not None and len(self.scores) == cancel_after:
                self.cancel.set()

        return evaluate(
            spec,
            models,
            work_dir=self.folder / "work",
            machine_dir=self.folder / "machine",
            on_score=on_score,
            on_progress=self.progress.append,
            cancel=self.cancel,
            done=done,
            memory_bytes=memory_bytes,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def _by_label(evaluation: Evaluation) -> dict[str, Result]:
    return {one.label: one for one in evaluation.results}


def _ln_ratio(result: Result) -> float:
    assert result.fidelity is not None
    assert result.fidelity.ln_ratio is not None
    return result.fidelity.ln_ratio


def test_everything_done(bench: Bench) -> None:
    evaluation = bench.run("reference", "noise1", "noise3")
    assert evaluation.build == Build(version="scripted 1", cpu_features="AVX2 = 1")
    assert evaluation.n_text_tokens == 180
    assert [(one.label, one.ending) for one in evaluation.results] == [
        ("reference", "done"),
        ("noise1", "done"),
        ("noise3", "done"),
    ]
    fidelity = evaluation.results[2].fidelity
    assert fidelity is not None
    assert (fidelity.reference, fidelity.n_windows, fidelity.n_tokens) == ("reference", 10, 70)
    assert fidelity.verdict is not None
    last = bench.progress[-1]
    assert (last.n_done, last.n_total) == (30, 30)
    assert last.running["noise3"].n_windows == 10
    assert last.running["noise3"].ln == pytest.approx(fidelity.ln_ratio, abs=1e-6)
    assert last.running["noise3"].kld == pytest.approx(fidelity.kld_mean, abs=1e-6)


def test_one_file_alone(bench: Bench) -> None:
    (result,) = bench.run("reference").results
    assert result.ending == Ending.DONE
    assert result.fidelity is not None
    assert result.fidelity.reference is None
    assert result.fidelity.kld_mean is None


@pytest.mark.parametrize(
    ("name", "ending", "reason"),
    [
        ("crash", Ending.DIED, "while evaluating crash, it ended by signal 11"),
        ("illegal", Ending.ILLEGAL_INSTRUCTION, "lacks an instruction"),
        ("crash-loading", Ending.DIED, "while loading crash-loading"),
        ("corrupt", Ending.BAD_FILE, "out of bounds"),
        ("larger", Ending.OTHER_VOCABULARY, "61 tokens"),
    ],
)
def test_one_bad_variant_leaves_the_others_alone(
    bench: Bench, name: str, ending: Ending, reason: str
) -> None:
    whole = _by_label(Bench(bench.folder).run("reference", "noise1"))
    results = _by_label(bench.run("reference", name, "noise1"))
    assert results[name].ending == ending
    assert reason in str(results[name].reason)
    assert results[name].fidelity is None
    assert results["noise1"] == whole["noise1"]
    keys = [(one.variant, one.window) for one in bench.scores if one.variant != name]
    assert len(keys) == len(set(keys)) == 2 * N_WINDOWS  # nothing was evaluated twice


@pytest.mark.parametrize(("name", "ending"), [("crash", Ending.DIED), ("corrupt", Ending.BAD_FILE)])
def test_a_bad_reference_ends_it_all(bench: Bench, name: str, ending: Ending) -> None:
    results = _by_label(bench.run(name, "noise1"))
    assert results[name].ending == ending
    assert results["noise1"].ending == Ending.NO_REFERENCE
    assert "the reference failed" in str(results["noise1"].reason)


def test_killed_together_goes_on_one_model_at_a_time_and_then_gives_up_the_culprit(bench: Bench) -> None:
    results = _by_label(bench.run("reference", "noise1", "killed"))
    assert results["killed"].ending == Ending.DIED
    assert "killed by signal 9" in str(results["killed"].reason)
    assert results["noise1"].ending == Ending.DONE


def test_too_little_memory_gives_the_same_figures(bench: Bench) -> None:
    together = bench.run("reference", "noise1")
    apart = Bench(bench.folder).run("reference", "noise1", memory_bytes=1)
    assert together.results == apart.results


def test_cancel_keeps_what_is_done_and_resume_does_the_rest(bench: Bench) -> None:
    started = time.monotonic()
    first = bench.run("slow", "noise1", cancel_after=9)
    assert time.monotonic() - started < 60
    assert {one.ending for one in first.results} == {Ending.CANCELLED}
    assert first.build is not None
    n_first = len(bench.scores)
    assert 9 <= n_first < 2 * N_WINDOWS
    second = Bench(bench.folder)
    resumed = second.run("slow", "noise1", done=Done(build=first.build, scores=bench.scores))
    whole = Bench(bench.folder).run("slow", "noise1")
    assert resumed.results == whole.results
    assert n_first + len(second.scores) == 2 * N_WINDOWS


def test_cancel_before_the_start_does_nothing(bench: Bench) -> None:
    bench.cancel.set()
    evaluation = bench.run("reference", "noise1")
    assert (evaluation.build, {one.ending for one in evaluation.results}) == (None, {Ending.CANCELLED})


def test_another_build_is_never_mixed_in(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    first = bench.run("reference", "noise1")
    assert first.build is not None
    monkeypatch.setenv("SCRIPTED_VERSION", "scripted 2")
    with pytest.raises(UsageError, match="never mixed"):
        bench.run("reference", "noise1", done=Done(build=first.build, scores=bench.scores))


def test_stops_when_the_interval_is_narrow_but_not_before_eight_windows(bench: Bench) -> None:
    evaluation = bench.run("slow", "noise1", stop_half_width=50.0)
    results = _by_label(evaluation)
    assert results["noise1"].ending == Ending.STOPPED
    assert results["noise1"].fidelity is not None
    assert 8 <= results["noise1"].fidelity.n_windows < N_WINDOWS
    whole = _by_label(Bench(bench.folder).run("slow", "noise1", stop_half_width=1e-9))
    assert whole["noise1"].ending == Ending.DONE


def test_missing_add_on_is_told_with_the_command(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPTED_FAULT", "missing")
    with pytest.raises(MissingError, match=r"requirements-closeness\.txt"):
        bench.run("reference", "noise1")


def test_add_on_for_another_processor_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPTED_FAULT", "illegal")
    with pytest.raises(MissingError, match="another processor"):
        bench.run("reference", "noise1")


def test_short_text_is_told(bench: Bench) -> None:
    with pytest.raises(FileError, match=r"180 tokens, fewer than one window of 256"):
        bench.run("reference", "noise1", n_ctx=256)


def test_changed_text_is_told(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("one")
    text = find_text(str(path), tmp_path)
    path.write_text("two")
    spec = ClosenessSpec(reference=Candidate(label="a", path="a"), variants=(), text=text)
    with pytest.raises(FileError, match="has changed"):
        evaluate(
            spec,
            {},
            work_dir=tmp_path,
            machine_dir=tmp_path,
            on_score=bench.scores.append,
            on_progress=bench.progress.append,
            cancel=bench.cancel,
        )


def test_the_child_dies_with_its_parent(tmp_path: Path) -> None:
    script = f"""
import sys, threading
from pathlib import Path
from tests.unit.quality.closeness.test_evaluate import SCRIPTED, Bench
from liob_core.quality.closeness import child_process
child_process.COMMAND = SCRIPTED
bench = Bench(Path({str(tmp_path)!r}))
bench.progress = type("Told", (), {{"append": lambda self, progress: print(progress.doing, flush=True)}})()
bench.run("slow", "noise1")
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert any("evaluating" in line for line in parent.stdout)
        (child,) = psutil.Process(parent.pid).children()
        parent.kill()
    gone, alive = psutil.wait_procs([child], timeout=10)
    assert (gone, alive) == ([child], [])
