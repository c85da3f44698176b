"""Runs of other machines into the database of record, from files that `export` made.

Nothing in such a file is trusted. It is attached read-only and without a way to other files; only its plain
tables are read, column by column, into tables and views of LIOB's own, and what follows from samples is
computed anew. A file is merged whole or not at all, and merging it again changes nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from liob_core.errors import FileError, MissingError, UsageError
from liob_core.store import connection, schema
from liob_core.types import CheckResult, Outcome

# `finish` computes the first two anew; the others tell of a file and of its owner, not of a run.
_NOT_COPIED = frozenset({"summary", "paired_deltas", "manifest", "migrations", "run_edits"})
_NEEDED = frozenset({"migrations", "machines", "runs", "variants", "samples"})
_WORDS: Mapping[tuple[str, str], Iterable[str]] = {
    ("samples", "outcome"): tuple(Outcome),
    ("samples", "check_result"): tuple(CheckResult),
}
# What foreign values provoke: the database's refusals, and arithmetic that no real figures lead to.
_BAD_VALUES = (
    *(duckdb.DataError, duckdb.IntegrityError, duckdb.InvalidInputException),
    *(ArithmeticError, ValueError, TypeError),
)

_COLUMNS = """
    SELECT columns.table_name, columns.column_name, columns.data_type
    FROM duckdb_columns() AS columns
    JOIN duckdb_tables() AS tables USING (database_name, schema_name, table_name)
    WHERE database_name = ? AND schema_name = 'raw' AND tables.sql NOT ILIKE '%GENERATED%'
    ORDER BY columns.column_index
"""
_KEYS = """
    SELECT table_name, constraint_column_names FROM duckdb_constraints()
    WHERE database_name = current_database() AND schema_name = 'raw' AND constraint_type = 'PRIMARY KEY'
"""
_RUNS = "SELECT run_id, created_utc, engine, machine_id, journal_offset, readings_offset FROM {}raw.runs"

Types = dict[str, dict[str, str]]  # table -> column -> type


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The ids of the runs that a file added, brought further or held as they are here; new samples."""

    added: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: tuple[str, ...]
    n_samples: int


def import_file(
    db: Path, source: Path, *, finish: Callable[[duckdb.DuckDBPyConnection, str], None] | None = None
) -> ImportReport:
    """What was merged from `source`; `finish(con, run_id)` of each run belongs to the same transaction.

    Raises FileError where the file is not an export of LIOB or does not fit what is here.
    """
    if not source.exists():
        raise MissingError(f"There is no file {source}. Name a file that `export --format duckdb` made.")
    if db.exists() and source.samefile(db):
        raise UsageError(f"{source} is the database itself. Name a file that `export` made elsewhere.")
    with connection.read_foreign(source) as foreign:
        shared = _plain_tables(foreign, source)
        with connection.write(db) as con, connection.transaction(con):
            merge = _Merge(source, foreign, con, shared)
            try:
                return merge.run(finish)
            except _BAD_VALUES as error:
                raise FileError(
                    f"{source} holds values that LIOB does not write, so nothing of it was merged: "
                    f"{str(error).splitlines()[0]}"
                ) from error


def _plain_tables(foreign: duckdb.DuckDBPyConnection, source: Path) -> Types:
    """The tables of the file by what DuckDB's catalog says; views and computed columns do not count."""
    tables = _types(foreign, connection.FOREIGN)
    if _NEEDED - tables.keys():
        raise FileError(f"{source} is a DuckDB database, but no export of LIOB. Name another file.")
    [(version,)] = foreign.execute(f"SELECT max(number) FROM {connection.FOREIGN}.raw.migrations").fetchall()  # noqa: S608
    if not isinstance(version, int) or version > schema.newest_version():
        raise FileError(
            f"{source} is from a newer LIOB (schema {version}; this one knows {schema.newest_version()}). "
            "Update LIOB to import it."
        )
    return tables


def _types(con: duckdb.DuckDBPyConnection, database: str) -> Types:
    found: Types = {}
    for table, column, type_name in con.execute(_COLUMNS, [database]).fetchall():
        found.setdefault(table, {})[column] = type_name
    return found


