"""Digests of model files, cached by path, size and time of change."""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from liob_core.errors import FileError
from liob_core.models.gguf import read_headers
from liob_core.models.header import Header
from liob_core.models.labels import shard_paths

# Called with bytes done and bytes in all.
Progress = Callable[[int, int], None]

_CHUNK_BYTES = 4 * 2**20


def file_sha256(path: Path, cache_dir: Path, *, progress: Progress | None = None) -> str:
    """The SHA-256 of a file in hex; of a split model, that of its parts' hex digests in order, joined."""
    digests = list(part_sha256s(path, cache_dir, progress=progress).values())
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def part_sha256s(path: Path, cache_dir: Path, *, progress: Progress | None = None) -> dict[Path, str]:
    """The SHA-256 in hex of each file of a model, in order; one where it is not split."""
    parts = shard_paths(path)
    sizes = [_stamp(part)["size"] for part in parts]
    digests = {}
    for index, part in enumerate(parts):
        step = _part_of(progress, sum(sizes[:index]), sum(sizes))
        digests[part] = _cached("file", (part,), cache_dir, partial(_digest_file, part, step))
    return digests


def _part_of(progress: Progress | None, before: int, total: int) -> Progress | None:
    """`progress` for one part of a whole, of which `before` bytes are done."""
    return None if progress is None else lambda done, _: progress(before + done, total)


def weights_sha256(
    path: Path,
    cache_dir: Path,
    *,
    headers: Sequence[Header] | None = None,
    progress: Progress | None = None,
) -> str:
    """The SHA-256 over name, type, shape and bytes of each tensor in name order, in hex.

    Metadata, tensor order, alignment and splitting do not change it, so a file that an engine or a
    publisher rewrote is still recognised. `headers` are the model's, where they were read already.
    """
    compute = partial(_digest_weights, path, headers, progress)
    return _cached("weights", shard_paths(path), cache_dir, compute)


def _digest_file(path: Path, progress: Progress | None) -> str:
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    for chunk in _read(path, 0, total):
        digest.update(chunk)
        done += len(chunk)
        if progress:
            progress(done, total)
    return digest.hexdigest()


def _digest_weights(path: Path, headers: Sequence[Header] | None, progress: Progress | None) -> str:
    tensors = sorted(
        ((tensor, header.path) for header in headers or read_headers(path) for tensor in header.tensors),
        key=lambda item: item[0].name,
    )
    digest, done, total = hashlib.sha256(), 0, sum(tensor.n_bytes for tensor, _ in tensors)
    for tensor, file in tensors:
        # JSON frames the fields, so that no two different lists of tensors give the same bytes.
        digest.update(json.dumps([tensor.name, tensor.type.name, tensor.shape]).encode() + b"\n")
        for chunk in _read(file, tensor.offset, tensor.n_bytes):
            digest.update(chunk)
            done += len(chunk)
            if progress:
                progress(done, total)
    return digest.hexdigest()


def _read(path: Path, offset: int, n_bytes: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(offset)
        while n_bytes:
            chunk = file.read(min(_CHUNK_BYTES, n_bytes))
            if not chunk:
                raise FileError(f"{path} became shorter while it was read. Wait until it is complete.")
            n_bytes -= len(chunk)
            yield chunk


def _stamp(path: Path) -> dict[str, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from error
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}


def _cached(kind: str, files: tuple[Path, ...], cache_dir: Path, compute: Callable[[], str]) -> str:
    """The digest from the cache where no file has changed since, else computed and kept."""
    names = [str(file.resolve()) for file in files]
    entry = cache_dir / "digests" / f"{hashlib.sha256(json.dumps([kind, names]).encode()).hexdigest()}.json"
    stamps = [_stamp(file) for file in files]
    known = _read_entry(entry)
    if known.get("stamps") == stamps and isinstance(digest := known.get("sha256"), str):
        return digest
    try:
        digest = compute()
    except OSError as error:
        raise FileError(f"{files[0]} cannot be read: {error.strerror or error}.") from error
    if [_stamp(file) for file in files] != stamps:
        raise FileError(f"{files[0]} changed while it was read. Wait until it is complete.")
    _write_entry(entry, {"files": names, "stamps": stamps, "sha256": digest})
    return digest


def _read_entry(entry: Path) -> dict[str, object]:
    try:
        content = json.loads(entry.read_text("utf-8"))
    except (OSError, ValueError):  # absent or damaged: it can be computed again
        return {}
    return content if isinstance(content, dict) else {}


def _write_entry(entry: Path, content: dict[str, object]) -> None:
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=entry.parent, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file)
        Path(name).replace(entry)
    except OSError:  # a cache that cannot be written costs time, not the result
        return
