from pathlib import Path

import duckdb
import pytest

from liob_core.errors import FileError, MissingError, UsageError
from liob_core.store import connection, database
from liob_core.store.importing import import_file
from liob_core.store.journal import Journal
from liob_core.store.share import VIEWS, export_run
from tests.unit.store.builders import RUN_ID, make_judgement, make_run_folder, make_sample

OTHER_RUN = "20261130-130000-ffff"


@pytest.fixture
def exported(tmp_path: Path, empty_database: Path) -> Path:
    """What another machine exported: one finished run with a judgement."""
    run_dir = make_run_folder(tmp_path / "elsewhere")
    with Journal(run_dir) as journal:
        journal.append(make_judgement())
        journal.append_event("finished")
    theirs = tmp_path / "theirs.duckdb"
    theirs.write_bytes(empty_database.read_bytes())
    with database.write(theirs) as con:
        database.ingest(con, run_dir)
    return export_run(theirs, RUN_ID, "duckdb", tmp_path / "shared.duckdb")


def rows(path: Path, view: str) -> list[tuple]:
    with database.read(path) as con:
        return sorted(con.execute(f"SELECT * FROM {view}").fetchall(), key=repr)


def tamper(path: Path, *statements: str) -> None:
    with duckdb.connect(str(path)) as con:
        for statement in statements:
            con.execute(statement)


def replaced(table: str, column: str) -> str:
    """The table anew, without its constraints and with another column."""
    return f"CREATE OR REPLACE TABLE raw.{table} AS SELECT * REPLACE ({column}) FROM raw.{table}"


def test_everything_of_the_run_arrives_and_again_adds_nothing(db: Path, exported: Path) -> None:
    finished = []

    report = import_file(db, exported, finish=lambda _, run_id: finished.append(run_id))

    assert (report.added, report.n_samples, finished) == ((RUN_ID,), 2, [RUN_ID])
    for view in VIEWS:
        assert rows(db, view) == rows(exported, view), view
    assert rows(db, "judgements")
    again = import_file(db, exported)
    assert (again.added, again.updated, again.unchanged, again.n_samples) == ((), (), (RUN_ID,), 0)
    for view in VIEWS:
        assert rows(db, view) == rows(exported, view), view


def test_what_is_there_stays_and_machines_stay_apart(db: Path, exported: Path, tmp_path: Path) -> None:
    with database.write(db) as con:
        database.ingest(con, make_run_folder(tmp_path / "own", run_id=OTHER_RUN))
        con.execute("UPDATE raw.runs SET machine_id = 'mine'")
        con.execute("UPDATE raw.machines SET machine_id = 'mine'")
    own = [row for row in rows(db, "samples") if row[1] == OTHER_RUN]

    import_file(db, exported)

    assert [row for row in rows(db, "samples") if row[1] == OTHER_RUN] == own
    machines = {row[0] for row in rows(db, "machines")}
    assert len(machines) == 2
    with database.read(db) as con:
        by_run = dict(con.execute("SELECT run_id, machine_id FROM runs").fetchall())
    assert by_run[OTHER_RUN] == "mine"
    assert by_run[RUN_ID] in machines - {"mine"}


def test_a_run_that_went_on_is_brought_further(db: Path, tmp_path: Path, empty_database: Path) -> None:
    run_dir = make_run_folder(tmp_path / "elsewhere")
    theirs = tmp_path / "theirs.duckdb"
    theirs.write_bytes(empty_database.read_bytes())
    with database.write(theirs) as con:
        database.ingest(con, run_dir)
    import_file(db, export_run(theirs, RUN_ID, "duckdb", tmp_path / "early.duckdb"))
    with Journal(run_dir) as journal:
        journal.append(make_sample(7))
        journal.append_event("finished")
    with database.write(theirs) as con:
        database.ingest(con, run_dir)
    late = export_run(theirs, RUN_ID, "duckdb", tmp_path / "late.duckdb")

    report = import_file(db, late)

    assert (report.updated, report.n_samples) == ((RUN_ID,), 1)
    for view in VIEWS:
        assert rows(db, view) == rows(late, view), view
    assert import_file(db, tmp_path / "early.duckdb").unchanged == (RUN_ID,)
    assert rows(db, "samples") == rows(late, "samples")


