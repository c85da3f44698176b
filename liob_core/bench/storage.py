"""What LIOB keeps on disk, and the run folders that the database no longer needs."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from liob_core.bench.status import read_status_file
from liob_core.config import Settings
from liob_core.errors import FileError, UsageError
from liob_core.store.ingest import runs_behind


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """One run's folder: its size in bytes, and why it cannot be removed (empty where it can)."""

    run_id: str
    n_bytes: int
    why_kept: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Bytes on disk by what they are for, and what is free on the data folder's disk."""

    database_bytes: int
    models_bytes: int
    cache_bytes: int
    free_bytes: int
    runs: tuple[RunFolder, ...]

    @property
    def runs_bytes(self) -> int:
        """All run folders together, in bytes."""
        return sum(folder.n_bytes for folder in self.runs)

    @property
    def removable(self) -> tuple[RunFolder, ...]:
        """The folders of finished runs whose every line is in the database."""
        return tuple(folder for folder in self.runs if not folder.why_kept)


def measure(settings: Settings) -> Storage:
    """What the data folder holds now; a folder that is not there holds nothing."""
    folders = sorted(path.parent for path in settings.runs_dir.glob("*/spec.json"))
    behind = {path.name for path in runs_behind(settings.database, folders)}
    return Storage(
        database_bytes=_size(settings.database),
        models_bytes=_size(settings.models_dir),
        cache_bytes=_size(settings.cache_dir),
        free_bytes=shutil.disk_usage(_nearest(settings.data_dir)).free,
        runs=tuple(
            RunFolder(run_id=path.name, n_bytes=_size(path), why_kept=_why_kept(path, path.name in behind))
            for path in folders
        ),
    )


def remove_run_folders(settings: Settings, run_ids: Sequence[str]) -> int:
    """How many bytes were freed. Each folder is looked at again first; its results stay in the database."""
    removable = {folder.run_id: folder for folder in measure(settings).removable}
    freed = 0
    for run_id in run_ids:
        if run_id not in removable:
            raise UsageError(f"The folder of run {run_id} is still needed and was kept.")
        try:
            shutil.rmtree(settings.runs_dir / run_id)
        except OSError as error:
            raise FileError(
                f"The folder of run {run_id} could not be removed: {error.strerror or error}."
            ) from error
        freed += removable[run_id].n_bytes
    return freed


def _why_kept(run_dir: Path, is_behind: bool) -> str:
    status = read_status_file(run_dir)
    if status is not None and status.is_live:
        return "at work"
    if status is None or status.state != "finished":
        return "not finished, so it can be resumed"
    return "not yet in the database" if is_behind else ""


def _size(path: Path) -> int:
    """The bytes of a file, or of all files below a folder; what vanishes meanwhile counts nothing."""
    total = 0
    for file in path.rglob("*") if path.is_dir() else [path]:
        try:
            total += file.stat().st_size if file.is_file() and not file.is_symlink() else 0
        except OSError:
            continue
    return total


def _nearest(path: Path) -> Path:
    """The folder itself, or the nearest above it that exists."""
    return next(folder for folder in (path.resolve(), *path.resolve().parents) if folder.exists())
