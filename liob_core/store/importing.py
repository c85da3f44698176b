"""Runs of other machines into the database of record, from files that `export` made or the study published.

Nothing in such a file is trusted. Whatever its format, it becomes one DuckDB file of LIOB's own schema, which
is attached read-only and without a way to other files; only its plain tables are read, column by column, and
what follows from samples is computed anew. A file is merged whole or not at all, and merging it again changes
nothing.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from liob_core.errors import FileError, MissingError, UsageError
from liob_core.store import connection
from liob_core.store.importing_files import stage_folder
from liob_core.store.importing_json import read_json, stage_json
from liob_core.store.importing_merge import Finish, ImportReport, Merge, plain_tables
from liob_core.store.importing_study import stage_study, study_from_csv, study_from_records
from liob_core.store.importing_zip import unpack

# What foreign values provoke: the database's refusals, and arithmetic that no real figures lead to.
_BAD_VALUES = (
    *(duckdb.DataError, duckdb.IntegrityError, duckdb.InvalidInputException, duckdb.OutOfMemoryException),
    *(ArithmeticError, ValueError, TypeError),
)
_WANTED = "Name what `export` made (a DuckDB or JSON file, a folder or a ZIP of CSV or Parquet files)"

_LONGEST_MACHINE = 200


def import_file(
    db: Path, source: Path, *, finish: Finish | None = None, machine: str | None = None
) -> ImportReport:
    """What was merged from `source`; `finish(con, run_id)` of each run belongs to the same transaction.

    `machine` names where a file that does not tell it was made. Raises FileError where the file is no export
    of LIOB and no results of the original study, or does not fit what is here.
    """
    if not source.exists():
        raise MissingError(f"There is no file {source}. {_WANTED}.")
    if machine is not None and not (machine.isprintable() and 0 < len(machine.strip()) <= _LONGEST_MACHINE):
        raise UsageError(f"Name the machine in 1 to {_LONGEST_MACHINE} printable characters.")
    if db.exists() and source.samefile(db):
        raise UsageError(f"{source} is the database itself. Name a file that `export` made elsewhere.")
    with (
        _as_database(source, machine) as path,
        connection.read_foreign(path, shown=source) as foreign,
    ):
        shared = plain_tables(foreign, source)
        with connection.write(db) as con, connection.transaction(con):
            merge = Merge(source, foreign, con, shared)
            try:
                return merge.run(finish)
            except _BAD_VALUES as error:
                raise FileError(
                    f"{source} holds values that LIOB does not write, so nothing of it was merged: "
                    f"{str(error).splitlines()[0]}"
                ) from error


@contextmanager
def _as_database(source: Path, machine: str | None) -> Iterator[Path]:
    """A DuckDB file with what `source` holds: itself, or one that lasts until the block ends."""
    kind = _kind(source)
    if kind == "duckdb":
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="liob-import-") as folder:
        staged = Path(folder) / "staged.duckdb"
        try:
            if kind == "text":
                _stage_text(source, staged, machine)
            else:
                unpacked = unpack(source, Path(folder) / "unpacked") if kind == "zip" else source
                stage_folder(source, unpacked, staged, Path(folder) / "tables")
        except _BAD_VALUES as error:
            raise FileError(
                f"{source} holds values that LIOB does not write, so nothing of it was merged: "
                f"{str(error).splitlines()[0]}"
            ) from error
        yield staged


def _stage_text(source: Path, staged: Path, machine: str | None) -> None:
    """Make `staged` from JSON, or from the original study's CSV."""
    with source.open("rb") as file:
        head = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head.startswith((b"{", b"[")):
        stage_study(study_from_csv(source), source, staged, machine)
        return
    document = read_json(source)
    if isinstance(document, dict):
        stage_json(document, source, staged)
    else:
        stage_study(study_from_records(document, source), source, staged, machine)


def _kind(source: Path) -> str:
    """What a source is by its first bytes, whatever its name says: folder, duckdb, zip or text."""
    if source.is_dir():
        return "folder"
    if not source.is_file():
        raise FileError(f"{source} is no plain file. {_WANTED}.")
    try:
        with source.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise FileError(f"{source} cannot be read: {error.strerror or error}.") from error
    if head[8:12] == b"DUCK":
        return "duckdb"
    if head.startswith(b"PK\x03\x04"):
        return "zip"
    if head.startswith(b"PAR1"):
        raise FileError(f"{source} is one table of an export. Name the folder or the ZIP it came in.")
    if head and b"\0" not in head:
        return "text"
    raise FileError(f"{source} is no DuckDB database and no other export of LIOB, or is damaged. {_WANTED}.")
