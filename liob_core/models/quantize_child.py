"""The process that writes one file of a ladder; reports JSON lines on standard output.

It writes to a temporary name that its parent chose, and removes it when it is told to stop or when its
parent is gone. Renaming a finished file is the parent's work.
"""

import argparse
import errno
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import BinaryIO

import numpy as np
from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter, Keys, quants

from liob_core.errors import LiobError
from liob_core.models.gguf import read_headers
from liob_core.models.header import Header, TensorInfo
from liob_core.models.ladder_types import (
    LadderType,
    choose_types,
    output_name,
    target_type,
    type_bytes,
)

# Rows are converted in pieces of about so many elements, so that memory stays small for any tensor.
_PIECE_ELEMENTS = 4 * 2**20
_REPLACED = (
    Keys.General.ARCHITECTURE,
    Keys.General.ALIGNMENT,
    Keys.General.QUANTIZATION_VERSION,
    Keys.General.FILE_TYPE,
)
# What the new file must not say: how the source was split or quantized.
_DROPPED_PREFIXES = ("split.", "quantize.imatrix.")
_QUANTIZATION_VERSION = 2

Report = Callable[..., None]


def write_built_in(source: Path, kind: LadderType, target: Path, report: Report) -> None:
    """Write `target` in a type that needs no compiler."""
    headers = read_headers(source)
    tensors = sorted(
        ((header, tensor) for header in headers for tensor in header.tensors),
        key=lambda item: _place(item[1].name),
    )
    output = output_name(tensor for _, tensor in tensors)
    types = [target_type(tensor, kind.name, output) for _, tensor in tensors]
    alignment = headers[0].alignment
    _write_metadata(headers[0], kind, [tensor for _, tensor in tensors], types, target)
    done, total = 0, sum(tensor.n_elements for _, tensor in tensors)
    n_overflowed = 0
    with target.open("ab") as file:
        _pad(file, alignment)
        for (header, tensor), new_type in zip(tensors, types, strict=True):
            for n_elements, piece in _converted(header.path, tensor, new_type):
                if new_type is GGMLQuantizationType.F16:
                    n_overflowed += int(np.isinf(piece).sum())
                file.write(piece.tobytes())
                done += n_elements
                report("progress", share=done / total)
            _pad(file, alignment)
        file.flush()
        os.fsync(file.fileno())
    if n_overflowed:
        report("warning", message=f"{n_overflowed} weights are too large for F16 and became infinite.")


def _place(name: str) -> tuple[int, str]:
    """Where llama.cpp's quantizer puts a tensor, so that both write the same file."""
    layer = re.match(r"blk\.(\d+)\.", name)
    return (int(layer[1]) if layer else -1), name


