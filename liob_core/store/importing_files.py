"""What `export` wrote as a folder of CSV or Parquet files, as a DuckDB file of LIOB's schema.

Only the views that an import needs are read, each from the file of its name, into columns of the types that
LIOB's own schema has; a column or a type that LIOB does not know ends it.
"""

import csv
import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from liob_core.errors import FileError
from liob_core.store.importing_checks import check_size
from liob_core.store.importing_json import parse_json
from liob_core.store.importing_views import (
    TABLES,
    check_columns,
    check_manifest,
    new_tables,
    set_offsets,
    table_columns,
    view_types,
)
from liob_core.store.share import MANIFEST_FILE
from liob_core.store.spreadsheet import as_written

_MOST_BYTES = 2 * 2**30
_LONGEST_CSV_LINE = 64 * 2**20
_LONGEST_HEADER = 100_000
# What a table needs and its view does not show; `set_offsets` puts the real ones in.
_FILLED = {"runs": "0 AS journal_offset, 0 AS readings_offset, "}


def stage_folder(source: Path, folder: Path, staged: Path, tables: Path) -> None:
    """Make `staged` from an export's folder; `tables` is a new folder for copies of its files.

    Copies have names of LIOB's own and cannot change while they are read.
    """
    manifest = _read_manifest(source, folder)
    suffix = _copy_files(source, folder, manifest["files"], tables)
    with new_tables(staged) as con:
        types, own = view_types(con), table_columns(con)
        con.execute(f"SET allowed_directories = ['{_quoted(tables)}/']")
        con.execute("SET enable_external_access = false")
        con.execute("SET lock_configuration = true")
        for view, table in TABLES.items():
            path = tables / f"{view}.{suffix}"
            if not path.exists():
                continue
            try:
                relation, values = _read(con, path, types[view], source)
                kept = [name for name in values if name in own[table]]
                check_size(con, relation, view, {name: types[view][name] for name in kept}, source)
                chosen = _FILLED.get(view, "") + ", ".join(f"{values[name]} AS {name}" for name in kept)
                con.execute(f"INSERT INTO raw.{table} BY NAME SELECT {chosen} FROM {relation}")  # noqa: S608
            except (duckdb.IOException, duckdb.InvalidInputException, duckdb.ConversionException) as error:
                raise FileError(
                    f"{source}: {view}.{suffix} is damaged or is not what LIOB writes; nothing was merged."
                ) from error
        set_offsets(con, manifest, source)


def _read_manifest(source: Path, folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST_FILE
    if not path.is_file() or path.is_symlink() or path.stat().st_size > 1_000_000:
        raise FileError(f"{source} has no {MANIFEST_FILE}, so it is no export of LIOB. Name another one.")
    manifest = check_manifest(parse_json(path.read_bytes(), source), source)
    if not isinstance(manifest.get("files"), dict):
        raise FileError(f"{source}: its {MANIFEST_FILE} names no files, so nothing was merged.")
    return manifest


def _copy_files(source: Path, folder: Path, digests: Mapping[str, Any], tables: Path) -> str:
    """The ending of the files, once copies of them lie in `tables`; each is the one its manifest means."""
    tables.mkdir()
    suffix = next((end for end in ("parquet", "csv") if f"samples.{end}" in digests), None)
    if suffix is None:
        raise FileError(f"{source} holds no samples.csv and no samples.parquet; nothing was merged.")
    left = _MOST_BYTES
    for view in TABLES:
        name = f"{view}.{suffix}"
        if name not in digests:
            continue
        path = folder / name
        if not path.is_file() or path.is_symlink():
            raise FileError(f"{source} lacks {name}, which its manifest names; nothing was merged.")
        left -= path.stat().st_size
        if left < 0:
            raise FileError(f"{source} is larger than LIOB writes; nothing was merged.")
        shutil.copyfile(path, tables / name)
        with (tables / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != digests[name]:
            raise FileError(f"{source}: {name} was cut off or changed since the export; nothing was merged.")
    return suffix


def _read(
    con: duckdb.DuckDBPyConnection, path: Path, types: Mapping[str, str], source: Path
) -> tuple[str, dict[str, str]]:
    """One file as a relation, and what reads each of its columns; its columns and types were looked at."""
    view = path.stem
    if path.suffix == ".parquet":
        relation = f"read_parquet('{_quoted(path)}')"
        found = {name: kind for name, kind, *_ in con.execute(f"DESCRIBE FROM {relation}").fetchall()}
        check_columns(view, found, types, source)
        for name, kind in found.items():
            if kind != types[name] and {kind, types[name]} != {"VARCHAR", "JSON"}:
                raise FileError(f"{source} is no export of LIOB: {view}.{name} is {kind}, not {types[name]}.")
        return relation, {name: name for name in found}
    header = _csv_header(path, source)
    check_columns(view, header, types, source)
    columns = ", ".join(f"{name}: 'VARCHAR'" for name in header)
    relation = (
        f"read_csv('{_quoted(path)}', auto_detect = false, header = true, delim = ',', quote = '\"', "
        "escape = '\"', nullstr = '', allow_quoted_nulls = false, strict_mode = true, "
        f"max_line_size = {_LONGEST_CSV_LINE}, buffer_size = {2 * _LONGEST_CSV_LINE}, "
        f"columns = {{{columns}}})"
    )
    return relation, {name: _from_csv(name, types[name]) for name in header}


def _from_csv(name: str, kind: str) -> str:
    """The expression that reads a CSV cell as `kind`; a number with a fraction is no whole one."""
    if kind in {"VARCHAR", "JSON"}:
        return as_written(name) if kind == "VARCHAR" else name
    if kind in {"INTEGER", "BIGINT"}:
        is_whole = f"{name} IS NULL OR regexp_full_match({name}, '-?[0-9]+')"
        return f"if({is_whole}, {name}, error('no whole number'))::{kind}"
    return f"{name}::{kind}"


def _csv_header(path: Path, source: Path) -> dict[str, str]:
    with path.open(encoding="utf-8", newline="", errors="replace") as file:
        names = next(csv.reader([file.readline(_LONGEST_HEADER)]), [])
    if len(set(names)) != len(names):
        raise FileError(f"{source}: {path.name} names a column twice; nothing was merged.")
    return dict.fromkeys(names, "VARCHAR")


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
