"""Models that LIOB makes on an Ollama server: files registered, models pulled, both removed on request."""

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from liob_core.engines.ollama_errors import told_status, translated, translated_client
from liob_core.engines.ollama_host import OllamaHost, make_client, make_http
from liob_core.engines.ollama_models import OllamaModels, full_name
from liob_core.engines.ollama_stream import OllamaStream
from liob_core.errors import EngineFailure, FileError, UsageError
from liob_core.types import Outcome

OURS = "liob/"
MAX_PART_CHARS = 80
CHUNK_BYTES = 2**20
IMPORT_COPIES = 3  # the upload, the copy that is written anew, and the layer it becomes
UPLOAD_TIMEOUT_S = 600.0  # of silence: the server hashes the whole file before it answers
_MAGIC = b"GGUF"
_NOT_ALLOWED = re.compile(r"[^a-z0-9_.-]+")

# Called with what is happening, bytes done and bytes in all; either may be unknown.
Progress = Callable[[str, int | None, int | None], None]


@dataclass(frozen=True, slots=True)
class RegisterFile:
    """One file (a shard) to upload, and its SHA-256 in hex."""

    path: Path
    sha256: str


def model_name(model: str, quant: str, weights_sha256: str) -> str:
    """The name LIOB gives a registered file: the same weights always get the same one."""
    repository, tag = _part(model) or "model", f"{_part(quant) or 'unknown'}-{weights_sha256[:12]}"
    return f"{OURS}{repository[:MAX_PART_CHARS]}:{tag[-MAX_PART_CHARS:].lstrip('.-')}"


def _part(text: str) -> str:
    return _NOT_ALLOWED.sub("-", text.lower()).strip("-.")


def is_ours(name: str) -> bool:
    """Whether a model's name is one of those that LIOB gives."""
    return full_name(name).startswith(OURS)


class OllamaRegistry:
    """Makes and removes models on one server; every failure is an `EngineFailure`."""

    def __init__(self, host: OllamaHost) -> None:
        self._host = host
        self._client = make_client(host)
        self._http = make_http(host)
        self._stream = OllamaStream(host)
        self._models = OllamaModels(self._stream)

    def register(self, name: str, files: Sequence[RegisterFile], progress: Progress | None = None) -> None:
        """Upload what the server does not have and make the model `name` of it, all shards in one.

        Ollama writes the file anew, so what it then holds has another digest; the weights are the same.
        """
        if not is_ours(name):
            raise UsageError(f"{name} is not a name that LIOB gives: it must begin with {OURS}.")
        for file in files:
            _check_file(file.path)
        n_bytes = IMPORT_COPIES * sum(file.path.stat().st_size for file in files)
        self._check_room(
            n_bytes, "Registering", ": Ollama keeps the upload, a copy and the result for a time"
        )
        for file in files:
            self._upload(file, progress)
        digests = {file.path.name: f"sha256:{file.sha256}" for file in files}
        with translated_client(self._host):
            steps = self._client.create(model=name, files=digests, stream=True)
        self._follow(steps, f"Ollama did not register {name}", progress)

    def _check_room(self, n_bytes: int, what: str, why: str = "") -> None:
        """Raises where the disk of a local server is too small; where that is cannot always be told."""
        folder = self._blobs_folder() if self._host.is_loopback else None
        free = shutil.disk_usage(folder).free if folder else None
        if free is not None and free < n_bytes:
            raise FileError(
                f"{what} needs {n_bytes / 2**30:.1f} GiB in {folder}, where {free / 2**30:.1f} GiB are "
                f"free{why}. Free some space there."
            )

    def _blobs_folder(self) -> Path | None:
        """Where a local server keeps its files: beside those of a model that it has."""
        for model in self._models.installed():
            if not model.is_remote and (blob := self._models.show(model.name).blob_path):
                folder = Path(blob).parent
                return folder if folder.is_dir() else None
        return None

    def _upload(self, file: RegisterFile, progress: Progress | None) -> None:
        path = f"/api/blobs/sha256:{file.sha256}"
        with translated(self._host):
            if self._http.head(path).status_code == httpx.codes.OK:
                return
            size = file.path.stat().st_size
            response = self._http.post(
                path,
                content=_read(file.path, size, progress),
                headers={"Content-Length": str(size)},
                timeout=httpx.Timeout(UPLOAD_TIMEOUT_S, connect=5.0),
            )
        if response.status_code not in {httpx.codes.OK, httpx.codes.CREATED}:
            raise told_status(response.status_code, response.content)

    def pull(self, name: str, progress: Progress | None = None, *, n_bytes: int | None = None) -> None:
        """Pull a model from its registry; pulling again goes on where an earlier try stopped.

        Where its size is known, a disk that is too small is told before the first byte.
        """
        if n_bytes is not None:
            self._check_room(n_bytes, f"Pulling {name}")
        with translated_client(self._host):
            steps = self._client.pull(name, stream=True)
        self._follow(steps, f"Ollama did not pull {name}", progress)

    def _follow(self, steps: Iterator[Any], failed: str, progress: Progress | None) -> None:
        """Go through a stream of statuses; only one that ends in `success` has succeeded."""
        done: dict[str, tuple[int, int]] = {}
        status = ""
        while True:
            try:
                with translated_client(self._host):
                    step = next(steps, None)
            except EngineFailure as failure:
                raise EngineFailure(failure.outcome, f"{failed}: {failure}") from failure
            if step is None:
                break
            status = step.status or status
            if step.digest and step.total:
                # A part that was begun again may report less than before; no sum is beyond its total.
                done[step.digest] = (min(step.completed or 0, step.total), step.total)
            if progress:
                parts = done.values()
                so_far, total = sum(part for part, _ in parts), sum(whole for _, whole in parts)
                progress(status, so_far if parts else None, total if parts else None)
        if status != "success":
            raise EngineFailure(
                Outcome.INCOMPLETE, f"{failed}: it ended with {status or 'no word'!r}, not with success"
            )

    def remove(self, name: str, *, confirmed: bool = False) -> None:
        """Unload and delete a model; one that LIOB did not make only where the user confirmed it."""
        if not is_ours(name) and not confirmed:
            raise UsageError(f"LIOB did not make {name}: confirm that it is to be deleted.")
        if any(full_name(model.name) == full_name(name) for model in self._models.loaded()):
            self._stream.call("POST", "/api/generate", {"model": name, "prompt": "", "keep_alive": 0})
        try:
            with translated_client(self._host):
                self._client.delete(name)
        except EngineFailure as failure:
            if "not found" not in str(failure):  # gone already is as good
                raise

    def ours(self) -> list[str]:
        """The names of the installed models that LIOB made."""
        return [model.name for model in self._models.installed() if is_ours(model.name)]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        self._http.close()
        self._stream.close()


def _check_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from error
    if magic != _MAGIC:
        raise FileError(f"{path} is no GGUF file, so Ollama cannot use it.")


def _read(path: Path, size: int, progress: Progress | None) -> Iterator[bytes]:
    done = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
            done += len(chunk)
            if progress:
                progress("uploading", done, size)
