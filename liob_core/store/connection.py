"""Short connections to the database of record.

One process may write or many may read, so nobody holds a connection longer than one question takes.
"""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import psutil

from liob_core.errors import BusyError, FileError, LiobError, MissingError
from liob_core.store import schema

if TYPE_CHECKING:
    import pandas as pd  # DuckDB imports it for the first frame

DEFAULT_WAIT_S = 5.0
FOREIGN = "foreign_file"
_POLL_S = 0.05
_FOREIGN_MEMORY = "2GB"

# LIOB's own statements touch no other file and no network; so neither does SQL that a page passes on.
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "storage_compatibility_version": schema.STORAGE_VERSION,
}

_HELD = re.compile(
    r"could not set lock|used by another process|already open|already attached|different configuration", re.I
)
_HOLDER = re.compile(r"\(PID (\d+)\)")
_NEWER = re.compile(r"storage version|newer version of duckdb", re.I)
_DISK = re.compile(r"could not (?:write|sync|truncate|open)|no space left", re.I)
_DAMAGED = re.compile(
    r"not a valid duckdb|corrupt|checksum|could not read enough|deserializ|serialization|invalid unicode",
    re.I,
)


@contextmanager
def read(path: Path, *, wait_s: float = DEFAULT_WAIT_S) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection, for one question.

    Raises MissingError without a file, BusyError where another process writes for longer than
    `wait_s`, FileError where the file is not LIOB's or is damaged.
    """
    missing = MissingError(f"There are no results at {path} yet. Run a benchmark first.")
    if not path.exists():
        raise missing
    with _connection(path, wait_s=wait_s, read_only=True) as con:
        version = schema.current_version(con)
        if version == 0 and schema.is_empty(con):  # its first writer was killed before it had made a table
            raise missing
        _check_version(version, path)
        yield con


@contextmanager
def read_foreign(path: Path, *, shown: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a file that anyone may have made, attached read-only under the name in FOREIGN.

    Raises FileError, which names the file `shown`, where it is no DuckDB database or turns out to be damaged.
    What it holds is for the caller to check.
    """
    quoted, shown = str(path).replace("'", "''"), shown or path
    config = {**_CONFIG, "enable_external_access": True, "memory_limit": _FOREIGN_MEMORY}
    with duckdb.connect(":memory:", config=config) as con:
        try:
            con.execute(f"ATTACH '{quoted}' AS {FOREIGN} (READ_ONLY)")
            con.execute("SET enable_external_access = false")
            con.execute("SET lock_configuration = true")
        except duckdb.Error as error:
            if _HELD.search(str(error)):
                raise BusyError(f"The file {shown} is in use by {_holder(str(error))}.") from error
            if _NEWER.search(str(error)):
                raise _problem(shown, error) or error from error
            raise FileError(
                f"{shown} is no DuckDB database, or is damaged. Make it again: "
                "`python -m liob_core export RUN --format duckdb`."
            ) from error
        yield con


def current_name(con: duckdb.DuckDBPyConnection) -> str:
    """The name of the open database in DuckDB's catalog."""
    [(name,)] = con.execute("SELECT current_database()").fetchall()
    return str(name)


@contextmanager
def write(path: Path, *, wait_s: float = DEFAULT_WAIT_S) -> Iterator[duckdb.DuckDBPyConnection]:
    """A writing connection to a database of the newest schema, made where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _connection(path, wait_s=wait_s, read_only=False) as con:
        version = schema.current_version(con)
        if version > 0 or not schema.is_empty(con):
            _check_version(version, path)
        if version < schema.newest_version():
            with transaction(con):
                schema.migrate(con)
        yield con


def is_outdated(path: Path) -> bool:
    """Whether the database at `path` lacks migrations of this LIOB; `write` applies them."""
    try:
        with read(path) as con:
            return schema.current_version(con) < schema.newest_version()
    except MissingError:
        return False


def query(path: Path, sql: str, params: Sequence[object] = ()) -> "pd.DataFrame":
    """The answer to one question, over a connection of its own."""
    with read(path) as con:
        return con.execute(sql, params).df()


@contextmanager
def transaction(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Everything inside is stored, or nothing; within another transaction it is part of that one."""
    if _is_in_transaction(con):
        yield
        return
    con.execute("BEGIN")
    try:
        yield
    except BaseException:
        with suppress(duckdb.Error):  # the first error tells more than one about a dead transaction
            con.execute("ROLLBACK")
        raise
    con.execute("COMMIT")


@contextmanager
def _connection(path: Path, *, wait_s: float, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    con = _connect(path, wait_s=wait_s, read_only=read_only)
    try:
        yield con
    except duckdb.Error as error:
        problem = _problem(path, error)  # damage shows only where a damaged block is read
        if problem is None:
            raise
        raise problem from error
    finally:
        con.close()


def _connect(path: Path, *, wait_s: float, read_only: bool) -> duckdb.DuckDBPyConnection:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            config = {**_CONFIG, "lock_configuration": True} if read_only else _CONFIG
            return duckdb.connect(str(path), read_only=read_only, config=config)
        except duckdb.Error as error:
            if _HELD.search(str(error)) is None:
                raise _problem(path, error) or FileError(
                    f"The database {path} cannot be opened: {_first_line(error)}"
                ) from error
            if time.monotonic() >= deadline:
                raise BusyError(
                    f"The database {path} is in use by {_holder(str(error))}. "
                    "Close it there, or wait until it is done, and try again."
                ) from error
        time.sleep(_POLL_S)


def _problem(path: Path, error: duckdb.Error) -> LiobError | None:
    """What the user must know about a file that DuckDB could not work with; None for a bug of ours."""
    text = str(error)
    if _NEWER.search(text):
        return FileError(f"{path} was written by a newer DuckDB. Update it: pip install --upgrade duckdb.")
    if _DAMAGED.search(text):
        return FileError(
            f"{path} is not a DuckDB database or is damaged. Move it away: runs whose folders are kept "
            "are read in again."
        )
    # A commit that meets a full disk is a TransactionException, so the class alone does not tell.
    if isinstance(error, duckdb.IOException | duckdb.OutOfMemoryException) or _DISK.search(text):
        return FileError(
            f"The database {path} could not be used; what was stored before is kept. Check the disk's free "
            f"space and permissions. DuckDB says: {_first_line(error)}"
        )
    return None


def _is_in_transaction(con: duckdb.DuckDBPyConnection) -> bool:
    # Outside of one every statement is a transaction of its own and has another id.
    first, second = (con.execute("SELECT txid_current()").fetchone() for _ in range(2))
    return first == second


def _check_version(version: int, path: Path) -> None:
    if version == 0:
        raise FileError(f"{path} is a DuckDB database, but not LIOB's. Name another file.")
    newest = schema.newest_version()
    if version > newest:
        raise FileError(
            f"{path} is from a newer LIOB (schema {version}; this one knows {newest}). "
            "Update LIOB, or point LIOB_DATA_DIR at another folder."
        )


def _holder(message: str) -> str:
    """Who holds the file, in words, from DuckDB's message."""
    found = _HOLDER.search(message)
    if found is None:
        return "another part of this program" if "configuration" in message else "another program"
    pid = int(found[1])
    try:
        process = psutil.Process(pid)
        command = process.cmdline()
        is_liob = any("liob_core" in part or "streamlit_app" in part for part in command)
        name = "LIOB" if is_liob else process.name()
    except psutil.Error:
        return f"process {pid}"
    return f"{name} (process {pid})"


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
