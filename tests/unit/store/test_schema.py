from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from liob_core.errors import FileError
from liob_core.store import connection, schema

# The promise to people who query the file; new columns only ever follow.
RESULTS = """run_id, variant, quant, engine, weights_sha256, file_sha256, bpw, file_bytes, n_samples, n_ok,
ttft_ms_p50, decode_tps, decode_tps_ci_low, decode_tps_ci_high, prefill_tps, timing_task, n_blocks, load_ms,
answer_tokens, answer_s, truncated_share, peak_memory_bytes, peak_rss_bytes, peak_vram_bytes,
peak_system_ram_bytes, cpu_peak_pct_mean, pass_rate, n_checked"""
SAMPLES = """sample_id, run_id, variant, block, started_utc, seed, task, suite, category, prompt_id, repeat,
outcome, reason, warmup, cold, prompt, response, prompt_tokens, cached_tokens, output_tokens, ttft_ms,
tpot_ms, e2e_ms, prefill_tps, decode_tps, decode_tps_client, engine_prompt_ms, engine_eval_ms,
cpu_other_share, check_result"""
LOADS = """load_id, run_id, variant, block, started_utc, asked, effective, weights_bytes, kv_bytes,
compute_bytes, output_bytes, load_ms, host_rss_bytes"""
JUDGEMENTS = """run_id, sample_id, variant, prompt_id, judge, state, score, reason, raw_reply, attempts"""


@pytest.fixture
def con(db: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with connection.read(db) as open_con:
        yield open_con


@pytest.mark.parametrize(
    ("view", "promised"),
    [("results", RESULTS), ("samples", SAMPLES), ("loads", LOADS), ("judgements", JUDGEMENTS)],
)
def test_views_begin_with_the_promised_columns_in_order(
    con: duckdb.DuckDBPyConnection, view: str, promised: str
) -> None:
    wanted = [name.strip() for name in promised.split(",")]
    columns = [description.column for description in schema.describe(con) if description.view == view]
    assert columns[: len(wanted)] == wanted


def test_every_table_view_and_column_has_a_comment(con: duckdb.DuckDBPyConnection) -> None:
    uncommented = con.execute(
        "SELECT name, part FROM (SELECT table_name AS name, column_name AS part, comment, internal "
        "FROM duckdb_columns() UNION ALL SELECT table_name, NULL, comment, internal FROM duckdb_tables() "
        "UNION ALL SELECT view_name, NULL, comment, internal FROM duckdb_views()) "
        "WHERE NOT internal AND coalesce(comment, '') = ''"
    ).fetchall()
    assert uncommented == []


def test_describe_gives_the_formula_of_a_metric_and_the_meaning_of_its_own_column(
    con: duckdb.DuckDBPyConnection,
) -> None:
    comments = {(column.view, column.column): column.comment for column in schema.describe(con)}
    assert "8 x tensor bytes / parameters" in comments["results", "bpw"]
    assert "median" in comments["results", "load_ms"]
    assert "median" not in comments["loads", "load_ms"]
    assert set(schema.describe_views(con)) == {view for view, _ in comments}


def test_no_comment_is_about_a_column_that_is_gone(con: duckdb.DuckDBPyConnection) -> None:
    import tomllib

    text = (Path(schema.__file__).parent / "comments.toml").read_text(encoding="utf-8")
    columns = con.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal"
    ).fetchall()
    known = {column for _, column in columns} | {f"{table}.{column}" for table, column in columns}
    assert {name for name in tomllib.loads(text)["columns"] if name not in known} == set()


def test_migrations_are_applied_once_and_recorded(tmp_path: Path) -> None:
    path = tmp_path / "liob.duckdb"
    for _ in range(2):
        with connection.write(path) as con:
            applied = con.execute("SELECT number, name FROM raw.migrations ORDER BY number").fetchall()
            assert applied[:2] == [(1, "initial"), (2, "judgements")]
            assert [number for number, _ in applied] == [number for number, _, _ in schema._migrations()]


def test_an_older_database_is_brought_up_to_date_without_loss(tmp_path: Path) -> None:
    path = tmp_path / "liob.duckdb"
    first = Path(schema.__file__).parent / "migrations" / "0001_initial.sql"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE SCHEMA raw")
        con.execute(
            "CREATE TABLE raw.migrations (number INTEGER PRIMARY KEY, name VARCHAR, applied_utc TIMESTAMP)"
        )
        con.execute(first.read_text(encoding="utf-8"))
        con.execute("INSERT INTO raw.migrations VALUES (1, 'initial', now()::TIMESTAMP)")
        con.execute("INSERT INTO raw.events VALUES ('r', 0, 'started', NULL, '')")
    assert connection.is_outdated(path)
    with connection.write(path) as con:
        assert con.execute("SELECT count(*) FROM events").fetchone() == (1,)
        assert con.execute("SELECT count(*) FROM judgements").fetchone() == (0,)
    assert not connection.is_outdated(path)


def test_a_database_of_a_newer_liob_is_refused_to_readers_and_writers(db: Path) -> None:
    with connection.write(db) as con:
        con.execute("INSERT INTO raw.migrations VALUES (999, 'future', now()::TIMESTAMP)")
    for opening in (connection.read, connection.write):
        with pytest.raises(FileError, match="newer LIOB"), opening(db):
            pass


def test_the_file_can_be_read_by_duckdb_1_4(db: Path) -> None:
    with duckdb.connect(str(db), read_only=True) as con:
        tags = con.execute("SELECT tags FROM duckdb_databases() WHERE database_name = 'liob'").fetchone()
    assert tags == ({"storage_version": "v1.2.0+"},)


def test_views_work_when_the_file_is_renamed_and_attached(db: Path, tmp_path: Path) -> None:
    db.rename(tmp_path / "sample.duckdb")
    with duckdb.connect(str(tmp_path / "sample.duckdb"), read_only=True) as con:
        for view in schema.describe_views(con):
            assert con.execute(f"SELECT count(*) FROM {view}").fetchone() == (0,)
