import json
from pathlib import Path

import duckdb
import pytest

from liob_core.errors import FileError
from liob_core.store import database
from liob_core.store.journal import JOURNAL_FILE, Journal
from liob_core.types import Outcome, Surroundings
from tests.unit.store.builders import (
    RUN_ID,
    append_readings,
    make_load,
    make_run_folder,
    make_sample,
)

TABLES = ("runs", "variants", "prompts", "loads", "samples", "readings", "gpu_readings", "events", "machines")


def ingest(db: Path, run_dir: Path) -> database.IngestReport:
    with database.write(db) as con:
        return database.ingest(con, run_dir)


def counts(db: Path) -> dict[str, int]:
    with database.read(db) as con:
        return {table: con.execute(f"SELECT count(*) FROM raw.{table}").fetchone()[0] for table in TABLES}


def rows(db: Path, sql: str) -> list[tuple]:
    with database.read(db) as con:
        return con.execute(sql).fetchall()


def test_a_run_arrives_whole_and_ingesting_again_changes_nothing(tmp_path: Path, db: Path) -> None:
    run_dir = make_run_folder(tmp_path, n_samples=3)
    report = ingest(db, run_dir)
    assert (report.n_samples, report.n_loads, report.n_readings, report.n_events) == (3, 1, 5, 2)
    assert report.state == "finished"
    first = counts(db)
    assert tuple(first.values()) == (1, 2, 1, 1, 3, 5, 5, 2, 1)
    again = ingest(db, run_dir)
    assert (again.n_samples, again.n_loads, again.n_readings, again.n_events) == (0, 0, 0, 0)
    assert counts(db) == first


def test_only_new_lines_are_taken(tmp_path: Path, db: Path) -> None:
    run_dir = make_run_folder(tmp_path, n_samples=1)
    ingest(db, run_dir)
    with Journal(run_dir) as journal:
        journal.append_event("resumed")
        journal.append(make_sample(7))
    append_readings(run_dir, range(5, 7))
    assert database.is_behind(db, run_dir)
    report = ingest(db, run_dir)
    assert (report.n_samples, report.n_readings, report.state) == (1, 2, "unfinished")
    assert not database.is_behind(db, run_dir)
    assert counts(db)["samples"] == 2


def test_metrics_are_those_of_hand_computation(tmp_path: Path, db: Path) -> None:
    ingest(db, make_run_folder(tmp_path, n_samples=1))
    [row] = rows(
        db,
        "SELECT ttft_ms, e2e_ms, tpot_ms, decode_tps, prefill_tps, unknown, started_utc::VARCHAR, "
        "check_result, check_score FROM samples",
    )
    # (1100 - 100) / 10; 10 tokens in 1000 ms; 40 uncached tokens in 100 ms
    assert row == (100.0, 1100.0, 100.0, 10.0, 400.0, None, "2026-11-30 12:00:01.5", "pass", 0.5)


def test_what_is_unknown_is_null_with_its_reason(tmp_path: Path, db: Path) -> None:
    run_dir = make_run_folder(tmp_path, n_samples=0)
    with Journal(run_dir) as journal:
        journal.append(
            make_sample(1, outcome=Outcome.ENGINE_DIED, surroundings=Surroundings(cpu_mean_pct=float("nan")))
        )
    ingest(db, run_dir)
    [(decode_tps, reason, cpu)] = rows(
        db, "SELECT decode_tps, unknown->>'$.decode_tps', cpu_mean_pct FROM samples"
    )
    assert decode_tps is None
    assert "engine_died" in reason
    assert cpu is None


def test_the_end_of_a_load_fills_its_row(tmp_path: Path, db: Path) -> None:
    ingest(db, make_run_folder(tmp_path))
    assert rows(
        db, "SELECT load_ms, host_rss_bytes, peak_memory_bytes, peak_vram_bytes, peak_vram_reason FROM loads"
    ) == [(250.0, 70, 1130, None, "no device")]


def test_a_load_and_its_end_may_arrive_in_different_ingests(tmp_path: Path, db: Path) -> None:
    run_dir = make_run_folder(tmp_path)
    journal = run_dir / JOURNAL_FILE
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2]))
    ingest(db, run_dir)
    assert rows(db, "SELECT peak_memory_bytes FROM loads") == [(None,)]
    journal.write_bytes(b"".join(lines))
    ingest(db, run_dir)
    assert rows(db, "SELECT peak_memory_bytes FROM loads") == [(1130,)]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "\x1b[31mred\x1b[0m",
        "nul \x00 inside",
        "# **bold** `code`",
        "😀 ü\u2028\x85",
        "",
    ],
)
def test_any_text_is_stored_as_it_is(tmp_path: Path, db: Path, text: str) -> None:
    run_dir = make_run_folder(tmp_path, n_samples=0)
    with Journal(run_dir) as journal:
        journal.append(make_sample(1, response=text, thinking=text))
    ingest(db, run_dir)
    assert rows(db, "SELECT response, thinking, exact_text FROM samples") == [(text, text, None)]


