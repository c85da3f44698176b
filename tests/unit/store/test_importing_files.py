"""Exports as JSON, CSV and Parquet come back whole, and whatever was done to them comes back not at all."""

import hashlib
import json
import os
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from liob_core.errors import FileError
from liob_core.store import connection, database, importing_zip
from liob_core.store.importing import import_file
from liob_core.store.journal import Journal
from liob_core.store.share import VIEWS, export_run
from tests.unit.store.builders import (
    RUN_ID,
    make_calibration,
    make_judgement,
    make_run_folder,
    make_sample,
)

ODD_TEXTS = (
    'quoted "text", comma\nnew line\r\nand \r alone, nul \x00, \u202e, \U0001f600',
    '=HYPERLINK("http://evil.example")',
    "'=already inert",
    "''+twice",
    "-1",
    "\t=tab",
    "",
    "NULL",
    "'plain apostrophe",
    "\uff1dfull width",
)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Path:
    """What another machine has: a run with judgements, calibrations and answers of every odd kind."""
    folder = tmp_path_factory.mktemp("elsewhere")
    run_dir = make_run_folder(folder)
    with Journal(run_dir) as journal:
        for number, text in enumerate(ODD_TEXTS, start=10):
            journal.append(make_sample(number, sample_id=f"{RUN_ID}/c{number}@1", response=text))
        journal.append(make_calibration())
        journal.append(make_judgement())
        journal.append_event("finished")
    theirs = folder / "theirs.duckdb"
    shutil.copy(empty_database, theirs)
    with database.write(theirs) as con:
        database.ingest(con, run_dir)
    return theirs


