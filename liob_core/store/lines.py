"""One journal line, parsed and checked, as the row it becomes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from liob_core.errors import FileError
from liob_core.monitor import clock
from liob_core.quality.closeness.results import Result
from liob_core.store import rows
from liob_core.store.bulk import SURROGATE, Columns, by_column
from liob_core.store.journal import SCHEMA_VERSION, adapter
from liob_core.types import CalibrationResult, EnergyWindow, JsonValue, Judgement, Load, Sample, Unload

# NaN and Infinity are unknown. Made once: json.loads would make one for every line.
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_TEXT_FIELDS = ("prompt", "response", "thinking", "reason")


@dataclass(slots=True)
class Batch:
    """Rows of the journal on their way into their tables."""

    samples: list[tuple[object, ...]] = field(default_factory=list)
    loads: list[dict[str, object]] = field(default_factory=list)
    unloads: list[dict[str, object]] = field(default_factory=list)
    energy: list[dict[str, object]] = field(default_factory=list)
    events: list[dict[str, object]] = field(default_factory=list)
    judgements: list[dict[str, object]] = field(default_factory=list)
    calibrations: list[dict[str, object]] = field(default_factory=list)
    fidelities: dict[str, dict[str, object]] = field(default_factory=dict)  # the latest of each variant

    def columns(self) -> dict[str, Columns]:
        """What is new, by table."""
        samples = zip(rows.SAMPLE_COLUMNS, zip(*self.samples, strict=True), strict=False)
        return {
            "loads": by_column(self.loads),
            "samples": dict(samples),
            "energy": by_column(self.energy),
            "events": by_column(self.events),
            "judgements": by_column(self.judgements),
            "calibrations": by_column(self.calibrations),
            "fidelities": by_column(self.fidelities.values()),
        }


def parse_line(line: bytes, run_id: str, start: int, batch: Batch) -> None:
    """Put one journal line into the batch; raises ValueError where it is damaged."""
    record = _DECODER.decode(line.decode())
    if not isinstance(record, dict) or not isinstance(record.get("data"), dict):
        raise ValueError("not a record")  # noqa: TRY004 - a damaged line, not a bug
    version = record.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise FileError("The run folder was written by a newer LIOB. Update LIOB to read it.")
    data, kind = record["data"], record.get("kind")
    # Escapes of surrogates are nearly always pairs, which json.loads has joined.
    exact_text = _exact_text(data) if rb"\ud" in line else None
    match kind:
        case "sample":
            batch.samples.append(rows.sample_row(adapter(Sample).validate_python(data), exact_text))
        case "load":
            batch.loads.append(rows.load_row(adapter(Load).validate_python(data)))
        case "unload":
            batch.unloads.append(rows.unload_row(adapter(Unload).validate_python(data)))
        case "energy":
            batch.energy.append(rows.energy_row(adapter(EnergyWindow).validate_python(data)))
        case "judgement":
            batch.judgements.append(rows.judgement_row(adapter(Judgement).validate_python(data)))
        case "calibration":
            batch.calibrations.append(rows.calibration_row(adapter(CalibrationResult).validate_python(data)))
        case "fidelity":
            result: Result = adapter(Result).validate_python(data)
            batch.fidelities[result.label] = rows.fidelity_row(run_id, result)
        case "window":
            return  # what a resumed run goes on from; its result has a line of its own
        case "event":
            name, detail = str(data.get("event")), str(data.get("detail", ""))
            batch.events.append(event_row(run_id, start, name, detail, str(data.get("utc"))))
        case _:
            raise ValueError(f"a record of unknown kind {kind!r}")


def _exact_text(data: Mapping[str, JsonValue]) -> str | None:
    """The original texts of a record that has unpaired surrogates, which UTF-8 cannot hold; else None."""
    exact = {name: data[name] for name in _TEXT_FIELDS if SURROGATE.search(str(data.get(name) or ""))}
    return json.dumps(exact) if exact else None


def event_row(run_id: str, offset: int, event: str, detail: str, utc: str | None = None) -> dict[str, object]:
    """One row of raw.events; without `utc` it happened now."""
    moment = rows.to_utc(utc or clock.utc_iso(clock.utc_ns()))
    return {
        "run_id": run_id,
        "journal_offset": offset,
        "event": event,
        "event_utc": moment,
        "detail": detail,
    }


def first_line(error: Exception) -> str:
    """What an error says, short enough for a table."""
    return str(error).splitlines()[0][:200]
