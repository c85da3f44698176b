"""Download of Hub files into the library's own cache: resumed where it stopped, used only when verified."""

import errno
import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout
from huggingface_hub import constants, hf_hub_download
from huggingface_hub.file_download import repo_folder_name

from liob_core.errors import BusyError, FileError, LiobError, MissingError
from liob_core.models.hub_cache import cached_path
from liob_core.models.hub_errors import told
from liob_core.models.hub_repo import HubFile, HubRepo, HubVariant
from liob_core.models.hub_stream import stream_file

_CHUNK_BYTES = 4 * 2**20
_LOCK_WAIT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadProgress:
    """How far a download is, in bytes of the whole variant; what was there before counts as done."""

    path: str  # the file it is at
    done_bytes: int
    total_bytes: int


class DownloadCancelledError(LiobError):
    """The user ended a download; what came is kept for the next time."""

    exit_code = 1


def download(
    repo: HubRepo,
    variant: HubVariant,
    *,
    on_progress: Callable[[DownloadProgress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> list[Path]:
    """The paths of a variant's files on this machine, in order, fetched where they are not there yet.

    They lie in the Hub library's cache (HF_HUB_CACHE), where its other users find them too. `cancel`
    is asked between pieces and ends the download when it says True.
    """
    if variant.problem:
        raise FileError(f"{variant.label} of {repo.repo_id}: {variant.problem}")
    _check_disk(repo, variant)
    paths, before = [], 0
    for file in variant.files:
        watch = _Watch(file, before, variant.file_bytes, on_progress, cancel)
        path = cached_path(repo, file)
        if path is None:
            path = _fetch(repo, file, watch)
        before += file.n_bytes
        watch(file.n_bytes)
        paths.append(path)
    return paths


class _Watch:
    """Told the bytes of one file that are done: tells the user, and ends it when the user says so."""

    def __init__(
        self,
        file: HubFile,
        before: int,
        total: int,
        on_progress: Callable[[DownloadProgress], None] | None,
        cancel: Callable[[], bool] | None,
    ) -> None:
        self._file, self._before, self._total = file, before, total
        self._on_progress, self._cancel = on_progress, cancel

    def __call__(self, done: int) -> None:
        if self._on_progress is not None:
            self._on_progress(
                DownloadProgress(
                    path=self._file.path, done_bytes=self._before + done, total_bytes=self._total
                )
            )
        if done < self._file.n_bytes and self._cancel is not None and self._cancel():
            raise DownloadCancelledError(
                f"The download of {self._file.path} was cancelled; start it again to go on from there."
            )


def _store(repo: HubRepo) -> Path:
    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo.repo_id, repo_type="model")


def _blob(repo: HubRepo, file: HubFile) -> Path:
    """Where the library's cache keeps the content of a file: under its digest."""
    digest = file.sha256 or file.git_sha1
    if digest is None:
        raise FileError(
            f"The Hub gives no digest of {file.path}, so nothing verifies it. Choose another file."
        )
    return _store(repo) / "blobs" / digest


def _part(blob: Path) -> Path:
    return blob.with_name(f"{blob.name}.liob.incomplete")  # an ending that the library's own cleanup knows


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _check_disk(repo: HubRepo, variant: HubVariant) -> None:
    """Refuse a download that cannot fit, before its first byte."""
    blobs = {_blob(repo, file): file for file in variant.files if cached_path(repo, file) is None}
    absent = {blob: file for blob, file in blobs.items() if _size(blob) != file.n_bytes}
    left = sum(file.n_bytes - _size(_part(blob)) for blob, file in absent.items())
    folder = next(one for one in (_store(repo), *_store(repo).parents) if one.exists())
    free = shutil.disk_usage(folder).free
    if left > free:
        raise MissingError(
            f"{variant.label} needs {left / 1e9:.2f} GB more of disk, but {folder} has {free / 1e9:.2f} GB "
            "free. Free some space, or set HF_HUB_CACHE to a folder on another disk."
        )


def _fetch(repo: HubRepo, file: HubFile, watch: _Watch) -> Path:
    blob = _blob(repo, file)
    # The library's own lock of this content, so that its other users wait for LIOB and LIOB for them.
    lock = Path(constants.HF_HUB_CACHE) / ".locks" / _store(repo).name / f"{blob.name}.lock"
    try:
        blob.parent.mkdir(parents=True, exist_ok=True)
        lock.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock, timeout=_LOCK_WAIT_S, mode=0o664):
            if _size(blob) != file.n_bytes:  # absent, or damaged since
                _fill(repo, file, blob, watch)
    except Timeout:
        raise BusyError(
            f"{file.path} is being downloaded by another program. Wait until that is done."
        ) from None
    except OSError as error:
        raise _disk_error(error, file, blob) from error
    # The content is there: the library only enters it under the file's name.
    with told(repo.repo_id, repo.revision, file.path):
        path = Path(hf_hub_download(repo.repo_id, file.path, revision=repo.commit))
    if _size(path) != file.n_bytes:  # where the cache cannot link, a damaged file stays under its name
        raise FileError(f"{path} is damaged. Delete it and download it again.")
    return path


def _disk_error(error: OSError, file: HubFile, blob: Path) -> LiobError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return MissingError(
            f"The disk is full: {blob.parent} holds the first part of {file.path}. Free some space and start "
            "the download again; it goes on from there."
        )
    return FileError(
        f"{file.path} cannot be kept in {blob.parent}: {error.strerror or error}. Check HF_HUB_CACHE."
    )


def _fill(repo: HubRepo, file: HubFile, blob: Path, watch: _Watch) -> None:
    """Write `blob` in one step, once all its bytes are there and are the right ones."""
    part = _part(blob)
    if _size(part) > file.n_bytes:
        part.unlink()
    # Content in git itself is named by git's digest, which begins with the length.
    digest = (
        hashlib.sha256() if file.sha256 else hashlib.sha1(b"blob %d\0" % file.n_bytes, usedforsecurity=False)
    )
    with part.open("a+b") as out:
        done = _digest_part(out, digest, watch)
        for piece in stream_file(repo, file, start=done):
            out.write(piece)
            digest.update(piece)
            done += len(piece)
            watch(done)
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() != blob.name:
        part.unlink()
        raise FileError(
            f"What came as {file.path} of {repo.repo_id} is not that file: its digest is wrong. It was "
            "deleted; download it again."
        )
    part.replace(blob)


def _digest_part(out: BinaryIO, digest: "hashlib._Hash", watch: _Watch) -> int:
    """The bytes that are there from an earlier time, once `digest` knows them."""
    out.seek(0)
    done = 0
    while chunk := out.read(_CHUNK_BYTES):
        digest.update(chunk)
        done += len(chunk)
        watch(done)
    return done
