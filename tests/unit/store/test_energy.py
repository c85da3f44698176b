"""Windows of energy from the journal to the view, out of the house and back in."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from liob_core.analysis.ingest import ingest_run
from liob_core.errors import FileError
from liob_core.store import database
from liob_core.store.importing import import_file
from liob_core.store.journal import SPEC_FILE, Journal, read_spec
from liob_core.store.share import export_run
from liob_core.types import EnergyWindow, Shape
from tests.unit.store.builders import MODEL_FOLDER, RUN_ID, make_run_folder


def make_window(shape: Shape = Shape.TG128, block: int = 0, **changes: Any) -> EnergyWindow:
    """512 tokens in four requests of 10 s in all: 500 J at 50 W, between rests of 10 and 12 W."""
    values: dict[str, Any] = {
        "run_id": RUN_ID,
        "load_id": f"{RUN_ID}/1",
        "variant": "Q4_0",
        "block": block,
        "shape": shape,
        "scope": "package",
        "source": "rapl",
        "started_utc": "2026-11-30T12:00:03Z",
        "window_s": 10.0,
        "n_requests": 4,
        "output_tokens": 512,
        "energy_j": 500.0,
        "idle_before_w": 10.0,
        "idle_after_w": 12.0,
        "contended": False,
        "reason": None,
    }
    return EnergyWindow(**(values | changes))


def make_folder(parent: Path) -> Path:
    run_dir = make_run_folder(parent)
    with Journal(run_dir) as journal:
        journal.append(make_window())
        journal.append(make_window(block=1, energy_j=600.0, idle_after_w=18.0))
        journal.append(make_window(Shape.PP512, output_tokens=4))
        journal.append(make_window(scope="dram", energy_j=20.0, idle_before_w=3.0, idle_after_w=3.0))
        journal.append(
            make_window(
                Shape.PP512,
                block=1,
                energy_j=None,
                idle_after_w=None,
                reason=f"a request ended as engine_died: {MODEL_FOLDER}/Q4_0.gguf",
            )
        )
        journal.append_event("finished")
    return run_dir


def energies(path: Path) -> list[dict[str, Any]]:
    rows = database.query(path, "SELECT * FROM energy ORDER BY scope, shape, block").astype(object)
    return rows.where(rows.notna(), None).to_dict("records")


def test_what_a_window_says_is_computed_by_hand(tmp_path: Path, db: Path) -> None:
    report = ingest_run(db, make_folder(tmp_path))
    assert report.n_skipped_lines == 0
    memory, read, failed, written, uneven = energies(db)
    assert (written["gross_w"], written["j_per_request"]) == (50.0, 125.0)
    assert written["net_j"] == pytest.approx(500 - 11 * 10)
    assert written["j_per_output_token"] == pytest.approx(500 / 512)
    assert written["tokens_per_j"] == pytest.approx(1.024)
    # 18 - 10 W are more than 10 % of 60 W.
    assert (uneven["net_j"], uneven["gross_w"]) == (None, 60.0)
    assert "more than 10 %" in uneven["net_reason"]
    # Only the shape that does nothing but write tells what a token takes.
    assert (read["j_per_request"], read["j_per_output_token"], read["tokens_per_j"]) == (125.0, None, None)
    # More at rest than at work: the net is below 0 and stays so.
    assert memory["net_j"] == pytest.approx(20 - 30)
    assert (failed["energy_j"], failed["gross_w"], failed["net_j"], failed["net_reason"]) == (None,) * 4
    assert failed["reason"].startswith("a request ended as engine_died")


def test_results_have_the_mean_over_blocks_and_ingesting_again_changes_nothing(
    tmp_path: Path, db: Path
) -> None:
    run_dir = make_folder(tmp_path)
    ingest_run(db, run_dir)
    before = energies(db)
    with Journal(run_dir) as journal:
        journal.append(make_window(energy_j=9999.0))  # the same window once more: the first one holds
    ingest_run(db, run_dir)
    assert energies(db) == before
    rows = database.query(db, "SELECT * FROM results ORDER BY variant").to_dict("records")
    none, own = rows
    assert own["j_per_output_token"] == pytest.approx(550 / 512)
    assert (own["energy_scope"], own["energy_source"], own["energy_n_blocks"]) == ("package", "rapl", 2)
    assert json.loads(none["unknown"])["j_per_output_token"] == "not measured"


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Path:
    """The database of another machine, with the run in it."""
    folder = tmp_path_factory.mktemp("theirs")
    path = Path(shutil.copy(empty_database, folder / "theirs.duckdb"))
    ingest_run(path, make_folder(folder))
    return path


@pytest.fixture(scope="module")
def exported(theirs: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return export_run(theirs, RUN_ID, "json", tmp_path_factory.mktemp("out") / "run.json").read_text()


@pytest.mark.parametrize("format_", ["json", "csv", "parquet", "duckdb"])
def test_it_leaves_without_paths_and_arrives_whole(
    tmp_path: Path, db: Path, theirs: Path, format_: str
) -> None:
    import_file(db, export_run(theirs, RUN_ID, format_, tmp_path / "out"))
    expected = energies(theirs)
    for row in expected:
        row["reason"] = row["reason"] and "a request ended as engine_died: Q4_0.gguf"
    assert energies(db) == expected


def test_an_export_without_it_still_arrives(tmp_path: Path, db: Path, exported: str) -> None:
    document = json.loads(exported)
    assert len(document.pop("energy")) == 5
    (tmp_path / "old.json").write_text(json.dumps(document))
    assert import_file(db, tmp_path / "old.json").added == (RUN_ID,)
    assert energies(db) == []


@pytest.mark.parametrize(("column", "value"), [("energy_j", -1.0), ("source", "TDP")])
def test_values_that_liob_does_not_write_are_refused(
    tmp_path: Path, db: Path, exported: str, column: str, value: object
) -> None:
    document = json.loads(exported)
    document["energy"][0][column] = value
    (tmp_path / "odd.json").write_text(json.dumps(document))
    with pytest.raises(FileError, match=f"energy.{column}"):
        import_file(db, tmp_path / "odd.json")


def test_the_spec_of_an_older_run_asks_for_none(tmp_path: Path) -> None:
    run_dir = make_run_folder(tmp_path)
    spec = json.loads((run_dir / SPEC_FILE).read_text())
    assert spec.pop("energy") is False
    (run_dir / SPEC_FILE).write_text(json.dumps(spec))
    assert read_spec(run_dir).energy is False
