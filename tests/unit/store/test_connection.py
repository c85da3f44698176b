import os
from pathlib import Path

import duckdb
import pytest

from liob_core.errors import BusyError, FileError, MissingError
from liob_core.store import connection


def test_read_without_a_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="Run a benchmark first"), connection.read(tmp_path / "no.duckdb"):
        pass


def test_a_database_whose_first_writer_was_killed_is_missing_until_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "liob.duckdb"
    duckdb.connect(str(path)).close()
    with pytest.raises(MissingError, match="Run a benchmark first"), connection.read(path):
        pass
    with connection.write(path) as con:
        assert con.execute("SELECT count(*) FROM results").fetchone() == (0,)


def test_read_cannot_write_nor_reach_other_files(db: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with connection.read(db) as con:
        with pytest.raises(duckdb.Error, match="read-only"):
            con.execute("DELETE FROM raw.runs")
        with pytest.raises(duckdb.Error):
            con.execute(f"SELECT * FROM read_csv('{tmp_path / 'secret.csv'}')")


def test_query_returns_a_frame(db: Path) -> None:
    frame = connection.query(db, "SELECT ? AS answer", [42])
    assert frame["answer"].tolist() == [42]


def test_two_readers_at_once(db: Path) -> None:
    with connection.read(db) as first, connection.read(db) as second:
        assert first.execute("SELECT 1").fetchone() == second.execute("SELECT 1").fetchone()


def test_writing_while_this_process_reads_is_busy(db: Path) -> None:
    with (
        connection.read(db),
        pytest.raises(BusyError, match="in use by another part"),
        connection.write(db, wait_s=0),
    ):
        pass


@pytest.mark.parametrize("content", [b"", b"hello " * 5000, b"version https://git-lfs.github.com/spec/v1\n"])
def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "liob.duckdb"
    path.write_bytes(content)
    for opening in (connection.read, connection.write):
        with pytest.raises(FileError, match="not a DuckDB database or is damaged"), opening(path):
            pass
    assert path.read_bytes() == content


def test_a_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileError), connection.read(tmp_path):
        pass


@pytest.mark.parametrize("keep", [0.1, 0.5])
def test_a_truncated_database_is_one_sentence(db: Path, keep: float) -> None:
    with connection.write(db) as con:
        con.execute("CREATE TABLE raw.filler AS SELECT random() AS a FROM range(200_000)")
    os.truncate(db, int(db.stat().st_size * keep))
    with pytest.raises(FileError), connection.read(db) as con:
        con.execute("SELECT sum(a) FROM raw.filler")


def test_a_damaged_block_is_one_sentence(db: Path) -> None:
    content = bytearray(db.read_bytes())
    content[3 * 4096 + 50 :] = bytes(len(content) - 3 * 4096 - 50)
    db.write_bytes(content)
    with pytest.raises(FileError, match="damaged"), connection.read(db) as con:
        con.execute("SELECT * FROM results")


def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE theirs AS SELECT 1")
    for opening in (connection.read, connection.write):
        with pytest.raises(FileError, match="not LIOB's"), opening(path):
            pass
    with duckdb.connect(str(path)) as con:
        assert con.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("theirs",)]


def test_a_wrong_statement_stays_a_bug(db: Path) -> None:
    with pytest.raises(duckdb.CatalogException), connection.read(db) as con:
        con.execute("SELECT * FROM nowhere")


def test_transaction_stores_all_or_nothing_and_joins_an_outer_one(db: Path) -> None:
    with connection.write(db) as con:
        con.execute("CREATE TABLE main.t (a INTEGER)")
        with pytest.raises(ZeroDivisionError):  # noqa: PT012, SIM117 - the error comes after the inner one
            with connection.transaction(con):
                with connection.transaction(con):
                    con.execute("INSERT INTO t VALUES (1)")
                raise ZeroDivisionError
        assert con.execute("SELECT * FROM t").fetchall() == []
        with connection.transaction(con), connection.transaction(con):
            con.execute("INSERT INTO t VALUES (2)")
        assert con.execute("SELECT * FROM t").fetchall() == [(2,)]


@pytest.mark.parametrize(
    "statement",
    [
        "SET enable_external_access = true",
        "SET memory_limit = '1GB'",
        "ATTACH 'other.duckdb'",
        "SELECT * FROM read_csv('{path}')",
        "SELECT * FROM '{path}'",
        "COPY (SELECT 1) TO '{path}.csv'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CREATE TABLE mine (a INTEGER)",
        "EXPORT DATABASE '{path}.d'",
    ],
)
def test_reader_can_neither_write_nor_leave_the_file(db: Path, statement: str) -> None:
    with connection.read(db) as con, pytest.raises(duckdb.Error):
        con.execute(statement.format(path=db))
