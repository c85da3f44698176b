"""The run folder: what was asked, and one fsynced JSON line per thing that happened.

The journal is the truth while a run lives. A line counts once its newline is on disk; whatever a crash
leaves after the last newline was never finished and is cut off before the next line is written.
"""

import contextlib
import errno
import json
import os
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from liob_core.errors import FileError
from liob_core.monitor import clock
from liob_core.quality.closeness.records import Build, WindowScore, score_to_json
from liob_core.quality.closeness.results import Result
from liob_core.types import (
    CalibrationResult,
    EnergyWindow,
    JsonValue,
    Judgement,
    Load,
    Outcome,
    RunSpec,
    Sample,
    Unload,
    to_json,
)

SCHEMA_VERSION = 1
SPEC_FILE = "spec.json"
MACHINE_FILE = "machine.json"
BANDWIDTH_FILE = "bandwidth.json"
PROMPTS_FILE = "prompts.json"
JOURNAL_FILE = "journal.jsonl"
READINGS_FILE = "readings.jsonl"

Record = Sample | Load | Unload | EnergyWindow | Judgement | CalibrationResult | Result
_KINDS: Mapping[type, str] = {
    Sample: "sample",
    Load: "load",
    Unload: "unload",
    EnergyWindow: "energy",
    Judgement: "judgement",
    CalibrationResult: "calibration",
    Result: "fidelity",
}
_TAIL_BYTES = 1 << 16


class Journal:
    """The open journal of one run, for its one writing process."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / JOURNAL_FILE
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        try:
            self._fd = os.open(self._path, flags, 0o644)
            os.ftruncate(self._fd, whole_lines_end(self._path))
            _sync_folder(run_dir)
        except OSError as error:
            raise FileError(
                f"The journal {self._path} cannot be written: {error.strerror}. Check its permissions."
            ) from error

    def append(self, record: Record) -> None:
        """Nothing, once the record is on disk; raises FileError where it cannot be, and leaves no part."""
        self._append(_KINDS[type(record)], to_json(record))

    def append_window(self, score: WindowScore, build: Build) -> None:
        """Nothing, once one window of task `closeness` and the build that made it are on disk."""
        made_by = {"build": build.version, "cpu_features": build.cpu_features}
        self._append("window", {**score_to_json(score), **made_by})

    def append_event(self, event: str, detail: str = "") -> None:
        """Nothing, once the event (started, resumed, finished, cancelled, failed...) is on disk."""
        self._append("event", {"utc": clock.utc_iso(clock.utc_ns()), "event": event, "detail": detail})

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def _append(self, kind: str, data: Mapping[str, JsonValue]) -> None:
        # ASCII escapes keep NUL, newlines and unpaired surrogates of model text inside the one line.
        line = json.dumps({"kind": kind, "data": data, "schema_version": SCHEMA_VERSION}).encode() + b"\n"
        end_before = os.fstat(self._fd).st_size
        try:
            if os.write(self._fd, line) != len(line):
                # A short write to a file means that the disk filled up in the middle of the line.
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # noqa: TRY301
            os.fsync(self._fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, end_before)
            raise FileError(
                f"The run stopped because its journal {self._path} cannot be written: {error.strerror}. "
                "Every finished sample is kept; free some space and resume the run."
            ) from error


def iter_lines(path: Path, offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """Place in bytes and content of each whole line from `offset` on; nothing where there is no file."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield offset, line
            offset += len(line)


def read_lines(run_dir: Path, offset: int = 0) -> tuple[list[dict[str, JsonValue]], int]:
    """The journal's records from `offset` on, as parsed, and the offset to go on from.

    A damaged line is left out here; ingest tells of it.
    """
    records = []
    for start, line in iter_lines(run_dir / JOURNAL_FILE, offset):
        offset = start + len(line)
        records += _parsed(line)
    return records, offset


def finished_cells(run_dir: Path) -> set[str]:
    """Ids of the cells that have a sample, whatever its outcome; a cancelled one is still to do."""
    cells = set()
    for _, line in iter_lines(run_dir / JOURNAL_FILE):
        for record in _parsed(line):
            with contextlib.suppress(KeyError, TypeError):  # a damaged line finishes nothing
                if record["kind"] == "sample" and record["data"]["outcome"] != Outcome.CANCELLED:
                    cells.add(str(record["data"]["cell"]["cell_id"]))
    return cells


def _parsed(line: bytes) -> list[dict[str, JsonValue]]:
    """The record of a line; nothing where it is damaged."""
    with contextlib.suppress(ValueError):
        record = json.loads(line)
        if isinstance(record, dict) and isinstance(record.get("data"), dict) and "kind" in record:
            return [record]
    return []


def whole_lines_end(path: Path) -> int:
    """The place in bytes after the last newline of a file; 0 where there is none."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return 0
    with file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - _TAIL_BYTES)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
    return 0


def write_spec(run_dir: Path, spec: RunSpec) -> None:
    """Write what was asked into the run's folder; it is never edited afterwards."""
    write_atomic(run_dir / SPEC_FILE, json.dumps(to_json(spec)))


def read_spec(run_dir: Path) -> RunSpec:
    """What was asked of the run in that folder."""
    path = run_dir / SPEC_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{run_dir} is not the folder of a run: {SPEC_FILE} cannot be read.") from error
    try:
        spec: RunSpec = read_record(RunSpec, text)
    except FileError as error:
        raise FileError(f"{path} is damaged or from another version of LIOB: {error}") from error
    return spec


def read_record(kind: Any, text: str) -> Any:
    """The record of type `kind` that a JSON text holds; raises FileError where it holds something else."""
    try:
        # Not validate_json: it refuses unpaired surrogates, which model text may hold.
        return adapter(kind).validate_python(json.loads(text))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise FileError(f"{place or 'the whole'}: {first['msg']}.") from error
    except ValueError as error:
        raise FileError(f"not JSON: {error}.") from error


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """The validator of a record type, built once."""
    return TypeAdapter(kind)


def write_atomic(path: Path, text: str, *, outlives_power_cut: bool = True) -> None:
    """Replace a file at once: readers see the old or the new text, and a crash leaves one of them.

    So does a power cut, unless the caller would rather not wait for the disk.
    """
    # Not mkstemp: its 0600 would shut other users out of a shared data folder.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            if outlives_power_cut:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if outlives_power_cut:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a new name in `folder` survive a power cut; Windows neither needs nor allows it."""
    if os.name == "nt":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
