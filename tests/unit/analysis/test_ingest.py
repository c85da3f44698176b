"""From a run folder to summary and verdicts in one step."""

import dataclasses

import pytest

from liob_core.analysis.ingest import ingest_run
from liob_core.analysis.results import results_table
from liob_core.store import database
from liob_core.store.journal import Journal, write_spec
from tests.unit.store.builders import make_load, make_sample, make_spec, make_unload


def test_a_run_folder_becomes_results_and_again_changes_nothing(tmp_path):
    spec, run_dir, db = make_spec(), tmp_path / "run", tmp_path / "liob.duckdb"
    run_dir.mkdir()
    write_spec(run_dir, spec)
    sample = make_sample(0)
    reference = dataclasses.replace(
        make_sample(1), cell=dataclasses.replace(sample.cell, cell_id="c1", variant="F16")
    )
    with Journal(run_dir) as journal:
        for record in (make_load(), sample, make_unload(), reference):
            journal.append(record)
    report = ingest_run(db, run_dir)
    table = results_table(db, report.run_id)
    assert list(table["variant"]) == ["F16", "Q4_0"]
    assert list(table["decode_tps"]) == pytest.approx([10.0, 10.0])
    assert list(table["pass_rate"]) == [1.0, 1.0]
    assert table.loc[1, "peak_memory_bytes"] == 1130
    assert table.loc[1, "pass_rate_words"] == "not distinguishable"
    ingest_run(db, run_dir)
    assert database.query(db, "SELECT count(*) AS n FROM raw.summary").loc[0, "n"] == 2
