"""What an Ollama server has: its version, installed and loaded models, and what one of them is.

Asked with plain calls, since Ollama's client drops what LIOB needs (version, capabilities, tensors, where
a remote model really runs).
"""

import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator

from liob_core.engines.ollama_lines import bad_reply
from liob_core.engines.ollama_stream import OllamaStream
from liob_core.errors import EngineFailure
from liob_core.types import JsonValue, Outcome

PING_TIMEOUT_S = 4.0
REMOTE_SUFFIXES = (":cloud", "-cloud")
_Model = TypeVar("_Model", bound=BaseModel)
LIBRARY = "registry.ollama.ai/library/"
_FROM = re.compile(r"^FROM (.+?)\s*$", re.MULTILINE)
_BLOB = re.compile(r"sha256[-:]([0-9a-f]{64})$")


class _Details(BaseModel):
    family: str | None = None
    parameter_size: str | None = None
    quantization_level: str | None = None


class InstalledModel(BaseModel):
    """One installed model: bytes of all its layers, and the digest of its manifest, not of a file."""

    name: str
    size: int | None = None
    digest: str | None = None
    modified_at: str | None = None
    details: _Details = Field(default_factory=_Details)
    capabilities: list[str] | None = None  # None: the server is too old to tell
    remote_host: str | None = None

    @property
    def is_remote(self) -> bool:
        """Whether a request to it would leave this machine."""
        return bool(self.remote_host) or is_remote_name(self.name)


class LoadedModel(BaseModel):
    """One model in memory, with the server's own estimates in bytes.

    They come from its runner's load log: KV cache and buffers can be missing, and memory that is not called
    CPU counts as VRAM even where there is no GPU.
    """

    name: str = ""
    digest: str | None = None
    size: int | None = None
    size_vram: int | None = None
    context_length: int | None = None


class ShownModel(BaseModel):
    """What one model is. `template` need not be what is applied, `details` come from its label alone."""

    modelfile: str = ""
    template: str = ""
    parameters: str = ""
    details: _Details = Field(default_factory=_Details)
    capabilities: list[str] = Field(default_factory=list)
    facts: dict[str, Any] = Field(default_factory=dict, alias="model_info")
    tensors: list[dict[str, Any]] = Field(default_factory=list)
    remote_host: str | None = None
    remote_model: str | None = None

    @field_validator("capabilities", "facts", "tensors", mode="before")
    @classmethod
    def _absent(cls, value: object, info: Any) -> object:
        return value if value is not None else {} if info.field_name == "facts" else []

    @property
    def can_think(self) -> bool:
        """Whether its template declares thinking."""
        return "thinking" in self.capabilities

    @property
    def blob_path(self) -> str | None:
        """The path, on the server's machine, of the file with its weights; None where it tells none."""
        named = [path.strip('"') for path in _FROM.findall(self.modelfile)]
        return next((path for path in named if _BLOB.search(blob_name(path))), None)

    @property
    def blob_digest(self) -> str | None:
        """The SHA-256 of that file in hex: Ollama rewrites what it imports, so it is not the file's."""
        found = _BLOB.search(blob_name(self.blob_path)) if self.blob_path else None
        return found.group(1) if found else None


class OllamaModels:
    """Questions to one server; each is one call and raises `EngineFailure`."""

    def __init__(self, stream: OllamaStream) -> None:
        self._stream = stream

    def version(self) -> str:
        """The server's version."""
        reply = self._stream.call("GET", "/api/version", timeout_s=PING_TIMEOUT_S)
        version = reply.get("version")
        if not isinstance(version, str) or not version:
            raise bad_reply(str(reply).encode(), "no version")
        return version

    def installed(self) -> list[InstalledModel]:
        """The installed models, as the server orders them."""
        reply = self._stream.call("GET", "/api/tags")
        return [_read(InstalledModel, item) for item in _list(reply)]

    def loaded(self, *, timeout_s: float = PING_TIMEOUT_S) -> list[LoadedModel]:
        """The models in memory now."""
        reply = self._stream.call("GET", "/api/ps", timeout_s=timeout_s)
        return [_read(LoadedModel, item) for item in _list(reply)]

    def show(self, name: str, *, verbose: bool = False) -> ShownModel:
        """What one installed model is; `verbose` adds its vocabulary to the facts."""
        body: dict[str, JsonValue] = {"model": name, **({"verbose": True} if verbose else {})}
        return _read(ShownModel, self._stream.call("POST", "/api/show", body))


def _list(reply: dict[str, JsonValue]) -> list[JsonValue]:
    models = reply.get("models")
    if models is None and "models" in reply:
        return []
    if not isinstance(models, list):
        raise bad_reply(str(reply).encode(), "no list of models")
    return models


def _read(kind: type[_Model], value: JsonValue) -> _Model:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise bad_reply(str(value).encode(), "a model that cannot be read") from error


def blob_name(path: str) -> str:
    """The last part of a path of the server's machine, which may be of another system."""
    return PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name


def full_name(name: str) -> str:
    """A model's name as two of them compare: in lower case, with its tag, without the default registry."""
    text = name.lower().removeprefix(LIBRARY)
    return text if ":" in text.rpartition("/")[2] else f"{text}:latest"


def is_remote_name(name: str) -> bool:
    """Whether a name is one of those that Ollama's own cloud runs."""
    return full_name(name).removesuffix(":latest").endswith(REMOTE_SUFFIXES)


def refused_remote(name: str) -> EngineFailure:
    """The failure of a model that does not run here."""
    return EngineFailure(
        Outcome.REFUSED_REMOTE,
        f"{name} would leave this machine: it runs in a cloud. Choose a model that is installed here.",
    )
