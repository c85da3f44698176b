"""What a GGUF model is: read from its header, all shards together, without touching the weights."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, Keys

from liob_core.errors import FileError
from liob_core.models.header import Header, TensorInfo, read_header
from liob_core.models.labels import (
    bits_per_weight,
    block_size_of,
    content_label,
    fallback_tensors,
    has_offset,
    label_warning,
    published_label,
    shard_of,
    shard_paths,
)
from liob_core.models.token_reads import read_bytes
from liob_core.types import ModelFile, TensorGroup

# A damaged count must not become a list of a billion entries.
_MAX_LAYERS = 10_000
_NOT_MODELS = {
    "adapter": "a LoRA adapter",
    "mmproj": "a projector for images or sound",
    "imatrix": "an importance matrix",
    "vocab": "a vocabulary",
}


# What gives the header of one file.
ReadHeader = Callable[[Path], Header]


class HeaderFacts(Protocol):
    """What `describe` asks of a header, wherever that was read."""

    @property
    def path(self) -> Path:
        """The file, whose name may tell the quantization."""
        ...

    @property
    def file_bytes(self) -> int:
        """The size of the file in bytes."""
        ...

    def text(self, key: str) -> str | None:
        """The text under `key`."""
        ...

    def number(self, key: str) -> int | float | bool | None:
        """The scalar under `key`."""
        ...

    def count(self, key: str) -> int | None:
        """The non-negative whole number under `key`."""
        ...

    def array_length(self, key: str) -> int | None:
        """The number of items of the array under `key`."""
        ...

    def array(self, key: str) -> list[Any] | None:
        """The items of the array under `key`."""
        ...


def read_model(path: Path, read: ReadHeader = read_header) -> ModelFile:
    """What the header of a model says. `path` may be any shard of a split model."""
    return model_of(read_headers(path, read))


def model_of(headers: Sequence[Header]) -> ModelFile:
    """What the headers of all files of one model say of it."""
    return describe(headers, [tensor for header in headers for tensor in header.tensors])


def read_headers(path: Path, read: ReadHeader = read_header) -> tuple[Header, ...]:
    """The headers of all files of one model, in order; the first holds the metadata."""
    headers = tuple(_read_shard(shard, path, read) for shard in shard_paths(path))
    split_count = headers[0].count(Keys.Split.LLM_KV_SPLIT_COUNT) or 1
    if split_count != len(headers):
        raise FileError(
            f"{path} is one of {split_count} parts of a split model, but its name does not fit: "
            f"the parts must be named NAME-00001-of-{split_count:05d}.gguf and so on, in one folder."
        )
    _check_is_model(path, headers[0])
    names = [tensor.name for header in headers for tensor in header.tensors]
    if len(set(names)) != len(names):
        raise FileError(f"{path} and its other parts hold the same tensor twice. Download them again.")
    if not names:
        raise FileError(f"{path} holds no tensors, so it is not a model that can run.")
    return headers


def _read_shard(shard: Path, asked: Path, read: ReadHeader) -> Header:
    if shard != asked and not shard.exists():
        raise FileError(
            f"{asked} is part of a split model, but {shard.name} is not beside it. Get all parts."
        )
    return read(shard)


def _check_is_model(path: Path, header: Header) -> None:
    kind = header.text(Keys.General.TYPE) or "model"
    architecture = header.text(Keys.General.ARCHITECTURE)
    if architecture == "clip":
        kind = "mmproj"
    if kind in _NOT_MODELS:
        raise FileError(f"{path} is {_NOT_MODELS[kind]}, not a language model. Name the model's own file.")
    if architecture is None:
        raise FileError(f"{path} names no architecture in its header, so no engine can load it.")


def find_models(path: Path) -> list[Path]:
    """The models at `path`: itself, or those in a folder and its subfolders, first shards only, sorted.

    Projectors, adapters and the like are left out; a damaged file stays in, so that reading it tells why.
    """
    try:
        if not path.is_dir():
            return [shard_paths(path)[0]]
        found = sorted({*path.glob("*.gguf"), *path.glob("*/*.gguf")})
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from error
    models = [file for file in found if (shard_of(file) or (1, 1))[0] == 1 and not _is_companion(file)]
    if not models:
        raise FileError(f"There is no .gguf model in {path}. Name another folder or a file.")
    return models


def _is_companion(path: Path) -> bool:
    try:
        header = read_header(path)
    except FileError:
        return False
    is_projector = header.text(Keys.General.ARCHITECTURE) == "clip"
    return is_projector or header.text(Keys.General.TYPE) in _NOT_MODELS


def read_chat_template(path: Path) -> str | None:
    """The chat template in a model's header, or None where it has none."""
    return read_headers(path)[0].text(Keys.Tokenizer.CHAT_TEMPLATE)


