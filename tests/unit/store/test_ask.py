"""SQL from a person: what it may do, and every way of asking for more than that."""

import time
from pathlib import Path

import duckdb
import pytest

from liob_core.errors import UsageError
from liob_core.store import connection
from liob_core.store.ask import ask


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT 1 AS a", 1),
        ("SELECT 1 AS a;  -- the end", 1),
        ("SELECT ';' AS a ; ;", 1),
        ("SELECT 1 AS a -- the end", 1),
        ("WITH t AS (SELECT 1) FROM t", 1),
        ("FROM range(7)", 7),
        ("DESCRIBE results", None),
        ("SUMMARIZE SELECT 1 AS a", 1),
        ("SELECT * FROM results", 0),
        ("SELECT * FROM raw.samples", 0),
    ],
)
def test_questions_are_answered(db: Path, sql: str, rows: int | None) -> None:
    answer = ask(db, sql)
    assert rows is None or len(answer.frame) == rows
    assert not answer.is_cut


def test_more_rows_than_shown_are_told(db: Path) -> None:
    answer = ask(db, "FROM range(20)", max_rows=7)
    assert (len(answer.frame), answer.is_cut) == (7, True)


def test_rows_beyond_the_limit_are_not_computed(db: Path) -> None:
    assert len(ask(db, "FROM range(100000000000)").frame) == 5000


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (a INT)",
        "INSERT INTO raw.events VALUES ('r', 0, 'x', NULL, '')",
        "DELETE FROM raw.runs",
        "UPDATE raw.runs SET title = 'x'",
        "DROP VIEW results",
        "ATTACH ':memory:' AS other",
        "DETACH liob",
        "COPY (SELECT 1) TO '/tmp/x.csv'",
        "EXPORT DATABASE '/tmp/x'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '100GB'",
        "RESET enable_external_access",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "CHECKPOINT",
        "EXPLAIN ANALYZE DELETE FROM raw.runs",
        "USE memory",
    ],
)
def test_anything_but_a_question_is_refused(db: Path, sql: str) -> None:
    with pytest.raises(UsageError, match="Only a SELECT"):
        ask(db, sql)


@pytest.mark.parametrize(
    "source",
    [
        "'{file}'",
        "read_csv('{file}')",
        "read_text('{file}')",
        "read_blob('{file}')",
        "read_parquet('{file}')",
        "read_json('{file}')",
        "glob('{folder}/*')",
        "sniff_csv('{file}')",
        "'https://example.invalid/x.csv'",
    ],
)
def test_no_other_file_and_no_address_is_read(db: Path, tmp_path: Path, source: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\ns3cret\n")
    with pytest.raises(UsageError) as refused:
        ask(db, f"SELECT * FROM {source.format(file=secret, folder=tmp_path)}")
    assert "s3cret" not in str(refused.value)


def test_nothing_tells_where_the_file_is(db: Path) -> None:
    for sql in (
        "SELECT * FROM duckdb_databases()",
        "SELECT * FROM pragma_database_list",
        "SELECT name, value FROM duckdb_settings()",
        "SELECT current_setting('allowed_paths') AS a, current_database() AS b",
        "SELECT nothing_like_it FROM results",
    ):
        try:
            told = ask(db, sql).frame.to_csv()
        except UsageError as error:
            told = str(error)
        assert str(db.parent) not in told, sql
        assert db.parent.name not in told, sql


def test_file_on_another_disk_is_asked_under_its_own_name(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr("os.link", refuse)
    assert len(ask(db, "FROM range(3)").frame) == 3


def test_configuration_cannot_be_changed_from_within_a_question(db: Path) -> None:
    with pytest.raises(UsageError):
        ask(db, "SELECT set_config('enable_external_access', 'true')")
    assert ask(db, "SELECT current_setting('enable_external_access') AS on_").frame["on_"].iloc[0] in {
        False,
        "false",
    }
    assert ask(db, "SELECT current_setting('lock_configuration') AS on_").frame["on_"].iloc[0] in {
        True,
        "true",
    }


def test_two_statements_are_refused(db: Path) -> None:
    with pytest.raises(UsageError, match="2 statements"):
        ask(db, "SELECT 1; DROP TABLE raw.runs")


@pytest.mark.parametrize("sql", ["", " ;  ", "-- nothing"])
def test_nothing_asked_is_told(db: Path, sql: str) -> None:
    with pytest.raises(UsageError, match="no query"):
        ask(db, sql)


def test_mistake_is_one_sentence(db: Path) -> None:
    with pytest.raises(UsageError) as told:
        ask(db, "SELECT nothing_like_it FROM results")
    assert "nothing_like_it" in str(told.value)
    assert "\n" not in str(told.value)
    assert "LINE 1" not in str(told.value)


def test_long_question_is_stopped(db: Path) -> None:
    began = time.monotonic()
    with pytest.raises(UsageError, match=r"stopped after 0\.3 seconds"):
        ask(db, "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b", timeout_s=0.3)
    assert time.monotonic() - began < 30


def test_memory_is_bounded(db: Path) -> None:
    with pytest.raises(UsageError, match=r"memory|stopped"):
        ask(db, "SELECT list(range) FROM range(2000000000)", timeout_s=60)


def test_awkward_results_become_a_plain_table(db: Path) -> None:
    answer = ask(
        db,
        "SELECT 1 AS a, 2 AS a, {'x': [1, 2]} AS nested, '\\x00\\xFF'::BLOB AS bytes, repeat('y', 5000) AS "
        "long, NULL AS nothing, DATE '2026-01-01' AS day",
    )
    row = answer.frame.iloc[0]
    assert list(answer.frame.columns)[:2] == ["a", "a_2"] or "a" in answer.frame.columns
    assert "1, 2" in row["nested"]
    assert isinstance(row["bytes"], str)
    assert row["long"].endswith("[3,000 more characters]")


def test_pages_can_read_while_a_question_is_asked(db: Path) -> None:
    with connection.read(db) as con:
        assert ask(db, "SELECT 1").frame.shape == (1, 1)
        assert con.execute("SELECT 1").fetchone() == (1,)


def test_asking_leaves_the_file_as_it_is(db: Path) -> None:
    before = db.read_bytes()
    ask(db, "FROM results")
    assert db.read_bytes() == before
    with duckdb.connect(str(db)) as con:  # and nothing holds it afterwards
        con.execute("SELECT 1")
