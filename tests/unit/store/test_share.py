import csv
import hashlib
import json
from pathlib import Path

import duckdb
import pytest

from liob_core.errors import MissingError, UsageError
from liob_core.store import database, schema
from liob_core.store.journal import Journal
from liob_core.store.share import VIEWS, export_run, read_manifest
from liob_core.types import JudgeState, Outcome
from tests.unit.store.builders import (
    MODEL_FOLDER,
    RUN_ID,
    make_calibration,
    make_judgement,
    make_load,
    make_run_folder,
    make_sample,
)

OTHER_RUN = "20261130-130000-ffff"


@pytest.fixture
def shared_db(tmp_path: Path, db: Path) -> Path:
    """Two runs; the exported one tells of paths wherever text comes from engines."""
    run_dir = make_run_folder(
        tmp_path,
        engine_url="http://jane-box.lan:8080",
        engine_options={"script": f"{MODEL_FOLDER}/faults.json"},
    )
    with Journal(run_dir) as journal:
        failed = f"error loading model: {MODEL_FOLDER}/Q4_0.gguf: bad magic"
        journal.append(make_load(load_id="l2", outcome=Outcome.ENGINE_ERROR, reason=failed))
        journal.append(make_sample(5, outcome=Outcome.ENGINE_ERROR, reason=failed))
        journal.append(make_sample(6, response='see /home/jane/x, nul \x00, =1+1, "quoted"\nnew line'))
        journal.append(make_calibration())
        journal.append(make_judgement(state=JudgeState.JUDGE_ERROR, score=None, reason=failed))
        journal.append_event("failed", failed)
    other = make_run_folder(tmp_path, run_id=OTHER_RUN)
    with database.write(db) as con:
        database.ingest(con, run_dir)
        database.ingest(con, other)
        con.execute(
            f"INSERT INTO raw.summary (run_id, variant, decode_tps) VALUES ('{RUN_ID}', 'Q4_0', 12.5)"
        )
    return db


@pytest.mark.parametrize("format_", ["json", "csv", "parquet", "duckdb"])
def test_nothing_that_tells_of_the_user_leaves(shared_db: Path, tmp_path: Path, format_: str) -> None:
    out = export_run(shared_db, RUN_ID, format_, tmp_path / "out")
    for view, rows in _read(out, format_).items():
        kept = [
            {name: value for name, value in row.items() if name not in {"prompt", "response", "messages"}}
            for row in rows
        ]
        for secret in ("/home", "jane", "secret models", "box.lan"):
            assert secret not in json.dumps(kept, default=str), view


@pytest.mark.parametrize("format_", ["json", "csv", "parquet", "duckdb"])
def test_one_run_arrives_whole(shared_db: Path, tmp_path: Path, format_: str) -> None:
    views = _read(export_run(shared_db, RUN_ID, format_, tmp_path / "out"), format_)
    assert set(views) == set(VIEWS)
    counts = {view: len(rows) for view, rows in views.items()}
    assert counts == {
        "runs": 1,
        "results": 2,
        "paired_deltas": 0,
        "variants": 2,
        "loads": 2,
        "samples": 4,
        "prompts": 1,
        "events": 3,
        "machines": 1,
        "readings": 5,
        "gpu_readings": 5,
        "judgements": 1,
        "calibrations": 1,
        "closeness": 0,
        "flips": 0,
        "seeds": 0,
        "energy": 0,
    }
    [answer] = [row for row in views["samples"] if row["cell_id"] == "c6"]
    assert answer["response"] == 'see /home/jane/x, nul \x00, =1+1, "quoted"\nnew line'
    [q4] = [row for row in views["results"] if row["variant"] == "Q4_0"]
    assert float(q4["decode_tps"]) == 12.5
    [failed] = [row for row in views["samples"] if row["cell_id"] == "c5"]
    assert failed["reason"] == "error loading model: Q4_0.gguf: bad magic"


def test_an_exported_database_is_one_that_liob_opens(shared_db: Path, tmp_path: Path) -> None:
    out = export_run(shared_db, RUN_ID, "duckdb", tmp_path / "share" / "sample.duckdb")
    with database.read(out) as con, database.read(shared_db) as source:
        assert schema.describe(con) == schema.describe(source)
        assert con.execute("SELECT run_id, variant FROM results ORDER BY position").fetchall() == [
            (RUN_ID, "F16"),
            (RUN_ID, "Q4_0"),
        ]
        manifest = read_manifest(con)
        assert read_manifest(source) == {}
    assert (manifest["run_ids"], manifest["format_version"]) == ([RUN_ID], 1)
    with duckdb.connect(str(out), read_only=True) as con:
        [(tags,)] = con.execute(
            "SELECT tags FROM duckdb_databases() WHERE database_name = 'sample'"
        ).fetchall()
    assert tags["storage_version"].startswith("v1.2.0")
    assert list(out.parent.iterdir()) == [out]


def test_the_manifest_of_a_folder_has_every_file_s_digest(shared_db: Path, tmp_path: Path) -> None:
    out = export_run(shared_db, RUN_ID, "csv", tmp_path / "out")
    manifest = json.loads((out / "manifest.json").read_text())
    files = {path.name for path in out.iterdir()} - {"manifest.json"}
    assert set(manifest["files"]) == files
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest


def test_an_earlier_export_is_replaced_and_another_folder_is_not(shared_db: Path, tmp_path: Path) -> None:
    out = export_run(shared_db, RUN_ID, "csv", tmp_path / "out")
    (out / "stale.csv").touch()
    export_run(shared_db, OTHER_RUN, "csv", out)
    assert json.loads((out / "manifest.json").read_text())["run_ids"] == [OTHER_RUN]
    assert not (out / "stale.csv").exists()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").touch()
    for format_ in ("csv", "json", "duckdb"):
        with pytest.raises(UsageError, match="mine"):
            export_run(shared_db, RUN_ID, format_, mine)
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]


def test_what_does_not_exist_is_told(shared_db: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="json, csv, parquet, duckdb"):
        export_run(shared_db, RUN_ID, "xlsx", tmp_path / "out")
    with pytest.raises(MissingError, match="no run nope"):
        export_run(shared_db, "nope", "json", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def _read(out: Path, format_: str) -> dict[str, list[dict]]:
    if format_ == "json":
        document = json.loads(out.read_text())
        assert document.pop("manifest")["run_ids"] == [RUN_ID]
        return document
    if format_ == "csv":
        found = {}
        for path in out.glob("*.csv"):
            with path.open(encoding="utf-8", newline="") as file:
                found[path.stem] = list(csv.DictReader(file))
        return found
    if format_ == "parquet":
        with duckdb.connect() as con:
            return {path.stem: _rows(con, f"'{path}'") for path in out.glob("*.parquet")}
    with duckdb.connect(str(out), read_only=True) as con:
        raw = [name for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        for table in raw:
            assert MODEL_FOLDER not in str(_rows(con, f"raw.{table}"))
        return {view: _rows(con, f"main.{view}") for view in VIEWS}


def _rows(con: duckdb.DuckDBPyConnection, source: str) -> list[dict]:
    result = con.execute(f"SELECT * FROM {source}")
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