def test_views_and_macros_of_the_file_are_never_used(db: Path, exported: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\nsecret\n")
    tamper(
        exported,
        f"CREATE OR REPLACE VIEW main.results AS SELECT * FROM read_csv('{secret}')",
        "CREATE MACRO isfinite(x) AS error('executed')",
        "CREATE MACRO max(x) AS error('executed')",
    )

    import_file(db, exported)

    assert "secret" not in repr(rows(db, "results"))
    assert rows(db, "results")


@pytest.mark.parametrize(
    ("statements", "sentence"),
    [
        (
            [
                "CREATE TABLE raw.hidden AS FROM raw.samples",
                "DROP TABLE raw.samples",
                "CREATE VIEW raw.samples AS FROM raw.hidden",
            ],
            "no export of LIOB",
        ),
        ([replaced("samples", "ttft_ms::VARCHAR AS ttft_ms")], "ttft_ms is VARCHAR, not DOUBLE"),
        (["UPDATE raw.samples SET ttft_ms = 'nan'"], "samples.ttft_ms"),
        (["UPDATE raw.samples SET outcome = 'won'"], "samples.outcome"),
        (["UPDATE raw.runs SET created_utc = 'infinity'"], "runs.created_utc"),
        (["UPDATE raw.variants SET token_read_bytes = 0"], "variants.token_read_bytes"),
        (["UPDATE raw.runs SET read_bytes_per_s = -1"], "runs.read_bytes_per_s"),
        (["UPDATE raw.runs SET cache_bytes = 0"], "runs.cache_bytes"),
        ([replaced("runs", "NULL::VARCHAR AS run_id")], "without an id"),
        ([replaced("runs", "NULL::VARCHAR AS engine")], "engine"),
        (["INSERT INTO raw.migrations VALUES (9999, 'later', now()::TIMESTAMP)"], "newer LIOB"),
        (["DROP TABLE raw.migrations"], "no export of LIOB"),
    ],
    ids=[
        "view",
        "type",
        "nan",
        "outcome",
        "time",
        "reads",
        "speed",
        "cache",
        "no id",
        "null",
        "newer",
        "foreign",
    ],
)
def test_hostile_file_is_refused_whole(
    db: Path, exported: Path, statements: list[str], sentence: str
) -> None:
    tamper(exported, *statements)

    with pytest.raises(FileError, match=sentence):
        import_file(db, exported)

    with connection.read(db) as con:
        for table in ("runs", "variants", "samples", "loads", "machines", "events"):
            assert con.execute(f"SELECT count(*) FROM raw.{table}").fetchone() == (0,), table


def test_rows_of_another_run_are_not_overwritten(db: Path, exported: Path, tmp_path: Path) -> None:
    with database.write(db) as con:
        database.ingest(con, make_run_folder(tmp_path / "own", run_id=OTHER_RUN))
    tamper(exported, f"UPDATE raw.samples SET sample_id = replace(sample_id, '{RUN_ID}', '{OTHER_RUN}')")
    before = rows(db, "samples")

    with pytest.raises(FileError, match="under another id"):
        import_file(db, exported)

    assert rows(db, "samples") == before


def test_another_run_of_the_same_id_is_refused(db: Path, exported: Path) -> None:
    import_file(db, exported)
    tamper(exported, "UPDATE raw.runs SET machine_id = 'elsewhere', journal_offset = 999999")

    with pytest.raises(FileError, match="another run than the one of that id"):
        import_file(db, exported)


@pytest.mark.parametrize("content", [b"", b"not a database", b"DUCK" * 5000, b'{"manifest": {}}'])
def test_what_is_no_database_is_one_sentence(db: Path, tmp_path: Path, content: bytes) -> None:
    wrong = tmp_path / "wrong.duckdb"
    wrong.write_bytes(content)

    with pytest.raises(FileError, match=r"wrong\.duckdb"):
        import_file(db, wrong)


def test_names_that_are_no_other_file(db: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no file"):
        import_file(db, tmp_path / "none.duckdb")
    with pytest.raises(UsageError, match="the database itself"):
        import_file(db, db)
