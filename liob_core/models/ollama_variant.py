"""Variants of models that an Ollama server has, and how its files and names are told apart.

Three digests are never mixed: that of the server's blob (it writes anew what it imports), that of the file
somebody published, and that of the weights, which stays the same on every engine.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from liob_core.engines.ollama_host import OllamaHost, find_host
from liob_core.engines.ollama_models import (
    InstalledModel,
    OllamaModels,
    ShownModel,
    full_name,
    refused_remote,
)
from liob_core.engines.ollama_register import is_ours
from liob_core.engines.ollama_stream import OllamaStream
from liob_core.errors import FileError, MissingError, UsageError
from liob_core.models.digests import Progress, weights_sha256
from liob_core.models.gguf import describe, read_model
from liob_core.models.header import TensorInfo
from liob_core.models.labels import label_warning, published_label
from liob_core.models.memory import memory_need
from liob_core.models.variant import quant_of, variant_key
from liob_core.types import LoadSettings, ModelFile, Variant

PLAIN_TEMPLATES = ("", "{{ .Prompt }}")  # what Ollama shows for a file that has no template


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaModel:
    """One installed model: what the server calls it, what it holds, and where its weights lie.

    `blob` is the file on this machine, None where it cannot be read from here; `model` is read from it, else
    from what the server tells, and None where that is not enough.
    """

    name: str
    size_bytes: int | None  # of all layers, as the server counts them
    quant: str | None
    manifest_digest: str | None
    blob_digest: str | None
    blob: Path | None
    model: ModelFile | None
    is_ours: bool


class OllamaServer:
    """Questions to one server about what it has installed."""

    def __init__(self, host: OllamaHost) -> None:
        self.host = host
        self._stream = OllamaStream(host)
        self._models = OllamaModels(self._stream)

    def installed(self) -> list[InstalledModel]:
        """The installed models that run on the server's own machine, by name."""
        return sorted((one for one in self._models.installed() if not one.is_remote), key=_name)

    def look(self, entry: InstalledModel) -> OllamaModel:
        """What one installed model is."""
        shown = self._models.show(entry.name)
        if shown.remote_host or shown.remote_model:
            raise refused_remote(entry.name)
        blob = self._blob(shown)
        model = _model(entry, shown, blob)
        return OllamaModel(
            name=entry.name,
            size_bytes=entry.size,
            quant=quant_of(model) if model else published_label(_as_file(entry.name)),
            manifest_digest=entry.digest,
            blob_digest=shown.blob_digest,
            blob=blob,
            model=model,
            is_ours=is_ours(entry.name),
        )

    def find(self, name: str) -> OllamaModel:
        """What the model of that name is; raises UsageError that lists what there is."""
        entries = self._models.installed()
        entry = next((one for one in entries if full_name(one.name) == full_name(name)), None)
        if entry is None:
            known = ", ".join(one.name for one in entries) or "none yet"
            raise UsageError(f"Ollama has no model {name!r}. It has: {known}. `ollama pull` gets more.")
        if entry.is_remote:
            raise refused_remote(entry.name)
        return self.look(entry)

    def _blob(self, shown: ShownModel) -> Path | None:
        """The file with the weights, where this process can read it."""
        if not self.host.is_loopback or shown.blob_path is None:
            return None
        path = Path(shown.blob_path)
        return path if path.is_file() and os.access(path, os.R_OK) else None

    def close(self) -> None:
        """Close the connections."""
        self._stream.close()


@contextmanager
def open_server(url: str | None = None) -> Iterator[OllamaServer]:
    """The server at `url` or OLLAMA_HOST, closed at the end; its questions raise `EngineFailure`."""
    server = OllamaServer(find_host(url))
    try:
        yield server
    finally:
        server.close()