def _write_metadata(
    header: Header,
    kind: LadderType,
    tensors: list[TensorInfo],
    types: list[GGMLQuantizationType],
    target: Path,
) -> None:
    """Everything up to the tensor data, as the library writes it."""
    writer = GGUFWriter(target, header.text(Keys.General.ARCHITECTURE) or "")
    if Keys.General.ALIGNMENT in header:
        writer.add_custom_alignment(header.alignment)
    for key in header:
        if key not in _REPLACED and not key.startswith(_DROPPED_PREFIXES):
            _copy_value(header, key, writer)
    writer.add_quantization_version(_QUANTIZATION_VERSION)
    writer.add_file_type(kind.file_type)
    for tensor, new_type in zip(tensors, types, strict=True):
        # Shapes go in with the longest-lived dimension first, the reverse of how they are stored.
        shape = tuple(reversed(tensor.shape))
        n_bytes = type_bytes(tensor.n_elements, new_type)
        writer.add_tensor_info(tensor.name, shape, np.dtype(np.float32), n_bytes, new_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()


def _copy_value(header: Header, key: str, writer: GGUFWriter) -> None:
    types = header.types(key)
    if types[0] is GGUFValueType.ARRAY:
        if header.array_length(key):  # the library cannot write an empty one
            writer.add_key_value(key, header.array(key), types[0], sub_type=types[-1])
    elif types[0] is GGUFValueType.STRING:
        writer.add_key_value(key, header.raw_text(key), types[0])
    else:
        writer.add_key_value(key, header.number(key), types[0])


def _converted(
    path: Path, tensor: TensorInfo, new_type: GGMLQuantizationType
) -> Iterator[tuple[int, "np.ndarray[tuple[int, ...], np.dtype[np.generic]]"]]:
    """Pieces of a tensor in its new type, each with its number of elements."""
    row = tensor.shape[0]
    row_bytes = type_bytes(row, tensor.type)
    raw = np.memmap(path, mode="r", dtype=np.uint8, offset=tensor.offset, shape=(tensor.n_bytes,))
    rows = raw.reshape(-1, row_bytes)
    step = max(1, _PIECE_ELEMENTS // row)
    for start in range(0, len(rows), step):
        piece = np.ascontiguousarray(rows[start : start + step])
        if new_type is not tensor.type:
            with np.errstate(over="ignore"):
                piece = quants.quantize(quants.dequantize(piece, tensor.type), new_type)
        yield len(rows[start : start + step]) * row, piece


def _pad(file: BinaryIO, alignment: int) -> None:
    file.write(b"\0" * (-file.tell() % alignment))


def write_with_add_on(source: Path, kind: LadderType, target: Path, report: Report) -> None:
    """Write `target` with llama.cpp's own quantizer."""
    import ctypes  # noqa: PLC0415 - only with the add-on

    from llama_cpp import llama_cpp as api  # noqa: PLC0415 - only with the add-on

    last_lines: list[str] = []

    def on_log(_level: int, text: bytes, _user_data: ctypes.c_void_p) -> None:
        line = text.decode("utf-8", errors="replace").strip()
        if match := re.match(r"\[\s*(\d+)/\s*(\d+)\]", line):
            report("progress", share=int(match[1]) / int(match[2]))
        if line:
            last_lines[:] = [*last_lines[-4:], line]

    callback = api.llama_log_callback(on_log)
    api.llama_log_set(callback, ctypes.c_void_p(0))
    params = api.llama_model_quantize_default_params()
    params.ftype = kind.file_type
    params.allow_requantize = True
    params.nthread = os.cpu_count() or 1
    code = api.llama_model_quantize(os.fsencode(source), os.fsencode(target), ctypes.byref(params))
    if code:
        raise LiobError(f"llama.cpp could not make {kind.name} of {source.name}: {' '.join(last_lines[-2:])}")


def _work(options: argparse.Namespace, report: Report) -> int:
    """The exit code of the conversion; what went wrong is reported as one sentence."""
    (kind,) = choose_types([options.type])
    write = write_with_add_on if kind.needs_add_on else write_built_in
    try:
        write(options.source, kind, options.target, report)
    except ImportError as error:
        report("failed", kind="add_on", message=str(error))
    except NotImplementedError as error:  # a type that the library cannot read
        report("failed", kind="file", message=f"The source cannot be converted: {error}.")
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        message = "The disk is full." if full else f"Writing failed: {error.strerror or error}."
        report("failed", kind="disk" if full else "file", message=message)
    except LiobError as error:
        report("failed", kind="file", message=str(error))
    else:
        return 0
    return 1


def main() -> int:
    """The exit code after one file; the temporary file is removed when the work is cut short."""
    parser = argparse.ArgumentParser(description="Writes one file of a ladder for LIOB.")
    parser.add_argument("source", type=Path)
    parser.add_argument("type")
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    codes: list[int] = []

    def report(event: str, **facts: object) -> None:
        sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
        sys.stdout.flush()

    def give_up(_signal: int = 0, _frame: FrameType | None = None) -> None:
        options.target.unlink(missing_ok=True)
        os._exit(1)

    def watch_parent() -> None:
        sys.stdin.buffer.read()  # ends when the parent does
        give_up()

    signal.signal(signal.SIGTERM, give_up)
    signal.signal(signal.SIGINT, give_up)
    threading.Thread(target=watch_parent, daemon=True).start()
    # In a thread, because a signal reaches Python only between instructions of the main one.
    worker = threading.Thread(target=lambda: codes.append(_work(options, report)), daemon=True)
    worker.start()
    while worker.is_alive():
        worker.join(0.2)
    if codes != [0]:
        options.target.unlink(missing_ok=True)
    return codes[0] if codes else 1


if __name__ == "__main__":
    # Not sys.exit: the thread that reads standard input would hold up the interpreter's end.
    os._exit(main())
