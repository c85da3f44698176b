"""Results of the original study, CSV or JSON by the same column names, as a DuckDB file of LIOB's schema."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from liob_core.errors import FileError
from liob_core.store import bulk
from liob_core.store.importing_views import new_tables
from liob_core.store.study_rows import StudyRow, StudyVariant, tables_of

_MOST_BYTES = 64 * 2**20
_MOST_ROWS = 100_000
_QUANTIZATION = re.compile(r"(\d{1,2})-bit \(([A-Za-z0-9_]{1,30})\)")

COLUMNS = tuple(StudyRow.model_fields)
_ADAPTER: TypeAdapter[list[StudyRow]] = TypeAdapter(list[StudyRow])


def study_from_csv(source: Path) -> list[StudyRow]:
    """The study's rows in a CSV file; raises FileError where it is another table."""
    if source.stat().st_size > _MOST_BYTES:
        raise FileError(f"{source} is larger than any result of the original study; nothing was merged.")
    try:
        with source.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            header = next(lines, [])
            _check_header(header, source)
            cells = [line for line in lines if line]
    except (csv.Error, UnicodeDecodeError) as error:
        raise FileError(f"{source} is no CSV that LIOB reads ({error}); nothing was merged.") from error
    for number, line in enumerate(cells, start=2):
        if len(line) != len(header):
            raise FileError(
                f"{source}: line {number} has {len(line)} cells, not {len(header)}; nothing was merged."
            )
    return study_from_records([dict(zip(header, map(_cell, line), strict=True)) for line in cells], source)


def study_from_records(records: Any, source: Path) -> list[StudyRow]:
    """The study's rows from records by its column names; raises FileError where they are something else."""
    if not isinstance(records, list) or not records:
        raise FileError(f"{source} holds no rows, so nothing was merged.")
    if len(records) > _MOST_ROWS:
        raise FileError(
            f"{source} holds more rows than any result of the original study; nothing was merged."
        )
    try:
        rows = _ADAPTER.validate_python(records)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = " ".join(str(part)[:60] for part in first["loc"])
        raise FileError(f"{source}: row {place}: {first['msg'].lower()}; nothing was merged.") from error
    twice = Counter((row.model_id, row.prompt_id) for row in rows).most_common(1)[0]
    if twice[1] > 1:
        raise FileError(f"{source} answers prompt {twice[0][1]} twice for {twice[0][0]}; nothing was merged.")
    return rows


def stage_study(rows: Sequence[StudyRow], source: Path, staged: Path, machine: str | None) -> None:
    """Make `staged` with one run a model; `machine` names where it was measured, None: not known."""
    with new_tables(staged) as con:
        for model_name, variants in _models(rows, source):
            for table, records in tables_of(model_name, variants, machine).items():
                bulk.insert(con, table, bulk.by_column(records))


def _check_header(header: Sequence[str], source: Path) -> None:
    odd = [name for name in header if name not in COLUMNS]
    missing = [name for name in COLUMNS if name not in header]
    if odd or missing or len(header) != len(COLUMNS):
        what = f"an unknown column {odd[0][:60]!r}" if odd else "a column twice"
        what = what if odd or not missing else f"no column {missing[0]!r}"
        raise FileError(
            f"{source} is neither an export of LIOB nor a table of the original study: it has {what}."
        )


def _cell(text: str) -> str | None:
    """A cell's text; an empty one is unknown."""
    return text.strip() or None


def _models(rows: Sequence[StudyRow], source: Path) -> Iterator[tuple[str, list[StudyVariant]]]:
    """Each model with its variants, many bits first: the first is what the others are compared with."""
    models: dict[str, list[StudyVariant]] = {}
    for model_id in dict.fromkeys(row.model_id for row in rows):
        own = [row for row in rows if row.model_id == model_id]
        first, found = own[0], _QUANTIZATION.fullmatch(own[0].quantization)
        if found is None or any(
            (row.model_name, row.quantization) != (first.model_name, first.quantization) for row in own
        ):
            raise FileError(f"{source}: the quantization of {model_id} is not one, as in '4-bit (Q4_K_M)'.")
        label = found[2]
        name = re.sub(rf"[-_.]{re.escape(label)}$", "", first.model_name, flags=re.IGNORECASE)
        models.setdefault(name, []).append(StudyVariant(label=label, bits=int(found[1]), rows=tuple(own)))
    for name, variants in models.items():
        if len({variant.label for variant in variants}) != len(variants):
            raise FileError(f"{source} holds one quantization of {name} twice; nothing was merged.")
        yield name, sorted(variants, key=lambda variant: -variant.bits)
