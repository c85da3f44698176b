"""Task `closeness` of a run with a scripted child: stored by window, counted, resumed, failures as rows."""

import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from liob_core.bench import closeness
from liob_core.bench.runner import Cancelled
from liob_core.bench.spec import Choices, make_spec
from liob_core.bench.status import RunStatus
from liob_core.bench.supervisor import Supervisor
from liob_core.errors import MissingError, UsageError
from liob_core.models.variant import fake_variant
from liob_core.quality.closeness import child_process
from liob_core.store.journal import Journal, read_lines
from liob_core.types import LoadSettings, RunSpec, Task, Variant
from tests.unit.bench.builders import make_fake_spec
from tests.unit.quality.closeness.headers import header

SCRIPTED = (sys.executable, "-P", "-m", "tests.unit.quality.closeness.scripted_child")
N_WINDOWS = 10
posix = pytest.mark.skipif(os.name != "posix", reason="the scripted child ends itself by POSIX signals")


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child runs a scripted model instead of the library."""
    monkeypatch.setattr(child_process, "COMMAND", SCRIPTED)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))


def file_variant(name: str, bpw: float, **settings: Any) -> Variant:
    loaded = LoadSettings(n_ctx=16, threads=1, **settings)
    made = fake_variant(name, bpw=bpw, settings=loaded)
    return replace(made, engine_model=f"/models/{name}.gguf", model=replace(header(vocab_size=60), bpw=bpw))


def make_closeness_spec(folder: Path, *names: str, **changes: Any) -> RunSpec:
    text = folder / "text.txt"
    text.write_bytes(bytes(range(32, 122)) * 2)
    ask = closeness.make_ask(str(text), folder, n_ctx=16, n_windows=N_WINDOWS, from_start=True)
    return make_fake_spec(
        variants=tuple(file_variant(name, 16.0 - place) for place, name in enumerate(names)),
        reference=names[0],
        tasks=(Task.CLOSENESS,),
        suite=None,
        closeness=replace(ask, **changes),
    )


class Bench:
    """One run folder and what its status says."""

    def __init__(self, folder: Path, spec: RunSpec) -> None:
        self.run_dir, self.spec = folder / "run", spec
        self.run_dir.mkdir(exist_ok=True)
        self.statuses: list[RunStatus] = []

    def run(self, after: Callable[[Supervisor], None] | None = None) -> RunStatus:
        per_cell = closeness.first_progress(self.spec, self.run_dir)
        status = RunStatus(
            run_id="r",
            title="t",
            state="running",
            n_cells=sum(progress.total for progress in per_cell.values()),
            n_done=sum(progress.done for progress in per_cell.values()),
            per_cell=per_cell,
        )
        supervisor = Supervisor(self.run_dir, status, abort=lambda: None, latest=lambda: None)
        count, say = supervisor.count_done, supervisor.say

        def counted(key: str, *, failed: bool) -> None:
            count(key, failed=failed)
            if after is not None:
                after(supervisor)

        def said(activity: str, variant: str | None = None) -> None:
            say(activity, variant)
            self.statuses.append(supervisor._status)

        supervisor.count_done, supervisor.say = counted, said  # type: ignore[method-assign]
        with Journal(self.run_dir) as journal:
            try:
                closeness.run_closeness(
                    self.spec,
                    self.run_dir,
                    journal=journal,
                    supervisor=supervisor,
                    machine_dir=self.run_dir / "machine",
                )
            finally:
                self.last = supervisor._status
        return self.last

    def lines(self, kind: str) -> list[dict[str, Any]]:
        lines, _ = read_lines(self.run_dir)
        return [line["data"] for line in lines if line["kind"] == kind]

    def windows(self) -> Counter[tuple[str, int]]:
        return Counter((line["variant"], line["window"]) for line in self.lines("window"))


@posix
def test_every_window_and_result_is_stored_and_counted(tmp_path: Path) -> None:
    bench = Bench(tmp_path, make_closeness_spec(tmp_path, "reference", "noise1", "noise3"))
    status = bench.run()
    labels = ("reference", "noise1", "noise3")
    assert bench.windows() == Counter((label, window) for label in labels for window in range(N_WINDOWS))
    assert [(line["label"], line["ending"]) for line in bench.lines("fidelity")] == [
        (label, "done") for label in labels
    ]
    assert (status.n_done, status.n_cells, status.n_failed) == (30, 30, 0)
    assert status.per_cell["noise3|closeness"].done == N_WINDOWS
    assert bench.lines("window")[0]["build"] == "scripted 1"


@posix
def test_each_model_of_a_run_is_compared_with_its_own_reference_and_resumed(tmp_path: Path) -> None:
    spec = make_closeness_spec(tmp_path, "reference", "noise1", "noise2", "noise3")
    layers = {"reference": 5, "noise1": 5, "noise2": 9, "noise3": 9}
    shaped = [
        replace(one, model=replace(one.model, n_layers=layers[one.label]))
        for one in spec.variants
        if one.model
    ]
    bench = Bench(tmp_path, replace(spec, variants=tuple(shaped)))

    def cancel_at_25(supervisor: Supervisor) -> None:
        if bench.windows().total() == 25:
            supervisor.cancel()

    with pytest.raises(Cancelled):
        bench.run(cancel_at_25)
    status = bench.run()
    assert set(bench.windows().values()) == {1}
    assert (status.n_done, status.n_cells, status.n_failed) == (40, 40, 0)
    done = [line for line in bench.lines("fidelity") if line["ending"] == "done"]
    found = {line["label"]: line["fidelity"]["reference"] for line in done}
    assert found == {"reference": None, "noise1": "reference", "noise2": None, "noise3": "noise2"}
    # Further from a reference that is itself another model's: only its own counts.
    ratios = {line["label"]: line["fidelity"]["ln_ratio"] for line in done}
    assert ratios["noise2"] is None
    assert ratios["noise3"] is not None


@posix
def test_the_status_tells_the_estimate_and_its_interval_while_it_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path, make_closeness_spec(tmp_path, "reference", "noise1"))
    bench.run()
    told = {(status.current_variant, status.activity) for status in bench.statuses}
    references = [text for variant, text in told if variant == "reference" and text and "9 windows" in text]
    assert references
    assert all(text.startswith("evaluating: PPL ") and " to " in text for text in references)
    assert any(
        variant == "noise1" and text and "PPL ratio" in text and "KLD" in text for variant, text in told
    )


@posix
def test_a_shorter_text_corrects_the_planned_windows(tmp_path: Path) -> None:
    # 180 tokens hold 11 windows of 16, whatever the bytes promise and the user wants.
    bench = Bench(tmp_path, make_closeness_spec(tmp_path, "reference", "noise1", n_windows=40))
    status = bench.run()
    assert (status.n_done, status.n_cells) == (22, 22)
    assert status.per_cell["noise1|closeness"].total == 11


@posix
@pytest.mark.parametrize(
    ("name", "ending", "words"),
    [
        ("noise1-corrupt", "bad_file", "could not be loaded"),
        ("noise1-crash", "died", "while evaluating"),
        ("noise1-illegal", "illegal_instruction", "while evaluating"),
        ("noise1-foreign", "other_vocabulary", "other tokens"),
        ("noise1-nan", "not_finite", "not finite"),
    ],
)
def test_a_variant_that_fails_is_a_stored_row_and_the_others_go_on(
    tmp_path: Path, name: str, ending: str, words: str
) -> None:
    bench = Bench(tmp_path, make_closeness_spec(tmp_path, "reference", name, "noise3"))
    status = bench.run()
    found = {line["label"]: line for line in bench.lines("fidelity")}
    assert (found[name]["ending"], found[name]["fidelity"]) == (ending, None)
    assert words in found[name]["reason"]
    assert found["noise3"]["ending"] == "done"
    cell = status.per_cell[f"{name}|closeness"]
    assert cell.total == cell.done == N_WINDOWS
    assert cell.failed == N_WINDOWS - sum(
        count for (label, _), count in bench.windows().items() if label == name
    )
    assert status.n_done == status.n_cells
    assert status.n_failed == cell.failed > 0


@posix
def test_a_reference_that_fails_leaves_no_figure_of_any_variant(tmp_path: Path) -> None:
    bench = Bench(tmp_path, make_closeness_spec(tmp_path, "reference-corrupt", "noise1"))
    status = bench.run()
    assert [(line["ending"], line["fidelity"]) for line in bench.lines("fidelity")] == [
        ("bad_file", None),
        ("no_reference", None),
    ]
    assert status.n_failed == status.n_done == status.n_cells > 0


@posix
def test_cancelled_it_keeps_its_windows_and_resumed_it_does_only_the_rest(tmp_path: Path) -> None:
    spec = make_closeness_spec(tmp_path, "reference", "noise1-slow")
    bench = Bench(tmp_path, spec)

    def cancel(supervisor: Supervisor) -> None:
        if supervisor._status.n_done == 7:
            supervisor.cancel()

    with pytest.raises(Cancelled):
        bench.run(after=cancel)
    before = bench.windows()
    assert 7 <= sum(before.values()) < 20
    assert {line["ending"] for line in bench.lines("fidelity")} == {"cancelled"}
    progress = closeness.first_progress(spec, bench.run_dir)
    assert sum(cell.done for cell in progress.values()) == sum(before.values())

    status = bench.run()
    assert (status.n_done, status.n_cells) == (20, 20)
    assert set(bench.windows().values()) == {1}
    ended = {line["label"]: line["ending"] for line in bench.lines("fidelity")}
    assert ended == {"reference": "done", "noise1-slow": "done"}


@posix
def test_a_torn_last_window_is_evaluated_again(tmp_path: Path) -> None:
    spec = make_closeness_spec(tmp_path, "reference")
    whole = Bench(tmp_path, spec)
    whole.run()
    journal = whole.run_dir / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    expected = whole.lines("fidelity")[-1]["fidelity"]["ppl"]
    journal.write_bytes(b"".join(lines[:4]) + lines[4][:100])  # as after SIGKILL in the fifth window
    whole.run()
    assert set(whole.windows().values()) == {1}
    assert whole.lines("fidelity")[-1]["fidelity"]["ppl"] == expected


@posix
def test_stopped_early_it_counts_only_what_it_needed(tmp_path: Path) -> None:
    spec = make_closeness_spec(tmp_path, "reference", "noise1-slow", n_windows=11, stop_half_width=10.0)
    bench = Bench(tmp_path, spec)
    status = bench.run()
    assert {line["ending"] for line in bench.lines("fidelity")} == {"stopped"}
    assert status.n_done == status.n_cells < 22
    assert status.n_failed == 0


def choices(tmp_path: Path, variants: tuple[Variant, ...], **changes: Any) -> Choices:
    text = tmp_path / "text.txt"
    text.write_text("words " * 100)
    ask = closeness.make_ask(str(text), tmp_path, n_ctx=16)
    given = {"engine": "fake", "variants": variants, "tasks": (Task.CLOSENESS,), "closeness": ask}
    return Choices(**{**given, **changes})


@pytest.fixture
def with_add_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closeness, "find_spec", lambda name: object())


@pytest.mark.usefixtures("with_add_on")
def test_a_spec_keeps_the_text_by_name_and_digest(tmp_path: Path) -> None:
    spec = make_spec(choices(tmp_path, (file_variant("F16", 16.0), file_variant("Q8_0", 8.5))))
    assert spec.closeness is not None
    assert (spec.closeness.text_name, spec.closeness.text_bytes) == ("text.txt", 600)
    (asked,) = closeness.closeness_specs(spec)
    assert (asked.reference.label, [one.label for one in asked.variants]) == ("F16", ["Q8_0"])
    assert asked.variants[0].path == "/models/Q8_0.gguf"


@pytest.mark.usefixtures("with_add_on")
def test_one_file_with_two_caches_is_two_variants_and_the_reference_is_the_f16_one(tmp_path: Path) -> None:
    plain = file_variant("Q8_0", 8.5)
    compressed = file_variant("Q8_0", 8.5, kv_type_k="q8_0", kv_type_v="q8_0")
    spec = make_spec(choices(tmp_path, (plain, compressed), reference="Q8_0.gguf"))
    assert [variant.label for variant in spec.variants] == ["Q8_0 KV f16", "Q8_0 KV q8_0"]
    assert spec.reference == "Q8_0 KV f16"
    assert closeness.closeness_specs(spec)[0].variants[0].kv_type_v == "q8_0"


@pytest.mark.usefixtures("with_add_on")
@pytest.mark.parametrize(
    ("variants", "changes", "words"),
    [
        ((fake_variant("F16", bpw=16.0),), {}, "reads GGUF files, and F16 is none"),
        ((file_variant("F16", 16.0),), {"closeness": None}, "needs a text"),
        ((file_variant("F16", 16.0, kv_type_k="q9"),), {}, "'q9' is not a type of the KV cache"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_before_the_run(
    tmp_path: Path, variants: tuple[Variant, ...], changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        make_spec(choices(tmp_path, variants, **changes))


def test_a_missing_add_on_is_said_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closeness, "find_spec", lambda name: None)
    with pytest.raises(MissingError, match="pip install -r requirements-closeness"):
        make_spec(choices(tmp_path, (file_variant("F16", 16.0),)))