class _Merge:
    """One file on its way into the open database, within the transaction that its owner began."""

    def __init__(
        self,
        source: Path,
        foreign: duckdb.DuckDBPyConnection,
        con: duckdb.DuckDBPyConnection,
        shared: Types,
    ) -> None:
        self._source, self._foreign, self._con = source, foreign, con
        own = _types(con, connection.current_name(con))
        self._types = {
            table: self._common(table, columns, shared[table])
            for table, columns in own.items()
            if table in shared and table not in _NOT_COPIED
        }
        self._keys: dict[str, list[str]] = dict(con.execute(_KEYS).fetchall())

    def run(self, finish: Callable[[duckdb.DuckDBPyConnection, str], None] | None) -> ImportReport:
        """What was merged."""
        stored = {row[0]: row[1:] for row in self._con.execute(_RUNS.format("")).fetchall()}
        incoming = self._foreign.execute(_RUNS.format(f"{connection.FOREIGN}.")).fetchall()
        added, updated, unchanged = [], [], []
        n_before = self._count_samples()
        for run_id, *facts in incoming:
            if not isinstance(run_id, str):
                raise FileError(f"{self._source} holds a run without an id, so nothing of it was merged.")
            kept = stored.get(run_id)
            if kept is None:
                added.append(run_id)
            elif any(
                mine is not None and mine != other for mine, other in zip(kept[:3], facts, strict=False)
            ):
                raise FileError(
                    f"Run {run_id} in {self._source} is another run than the one of that id here, so nothing "
                    "was merged."
                )
            elif (facts[3] or 0) > kept[3] or (facts[4] or 0) > kept[4]:
                updated.append(run_id)
            else:
                unchanged.append(run_id)
        for run_id in (*added, *updated):
            self._copy_run(run_id)
            if finish is not None:
                finish(self._con, run_id)
        return ImportReport(
            added=tuple(added),
            updated=tuple(updated),
            unchanged=tuple(unchanged),
            n_samples=self._count_samples() - n_before,
        )

    def _common(self, table: str, own: Mapping[str, str], shared: Mapping[str, str]) -> dict[str, str]:
        """The columns that both have; what an older LIOB did not write stays unknown."""
        for column, type_name in own.items():
            if shared.get(column, type_name) != type_name:
                raise FileError(
                    f"{self._source} is no export of LIOB: {table}.{column} is {shared[column]}, "
                    f"not {type_name}."
                )
        return {column: type_name for column, type_name in own.items() if column in shared}

    def _copy_run(self, run_id: str) -> None:
        machines = f"machine_id IN (SELECT machine_id FROM {connection.FOREIGN}.raw.runs WHERE run_id = ?)"  # noqa: S608
        self._copy("machines", machines, run_id, on_conflict="OR IGNORE")
        for table, columns in self._types.items():
            if "run_id" in columns:
                self._copy(table, "run_id = ?", run_id, on_conflict="OR REPLACE")

    def _copy(self, table: str, where: str, run_id: str, *, on_conflict: str) -> None:
        """Rows of one table; those of a table with a key take the place of the same ones."""
        names = ", ".join(self._types[table])
        rows = self._foreign.sql(
            f"SELECT {names} FROM {connection.FOREIGN}.raw.{table} WHERE {where}",  # noqa: S608
            params=[run_id],
        ).to_arrow_table()
        self._con.register("incoming", rows)
        self._check_values(table)
        key = self._keys.get(table)
        if key is None:
            on_conflict = ""
            self._con.execute(f"DELETE FROM raw.{table} WHERE run_id = ?", [run_id])  # noqa: S608
        elif "run_id" not in key and "run_id" in self._types[table]:
            self._check_owner(table, key)
        self._con.execute(f"INSERT {on_conflict} INTO raw.{table} BY NAME SELECT * FROM incoming")  # noqa: S608
        self._con.unregister("incoming")

    def _check_values(self, table: str) -> None:
        """Refuse what no LIOB writes and no page expects: broken JSON, NaN, impossible times or words."""
        conditions = {}
        for column, type_name in self._types[table].items():
            if type_name == "JSON":
                conditions[column] = f"NOT json_valid({column}::VARCHAR)"
            elif type_name == "DOUBLE":
                conditions[column] = f"NOT isfinite({column})"
            elif type_name == "TIMESTAMP":
                conditions[column] = f"NOT isfinite({column}) OR year({column}) NOT BETWEEN 2000 AND 2200"
            elif (table, column) in _WORDS:
                known = ", ".join(f"'{word}'" for word in _WORDS[table, column])
                conditions[column] = f"{column} NOT IN ({known})"
        for column, condition in conditions.items():
            if self._con.execute(f"SELECT 1 FROM incoming WHERE {condition} LIMIT 1").fetchall():  # noqa: S608
                raise FileError(
                    f"{self._source} holds values in {table}.{column} that LIOB does not write, so nothing "
                    "of it was merged."
                )

    def _check_owner(self, table: str, key: list[str]) -> None:
        """Refuse rows that would take the place of another run's."""
        names = ", ".join(key)
        taken = self._con.execute(
            f"SELECT 1 FROM incoming JOIN raw.{table} AS stored USING ({names}) "  # noqa: S608
            "WHERE stored.run_id <> incoming.run_id LIMIT 1"
        ).fetchall()
        if taken:
            raise FileError(
                f"{self._source} holds {table} of a run that is here under another id, so nothing was merged."
            )

    def _count_samples(self) -> int:
        [(n_samples,)] = self._con.execute("SELECT count(*) FROM raw.samples").fetchall()
        return int(n_samples)
