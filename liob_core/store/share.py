"""One run as files that can leave the machine: no host name, user name or path in them.

Every format is made from one small database that holds the run, scrubbed; `duckdb` is that database.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from liob_core import __version__
from liob_core.errors import FileError, MissingError, UsageError
from liob_core.quality.judge.people import PEOPLE
from liob_core.store import connection, schema
from liob_core.store.journal import write_atomic
from liob_core.store.scrub import scrub_run
from liob_core.store.spreadsheet import as_inert
from liob_core.types import JsonValue

FORMAT_VERSION = 1
MANIFEST_FILE = "manifest.json"
VIEWS = (
    *("runs", "results", "paired_deltas", "variants", "loads", "samples", "prompts", "events"),
    *("judgements", "calibrations", "closeness", "flips", "seeds", "machines", "readings", "gpu_readings"),
    "energy",
)
_TABLES = (
    *("runs", "variants", "prompts", "loads", "samples", "readings", "gpu_readings", "events"),
    *("summary", "paired_deltas", "seeds", "judgements", "calibrations", "fidelities", "energy"),
)


# What prompts, answers and judges' replies are written into.
_TEXTS: Mapping[str, tuple[str, ...]] = {
    "samples": ("prompt", "response", "thinking", "exact_text", "check_extracted", "check_reason"),
    "prompts": ("messages", "prompt", "check_params", "rubric", "reference_answer"),
    "judgements": ("reason", "raw_reply", "raw_reply_second", "earlier_replies"),
}
LEFT_OUT = "prompts and answers"


def export_run(
    db: Path, run_id: str, format: str = "json", out: Path | None = None, *, with_texts: bool = True
) -> Path:
    """The path of the exported run: a file for json and duckdb, a folder with one file a view otherwise.

    Without `with_texts` no prompt, answer or judge's reply is in it; `runs.left_out` then says so.
    """
    writer = _WRITERS.get(format)
    if writer is None:
        raise UsageError(f"There is no export format {format!r}. Choose one of: {', '.join(_WRITERS)}.")
    if out is None:
        out = Path(f"liob-{run_id}.{format}" if format in {"json", "duckdb"} else f"liob-{run_id}-{format}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=".liob-export-") as folder:
            shared = Path(folder) / "run.duckdb"
            _copy_run(db, run_id, shared, with_texts=with_texts)
            writer(shared, out)
    except OSError as error:
        raise FileError(f"The export could not be written to {out}: {error.strerror or error}.") from error
    return out


def read_manifest(con: duckdb.DuckDBPyConnection) -> dict[str, JsonValue]:
    """What an exported database is: format, LIOB and schema versions, when it was made, its runs."""
    row = con.execute(
        "SELECT format_version, liob_version, schema_version, exported_utc, run_ids FROM raw.manifest"
    ).fetchone()
    if row is None:
        return {}
    format_version, liob_version, schema_version, exported_utc, run_ids = row
    offsets = con.execute("SELECT run_id, journal_offset, readings_offset FROM raw.runs").fetchall()
    return {
        "format": "liob-run",
        "format_version": format_version,
        "liob_version": liob_version,
        "schema_version": schema_version,
        "exported_utc": _plain(exported_utc),
        "run_ids": run_ids,
        # how far the run's own files were read; tells which of two exports of a run is the later one
        "offsets": {run_id: [journal, readings] for run_id, journal, readings in offsets},
    }


def _copy_run(db: Path, run_id: str, target: Path, *, with_texts: bool) -> None:
    """Make a database with that one run, scrubbed."""
    with connection.read(db) as source, connection.write(target) as con, connection.transaction(con):
        wanted = "SELECT machine_id, title FROM main.runs WHERE run_id = ?"
        found = source.execute(wanted, [run_id]).fetchall()
        if not found:
            raise MissingError(f"There is no run {run_id} in {db}. `python -m liob_core list` names them.")
        for table in _TABLES:
            _copy_rows(source, con, table, "run_id", run_id)
        _copy_rows(source, con, "machines", "machine_id", found[0][0])
        con.execute("UPDATE raw.runs SET title = ?", [found[0][1]])  # what it was renamed to; notes stay
        scrub_run(con)
        if not with_texts:
            _leave_texts_out(con)
        con.execute(
            "INSERT INTO raw.manifest VALUES (?, ?, ?, ?, ?)",
            [
                *(FORMAT_VERSION, __version__, schema.newest_version()),
                *(datetime.now(UTC).replace(tzinfo=None, microsecond=0), [run_id]),
            ],
        )


def _leave_texts_out(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("UPDATE raw.runs SET left_out = ?", [LEFT_OUT])
    for table, columns in _TEXTS.items():
        # What people vote is kept beside their names for the two answers, and quotes neither.
        kept = f"WHERE judge_key <> '{PEOPLE}'" if table == "judgements" else ""
        values = ", ".join(f"{column} = NULL" for column in columns)
        con.execute(f"UPDATE raw.{table} SET {values} {kept}")  # noqa: S608


def _copy_rows(
    source: duckdb.DuckDBPyConnection, target: duckdb.DuckDBPyConnection, table: str, key: str, value: object
) -> None:
    rows = source.sql(f"SELECT * FROM raw.{table} WHERE {key} = ?", params=[value]).to_arrow_table()  # noqa: S608
    target.register("incoming", rows)
    target.execute(f"INSERT INTO raw.{table} BY NAME SELECT * FROM incoming")  # noqa: S608
    target.unregister("incoming")


def _write_database(shared: Path, out: Path) -> None:
    if out.is_dir():
        raise UsageError(f"{out} is a folder. Name a file for the database.")
    shared.replace(out)


def _write_json(shared: Path, out: Path) -> None:
    if out.is_dir():
        raise UsageError(f"{out} is a folder. Name a file for the JSON document.")
    with duckdb.connect(str(shared), read_only=True) as con:
        document = {"manifest": read_manifest(con), **{view: _records(con, view) for view in VIEWS}}
    write_atomic(out, json.dumps(document, indent=1, allow_nan=False))


def _write_csv(shared: Path, out: Path) -> None:
    _write_folder(shared, out, "csv", "FORMAT csv, HEADER")


def _write_parquet(shared: Path, out: Path) -> None:
    _write_folder(shared, out, "parquet", "FORMAT parquet, COMPRESSION zstd")


def _write_folder(shared: Path, out: Path, suffix: str, options: str) -> None:
    """One file a view and the manifest with their digests; an earlier export there is replaced."""
    if out.exists() and not (out / MANIFEST_FILE).is_file() and not (out.is_dir() and not any(out.iterdir())):
        raise UsageError(f"{out} exists and is no earlier export. Name an empty or a new folder.")
    folder = shared.parent / "export"
    folder.mkdir()
    with duckdb.connect(str(shared), read_only=True) as con:
        manifest = read_manifest(con)
        for view in VIEWS:
            target = str(folder / f"{view}.{suffix}").replace("'", "''")
            chosen = _inert_columns(con, view) if suffix == "csv" else "*"
            con.execute(f"COPY (SELECT {chosen} FROM main.{view}) TO '{target}' ({options})")  # noqa: S608
    manifest["files"] = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())
    }
    write_atomic(folder / MANIFEST_FILE, json.dumps(manifest, indent=1))
    if out.exists():
        shutil.rmtree(out)
    folder.replace(out)


def _inert_columns(con: duckdb.DuckDBPyConnection, view: str) -> str:
    """The view's columns for a spreadsheet, in which no text begins a formula."""
    columns = con.execute(f"DESCRIBE main.{view}").fetchall()
    return ", ".join(
        f"{as_inert(name)} AS {name}" if kind == "VARCHAR" else name for name, kind, *_ in columns
    )


def _records(con: duckdb.DuckDBPyConnection, view: str) -> list[dict[str, JsonValue]]:
    result = con.execute(f"SELECT * FROM main.{view}")  # noqa: S608
    columns = [(column[0], str(column[1]) == "JSON") for column in result.description or []]
    return [
        {
            name: json.loads(value) if is_json and value is not None else _plain(value)
            for (name, is_json), value in zip(columns, row, strict=True)
        }
        for row in result.fetchall()
    ]


def _plain(value: object) -> JsonValue:
    return value.isoformat() + "Z" if isinstance(value, datetime) else value


_WRITERS: Mapping[str, Callable[[Path, Path], None]] = {
    "json": _write_json,
    "csv": _write_csv,
    "parquet": _write_parquet,
    "duckdb": _write_database,
}
