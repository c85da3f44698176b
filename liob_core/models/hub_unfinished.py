"""Downloads from the Hub that never came to their end: what they take on disk, and their removal."""

from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from huggingface_hub import constants

from liob_core.errors import BusyError, FileError

_FOLDER = "models--"
_ENDING = ".incomplete"  # of the library's own parts and of LIOB's


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """The first part of one file of a repository, in bytes; `digest` is what the whole one would have."""

    repo_id: str
    digest: str
    n_bytes: int
    path: Path


def unfinished_downloads() -> list[Unfinished]:
    """The parts of models in the Hub's cache, by repository; those that are being filled too."""
    cache = Path(constants.HF_HUB_CACHE)
    found = []
    for path in sorted(cache.glob(f"{_FOLDER}*/blobs/*{_ENDING}")):
        try:
            n_bytes = path.stat().st_size
        except OSError:  # it became whole, or somebody else removed it
            continue
        repo_id = path.parents[1].name.removeprefix(_FOLDER).replace("--", "/", 1)
        digest = path.name.partition(".")[0]
        found.append(Unfinished(repo_id=repo_id, digest=digest, n_bytes=n_bytes, path=path))
    return found


def remove_unfinished(part: Unfinished) -> int:
    """The bytes that were freed; raises BusyError where a program is at that file."""
    # The lock of its content, which whoever downloads it holds, this library's other users too.
    folder = Path(constants.HF_HUB_CACHE) / ".locks" / part.path.parents[1].name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{part.digest}.lock", timeout=0, mode=0o664):
            n_bytes = part.path.stat().st_size
            part.path.unlink()
    except Timeout:
        raise BusyError(f"A file of {part.repo_id} is being downloaded. Wait, or cancel it first.") from None
    except FileNotFoundError:  # it became whole, or somebody else was faster
        return 0
    except OSError as error:
        raise FileError(f"{part.path} cannot be removed: {error.strerror or error}.") from error
    return n_bytes
