"""The header of one GGUF file: metadata and where each tensor lies, without reading the weights."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader, GGUFValueType

from liob_core.errors import FileError

# Real models stay far below these. A damaged count must not keep the reader busy for hours.
MAX_TENSORS = 200_000
MAX_ARRAY_ITEMS = 20_000_000
MAX_STRING_BYTES = 64 * 2**20
MAX_DIMENSIONS = 4  # ggml's own

READABLE_VERSIONS = (2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorInfo:
    """One tensor: `shape` as stored (row length first), `offset` in bytes from the start of its file."""

    name: str
    type: GGMLQuantizationType
    shape: tuple[int, ...]
    n_elements: int
    offset: int
    n_bytes: int


class HeaderCutError(FileError):
    """A file ends inside its header; said in one sentence."""


class _CutShortError(ValueError):
    """The file ends before its header does."""


class _HeaderReader(GGUFReader):  # type: ignore[misc]
    """The library's reader made fit for files that are large or damaged.

    It never reads past the end, takes an array as one piece (the token strings of a vocabulary one by
    one cost the library seconds), and does not map tensor data.
    """

    infos: tuple[TensorInfo, ...] = ()

    def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:
        if offset + np.dtype(dtype).itemsize * int(count) > self.data.size:
            raise _CutShortError
        return super()._get(offset, dtype, count, override_order)

    def _get_str(self, offset: int) -> Any:
        if int(self._get(offset, np.uint64)[0]) > MAX_STRING_BYTES:
            raise ValueError("a text is impossibly long")
        return super()._get_str(offset)

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> Any:
        if raw_type != GGUFValueType.ARRAY:
            return super()._get_field_parts(orig_offs, raw_type)
        item_type_part, length_part = self._get(orig_offs, np.uint32), self._get(orig_offs + 4, np.uint64)
        item_type, n_items = GGUFValueType(int(item_type_part[0])), int(length_part[0])
        if n_items > MAX_ARRAY_ITEMS:
            raise ValueError("a list is impossibly long")
        start = orig_offs + 12
        if item_type is GGUFValueType.STRING:
            n_bytes = self._end_of_strings(start, n_items) - start
        elif item_type in self.gguf_scalar_to_np:
            n_bytes = n_items * np.dtype(self.gguf_scalar_to_np[item_type]).itemsize
        else:
            raise ValueError("a list of lists")
        parts = [item_type_part, length_part, self._get(start, np.uint8, n_bytes)]
        return 12 + n_bytes, parts, [2], [GGUFValueType.ARRAY, item_type]

    def _end_of_strings(self, offset: int, count: int) -> int:
        read_length, view = struct.Struct("<Q").unpack_from, memoryview(self.data)
        for _ in range(count):
            if offset + 8 > len(view):
                raise _CutShortError
            offset += 8 + read_length(view, offset)[0]
        return offset

    def _build_tensor_info(self, offs: int, count: int) -> Any:
        if count > MAX_TENSORS:
            raise ValueError("impossibly many tensors")
        return super()._build_tensor_info(offs, count)

    def _get_tensor_info_field(self, orig_offs: int) -> Any:
        name_length, name = self._get_str(orig_offs)
        if self._get(orig_offs + name_length.nbytes + name.nbytes, np.uint32)[0] > MAX_DIMENSIONS:
            raise ValueError("a tensor with too many dimensions")
        return super()._get_tensor_info_field(orig_offs)

    def _build_tensors(self, start_offs: int, fields: Any) -> None:
        infos = [_tensor_info(int(start_offs), field) for field in fields]
        if len({info.name for info in infos}) != len(infos):
            raise ValueError("a tensor is listed twice")
        self.infos = tuple(infos)


def _tensor_info(start: int, field: Any) -> TensorInfo:
    _, _, _, dims, raw_type, offset = field.parts
    shape = tuple(int(size) for size in dims)
    tensor_type = GGMLQuantizationType(int(raw_type[0]))
    block_size, block_bytes = GGML_QUANT_SIZES[tensor_type]
    n_elements = prod(shape)
    if not shape or n_elements == 0 or shape[0] % block_size:
        raise ValueError(f"tensor {field.name!r} has an impossible shape")
    return TensorInfo(
        name=field.name,
        type=tensor_type,
        shape=shape,
        n_elements=n_elements,
        offset=start + int(offset[0]),
        n_bytes=n_elements // block_size * block_bytes,
    )


class Header:
    """What the header of one file holds; values are read when they are asked for."""

    def __init__(self, path: Path, reader: _HeaderReader, file_bytes: int) -> None:
        self.path = path
        self.tensors = reader.infos
        self.file_bytes = file_bytes
        self.alignment = int(reader.alignment)
        self._fields = {name: field for name, field in reader.fields.items() if not name.startswith("GGUF.")}

    def __contains__(self, key: str) -> bool:
        """True if the header has `key`."""
        return key in self._fields

    def __iter__(self) -> Iterator[str]:
        """The metadata keys in file order."""
        return iter(self._fields)

    def types(self, key: str) -> tuple[GGUFValueType, ...]:
        """The GGUF type of a value; of an array, also that of its items."""
        return tuple(self._fields[key].types)

    def text(self, key: str) -> str | None:
        """The text under `key`, or None where there is none."""
        field = self._fields.get(key)
        if field is None or field.types[0] is not GGUFValueType.STRING:
            return None
        return field.parts[-1].tobytes().decode("utf-8", errors="replace") or None

    def number(self, key: str) -> int | float | bool | None:
        """The scalar under `key`, or None where there is none."""
        field = self._fields.get(key)
        if field is None or field.types[0] in (GGUFValueType.STRING, GGUFValueType.ARRAY):
            return None
        value: int | float | bool = field.parts[-1].tolist()[0]
        return value

    def count(self, key: str) -> int | None:
        """The non-negative whole number under `key`, or None where there is none."""
        value = self.number(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

    def array_length(self, key: str) -> int | None:
        """The number of items of the array under `key`, or None where there is none."""
        field = self._fields.get(key)
        if field is None or field.types[0] is not GGUFValueType.ARRAY:
            return None
        return int(field.parts[-2][0])

    def array(self, key: str) -> list[Any] | None:
        """The items of the array under `key` (texts as bytes), or None where there is none."""
        length = self.array_length(key)
        if length is None:
            return None
        field = self._fields[key]
        raw, item_type = field.parts[-1], field.types[-1]
        if item_type is not GGUFValueType.STRING:
            items: list[Any] = raw.view(_HeaderReader.gguf_scalar_to_np[item_type]).tolist()
            return items
        return _split_strings(raw.tobytes(), length)

    def raw_text(self, key: str) -> bytes:
        """The bytes of the text under `key`, as they stand in the file."""
        raw: bytes = self._fields[key].parts[-1].tobytes()
        return raw


def _split_strings(raw: bytes, count: int) -> list[bytes]:
    strings, offset = [], 0
    for _ in range(count):
        end = offset + 8 + int.from_bytes(raw[offset : offset + 8], "little")
        strings.append(raw[offset + 8 : end])
        offset = end
    return strings


def read_header(path: Path, whole_bytes: int | None = None) -> Header:
    """The header of one GGUF file. Whatever is wrong with the file becomes one sentence.

    `whole_bytes`: where `path` holds only the beginning of a file, the size of all of it.
    """
    file_bytes = _check_start(path)
    try:
        with np.errstate(all="ignore"):
            reader = _HeaderReader(path)
    except _CutShortError:
        raise HeaderCutError(
            f"{path} is cut short: it ends inside its header after {file_bytes:,} bytes. Download it again."
        ) from None
    except (ValueError, KeyError, IndexError, OverflowError, TypeError) as error:
        raise FileError(f"{path} has a damaged GGUF header ({error}). Download it again.") from error
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from error
    file_bytes = whole_bytes or file_bytes
    expected = max((tensor.offset + tensor.n_bytes for tensor in reader.infos), default=0)
    if expected > file_bytes:
        raise FileError(
            f"{path} is cut short: its header describes {expected:,} bytes, the file has {file_bytes:,}. "
            "Download it again."
        )
    return Header(path, reader, file_bytes)


def _check_start(path: Path) -> int:
    """The file's size in bytes, once its first bytes look like a GGUF file this machine can load."""
    try:
        if path.is_dir():
            raise FileError(f"{path} is a folder. Name a .gguf file in it.")
        if not path.exists():
            raise FileError(f"{path} does not exist. Check the path.")
        if not path.is_file():
            raise FileError(f"{path} is not a regular file. Name a .gguf file.")
        with path.open("rb") as file:
            start = file.read(512)
            file_bytes = file.seek(0, 2)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:  # a NUL in the path
        raise FileError(f"{str(path)!r} is not a usable path.") from error
    if start[:4] != b"GGUF":
        raise FileError(f"{path} {_what_it_is(start)}")
    if len(start) < 24:
        raise FileError(f"{path} is cut short: it has {file_bytes} bytes. Download it again.")
    version = int.from_bytes(start[4:8], "little")
    if version not in READABLE_VERSIONS:
        if int.from_bytes(start[4:8], "big") in READABLE_VERSIONS:
            raise FileError(
                f"{path} is written for big-endian machines. Get the little-endian file of this model."
            )
        raise FileError(f"{path} is GGUF version {version}; LIOB reads versions 2 and 3. Get a newer file.")
    return file_bytes


def _what_it_is(start: bytes) -> str:
    text = start.lstrip().lower()
    if not start:
        return "is empty. Download it again."
    if text.startswith(b"version https://git-lfs"):
        return "is a Git LFS pointer, not the model itself. Run `git lfs pull` or download the file."
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        return "is a web page, not a model. Use the file's direct download link."
    if start[:4] in (b"lmgg", b"tjgg", b"fmgg", b"GGML"):
        return "is in a format older than GGUF. Get a GGUF file of this model."
    if start[:2] == b"PK" or start[8:10] == b'{"':
        return "holds PyTorch or safetensors weights, not GGUF. Get a GGUF file of this model."
    return "is not a GGUF model: it does not begin with the letters GGUF. Get a GGUF file of this model."