@pytest.fixture(scope="module")
def exports(full: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The run in each format, as a folder and as a ZIP where it is a folder."""
    folder = tmp_path_factory.mktemp("exports")
    made = {name: export_run(full, RUN_ID, name, folder / f"x-{name}") for name in ("json", "csv", "parquet")}
    for name in ("csv", "parquet"):
        made[f"{name}.zip"] = folder / f"{name}.zip"
        zip_folder(made[name], made[f"{name}.zip"])
    made["duckdb"] = export_run(full, RUN_ID, "duckdb", folder / "x.duckdb")
    return made


def zip_folder(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, f"liob-run/{path.name}")


def rows(path: Path, view: str) -> list[str]:
    with database.read(path) as con:
        return sorted(map(repr, con.execute(f"SELECT * FROM {view}").fetchall()))


def assert_empty(db: Path) -> None:
    with connection.read(db) as con:
        tables = con.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'raw'").fetchall()
        for (table,) in tables:
            if table != "migrations":
                assert con.execute(f"SELECT count(*) FROM raw.{table}").fetchone() == (0,), table


@pytest.mark.parametrize("name", ["json", "csv", "csv.zip", "parquet", "parquet.zip"])
def test_every_format_brings_the_run_back_and_again_adds_nothing(
    db: Path, exports: dict[str, Path], name: str
) -> None:
    report = import_file(db, exports[name])

    assert (report.added, report.n_samples) == ((RUN_ID,), 2 + len(ODD_TEXTS))
    for view in VIEWS:
        assert rows(db, view) == rows(exports["duckdb"], view), view
    with database.read(db) as con:
        found = con.execute("SELECT response FROM samples ORDER BY cell_id").fetchall()
    assert {text for (text,) in found} >= set(ODD_TEXTS)
    for again in (name, "duckdb"):
        assert import_file(db, exports[again]).unchanged == (RUN_ID,), again


def test_no_cell_of_an_exported_csv_begins_a_formula(exports: dict[str, Path]) -> None:
    with duckdb.connect() as con:
        for path in exports["csv"].glob("*.csv"):
            frame = con.read_csv(str(path), all_varchar=True, header=True)
            for name, kind in zip(
                frame.columns, con.execute(f"DESCRIBE FROM '{path}'").fetchall(), strict=True
            ):
                if kind[1] in {"BIGINT", "DOUBLE", "TIMESTAMP"}:
                    continue
                cells = [row[0] for row in frame.select(f'"{name}"').fetchall()]
                risky = [cell for cell in cells if cell and cell[0] in "=+-@\t\r\n\uff1d"]
                assert risky == [], (path.name, name)


def change_manifest(folder: Path, change: Callable[[dict], None]) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def sign(folder: Path) -> None:
    """Make the digests those of the files as they are now: whoever changes files can do that too."""
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.is_file() and path.name != "manifest.json"
    }
    change_manifest(folder, lambda manifest: manifest.update(files=found))


def edited(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


def rewrite(path: Path, old: str, new: str) -> None:
    path.write_bytes(edited(path.read_bytes().decode(), old, new).encode())


def parquet(folder: Path, view: str, select: str) -> None:
    path = folder / f"{view}.parquet"
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t AS FROM '{path}'")
        con.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")


CSV_ATTACKS = {
    "extra column": (lambda f: rewrite(f / "samples.csv", "sample_id,", "evil,"), "column 'evil' in samples"),
    "wrong type": (lambda f: rewrite(f / "loads.csv", ",900,", ",nine hundred,"), "damaged"),
    "endless": (lambda f: rewrite(f / "loads.csv", ",250.0,", ",inf,"), "loads.load_ms"),
    "path as id": (
        lambda f: [
            rewrite(path, RUN_ID, "../../evil")
            for path in (f / "runs.csv",)
        ],
        "runs.run_id",
    ),
    "path in a name": (
        lambda f: rewrite(f / "variants.csv", ",Q4_0.gguf,", ",../../x.gguf,"), "variants.file_name"
    ),
    "deep JSON": (
        lambda f: rewrite(f / "runs.csv", '"{""max', '"{""a"":' + "[" * 9000 + "]" * 9000 + ',""max'),
        "runs.sampling",
    ),
    "JSON of another shape": (
        lambda f: rewrite(f / "prompts.csv", '[{""role""', '[7,{""role""'), "prompts.messages"
    ),
    "no text": (lambda f: (f / "samples.csv").write_bytes(b"\xff\xfe\x00"), "nothing was merged"),
    "gigantic": (
        lambda f: rewrite(f / "variants.csv", ",Q4_0.gguf,", f",{'x' * 300},"), "variants.file_name"
    ),
}  # fmt: skip


@pytest.mark.parametrize("attack", CSV_ATTACKS)
def test_hostile_csv_is_refused_whole(
    db: Path, exports: dict[str, Path], tmp_path: Path, attack: str
) -> None:
    folder = Path(shutil.copytree(exports["csv"], tmp_path / "export"))
    change, sentence = CSV_ATTACKS[attack]
    change(folder)
    sign(folder)

    with pytest.raises(FileError, match=sentence) as refused:
        import_file(db, folder)

    assert "\n" not in str(refused.value)
    assert_empty(db)


@pytest.mark.parametrize(
    ("view", "select", "sentence"),
    [
        ("samples", "SELECT *, 1 AS evil FROM t", "column 'evil'"),
        (
            "samples",
            "SELECT * REPLACE (ttft_ms::VARCHAR AS ttft_ms) FROM t",
            "ttft_ms is VARCHAR, not DOUBLE",
        ),
        ("samples", "SELECT * REPLACE ({'a': 1} AS response) FROM t", "response is STRUCT"),
        (
            "samples",
            "SELECT * REPLACE (repeat('x', 10000001) AS response) FROM t LIMIT 1",
            "samples.response",
        ),
        ("variants", "SELECT t.* FROM t, range(5001)", "more variants than LIOB writes"),
        ("judgements", "SELECT * REPLACE ('mood' AS state) FROM t", "judgements.state"),
        ("machines", "SELECT * REPLACE ('[1]'::JSON AS gpus) FROM t", "machines.gpus"),
        ("runs", "SELECT * REPLACE (NULL::VARCHAR AS engine) FROM t", "engine"),
    ],
)
def test_hostile_parquet_is_refused_whole(
    db: Path, exports: dict[str, Path], tmp_path: Path, view: str, select: str, sentence: str
) -> None:
    folder = Path(shutil.copytree(exports["parquet"], tmp_path / "export"))
    parquet(folder, view, select)
    sign(folder)

    with pytest.raises(FileError, match=sentence):
        import_file(db, folder)

    assert_empty(db)


def test_parquet_that_unfolds_into_terabytes_is_refused_at_once(
    db: Path, exports: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(exports["parquet"], tmp_path / "export"))
    parquet(
        folder,
        "samples",
        "SELECT * REPLACE (repeat('x', 100000) AS response) FROM (FROM t LIMIT 1), range(3000)".replace(
            "* REPLACE", "* EXCLUDE (range) REPLACE"
        ),
    )
    sign(folder)
    assert (folder / "samples.parquet").stat().st_size < 1_000_000
    monkeypatch.setattr("liob_core.store.importing_checks.MOST_TEXT_BYTES", 200_000_000)

    with pytest.raises(FileError, match="more samples than LIOB writes"):
        import_file(db, folder)


@pytest.mark.parametrize("name", ["samples.parquet", "manifest.json"])
def test_truncated_file_is_refused(db: Path, exports: dict[str, Path], tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(exports["parquet"], tmp_path / "export"))
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match="cut off"):
        import_file(db, folder)
    if name != "manifest.json":
        sign(folder)
        with pytest.raises(FileError, match="damaged"):
            import_file(db, folder)
    assert_empty(db)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda m: m.update(schema_version=9999), "newer LIOB"),
        (lambda m: m.update(format="other"), "no export of LIOB"),
        (lambda m: m.update(files=["samples.csv"]), "names no files"),
        (lambda m: m.update(files={}), "no samples.csv"),
        (lambda m: m["files"].update({"loads.csv": "0"}), "changed since the export"),
        (lambda m: m.update(offsets={"x": ["1; DROP TABLE raw.runs", 2]}), "no offsets"),
    ],
)
def test_hostile_manifest_is_refused(
    db: Path, exports: dict[str, Path], tmp_path: Path, change: Callable[[dict], None], sentence: str
) -> None:
    folder = Path(shutil.copytree(exports["csv"], tmp_path / "export"))
    change_manifest(folder, change)
    with pytest.raises(FileError, match=sentence):
        import_file(db, folder)
    assert_empty(db)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links here")
def test_link_to_another_file_is_not_followed(db: Path, exports: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(exports["csv"], tmp_path / "export"))
    (folder / "loads.csv").unlink()
    (folder / "loads.csv").symlink_to(exports["csv"] / "loads.csv")
    with pytest.raises(FileError, match=r"lacks loads\.csv"):
        import_file(db, folder)
    assert_empty(db)


JSON_ATTACKS = {
    "not JSON": (lambda d: "{", "no JSON"),
    "cut off": (lambda d: json.dumps(d)[:-100], "no JSON"),
    "deep": (lambda d: '{"manifest": ' + "[" * 200_000, "no JSON"),
    "no manifest": (lambda d: json.dumps({"runs": []}), "no export of LIOB"),
    "extra column": (lambda d: d["runs"][0].update(evil=1), "column 'evil' in runs"),
    "text for number": (lambda d: d["loads"][0].update(load_ms="250"), "loads.load_ms holds str"),
    "bool for number": (lambda d: d["loads"][0].update(load_ms=True), "loads.load_ms holds bool"),
    "huge number": (lambda d: d["loads"][0].update(kv_bytes=10**30), "does not write"),
    "endless": (lambda d: edited(json.dumps(d), '"load_ms": 250.0', '"load_ms": 1e999'), "loads.load_ms"),
    "time": (lambda d: d["runs"][0].update(created_utc="yesterday"), "does not write"),
    "surrogate": (lambda d: d["runs"][0].update(run_id="\ud800"), "runs.run_id"),
}


@pytest.mark.parametrize("attack", JSON_ATTACKS)
def test_hostile_json_is_refused_whole(
    db: Path, exports: dict[str, Path], tmp_path: Path, attack: str
) -> None:
    change, sentence = JSON_ATTACKS[attack]
    document = json.loads(exports["json"].read_text())
    text = change(document)
    path = tmp_path / "x.json"
    path.write_text(text if isinstance(text, str) else json.dumps(document))

    with pytest.raises(FileError, match=sentence):
        import_file(db, path)

    assert_empty(db)


def archive(path: Path, entries: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return path


@pytest.mark.parametrize(
    "name",
    [
        "../samples.csv",
        "/etc/samples.csv",
        "a/b/samples.csv",
        "a\\..\\samples.csv",
        "samples.exe",
        "C:samples.csv",
    ],
)
def test_names_in_an_archive_lead_nowhere(db: Path, tmp_path: Path, name: str) -> None:
    path = archive(tmp_path / "x.zip", {name: b"evil", "run/manifest.json": b"{}"})
    with pytest.raises(FileError, match="no part of an export"):
        import_file(db, path)
    assert [file.name for file in tmp_path.iterdir() if file.suffix == ".csv"] == []


def test_one_file_twice_in_an_archive_is_refused(db: Path, tmp_path: Path) -> None:
    path = archive(tmp_path / "x.zip", {"a/samples.csv": b"1", "b/samples.csv": b"2"})
    with pytest.raises(FileError, match="no part of an export"):
        import_file(db, path)


def test_bomb_is_stopped_by_what_comes_out_of_it(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing_zip, "MOST_BYTES", 5 << 20)
    path = archive(tmp_path / "x.zip", {"manifest.json": b"{}", "samples.csv": bytes(64 << 20)})
    packed = bytearray(path.read_bytes())
    assert len(packed) < 100_000
    # It claims to be small, in both places where a ZIP says so.
    for mark, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        place = packed.rindex(mark) + at
        packed[place : place + 4] = struct.pack("<I", 10)
    path.write_bytes(packed)
    with pytest.raises(FileError, match=r"unfolds|damaged ZIP"):
        import_file(db, path)
    honest = archive(tmp_path / "y.zip", {"manifest.json": b"{}", "samples.csv": bytes(64 << 20)})
    with pytest.raises(FileError, match="unfolds"):
        import_file(db, honest)


def test_truncated_archive_is_refused(db: Path, exports: dict[str, Path], tmp_path: Path) -> None:
    whole = exports["parquet.zip"].read_bytes()
    path = tmp_path / "x.zip"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match="damaged ZIP"):
        import_file(db, path)


def test_what_is_no_export_is_one_sentence(db: Path, exports: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(FileError, match="one table of an export"):
        import_file(db, exports["parquet"] / "samples.parquet")
    with pytest.raises(FileError, match=r"no manifest\.json"):
        import_file(db, tmp_path)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FileError, match="neither an export of LIOB nor a table of the original study"):
        import_file(db, tmp_path / "x.csv")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="no plain file"):
        import_file(db, tmp_path / "pipe")


def test_texts_stay_here_where_they_are_not_wanted(full: Path, db: Path, tmp_path: Path) -> None:
    out = export_run(full, RUN_ID, "json", tmp_path / "x.json", with_texts=False)
    text = out.read_text()
    for secret in ("quoted", "1 + 1?", "It is right.", "2 is 2"):
        assert secret not in text, secret
    import_file(db, out)
    with database.read(db) as con:
        told = con.execute("SELECT left_out, n_samples FROM runs").fetchone()
        assert told == ("prompts and answers", 2 + len(ODD_TEXTS))
        kept = con.execute(
            "SELECT count(response), count(check_result), count(decode_tps) FROM samples"
        ).fetchone()
    assert kept == (0, 2 + len(ODD_TEXTS), 2 + len(ODD_TEXTS))
