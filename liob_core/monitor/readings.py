"""Readings on disk: one JSON line each, written in whole lines, never at the cost of the run."""

import json
import os
from pathlib import Path

from liob_core.types import Reading, to_json

_TAIL_BYTES = 65_536


class ReadingsFile:
    """The readings of a run, appended in batches. A full disk loses readings and counts them."""

    def __init__(self, path: Path) -> None:
        self._kept: list[Reading] = []
        self._fd: int | None = None
        self._end = 0
        self.n_lost = 0
        self.reason: str | None = None
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
            self._end = _end_of_whole_lines(self._fd)
            os.ftruncate(self._fd, self._end)
        except OSError as error:
            self._lose(error)

    def append(self, reading: Reading) -> None:
        """Keep one reading for the next flush."""
        self._kept.append(reading)

    def flush(self) -> None:
        """Write what is kept; where that fails the file ends with its last whole line."""
        kept, self._kept = self._kept, []
        if self._fd is None or not kept:
            self.n_lost += len(kept)
            return
        # Ten in a row cost hardly more than one: between two readings the caches have gone cold.
        batch = b"".join(
            json.dumps(to_json(reading), separators=(",", ":")).encode() + b"\n" for reading in kept
        )
        try:
            os.lseek(self._fd, self._end, os.SEEK_SET)
            n_written = os.write(self._fd, batch)
        except OSError as error:
            self._lose(error)
            self.n_lost += len(kept)
            return
        n_whole = batch.rfind(b"\n", 0, n_written) + 1
        self._end += n_whole
        if n_whole < len(batch):
            self.n_lost += batch.count(b"\n", n_whole)
            self.reason = "the disk took only a part of the readings"
            os.ftruncate(self._fd, self._end)

    def close(self) -> None:
        """Write what is kept and close the file."""
        self.flush()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _lose(self, error: OSError) -> None:
        self.reason = f"readings could not be written: {error.strerror or error}"


def _end_of_whole_lines(fd: int) -> int:
    """The offset in bytes after the last whole line: a killed worker may have left half a line."""
    size = os.lseek(fd, 0, os.SEEK_END)
    start = max(0, size - _TAIL_BYTES)
    os.lseek(fd, start, os.SEEK_SET)
    tail = os.read(fd, size - start)
    return start + tail.rfind(b"\n") + 1