def describe(headers: Sequence[HeaderFacts], tensors: Sequence[TensorInfo]) -> ModelFile:
    """What the headers of one model's files say; the first has the metadata."""
    header = headers[0]
    architecture = header.text(Keys.General.ARCHITECTURE) or ""
    n_params = sum(tensor.n_elements for tensor in tensors)
    tensor_bytes = sum(tensor.n_bytes for tensor in tensors)
    bpw = 8 * tensor_bytes / n_params
    published, content = (
        published_label(headers[0].path),
        content_label(header.count(Keys.General.FILE_TYPE)),
    )
    fallback = fallback_tensors(tensors, content or published)
    template = header.text(Keys.Tokenizer.CHAT_TEMPLATE)
    adds_bos = header.number(Keys.Tokenizer.ADD_BOS)
    shape = _Shape(header, architecture)
    n_experts = shape.count(Keys.LLM.EXPERT_COUNT) or None
    n_experts_used = shape.count(Keys.LLM.EXPERT_USED_COUNT) or None
    return ModelFile(
        paths=tuple(str(one.path) for one in headers),
        file_bytes=sum(one.file_bytes for one in headers),
        tensor_bytes=tensor_bytes,
        n_params=n_params,
        bpw=bpw,
        n_tensors=len(tensors),
        tensor_groups=_groups(tensors),
        architecture=architecture,
        name=header.text(Keys.General.NAME),
        published_label=published,
        content_label=content,
        label_warning=label_warning(published, content),
        fallback_tensors=None if fallback is None else len(fallback),
        fallback_warning=_fallback_warning(fallback, content or published, len(tensors), bpw),
        n_layers=shape.n_layers,
        n_ctx_train=shape.count(Keys.LLM.CONTEXT_LENGTH),
        n_embd=shape.n_embd,
        n_heads=shape.n_heads,
        n_kv_heads=shape.n_kv_heads,
        head_dim_k=shape.count(Keys.Attention.KEY_LENGTH) or shape.head_dim,
        head_dim_v=shape.count(Keys.Attention.VALUE_LENGTH) or shape.head_dim,
        sliding_window=shape.count(Keys.Attention.SLIDING_WINDOW) or None,
        n_experts=n_experts,
        n_experts_used=n_experts_used,
        vocab_size=header.array_length(Keys.Tokenizer.LIST) or shape.count(Keys.LLM.VOCAB_SIZE),
        has_chat_template=template is not None,
        chat_template_sha256=hashlib.sha256(template.encode()).hexdigest() if template else None,
        adds_bos=adds_bos if isinstance(adds_bos, bool) else None,
        imatrix=header.text("quantize.imatrix.file") or header.text("quantize.imatrix.dataset"),
        quantized_by=header.text(Keys.General.QUANTIZED_BY),
        repo_url=_first_text(header, Keys.General.REPO_URL, Keys.General.SOURCE_REPO_URL, Keys.General.URL),
        base_model=_base_model(header),
        n_ff=shape.count(Keys.LLM.EXPERT_FEED_FORWARD_LENGTH) or shape.count(Keys.LLM.FEED_FORWARD_LENGTH),
        windowed_layers=shape.windowed_layers(),
        read_bytes=read_bytes(tensors, n_experts, n_experts_used),
    )


