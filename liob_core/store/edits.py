"""What a person says about a run: another title, a note, that it is deleted. Nothing measured changes.

A deleted run is only hidden, so that it can be restored; its rows and its folder stay.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb

from liob_core.errors import UsageError

LONGEST_TITLE = 200
LONGEST_NOTE = 10_000
# action -> the column of raw.run_edits that it sets
_COLUMNS = {"rename": "title", "annotate": "note", "delete": "deleted_utc", "restore": "deleted_utc"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change: `action` is rename, annotate, delete or restore; an empty text takes the change back."""

    run_id: str
    action: str
    text: str = ""


def apply_edit(con: duckdb.DuckDBPyConnection, edit: Edit) -> None:
    """Store one change; raises UsageError for an unknown run or action, or a text that is too long."""
    column = _COLUMNS.get(edit.action)
    if column is None:
        raise UsageError(f"A run cannot be {edit.action!r}: choose one of {', '.join(_COLUMNS)}.")
    if con.execute("SELECT 1 FROM raw.runs WHERE run_id = ?", [edit.run_id]).fetchone() is None:
        raise UsageError(f"There is no run {edit.run_id!r} in this database.")
    now = datetime.now(UTC).replace(tzinfo=None)
    con.execute(
        f"INSERT INTO raw.run_edits (run_id, {column}, edited_utc) VALUES ($run_id, $value, $now) "  # noqa: S608
        f"ON CONFLICT (run_id) DO UPDATE SET {column} = excluded.{column}, edited_utc = excluded.edited_utc",
        {"run_id": edit.run_id, "value": _value(edit, now), "now": now},
    )


def _value(edit: Edit, now: datetime) -> object:
    """What the column becomes; NULL takes the change back."""
    if edit.action in {"delete", "restore"}:
        return now if edit.action == "delete" else None
    text = edit.text.strip()
    longest = LONGEST_TITLE if edit.action == "rename" else LONGEST_NOTE
    if len(text) > longest:
        what = "title" if edit.action == "rename" else "note"
        raise UsageError(f"A {what} has at most {longest:,} characters; this one has {len(text):,}.")
    if edit.action == "rename":
        text = " ".join(text.split())
    return text or None