def test_text_that_utf8_cannot_hold_is_shown_and_kept(tmp_path: Path, db: Path) -> None:
    run_dir = make_run_folder(tmp_path, n_samples=0)
    text = "half \ud83d and 😀"
    with Journal(run_dir) as journal:
        journal.append(make_sample(1, response=text))
        journal.append(make_load(load_id="l2", reason=text, asked={"stop": text}))
        journal.append_event("failed", text)
    ingest(db, run_dir)
    [(shown, exact)] = rows(db, "SELECT response, exact_text FROM samples")
    assert shown == "half \ufffd and 😀"
    assert json.loads(exact) == {"response": text}
    assert rows(db, "SELECT asked->>'$.stop' FROM loads WHERE load_id = 'l2'") == [(shown,)]
    assert rows(db, "SELECT reason FROM runs") == [(shown,)]


@pytest.mark.parametrize(
    "damage",
    [b"\x00" * 300, b"{not json", b"[1]", b'{"kind": "sample", "data": {}}', b'{"kind": "what", "data": {}}'],
)
def test_a_damaged_line_is_left_out_counted_and_told(tmp_path: Path, db: Path, damage: bytes) -> None:
    run_dir = make_run_folder(tmp_path, n_samples=1)
    place = (run_dir / JOURNAL_FILE).stat().st_size
    with (run_dir / JOURNAL_FILE).open("ab") as file:
        file.write(damage + b"\n")
    with Journal(run_dir) as journal:
        journal.append(make_sample(2))
    for _ in range(2):
        report = ingest(db, run_dir)
        assert report.n_skipped_lines == 1
        assert counts(db)["samples"] == 2
        assert rows(db, "SELECT journal_offset FROM events WHERE event = 'skipped_line'") == [(place,)]
    assert rows(db, "SELECT n_skipped_lines FROM runs") == [(1,)]


def test_a_damaged_reading_is_left_out_and_counted(tmp_path: Path, db: Path) -> None:
    run_dir = make_run_folder(tmp_path)
    with (run_dir / "readings.jsonl").open("ab") as file:
        file.write(b'{"utc_ns": "soon"}\n')
    append_readings(run_dir, range(5, 6))
    report = ingest(db, run_dir)
    assert (report.n_readings, report.n_skipped_lines) == (6, 1)


def test_a_torn_last_line_waits(tmp_path: Path, db: Path) -> None:
    run_dir = make_run_folder(tmp_path, n_samples=2)
    journal = run_dir / JOURNAL_FILE
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-20])
    assert ingest(db, run_dir).state == "unfinished"
    assert not database.is_behind(db, run_dir)
    journal.write_bytes(whole)
    report = ingest(db, run_dir)
    assert (report.state, report.n_skipped_lines, report.n_events) == ("finished", 0, 1)


def test_a_journal_that_shrank_is_read_again_without_doubling(tmp_path: Path, db: Path) -> None:
    run_dir = make_run_folder(tmp_path, n_samples=3)
    ingest(db, run_dir)
    before = counts(db)
    journal = run_dir / JOURNAL_FILE
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:3]))
    (run_dir / "readings.jsonl").write_bytes(b"")
    append_readings(run_dir, range(4))
    report = ingest(db, run_dir)
    assert report.n_samples == 0
    assert counts(db) == before | {"events": before["events"] + 1}
    assert rows(db, "SELECT count(*) FROM events WHERE event = 'journal_changed'") == [(1,)]


def test_a_run_folder_of_a_newer_liob_is_refused(tmp_path: Path, db: Path) -> None:
    run_dir = make_run_folder(tmp_path)
    with (run_dir / JOURNAL_FILE).open("ab") as file:
        file.write(b'{"kind": "sample", "data": {}, "schema_version": 2}\n')
    with pytest.raises(FileError, match="newer LIOB"):
        ingest(db, run_dir)
    assert counts(db)["samples"] == 0


def test_finish_belongs_to_the_same_transaction(tmp_path: Path, db: Path) -> None:
    run_dir = make_run_folder(tmp_path)

    def fail(_con: duckdb.DuckDBPyConnection, run_id: str) -> None:
        assert run_id == RUN_ID
        raise RuntimeError("stop")

    with database.write(db) as con:
        with pytest.raises(RuntimeError):
            database.ingest(con, run_dir, finish=fail)
        assert con.execute("SELECT count(*) FROM raw.runs").fetchone() == (0,)


def test_a_run_without_a_journal_is_known_but_not_behind(tmp_path: Path, db: Path) -> None:
    run_dir = make_run_folder(tmp_path)
    (run_dir / JOURNAL_FILE).unlink()
    (run_dir / "readings.jsonl").unlink()
    assert not database.is_behind(db, run_dir)
    assert ingest(db, run_dir).state == "unfinished"


def test_results_has_a_row_for_every_variant_before_any_summary(tmp_path: Path, db: Path) -> None:
    ingest(db, make_run_folder(tmp_path))
    assert rows(db, "SELECT variant, is_reference, bpw, decode_tps FROM results ORDER BY position") == [
        ("F16", True, 4.5, None),
        ("Q4_0", False, 4.5, None),
    ]
