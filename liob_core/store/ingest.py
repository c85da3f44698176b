"""A run folder into the database: whole lines only, in bulk, in one transaction, as often as one likes.

`raw.runs` remembers how far each file was read and every row has a key, so that ingesting again adds
nothing. A damaged line is left out, counted and told of as an event; it never stops the rest.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import duckdb

from liob_core.errors import MissingError
from liob_core.monitor import clock
from liob_core.store import bulk, rows
from liob_core.store.connection import read, transaction
from liob_core.store.journal import (
    BANDWIDTH_FILE,
    JOURNAL_FILE,
    MACHINE_FILE,
    PROMPTS_FILE,
    READINGS_FILE,
    adapter,
    iter_lines,
    read_record,
    read_spec,
    whole_lines_end,
)
from liob_core.store.lines import Batch, event_row, first_line, parse_line
from liob_core.types import Bandwidth, JsonValue, Machine, Reading, RenderedPrompt

_BATCH_LINES = 10_000
_END_STATES = ("finished", "cancelled", "failed")
# A resumed evaluation gives a variant another result; all else is never said twice.
_ON_CONFLICT = {"fidelities": "OR REPLACE"}


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """What one ingest added; `n_skipped_lines` counts all damaged lines of the run so far."""

    run_id: str
    n_samples: int
    n_loads: int
    n_readings: int
    n_events: int
    n_skipped_lines: int
    state: str
    n_judgements: int = 0


def ingest(
    con: duckdb.DuckDBPyConnection,
    run_dir: Path,
    *,
    finish: Callable[[duckdb.DuckDBPyConnection, str], None] | None = None,
) -> IngestReport:
    """What was added from a run folder; `finish(con, run_id)` belongs to the same transaction."""
    with transaction(con):
        report = _ingest(con, run_dir)
        if finish is not None:
            finish(con, report.run_id)
    return report


def runs_behind(database: Path, run_dirs: Iterable[Path]) -> list[Path]:
    """The run folders that hold whole lines which the database does not have yet."""
    try:
        with read(database) as con:
            found = con.execute("SELECT run_id, journal_offset, readings_offset FROM raw.runs").fetchall()
    except MissingError:
        found = []
    stored = {run_id: (journal, readings) for run_id, journal, readings in found}
    return [
        run_dir
        for run_dir in run_dirs
        if stored.get(run_dir.name, (0, 0))
        != (whole_lines_end(run_dir / JOURNAL_FILE), whole_lines_end(run_dir / READINGS_FILE))
    ]


def is_behind(database: Path, run_dir: Path) -> bool:
    """Whether the run's folder holds whole lines that the database does not have yet."""
    return bool(runs_behind(database, [run_dir]))


def _ingest(con: duckdb.DuckDBPyConnection, run_dir: Path) -> IngestReport:
    spec = read_spec(run_dir)
    run_id = spec.run_id
    machine = _read_optional(Machine, run_dir / MACHINE_FILE)
    bandwidth = _read_optional(Bandwidth, run_dir / BANDWIDTH_FILE)
    rendered: list[RenderedPrompt] = _read_optional(list[RenderedPrompt], run_dir / PROMPTS_FILE) or []
    texts = {prompt.prompt_id: prompt for prompt in rendered}
    machines = [rows.machine_row(machine)] if machine else []
    for table, records in (
        ("variants", rows.variant_rows(spec)),
        ("prompts", rows.prompt_rows(spec, texts)),
        ("machines", machines),
    ):
        bulk.insert(con, table, bulk.by_column(records), on_conflict="OR REPLACE")
    stored = con.execute(
        "SELECT journal_offset, readings_offset FROM raw.runs WHERE run_id = ?", [run_id]
    ).fetchone() or (0, 0)
    journal_offset, counts = _ingest_journal(con, run_id, run_dir / JOURNAL_FILE, stored[0])
    readings_offset, n_readings = _ingest_readings(con, run_id, run_dir / READINGS_FILE, stored[1])
    course = _course(con, run_id)
    run = {
        **rows.run_row(spec, machine, bandwidth),
        **course,
        "journal_offset": journal_offset,
        "readings_offset": readings_offset,
        "ingested_utc": rows.to_utc(clock.utc_iso(clock.utc_ns())),
    }
    bulk.insert(con, "runs", bulk.by_column([run]), on_conflict="OR REPLACE")
    return IngestReport(
        run_id=run_id,
        n_samples=counts["samples"],
        n_loads=counts["loads"],
        n_events=counts["events"],
        n_readings=n_readings,
        n_skipped_lines=int(str(course["n_skipped_lines"])),
        state=str(course["state"]),
        n_judgements=counts["judgements"],
    )