class _Shape:
    """The sizes of a network as its header gives them; None where it does not or they cannot be."""

    def __init__(self, header: HeaderFacts, architecture: str) -> None:
        self._header = header
        self._architecture = architecture
        n_layers = self.count(Keys.LLM.BLOCK_COUNT)
        self.n_layers = n_layers if n_layers and n_layers <= _MAX_LAYERS else None
        self.n_embd = self.count(Keys.LLM.EMBEDDING_LENGTH)
        heads = self._per_layer(Keys.Attention.HEAD_COUNT)
        self.n_heads = max(heads) if heads else None
        # Without a count of its own every head has its keys and values.
        self.n_kv_heads = self._per_layer(Keys.Attention.HEAD_COUNT_KV) or heads
        self.head_dim = self.n_embd // self.n_heads if self.n_embd and self.n_heads else None

    def count(self, key: str) -> int | None:
        """The non-negative whole number under `key`."""
        return self._header.count(key.format(arch=self._architecture))

    def windowed_layers(self) -> tuple[bool, ...] | None:
        """Which layers keep only the sliding window, where the header says so."""
        key = Keys.Attention.SLIDING_WINDOW_PATTERN
        period = self.count(key)
        if period and self.n_layers:
            return layers_of_period(self.n_layers, period)
        items = self._header.array(key.format(arch=self._architecture)) or []
        return tuple(bool(item) for item in items) if len(items) == self.n_layers else None

    def _per_layer(self, key: str) -> tuple[int, ...] | None:
        if self.n_layers is None:
            return None
        value = self.count(key)
        if value is not None:
            return (value,) * self.n_layers
        items = self._header.array(key.format(arch=self._architecture))
        if items is None or len(items) != self.n_layers:
            return None
        return tuple(items) if all(isinstance(item, int) and item >= 0 for item in items) else None


def layers_of_period(n_layers: int, period: int) -> tuple[bool, ...]:
    """Which layers keep only the window where every `period`-th layer sees everything."""
    return tuple(layer % period < period - 1 for layer in range(n_layers))


def _groups(tensors: Sequence[TensorInfo]) -> tuple[TensorGroup, ...]:
    by_type: dict[GGMLQuantizationType, list[TensorInfo]] = defaultdict(list)
    for tensor in tensors:
        by_type[tensor.type].append(tensor)
    groups = [
        TensorGroup(
            type_name=tensor_type.name,
            n_tensors=len(members),
            n_elements=sum(tensor.n_elements for tensor in members),
            tensor_bytes=sum(tensor.n_bytes for tensor in members),
            bits=bits_per_weight(tensor_type),
            block_size=int(GGML_QUANT_SIZES[tensor_type][0]),
            has_offset=has_offset(tensor_type.name),
        )
        for tensor_type, members in by_type.items()
    ]
    return tuple(sorted(groups, key=lambda group: (-group.tensor_bytes, group.type_name)))


def _fallback_warning(
    fallback: Sequence[TensorInfo] | None, label: str | None, n_tensors: int, bpw: float
) -> str | None:
    if not fallback:
        return None
    types = ", ".join(sorted({tensor.type.name for tensor in fallback}))
    return (
        f"{len(fallback)} of {n_tensors} tensors could not be {label}, because their row length is not a "
        f"multiple of {block_size_of(label)}; they hold {types} instead, "
        f"and the file has {bpw:.2f} bits per weight."
    )


def _first_text(header: HeaderFacts, *keys: str) -> str | None:
    return next((text for key in keys if (text := header.text(key))), None)


def _base_model(header: HeaderFacts) -> str | None:
    keys = Keys.General
    url = header.text(keys.BASE_MODEL_REPO_URL.format(id=0))
    if url:
        return url
    name, organization = (
        header.text(key.format(id=0)) for key in (keys.BASE_MODEL_NAME, keys.BASE_MODEL_ORGANIZATION)
    )
    return f"{organization}/{name}" if organization and name else name
