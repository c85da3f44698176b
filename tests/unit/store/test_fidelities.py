"""Closeness results from the journal to the view and out of the house."""

import json
from pathlib import Path

import numpy as np

from liob_core.quality.closeness.fidelity import closeness
from liob_core.quality.closeness.records import Build, Ending, WindowScore
from liob_core.quality.closeness.results import Result
from liob_core.store import database
from liob_core.store.journal import Journal
from liob_core.store.share import export_run
from liob_core.types import ClosenessAsk, Task
from tests.unit.store.builders import MODEL_FOLDER, RUN_ID, make_run_folder

PROMISED = """run_id, variant, reference, text, n_ctx, n_windows, n_tokens, window_choice, ppl, ppl_se,
ppl_se_iid, ln_ratio, ln_ratio_se, ln_ratio_se_iid, kld_mean, kld_se, kld_se_iid, kld_median, kld_p99,
kld_max, same_top, same_top_se, same_top_se_iid, delta_p_mean, delta_p_rms, build, cpu_features"""
BUILD = Build(version="llama-cpp-python 0", cpu_features="AVX2 = 1")
ASK = ClosenessAsk(
    text_name="book.txt",
    text_path=f"{MODEL_FOLDER}/book.txt",
    text_sha256="t" * 64,
    text_bytes=1000,
    n_ctx=16,
    n_windows=10,
)


def make_score(variant: str, window: int, loss: float = 0.0) -> WindowScore:
    nll = np.linspace(1.0, 2.0, 7, dtype=np.float32) + np.float32(window / 10)
    compared = variant != "F16"
    return WindowScore(
        variant=variant,
        window=window,
        n_ctx=16,
        prefill_ns=16_000_000,
        nll=nll + np.float32(loss),
        kld=np.full(7, 0.25, dtype=np.float32) if compared else None,
        same_top=np.arange(7) != 3 if compared else None,
    )


def make_result(variant: str, n_windows: int = 10) -> Result:
    reference = [make_score("F16", window) for window in range(n_windows)]
    scores = [make_score(variant, window, 0.125 * (variant != "F16")) for window in range(n_windows)]
    found = closeness(
        scores,
        None if variant == "F16" else reference,
        text="book.txt",
        text_sha256="t" * 64,
        from_start=True,
        build=BUILD,
    )
    return Result(label=variant, ending=Ending.DONE, reason=None, fidelity=found)


def make_folder(tmp_path: Path) -> Path:
    run_dir = make_run_folder(tmp_path, tasks=(Task.CLOSENESS,), reference="F16", closeness=ASK)
    with Journal(run_dir) as journal:
        journal.append_window(make_score("F16", 0), BUILD)
        journal.append(make_result("F16"))
        journal.append(make_result("Q4_0"))
        reason = f"{MODEL_FOLDER}/Q2_K.gguf could not be loaded"
        journal.append(Result(label="Q2_K", ending=Ending.BAD_FILE, reason=reason, fidelity=None))
    return run_dir


def ingest(run_dir: Path, db: Path) -> database.IngestReport:
    with database.write(db) as con:
        return database.ingest(con, run_dir)


def test_the_view_holds_every_result_in_the_promised_columns(tmp_path: Path, db: Path) -> None:
    report = ingest(make_folder(tmp_path), db)
    assert report.n_skipped_lines == 0, "a window's line is no damaged one"
    rows = database.query(db, "SELECT * FROM closeness ORDER BY variant")
    wanted = [name.strip() for name in PROMISED.split(",")]
    assert list(rows.columns[: len(wanted)]) == wanted
    reference, failed, variant = rows.to_dict("records")
    # Mean NLL: 1.5 over the tokens of a window, plus 0 to 0.9 over the windows.
    assert np.isclose(reference["ppl"], np.exp(1.5 + 0.45), rtol=1e-6)
    assert np.isclose(variant["ln_ratio"], 0.125, rtol=1e-6)
    assert (variant["kld_mean"], variant["reference"], variant["n_tokens"]) == (0.25, "F16", 70)
    assert np.isclose(variant["same_top"], 6 / 7)
    # 16 tokens in 16 ms, window after window.
    assert np.isclose(variant["prefill_tps"], 1000.0)
    assert rows["reference"].isna().tolist() == [True, False, False]
    assert np.isnan(reference["kld_mean"])
    assert json.loads(reference["unknown"])["kld_mean"] == "no reference to compare with"
    assert (failed["ending"], failed["reference"], failed["text"], failed["n_ctx"]) == (
        "bad_file",
        "F16",
        "book.txt",
        16,
    )
    assert np.isnan(failed["ppl"])


def test_ingesting_twice_changes_nothing_and_a_later_result_takes_the_place(tmp_path: Path, db: Path) -> None:
    run_dir = make_folder(tmp_path)
    ingest(run_dir, db)
    before = database.query(db, "SELECT * FROM closeness ORDER BY variant")
    ingest(run_dir, db)
    assert before.equals(database.query(db, "SELECT * FROM closeness ORDER BY variant"))
    with Journal(run_dir) as journal:
        journal.append(make_result("Q2_K", n_windows=9))
        journal.append(make_result("Q2_K", n_windows=8))
    ingest(run_dir, db)
    rows = database.query(db, "SELECT variant, n_windows, ending FROM closeness ORDER BY variant")
    assert rows.values.tolist() == [["F16", 10, "done"], ["Q2_K", 8, "done"], ["Q4_0", 10, "done"]]


def test_an_export_holds_closeness_and_no_path(tmp_path: Path, db: Path) -> None:
    ingest(make_folder(tmp_path), db)
    out = export_run(db, RUN_ID, "json", tmp_path / "run.json")
    text = out.read_text(encoding="utf-8")
    exported = json.loads(text)["closeness"]
    assert {row["variant"] for row in exported} == {"F16", "Q4_0", "Q2_K"}
    assert json.loads(text)["runs"][0]["closeness"]["text_name"] == "book.txt"
    assert "could not be loaded" in text
    assert "jane" not in text
