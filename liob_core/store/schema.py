"""The tables and views of a LIOB database: numbered migrations, views, and a comment on everything.

Base tables live in schema `raw`; the views in `main` are the public interface.
"""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from liob_core.metrics import METRICS

# DuckDB 1.4 and every later version read and write this; newer defaults shut older shells out.
STORAGE_VERSION = "v1.2.0"

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDescription:
    """One column of a public view: its name, its type and what it means, unit included."""

    view: str
    column: str
    type_name: str
    comment: str


def newest_version() -> int:
    """The number of the last migration this LIOB knows."""
    return max(number for number, _, _ in _migrations())


def current_version(con: duckdb.DuckDBPyConnection) -> int:
    """The number up to which all migrations are applied to the open database; 0 where it is not LIOB's.

    A higher one does not count while one before it is missing: they may have been made side by side. Call it
    outside of a transaction: where there is no such table, the failure would end it.
    """
    try:
        rows = con.execute("SELECT number FROM raw.migrations").fetchall()
    except duckdb.CatalogException:
        return 0
    applied = {int(number) for (number,) in rows}
    known = [number for number, _, _ in _migrations()]
    newest = max(applied, default=0)
    if newest > known[-1]:
        return newest
    return max((n for n in known if applied.issuperset(known[: known.index(n) + 1])), default=0)


def is_empty(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether the open database holds no table and no view at all."""
    row = con.execute(
        "SELECT count(*) FROM information_schema.tables WHERE table_catalog = current_database()"
    ).fetchone()
    return row == (0,)


def migrate(con: duckdb.DuckDBPyConnection, *, with_comments: bool = True) -> None:
    """Apply every migration that is missing and make the views anew; call it in a transaction.

    A file that nobody reads but LIOB itself needs no comments, which take most of the time.
    """
    con.execute("CREATE SCHEMA IF NOT EXISTS raw")
    con.execute(
        "CREATE TABLE IF NOT EXISTS raw.migrations "
        "(number INTEGER PRIMARY KEY, name VARCHAR NOT NULL, applied_utc TIMESTAMP NOT NULL)"
    )
    applied = {number for (number,) in con.execute("SELECT number FROM raw.migrations").fetchall()}
    for number, name, path in _migrations():
        if number not in applied:
            con.execute(path.read_text(encoding="utf-8"))
            con.execute(
                "INSERT INTO raw.migrations VALUES (?, ?, ?)",
                [number, name, datetime.now(UTC).replace(tzinfo=None)],
            )
    con.execute((_FOLDER / "views.sql").read_text(encoding="utf-8"))
    if with_comments:
        _write_comments(con)


def describe(con: duckdb.DuckDBPyConnection) -> list[ColumnDescription]:
    """Every column of the public views in the order of the views' columns, with its comment."""
    rows = con.execute(
        "SELECT columns.table_name, columns.column_name, columns.data_type, columns.comment "
        "FROM duckdb_columns() AS columns "
        "WHERE columns.schema_name = 'main' AND columns.database_name = current_database() "
        "AND NOT columns.internal "
        "ORDER BY columns.table_name, columns.column_index"
    ).fetchall()
    return [
        ColumnDescription(view=view, column=column, type_name=type_name, comment=comment or "")
        for view, column, type_name, comment in rows
    ]


def describe_views(con: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """What each public view holds, one sentence each, by name."""
    rows = con.execute(
        "SELECT view_name, comment FROM duckdb_views() "
        "WHERE NOT internal AND schema_name = 'main' AND database_name = current_database() "
        "ORDER BY view_name"
    ).fetchall()
    return {name: comment or "" for name, comment in rows}


@functools.cache
def _migrations() -> list[tuple[int, str, Path]]:
    """Number, name and file of every migration, in order."""
    found = []
    for path in sorted((_FOLDER / "migrations").glob("[0-9]*.sql")):
        number, _, name = path.stem.partition("_")
        found.append((int(number), name, path))
    return found


def _write_comments(con: duckdb.DuckDBPyConnection) -> None:
    comments = tomllib.loads((_FOLDER / "comments.toml").read_text(encoding="utf-8"))
    relations = con.execute(
        "SELECT 'TABLE', schema_name, table_name FROM duckdb_tables() "
        "WHERE database_name = current_database() "
        "UNION ALL SELECT 'VIEW', schema_name, view_name FROM duckdb_views() "
        "WHERE NOT internal AND database_name = current_database()"
    ).fetchall()
    for kind, schema, name in relations:
        con.execute(f"COMMENT ON {kind} {schema}.{name} IS {_quote(comments['tables'][name])}")
    columns = con.execute(
        "SELECT schema_name, table_name, column_name FROM duckdb_columns() "
        "WHERE NOT internal AND database_name = current_database()"
    ).fetchall()
    for schema, table, column in columns:
        text = _column_comment(comments["columns"], table, column)
        con.execute(f'COMMENT ON COLUMN {schema}.{table}."{column}" IS {_quote(text)}')


def _column_comment(comments: Mapping[str, str], table: str, column: str) -> str:
    metric = METRICS.get(column)
    own = comments.get(f"{table}.{column}")
    if own is None and metric is not None:
        return f"{metric.label}, in {metric.unit}: {metric.formula}."
    return own or comments[column]


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