def _ingest_journal(
    con: duckdb.DuckDBPyConnection, run_id: str, path: Path, stored_offset: int
) -> tuple[int, dict[str, int]]:
    """The offset reached, and how many rows were new by table."""
    offset = _resume_offset(path, stored_offset)
    counts = dict.fromkeys(Batch().columns(), 0)
    if offset < stored_offset:
        event = event_row(run_id, stored_offset, "journal_changed", "It was read again from its start.")
        counts["events"] += bulk.insert(con, "events", bulk.by_column([event]), on_conflict="OR IGNORE")
    for lines in _batches(iter_lines(path, offset)):
        batch = Batch()
        for start, line in lines:
            offset = start + len(line)
            try:
                parse_line(line, run_id, start, batch)
            except (ValueError, OverflowError) as error:
                batch.events.append(event_row(run_id, start, "skipped_line", first_line(error)))
        for table, columns in batch.columns().items():
            counts[table] += bulk.insert(
                con, table, columns, on_conflict=_ON_CONFLICT.get(table, "OR IGNORE")
            )
        bulk.update(con, "loads", bulk.by_column(batch.unloads), key="load_id")
    return offset, counts


def _ingest_readings(
    con: duckdb.DuckDBPyConnection, run_id: str, path: Path, stored_offset: int
) -> tuple[int, int]:
    """The offset reached, and how many readings were new."""
    offset, n_new = _resume_offset(path, stored_offset), 0
    reading_adapter = adapter(Reading)
    for lines in _batches(iter_lines(path, offset)):
        readings: list[tuple[object, ...]] = []
        gpus: list[dict[str, object]] = []
        events: list[dict[str, object]] = []
        for start, line in lines:
            offset = start + len(line)
            try:
                reading: Reading = reading_adapter.validate_json(line)
            except ValueError as error:
                events.append(event_row(run_id, start, "skipped_reading", first_line(error)))
                continue
            readings.append(rows.reading_row(run_id, reading))
            gpus.extend(rows.gpu_rows(run_id, reading))
        columns = dict(zip(rows.READING_COLUMNS, zip(*readings, strict=True), strict=False))
        n_new += bulk.insert(con, "readings", columns, unless_same=("run_id", "utc_ns"))
        bulk.insert(con, "gpu_readings", bulk.by_column(gpus), unless_same=("run_id", "utc_ns", "device"))
        bulk.insert(con, "events", bulk.by_column(events), on_conflict="OR IGNORE")
    return offset, n_new


def _course(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, object]:
    """How the run went, from its events: state, reason, start and end, damaged lines, engine version."""
    events = con.execute(
        "SELECT event, nullif(detail, ''), event_utc FROM raw.events "
        "WHERE run_id = ? AND event IN ('started', 'resumed', 'finished', 'cancelled', 'failed') "
        "ORDER BY journal_offset",
        [run_id],
    ).fetchall()
    state, reason, moment = events[-1] if events else (None, None, None)
    has_ended = state in _END_STATES
    n_skipped, engine_version = con.execute(
        "SELECT (SELECT count(*) FROM raw.events WHERE run_id = $1 AND event LIKE 'skipped%'), "
        "(SELECT string_agg(DISTINCT engine_version, ', ' ORDER BY engine_version) FROM raw.loads "
        "WHERE run_id = $1)",
        [run_id],
    ).fetchall()[0]
    return {
        "state": state if has_ended else "unfinished",
        "reason": reason if has_ended else None,
        "started_utc": events[0][2] if events else None,
        "ended_utc": moment if has_ended else None,
        "n_skipped_lines": n_skipped,
        "engine_version": engine_version,
    }


def _resume_offset(path: Path, stored: int) -> int:
    """Where to go on reading; 0 where the file is no longer the one that was read so far."""
    if stored == 0 or stored > whole_lines_end(path):
        return 0
    with path.open("rb") as file:
        file.seek(stored - 1)
        return stored if file.read(1) == b"\n" else 0


def _read_optional(kind: object, path: Path) -> JsonValue:
    try:
        return read_record(kind, path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def _batches(lines: Iterator[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    while batch := list(islice(lines, _BATCH_LINES)):
        yield batch
