"""Rows into tables, many at a time, typed as the tables are."""

import re
from collections.abc import Iterable, Mapping, Sequence

import duckdb
import pyarrow as pa

SURROGATE = re.compile("[\ud800-\udfff]")

Columns = Mapping[str, Sequence[object]]

_ARROW_TYPES: Mapping[str, pa.DataType] = {
    "VARCHAR": pa.string(),
    "JSON": pa.string(),
    "BOOLEAN": pa.bool_(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "TIMESTAMP": pa.timestamp("us"),
    "VARCHAR[]": pa.list_(pa.string()),
}


def by_column(rows: Iterable[Mapping[str, object]]) -> Columns:
    """Rows that all have the same columns, turned."""
    rows = list(rows)
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def insert(
    con: duckdb.DuckDBPyConnection,
    table: str,
    columns: Columns,
    *,
    on_conflict: str = "",
    unless_same: Sequence[str] = (),
) -> int:
    """How many rows were added to `raw.table`.

    `on_conflict` is `OR IGNORE` or `OR REPLACE` for a table with a key; `unless_same` names the columns
    that tell whether a row of a table without one is there already.
    """
    if not columns:
        return 0
    where = ""
    if unless_same:
        same = " AND ".join(f"stored.{name} = incoming.{name}" for name in unless_same)
        where = f"WHERE NOT EXISTS (SELECT 1 FROM raw.{table} AS stored WHERE {same})"  # noqa: S608
    con.register("incoming", _arrow_table(con, table, columns))
    added = con.execute(
        f"INSERT {on_conflict} INTO raw.{table} BY NAME SELECT * FROM incoming {where}"  # noqa: S608
    ).fetchone()
    con.unregister("incoming")
    return int(added[0]) if added else 0


def update(con: duckdb.DuckDBPyConnection, table: str, columns: Columns, *, key: str) -> None:
    """Set the other columns of the rows of `raw.table` that have the same `key`."""
    if not columns:
        return
    con.register("incoming", _arrow_table(con, table, columns))
    assignments = ", ".join(f"{name} = incoming.{name}" for name in columns if name != key)
    con.execute(
        f"UPDATE raw.{table} SET {assignments} FROM incoming WHERE {table}.{key} = incoming.{key}"  # noqa: S608
    )
    con.unregister("incoming")


def _arrow_table(con: duckdb.DuckDBPyConnection, table: str, columns: Columns) -> pa.Table:
    """The columns with the types that they have in `raw.table`; NaN becomes NULL."""
    types = con.execute(
        "SELECT column_name, data_type FROM duckdb_columns() "
        "WHERE database_name = current_database() AND schema_name = 'raw' AND table_name = ?",
        [table],
    ).fetchall()
    return pa.table(
        {name: _array(columns[name], _ARROW_TYPES[kind]) for name, kind in types if name in columns}
    )


def _array(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, type=kind, from_pandas=True)
    except UnicodeEncodeError:
        # Model text and names of files may hold unpaired surrogates, which UTF-8 cannot.
        storable = [SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value for value in values]
        return pa.array(storable, type=kind, from_pandas=True)
