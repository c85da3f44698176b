import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType as T
from gguf import GGUFReader, GGUFWriter

from liob_core.errors import FileError
from liob_core.models import digests
from liob_core.models.digests import file_sha256, weights_sha256


def test_file_sha256_is_that_of_the_bytes(gguf: Callable[..., Path], tmp_path: Path) -> None:
    path, seen = gguf(), []
    digest = file_sha256(path, tmp_path / "cache", progress=lambda done, total: seen.append((done, total)))
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)


def test_weights_sha256_is_the_documented_one(gguf: Callable[..., Path], tmp_path: Path) -> None:
    path = gguf()
    expected = hashlib.sha256()
    for tensor in sorted(GGUFReader(path).tensors, key=lambda tensor: tensor.name):
        shape = [int(size) for size in tensor.shape]
        expected.update(json.dumps([tensor.name, tensor.tensor_type.name, shape]).encode() + b"\n")
        expected.update(np.asarray(tensor.data).tobytes())
    assert weights_sha256(path, tmp_path) == expected.hexdigest()


def test_weights_sha256_survives_rewriting(gguf: Callable[..., Path], tmp_path: Path) -> None:
    path = gguf()
    names = [tensor.name for tensor in GGUFReader(path).tensors]
    rewritten = gguf(
        "other-name.gguf",
        names=names[::-1],
        alignment=64,
        tokens=3,
        metadata={"general.name": "Renamed", "tokenizer.chat_template": "x"},
    )
    assert weights_sha256(rewritten, tmp_path) == weights_sha256(path, tmp_path)
    assert file_sha256(rewritten, tmp_path) != file_sha256(path, tmp_path)


def test_weights_sha256_sees_one_changed_byte(gguf: Callable[..., Path], tmp_path: Path) -> None:
    path = gguf()
    before = weights_sha256(path, tmp_path)
    data = bytearray(path.read_bytes())
    data[GGUFReader(path).tensors[3].data_offset + 5] ^= 1
    path.write_bytes(bytes(data))
    os.utime(path, ns=(1, 1))
    assert weights_sha256(path, tmp_path) != before


def test_weights_sha256_sees_name_shape_and_type(gguf: Callable[..., Path], tmp_path: Path) -> None:
    # All zeros, so that nothing but the name, the shape or the type differs.
    kinds = [("a.weight", (32, 64), T.F32), ("b.weight", (32, 64), T.F32), ("a.weight", (64, 32), T.F32)]
    kinds.append(("a.weight", (64, 64), T.F16))
    paths = [
        gguf(f"{index}.gguf", tensors={name: (shape, kind)}, zeros=True)
        for index, (name, shape, kind) in enumerate(kinds)
    ]
    assert len({weights_sha256(path, tmp_path) for path in paths}) == len(kinds)


def test_weights_sha256_does_not_depend_on_splitting(gguf: Callable[..., Path], tmp_path: Path) -> None:
    whole = gguf()
    writer = GGUFWriter(tmp_path / "split.gguf", "llama", split_max_tensors=3)
    for tensor in GGUFReader(whole).tensors:
        writer.add_tensor(tensor.name, np.array(tensor.data), raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    shards = sorted(tmp_path.glob("split-*.gguf"))
    assert len(shards) == 3
    assert weights_sha256(shards[1], tmp_path) == weights_sha256(whole, tmp_path)
    joined = "".join(hashlib.sha256(shard.read_bytes()).hexdigest() for shard in shards)
    seen: list[tuple[int, int]] = []
    digest = file_sha256(shards[0], tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert digest == hashlib.sha256(joined.encode()).hexdigest()
    total = sum(shard.stat().st_size for shard in shards)
    assert seen[-1] == (total, total)
    assert seen == sorted(seen)


def test_digest_is_cached_until_the_file_changes(
    gguf: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = gguf(), tmp_path / "cache"
    first = file_sha256(path, cache), weights_sha256(path, cache)

    def refuse(*_: object) -> None:
        raise AssertionError("read again")

    with monkeypatch.context() as patch:
        patch.setattr(digests, "_read", refuse)
        assert (file_sha256(path, cache), weights_sha256(path, cache)) == first
    with path.open("ab") as file:
        file.write(b"x")
    assert file_sha256(path, cache) == hashlib.sha256(path.read_bytes()).hexdigest() != first[0]


def test_digest_cache_damaged_or_unwritable_is_no_error(gguf: Callable[..., Path], tmp_path: Path) -> None:
    path, cache = gguf(), tmp_path / "cache"
    digest = file_sha256(path, cache)
    for entry in (cache / "digests").iterdir():
        entry.write_text('["half')
    assert file_sha256(path, cache) == digest
    not_a_folder = tmp_path / "file"
    not_a_folder.write_text("")
    assert file_sha256(path, not_a_folder) == digest
    assert not [entry for entry in (cache / "digests").iterdir() if entry.suffix != ".json"]


def test_digest_of_a_file_that_grows_meanwhile_is_refused(gguf: Callable[..., Path], tmp_path: Path) -> None:
    path = gguf()

    def grow(_done: int, _total: int) -> None:
        with path.open("ab") as file:
            file.write(b"more")

    with pytest.raises(FileError, match="changed while it was read"):
        file_sha256(path, tmp_path / "cache", progress=grow)
    assert not (tmp_path / "cache").exists()


def test_digest_of_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        file_sha256(tmp_path / "no.gguf", tmp_path)
