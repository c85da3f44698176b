"""An export's ZIP archive as a folder: only plain files of known names, never more than LIOB writes."""

import re
import zipfile
import zlib
from pathlib import Path

from liob_core.errors import FileError

MOST_BYTES = 2 * 2**30
_MOST_FILES = 100
_CHUNK_BYTES = 1 << 20
# One folder deep at most; a name outside of this pattern has no business in an export.
_NAME = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,150}/)?([a-z_]{1,40}\.(?:json|csv|parquet))")


def unpack(source: Path, folder: Path) -> Path:
    """The folder that now holds the archive's files, without the folder they stood in.

    Sizes are those that come out, not those that the archive claims.
    """
    folder.mkdir()
    left = MOST_BYTES
    try:
        with zipfile.ZipFile(source) as archive:
            for entry, name in _entries(source, archive):
                left -= _extract(archive, entry, folder / name, left)
                if left < 0:
                    raise FileError(f"{source} unfolds into more than LIOB writes, so nothing was merged.")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise FileError(f"{source} is a damaged ZIP archive, so nothing was merged: {error}.") from error
    return folder


def _entries(source: Path, archive: zipfile.ZipFile) -> list[tuple[zipfile.ZipInfo, str]]:
    """The archive's files with the names they get; folders do not count."""
    found: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        if entry.is_dir():
            continue
        named = _NAME.fullmatch(entry.filename)
        if named is None or named[1] in found or entry.flag_bits & 1 or len(found) >= _MOST_FILES:
            shown = entry.filename[:80].encode("ascii", "backslashreplace").decode()
            raise FileError(f"{source} holds {shown}, which is no part of an export; nothing was merged.")
        found[named[1]] = entry
    return [(entry, name) for name, entry in found.items()]


def _extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, most_bytes: int) -> int:
    """How many bytes came out, cut off beyond `most_bytes`."""
    n_bytes = 0
    with archive.open(entry) as packed, target.open("xb") as file:
        while n_bytes <= most_bytes and (chunk := packed.read(_CHUNK_BYTES)):
            n_bytes += file.write(chunk)
    return n_bytes
