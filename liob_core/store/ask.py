"""One question in SQL from a person: read only, one statement, bounded in time, memory and rows.

The connection is read-only, touches no other file and no network, and its configuration is locked; so
whatever is asked, nothing is written, attached, installed or read from elsewhere.
"""

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pandas as pd

from liob_core.errors import UsageError
from liob_core.store import connection

MAX_ROWS = 5_000
TIMEOUT_S = 10.0
_MEMORY = "1GB"
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": _MEMORY,
    "temp_directory": "",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
# A browser must not choke on one answer of a model.
_LONGEST_CELL = 2_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question gave: at most MAX_ROWS rows, whether there are more, and the seconds it took."""

    frame: pd.DataFrame
    is_cut: bool
    seconds: float


def ask(db: Path, sql: str, *, timeout_s: float = TIMEOUT_S, max_rows: int = MAX_ROWS) -> Answer:
    """The answer to one SELECT; raises UsageError in one sentence where it is none or takes too long."""
    statement = _single_select(sql)
    began_s = time.monotonic()
    with _open(db) as con:
        timer = threading.Timer(timeout_s, con.interrupt)
        timer.daemon = True
        timer.start()
        try:
            # One row more tells whether there are more; the rest is never computed where that can be.
            frame = con.sql(statement).limit(max_rows + 1).df()
        except duckdb.InterruptException as error:
            raise UsageError(
                f"The query was stopped after {timeout_s:g} seconds: ask for less, or use the DuckDB shell."
            ) from error
        except duckdb.OutOfMemoryException as error:
            raise UsageError(f"The query needs more than {_MEMORY} of memory: ask for less.") from error
        except duckdb.Error as error:
            raise UsageError(_sentence(error)) from error
        finally:
            timer.cancel()
    return Answer(_plain(frame.head(max_rows)), len(frame) > max_rows, time.monotonic() - began_s)


@contextmanager
def _open(db: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with limits of its own; one to the file itself would have to share those of the pages."""
    with (
        connection.read(db),  # waits for a writer, and makes sure that the file is LIOB's
        tempfile.TemporaryDirectory(prefix="liob-") as folder,
    ):
        quoted = str(_neutral(db, Path(folder))).replace("'", "''")
        with duckdb.connect(":memory:", config=_CONFIG) as con:
            con.execute(f"ATTACH '{quoted}' AS liob (READ_ONLY)")
            con.execute("USE liob")
            con.execute("SET enable_external_access = false")
            con.execute("SET lock_configuration = true")
            yield con


def _neutral(db: Path, folder: Path) -> Path:
    """The same file under a name that tells nothing of the server, as questions about DuckDB itself show it.

    Where no such link can be made it is the file's own name.
    """
    alias = folder / "liob.duckdb"
    for end in ("", ".wal"):  # what a killed writer left in the log belongs to the file
        source = Path(f"{db.resolve()}{end}")
        if not source.exists():
            continue
        try:
            os.link(source, f"{alias}{end}")
        except OSError:  # the folder is on another disk; a symbolic link would be followed and told
            return db
    return alias


def _single_select(sql: str) -> str:
    """The one statement in `sql` without what ends it, where it is a question."""
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise UsageError(_sentence(error)) from error
    if not statements:
        raise UsageError("There is no query: write a SELECT.")
    if len(statements) > 1:
        raise UsageError(f"These are {len(statements)} statements: ask one at a time.")
    if statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError(
            "Only a SELECT can be asked here (FROM, WITH, DESCRIBE and SUMMARIZE are SELECTs too)."
        )
    text = str(statements[0].query)
    while True:  # what stands behind the last semicolon ends the statement if it is no part of one
        head, semicolon, rest = text.rpartition(";")
        if not semicolon or not _is_nothing(rest):
            return text
        text = head


def _is_nothing(sql: str) -> bool:
    """Whether there is no statement in `sql`: spaces and comments alone."""
    try:
        return not duckdb.extract_statements(sql)
    except duckdb.Error:
        return False


def _sentence(error: duckdb.Error) -> str:
    """DuckDB's message in one line, without its drawing of the place."""
    lines = [line.strip() for line in str(error).splitlines()]
    kept = [line for line in lines if line and not line.startswith(("LINE ", "^"))]
    return " ".join(kept)[:600] or "The query could not be answered."


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with nested values and bytes as text, and with long texts cut."""
    columns = {}
    for place, name in enumerate(_unique(frame.columns)):
        column = frame.iloc[:, place]
        columns[name] = column if column.dtype.kind in "biufM" else column.map(_cell)
    return pd.DataFrame(columns)


def _unique(names: pd.Index) -> list[str]:
    """Column names that differ; a second `n` becomes `n_2`."""
    seen: dict[str, int] = {}
    unique = []
    for name in map(str, names):
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unique


def _cell(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else str(value)
    if len(text) <= _LONGEST_CELL:
        return text
    return f"{text[:_LONGEST_CELL]}… [{len(text) - _LONGEST_CELL:,} more characters]"
