"""The tables of a foreign file into the open database: whole or not at all, checked value by value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from liob_core.errors import FileError
from liob_core.store import connection, schema
from liob_core.store.importing_checks import check_size, check_values

Finish = Callable[[duckdb.DuckDBPyConnection, str], None]
Types = dict[str, dict[str, str]]  # table -> column -> type

# `finish` computes the first three anew; the others tell of a file and of its owner, not of a run.
_NOT_COPIED = frozenset({"summary", "paired_deltas", "seeds", "manifest", "migrations", "run_edits"})
_NEEDED = frozenset({"migrations", "machines", "runs", "variants", "samples"})

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The ids of the runs that a file added, brought further or held as they are here; new samples."""

    added: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: tuple[str, ...]
    n_samples: int


def plain_tables(foreign: duckdb.DuckDBPyConnection, source: Path) -> Types:
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


class Merge:
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

    def run(self, finish: Finish | None) -> ImportReport:
        """What was merged."""
        for table, types in self._types.items():
            check_size(self._foreign, f"{connection.FOREIGN}.raw.{table}", table, types, self._source)
        added, updated, unchanged = self._sorted_runs()
        n_before = self._count_samples()
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

    def _sorted_runs(self) -> tuple[list[str], list[str], list[str]]:
        """The file's runs: new here, further than here, as they are here."""
        stored = {row[0]: row[1:] for row in self._con.execute(_RUNS.format("")).fetchall()}
        incoming = self._foreign.execute(_RUNS.format(f"{connection.FOREIGN}.")).fetchall()
        added, updated, unchanged = [], [], []
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
        return added, updated, unchanged

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
        check_values(self._con, table, self._types[table], self._source)
        key = self._keys.get(table)
        if key is None:
            on_conflict = ""
            self._con.execute(f"DELETE FROM raw.{table} WHERE run_id = ?", [run_id])  # noqa: S608
        elif "run_id" not in key and "run_id" in self._types[table]:
            self._check_owner(table, key)
        self._con.execute(f"INSERT {on_conflict} INTO raw.{table} BY NAME SELECT * FROM incoming")  # noqa: S608
        self._con.unregister("incoming")

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
