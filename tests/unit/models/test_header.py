import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from gguf import GGUFReader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from liob_core.errors import FileError
from liob_core.models.gguf import read_model
from liob_core.models.header import MAX_ARRAY_ITEMS, read_header

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 98362432\n"


def test_header_agrees_with_the_library(gguf: Callable[..., Path]) -> None:
    path = gguf(metadata={"general.name": "Tiny", "tokenizer.ggml.add_bos_token": True, "x.list": [1, 2, 3]})
    header, library = read_header(path), GGUFReader(path)
    assert [
        (tensor.name, tensor.type, tensor.shape, tensor.offset, tensor.n_bytes, tensor.n_elements)
        for tensor in header.tensors
    ] == [
        (t.name, t.tensor_type, tuple(int(d) for d in t.shape), t.data_offset, t.n_bytes, t.n_elements)
        for t in library.tensors
    ]
    assert list(header) == [name for name in library.fields if not name.startswith("GGUF.")]
    assert header.text("general.name") == "Tiny"
    assert header.number("tokenizer.ggml.add_bos_token") is True
    assert header.array("x.list") == [1, 2, 3]
    tokens = library.fields["tokenizer.ggml.tokens"].contents()
    assert [token.decode() for token in header.array("tokenizer.ggml.tokens") or []] == tokens


def test_header_custom_alignment_is_followed(gguf: Callable[..., Path]) -> None:
    path = gguf(alignment=128)
    assert [t.offset for t in read_header(path).tensors] == [t.data_offset for t in GGUFReader(path).tensors]
    assert all(tensor.offset % 128 == 0 for tensor in read_header(path).tensors)


def test_header_wrong_kind_of_value_is_none(gguf: Callable[..., Path]) -> None:
    header = read_header(gguf(metadata={"a.text": "x", "a.number": 3}))
    assert header.count("a.text") is None
    assert header.text("a.number") is None
    assert header.array("a.number") is None
    assert header.text("absent") is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (LFS, "Git LFS pointer"),
        (b"\n<!DOCTYPE html><html><body>Sign in</body></html>", "web page"),
        (b"<html>404</html>", "web page"),
        (b"PK\x03\x04" + bytes(100), "PyTorch or safetensors"),
        (struct.pack("<Q", 20) + b'{"__metadata__":{}}  ', "PyTorch or safetensors"),
        (b"tjgg" + bytes(100), "older than GGUF"),
        (b"GGUX" + bytes(100), "does not begin with the letters GGUF"),
        (b"GGUF", "is cut short"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "GGUF version 1"),
        (b"GGUF" + struct.pack("<IQQ", 99, 0, 0), "GGUF version 99"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60), "cut short"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0), "impossibly many tensors"),
    ],
)
def test_header_bad_file_is_one_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        read_header(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_header_folder_missing_and_odd_paths(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is a folder"):
        read_header(tmp_path)
    with pytest.raises(FileError, match="does not exist"):
        read_header(tmp_path / "no.gguf")
    with pytest.raises(FileError, match=r"not a usable path|does not exist"):
        read_header(Path("a\0b.gguf"))


@pytest.mark.skipif(os.name == "nt", reason="POSIX files")
def test_header_pipe_does_not_hang(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)
    with pytest.raises(FileError, match="not a regular file"):
        read_header(pipe)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_header_unreadable_file(gguf: Callable[..., Path]) -> None:
    path = gguf()
    path.chmod(0)
    with pytest.raises(FileError, match="cannot be read: Permission denied"):
        read_header(path)


def test_header_permission_error_is_one_sentence(
    gguf: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = gguf()
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(FileError, match="cannot be read: Permission denied"):
        read_header(path)


def test_header_cut_in_the_weights_tells_both_sizes(gguf: Callable[..., Path]) -> None:
    path = gguf()
    whole = path.stat().st_size
    last = read_header(path).tensors[-1]
    with path.open("r+b") as file:
        file.truncate(last.offset + last.n_bytes - 1)
    with pytest.raises(FileError, match=f"describes {last.offset + last.n_bytes:,} bytes"):
        read_header(path)
    assert whole >= last.offset + last.n_bytes


def test_header_tensor_twice_is_refused(gguf: Callable[..., Path]) -> None:
    path = gguf()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"blk.1.attn_q.weight", b"blk.0.attn_q.weight"))
    with pytest.raises(FileError, match="listed twice"):
        read_header(path)


def test_header_impossible_list_is_refused_at_once(tmp_path: Path) -> None:
    key = b"tokenizer.ggml.tokens"
    path = tmp_path / "m.gguf"
    header = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", len(key)) + key
    path.write_bytes(header + struct.pack("<IIQ", 9, 8, MAX_ARRAY_ITEMS + 1) + bytes(1000))
    with pytest.raises(FileError, match="impossibly long"):
        read_header(path)


@pytest.fixture(scope="module")
def tiny_bytes(tmp_path_factory: pytest.TempPathFactory, write_model: Callable[..., Path]) -> bytes:
    """A whole small model."""
    path = write_model(
        tmp_path_factory.mktemp("fuzz") / "t-Q4_0.gguf",
        tokens=20,
        metadata={"general.name": "Tiny", "tokenizer.chat_template": "{{ x }}", "split.count": 1},
    )
    return path.read_bytes()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_header_raises_nothing_but_file_error(
    tiny_bytes: bytes, tmp_path: Path, data: st.DataObject
) -> None:
    damaged = bytearray(tiny_bytes)
    header_bytes = 1150  # and a little of the weights
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, header_bytes))
        damaged[place] = data.draw(st.integers(0, 255))
    damaged = damaged[: data.draw(st.integers(0, len(damaged)))] if data.draw(st.booleans()) else damaged
    path = tmp_path / "damaged-Q4_0.gguf"
    path.write_bytes(bytes(damaged))
    # Anything but a model or a FileError escapes from here and fails the test.
    said = _reading(path)
    assert said is None or "damaged-Q4_0.gguf" in said


def _reading(path: Path) -> str | None:
    try:
        return None if read_model(path).n_params > 0 else "no parameters"
    except FileError as error:
        return str(error)


def test_every_truncation_is_told(tiny_bytes: bytes, tmp_path: Path) -> None:
    path = tmp_path / "short-Q4_0.gguf"
    path.write_bytes(tiny_bytes)
    last = max(read_header(path).tensors, key=lambda tensor: tensor.offset)
    end = last.offset + last.n_bytes
    for length in [*range(4, 1700, 7), end - 1]:
        path.write_bytes(tiny_bytes[:length])
        with pytest.raises(FileError, match="cut short"):
            read_header(path)