def make_ollama_variant(
    found: OllamaModel,
    settings: LoadSettings,
    cache_dir: Path,
    *,
    engine: str = "ollama",
    progress: Progress | None = None,
    with_digests: bool = True,
) -> Variant:
    """The variant that an installed model is, on Ollama or, from the same blob, on the embedded engine.

    The weights' digest is read from the blob; without it the blob's own digest keeps variants apart. The
    published file's digest is not known: Ollama wrote that file anew.
    """
    if engine != "ollama" and found.blob is None:
        raise MissingError(
            f"The weights of {found.name} cannot be read from here, so only Ollama can run them: name a file "
            "instead, or run LIOB where Ollama keeps its models."
        )
    trained = found.model.n_ctx_train if found.model else None
    if trained is not None and trained < settings.n_ctx:
        settings = replace(settings, n_ctx=trained)
    weights = None
    if found.blob is not None and with_digests:
        weights = weights_sha256(found.blob, cache_dir, progress=progress)
    identity = weights or f"blob:{found.blob_digest or found.manifest_digest or found.name}"
    quant = found.quant or found.name
    return Variant(
        key=variant_key(identity, engine, settings),
        label=quant,
        quant=quant,
        engine=engine,
        engine_model=found.name if engine == "ollama" else str(found.blob),
        load_settings=settings,
        weights_sha256=weights,
        file_sha256=None,
        model=found.model,
        need=memory_need(found.model, settings) if found.model else None,
    )


def family_of(name: str) -> str:
    """The model that a name stands for, without registry, owner and tag: `hf.co/me/tiny:Q4_0` is tiny."""
    return name.rpartition("/")[2].partition(":")[0]


def _model(entry: InstalledModel, shown: ShownModel, blob: Path | None) -> ModelFile | None:
    """What the header says, read from the blob or told by the server; the name's own label kept apart."""
    model = _read_blob(blob) or _told_model(entry, shown)
    if model is None:
        return None
    published = published_label(_as_file(entry.name))
    return replace(
        model,
        paths=(str(blob),) if blob else (),
        name=family_of(entry.name),
        published_label=published,
        label_warning=label_warning(published, model.content_label),
    )


def _read_blob(blob: Path | None) -> ModelFile | None:
    try:
        return read_model(blob) if blob else None
    except FileError:  # a model that is no GGUF file; the server may still tell what it is
        return None


def _told_model(entry: InstalledModel, shown: ShownModel) -> ModelFile | None:
    tensors = _tensors(shown)
    if not tensors:
        return None
    header = _ToldHeader(shown.facts, Path(entry.name), entry.size or sum(one.n_bytes for one in tensors))
    has_template = shown.template.strip() not in PLAIN_TEMPLATES
    return replace(describe([header], tensors), has_chat_template=has_template)


def _tensors(shown: ShownModel) -> list[TensorInfo]:
    """The tensors that the server lists; empty where one of them cannot be understood."""
    try:
        return [_tensor(one) for one in shown.tensors]
    except (KeyError, TypeError, ValueError):
        return []


def _tensor(told: Mapping[str, Any]) -> TensorInfo:
    kind = GGMLQuantizationType[str(told["type"])]
    block_size, block_bytes = GGML_QUANT_SIZES[kind]
    shape = tuple(int(size) for size in told["shape"])
    n_elements = prod(shape)
    if n_elements <= 0 or shape[0] % block_size:
        raise ValueError("an impossible shape")
    n_bytes = n_elements // block_size * block_bytes
    return TensorInfo(
        name=str(told["name"]), type=kind, shape=shape, n_elements=n_elements, offset=0, n_bytes=n_bytes
    )


@dataclass(frozen=True, slots=True)
class _ToldHeader:
    """The facts that a server tells of a model; long lists are left out by it."""

    facts: Mapping[str, Any]
    path: Path
    file_bytes: int

    def text(self, key: str) -> str | None:
        value = self.facts.get(key)
        return value if isinstance(value, str) and value else None

    def number(self, key: str) -> int | float | bool | None:
        value = self.facts.get(key)
        return value if isinstance(value, int | float) else None

    def count(self, key: str) -> int | None:
        value = self.number(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

    def array_length(self, key: str) -> int | None:
        value = self.facts.get(key)
        return len(value) if isinstance(value, list) else None

    def array(self, key: str) -> list[Any] | None:
        value = self.facts.get(key)
        return value if isinstance(value, list) else None


def _name(entry: InstalledModel) -> str:
    return full_name(entry.name)


def _as_file(name: str) -> Path:
    """A name so that it reads as a file's: its tag may hold dots, which are no ending."""
    return Path(name.replace("/", "-") + ".gguf")
