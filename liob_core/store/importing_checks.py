"""What an import refuses in any table of any format: values that no LIOB writes and no page expects."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from pydantic import TypeAdapter, ValidationError

from liob_core.errors import FileError
from liob_core.monitor.energy import DRAM, GPU, NVML_COUNTER, NVML_POWER, PACKAGE, RAPL
from liob_core.quality.closeness.records import Ending
from liob_core.quality.judge.people import PEOPLE
from liob_core.store.kinds import KINDS
from liob_core.types import CheckResult, JudgeMode, JudgeState, Message, Outcome, Shape, Task

MOST_ROWS = 20_000_000
MOST_TEXT_BYTES = 2 * 2**30
_LONGEST_TEXT = 10_000_000  # characters of one answer, prompt or reply
_LONGEST_NAME = 2_000
# A page draws every variant, and lists every run.
_MOST = {"runs": 10_000, "machines": 10_000, "variants": 10_000, "prompts": 1_000_000}

_WORDS: Mapping[tuple[str, str], Iterable[str]] = {
    ("samples", "outcome"): tuple(Outcome),
    ("samples", "check_result"): tuple(CheckResult),
    ("samples", "task"): tuple(Task),
    ("samples", "shape"): tuple(Shape),
    ("loads", "outcome"): tuple(Outcome),
    ("energy", "shape"): tuple(Shape),
    ("energy", "scope"): (GPU, PACKAGE, DRAM),
    ("energy", "source"): (NVML_COUNTER, NVML_POWER, RAPL),
    ("runs", "state"): ("finished", "cancelled", "failed", "unfinished"),
    ("runs", "kind"): KINDS,
    ("judgements", "mode"): tuple(JudgeMode),
    ("judgements", "state"): tuple(JudgeState),
    ("judgements", "result"): ("win", "tie", "loss"),
    ("calibrations", "mode"): tuple(JudgeMode),
    ("calibrations", "state"): tuple(JudgeState),
    ("fidelities", "ending"): tuple(Ending),
}
# What other figures are divided by, or cannot be without.
_POSITIVE = frozenset(
    {("energy", "energy_j"), ("variants", "token_read_bytes"), ("runs", "read_bytes_per_s")}
    | {("runs", "cache_bytes")}
)
# Texts of models and of people; every other text is a name or a sentence.
_LONG = frozenset(
    {"prompt", "response", "thinking", "exact_text", "raw_reply", "raw_reply_second", "reference_answer"}
    | {"rubric", "check_extracted", "check_reason", "reason", "detail", "system_info", "cpu_features"}
)
# Names that become parts of file names, or of a command, which quotes what else they hold.
_NAMES: Mapping[tuple[str, str], str] = {
    ("runs", "run_id"): r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}",
    ("variants", "file_name"): r"[^\x00-\x1f\x7f/\\]{1,255}",
    ("variants", "hub_repo"): r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,200}",
    ("variants", "engine_model"): r"[^\x00-\x1f\x7f]{1,1000}",
}


@dataclass(frozen=True, slots=True)
class _Gpu:
    name: str


@dataclass(frozen=True, slots=True)
class _Effective:
    warnings: list[str] | None = None


@dataclass(frozen=True, slots=True)
class _ClosenessAsked:
    text_name: str | None = None
    n_ctx: int | None = None


_SHAPES: Mapping[tuple[str, str], TypeAdapter[Any]] = {
    (table, column): TypeAdapter(shape)
    for table, column, shape in (
        ("machines", "gpus", list[_Gpu]),
        ("machines", "missing_sources", dict[str, str]),
        ("prompts", "messages", list[Message]),
        ("variants", "tensor_groups", list[dict[str, Any]]),
        ("judgements", "earlier_replies", list[Any]),
        ("loads", "effective", _Effective),
        ("runs", "closeness", _ClosenessAsked),
        ("samples", "unknown", dict[str, str]),
        ("fidelities", "unknown", dict[str, str]),
    )
}
_OBJECT = TypeAdapter(dict[str, Any])


def check_size(
    con: duckdb.DuckDBPyConnection, relation: str, table: str, types: Mapping[str, str], source: Path
) -> None:
    """Refuse more than LIOB writes before any of it is taken: a small file can unfold into a disk full."""
    [(n_rows,)] = con.execute(f"SELECT count(*) FROM {relation}").fetchall()  # noqa: S608
    n_bytes = 0
    texts = [name for name, kind in types.items() if kind in {"VARCHAR", "JSON", "VARCHAR[]"}]
    if texts and n_rows <= _MOST.get(table, MOST_ROWS):
        lengths = ", ".join(f"coalesce(sum(strlen({name}::VARCHAR)), 0)" for name in texts)
        n_bytes = sum(con.execute(f"SELECT {lengths} FROM {relation}").fetchall()[0])  # noqa: S608
    if n_rows > _MOST.get(table, MOST_ROWS) or n_bytes > MOST_TEXT_BYTES:
        raise FileError(f"{source} holds more {table} than LIOB writes, so nothing of it was merged.")


def check_values(con: duckdb.DuckDBPyConnection, table: str, types: Mapping[str, str], source: Path) -> None:
    """Refuse rows of the relation `incoming` that hold anything else than `table` may."""
    conditions = list(_conditions(table, types))
    flags = ", ".join(f"coalesce(bool_or({condition}), false)" for _, condition in conditions) or "false"
    [found] = con.execute(f"SELECT {flags} FROM incoming").fetchall()  # noqa: S608
    for (column, _), is_bad in zip(conditions, found, strict=False):
        if is_bad:
            raise _refusal(table, column, source)
    for column, type_name in types.items():
        if type_name == "JSON":
            _check_json(con, table, column, source)


def _conditions(table: str, types: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What makes a column's value one that LIOB does not write, in SQL."""
    for column, type_name in types.items():
        if type_name == "DOUBLE":
            yield column, f"NOT isfinite({column})"
        elif type_name == "TIMESTAMP":
            yield column, f"NOT isfinite({column}) OR year({column}) NOT BETWEEN 2000 AND 2200"
        elif type_name == "JSON":
            yield column, f"length({column}::VARCHAR) > {_LONGEST_TEXT}"
        elif type_name == "VARCHAR":
            yield column, f"length({column}) > {_LONGEST_TEXT if column in _LONG else _LONGEST_NAME}"
        if (table, column) in _WORDS:
            yield column, f"{column} NOT IN ({_quoted(_WORDS[table, column])})"
        if (table, column) in _POSITIVE:
            yield column, f"{column} <= 0"
        if (table, column) in _NAMES:
            pattern = _NAMES[table, column].replace("'", "''")
            yield column, f"NOT regexp_full_match({column}, '{pattern}')"
    if table == "judgements":
        yield "raw_reply", f"judge_key = '{PEOPLE}' AND NOT json_valid(raw_reply)"
    if table == "runs" and "tasks" in types:
        yield "tasks", f"NOT list_has_all([{_quoted(Task)}], tasks)"


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def _check_json(con: duckdb.DuckDBPyConnection, table: str, column: str, source: Path) -> None:
    """Refuse JSON of another shape than the pages read; that it is too deep shows here too."""
    shape = _SHAPES.get((table, column), _OBJECT)
    values = con.execute(
        f"SELECT DISTINCT {column}::VARCHAR FROM incoming WHERE {column} IS NOT NULL"  # noqa: S608
    )
    while rows := values.fetchmany(1000):
        for (text,) in rows:
            try:
                shape.validate_json(text)
            except ValidationError as error:
                raise _refusal(table, column, source) from error


def _refusal(table: str, column: str, source: Path) -> FileError:
    return FileError(
        f"{source} holds values in {table}.{column} that LIOB does not write, so nothing of it was merged."
    )
