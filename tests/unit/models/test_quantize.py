import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader, quants

from liob_core.config import PROJECT_DIR
from liob_core.errors import FileError, MissingError, UsageError
from liob_core.models import quantize
from liob_core.models.gguf import read_model
from liob_core.models.header import read_header
from liob_core.models.ladder_types import choose_types
from liob_core.models.quantize import LadderProgress, make_ladder

TEMPLATE = "{{ messages }}  \n"


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _floats(path: Path) -> dict[str, np.ndarray]:
    return {
        t.name: np.asarray(quants.dequantize(t.data, t.tensor_type), dtype=np.float32)
        for t in GGUFReader(path).tensors
    }


def _float_source(write: Callable[..., Path]) -> Path:
    from gguf import GGMLQuantizationType as T

    tensors = {
        "token_embd.weight": ((96, 64), T.F16),
        "blk.0.attn_norm.weight": ((64,), T.F32),
        "blk.0.attn_q.weight": ((64, 64), T.F16),
        "blk.0.odd.weight": ((8, 48), T.F16),
    }
    metadata = {"tokenizer.chat_template": TEMPLATE, "quantize.imatrix.file": "x.dat", "a.list": [1, 2, 3]}
    return write("tiny-F16.gguf", tensors=tensors, metadata=metadata, file_type=1)


@pytest.fixture
def told() -> list[LadderProgress]:
    """What progress was told."""
    return []


def test_ladder_writes_files_with_names_labels_and_progress(
    gguf: Callable[..., Path], tmp_path: Path, told: list[LadderProgress]
) -> None:
    source = _float_source(gguf)
    out = tmp_path / "out"
    paths = make_ladder(source, ["Q4_0", "BF16"], out, on_progress=told.append)
    assert [path.name for path in paths] == ["tiny-Q4_0.gguf", "tiny-BF16.gguf"]
    assert _files(out) == ["tiny-BF16.gguf", "tiny-Q4_0.gguf"]
    assert [read_model(path).content_label for path in paths] == ["Q4_0", "BF16"]
    assert [(p.event, p.type_name, p.n_file) for p in told if p.event != "working"] == [
        ("done", "BF16", 1),
        ("done", "Q4_0", 2),
    ]
    shares = [p.share for p in told if p.event == "working" and p.type_name == "Q4_0"]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_ladder_keeps_metadata_and_small_tensors(
    gguf: Callable[..., Path], tmp_path: Path, told: list[LadderProgress]
) -> None:
    source = _float_source(gguf)
    (path,) = make_ladder(source, ["Q8_0"], tmp_path / "out", on_progress=told.append)
    before, after = read_header(source), read_header(path)
    assert after.text("tokenizer.chat_template") == TEMPLATE
    assert after.array("tokenizer.ggml.tokens") == before.array("tokenizer.ggml.tokens")
    assert after.array("a.list") == [1, 2, 3]
    assert (after.number("general.file_type"), after.number("general.quantization_version")) == (7, 2)
    # How the source was quantized says nothing about this file.
    assert "quantize.imatrix.file" not in after
    assert {t.name: t.type.name for t in after.tensors} == {
        "token_embd.weight": "Q8_0",
        "blk.0.attn_norm.weight": "F32",
        "blk.0.attn_q.weight": "Q8_0",
        "blk.0.odd.weight": "F16",
    }


@pytest.mark.parametrize(
    ("name", "worst"),
    [
        ("F16", 0.0),
        ("BF16", 0.016),
        ("Q8_0", 0.02),
        ("Q5_1", 0.13),
        ("Q5_0", 0.25),
        ("Q4_1", 0.27),
        ("Q4_0", 0.5),
    ],
)
def test_ladder_values_stay_near_the_source(
    gguf: Callable[..., Path], tmp_path: Path, told: list[LadderProgress], name: str, worst: float
) -> None:
    source = _float_source(gguf)
    (path,) = make_ladder(source, [name], tmp_path / "out", on_progress=told.append)
    before, after = _floats(source), _floats(path)
    for tensor, values in before.items():
        assert np.abs(after[tensor] - values).max() <= worst
    assert np.array_equal(after["blk.0.attn_norm.weight"], before["blk.0.attn_norm.weight"])


def test_ladder_from_a_quantized_source_warns_and_goes_through_f16(
    gguf: Callable[..., Path], tmp_path: Path, told: list[LadderProgress]
) -> None:
    source = gguf()
    paths = make_ladder(source, ["Q8_0", "F16"], tmp_path / "out", on_progress=told.append)
    warnings = [p.message for p in told if p.event == "warning"]
    assert len(warnings) == 1
    assert "already quantized" in (warnings[0] or "")
    direct = make_ladder(paths[1], ["Q8_0"], tmp_path / "direct", on_progress=lambda _: None)
    assert paths[0].read_bytes() == direct[0].read_bytes()
    before, after = _floats(source), _floats(paths[1])
    assert all(np.array_equal(after[name], v.astype(np.float16)) for name, v in before.items() if v.ndim > 1)


def test_ladder_reuses_what_is_there_and_never_overwrites(
    gguf: Callable[..., Path], tmp_path: Path, told: list[LadderProgress]
) -> None:
    source, out = _float_source(gguf), tmp_path / "out"
    (path,) = make_ladder(source, ["Q8_0"], out, on_progress=told.append)
    stamp = path.stat().st_mtime_ns
    told.clear()
    assert make_ladder(source, ["Q8_0"], out, on_progress=told.append) == [path]
    assert [p.event for p in told] == ["reused"]
    assert path.stat().st_mtime_ns == stamp
    path.write_bytes(gguf("another.gguf", file_type=7).read_bytes())
    with pytest.raises(FileError, match="is not this model in Q8_0"):
        make_ladder(source, ["Q8_0"], out, on_progress=told.append)


def test_ladder_into_the_source_folder_takes_the_source_itself(
    gguf: Callable[..., Path], told: list[LadderProgress]
) -> None:
    source = _float_source(gguf)
    before = source.read_bytes()
    assert make_ladder(source, ["F16"], source.parent, on_progress=told.append) == [source]
    assert source.read_bytes() == before


def test_ladder_from_a_split_source(
    gguf: Callable[..., Path], tmp_path: Path, told: list[LadderProgress]
) -> None:
    from gguf import GGUFWriter

    whole = _float_source(gguf)
    writer = GGUFWriter(tmp_path / "parts-F16.gguf", "llama", split_max_tensors=2)
    writer.add_file_type(1)
    for tensor in GGUFReader(whole).tensors:
        writer.add_tensor(tensor.name, np.array(tensor.data), raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    shard = tmp_path / "parts-F16-00002-of-00002.gguf"
    (path,) = make_ladder(shard, ["Q8_0"], tmp_path / "out", on_progress=told.append)
    assert path.name == "parts-Q8_0.gguf"
    assert "split.count" not in read_header(path)
    (same,) = make_ladder(whole, ["Q8_0"], tmp_path / "out", on_progress=told.append)
    assert {n: v.tobytes() for n, v in _floats(path).items()} == {
        n: v.tobytes() for n, v in _floats(same).items()
    }


def test_ladder_types_are_checked_before_anything_is_written(
    gguf: Callable[..., Path], tmp_path: Path, told: list[LadderProgress]
) -> None:
    with pytest.raises(UsageError, match="Q9_9"):
        make_ladder(_float_source(gguf), ["Q8_0", "Q9_9"], tmp_path / "out", on_progress=told.append)
    assert not (tmp_path / "out").exists()


def test_ladder_of_a_bad_source(tmp_path: Path, told: list[LadderProgress]) -> None:
    source = tmp_path / "page.gguf"
    source.write_bytes(b"<html>")
    with pytest.raises(FileError, match="web page"):
        make_ladder(source, ["F16"], tmp_path / "out", on_progress=told.append)


def test_ladder_without_the_add_on_says_how_to_get_it(
    gguf: Callable[..., Path], tmp_path: Path, told: list[LadderProgress], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = subprocess.run
    absent = "import sys; sys.exit(1)"
    monkeypatch.setattr(
        quantize.subprocess, "run", lambda _, **kw: real([sys.executable, "-c", absent], **kw)
    )
    with pytest.raises(MissingError, match=r"Q4_K_M cannot be made yet.*requirements-closeness\.txt"):
        make_ladder(_float_source(gguf), ["F16", "Q4_K_M"], tmp_path / "out", on_progress=told.append)
    assert not (tmp_path / "out").exists()


def test_ladder_needs_room(
    gguf: Callable[..., Path], tmp_path: Path, told: list[LadderProgress], monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = quantize.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(quantize.shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(MissingError, match=r"0\.0 GB free"):
        make_ladder(_float_source(gguf), ["F16", "Q8_0"], tmp_path / "out", on_progress=told.append)


@pytest.mark.skipif(os.name == "nt", reason="POSIX limits")
def test_ladder_disk_full_leaves_nothing(
    gguf: Callable[..., Path], tmp_path: Path, told: list[LadderProgress], monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full")
    source = _float_source(gguf)
    kind = choose_types(["Q8_0"])[0]
    # The child writes to a link to a device that is always full.
    part = tmp_path / "part.gguf"
    part.symlink_to(full)
    with quantize._child(source, kind, part) as child:
        assert child.stdout is not None
        lines = [quantize._parsed(line) for line in child.stdout]
        code = child.wait()
    failed = [line for line in lines if line and line["event"] == "failed"]
    assert code == 1
    error = quantize._child_error(kind, code, failed[0], [])
    assert isinstance(error, MissingError)
    assert str(error).startswith("The disk is full.")


@pytest.mark.parametrize(
    ("code", "failure", "tail", "kind", "said"),
    [
        (-4, {}, [], MissingError, "CMAKE_ARGS=-DGGML_NATIVE=OFF"),
        (0xC000001D, {}, [], MissingError, "instruction this processor does not have"),
        (-9, {}, [], MissingError, "possibly for lack of memory"),
        (-6, {}, ["GGML_ASSERT failed"], FileError, "code -6: GGML_ASSERT failed"),
        (1, {"kind": "add_on", "message": "no libgomp"}, [], MissingError, "no libgomp"),
        (1, {"kind": "disk", "message": "The disk is full."}, [], MissingError, "The disk is full."),
        (1, {"kind": "file", "message": "bad"}, [], FileError, "bad"),
    ],
)
def test_child_failure_is_one_sentence(
    code: int, failure: dict, tail: list[str], kind: type[Exception], said: str
) -> None:
    error = quantize._child_error(choose_types(["Q4_K_M"])[0], code, failure, tail)
    assert type(error) is kind
    assert said in str(error)
    assert "\n" not in str(error)


def test_ladder_crashing_child_leaves_nothing(
    gguf: Callable[..., Path], tmp_path: Path, told: list[LadderProgress], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, real = _float_source(gguf), subprocess.Popen
    crash = "import os, pathlib, sys; pathlib.Path(sys.argv[1]).write_bytes(b'GGUF'); os.kill(os.getpid(), 4)"

    def start(command: list[str], **options: object) -> "subprocess.Popen[str]":
        return real([sys.executable, "-c", crash, command[-1]], **options)  # type: ignore[call-overload]

    monkeypatch.setattr(quantize.subprocess, "Popen", start)
    with pytest.raises(MissingError, match="instruction this processor does not have"):
        make_ladder(source, ["Q8_0"], tmp_path / "out", on_progress=told.append)
    assert _files(tmp_path / "out") == []


def test_ladder_interrupted_leaves_nothing_and_no_child(gguf: Callable[..., Path], tmp_path: Path) -> None:
    def interrupt(progress: LadderProgress) -> None:
        if progress.event == "working":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_ladder(_float_source(gguf), ["Q8_0"], tmp_path / "out", on_progress=interrupt)
    assert _files(tmp_path / "out") == []


def test_ladder_removes_what_a_dead_process_left(
    gguf: Callable[..., Path], tmp_path: Path, told: list[LadderProgress]
) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    out = tmp_path / "out"
    out.mkdir()
    (out / f".tiny-Q8_0.gguf.{dead.pid}.part").write_bytes(b"half")
    (out / f".tiny-Q8_0.gguf.{os.getppid()}.part").write_bytes(b"another one at work")
    make_ladder(_float_source(gguf), ["Q8_0"], out, on_progress=told.append)
    assert _files(out) == [f".tiny-Q8_0.gguf.{os.getppid()}.part", "tiny-Q8_0.gguf"]


def _slow_child(tmp_path: Path, source: Path) -> tuple["subprocess.Popen[bytes]", Path]:
    """The real child at work on a file large enough to be caught in the middle."""
    part = tmp_path / "caught.part"
    child = subprocess.Popen(
        [sys.executable, "-m", "liob_core.models.quantize_child", str(source), "Q4_0", str(part)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        cwd=PROJECT_DIR,
    )
    deadline = time.monotonic() + 60
    while not part.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return child, part


@pytest.fixture
def large_source(gguf: Callable[..., Path]) -> Path:
    """32 million weights: seconds of work."""
    from gguf import GGMLQuantizationType as T

    return gguf("large-F16.gguf", tensors={"blk.0.attn_q.weight": ((8192, 4096), T.F16)}, zeros=True)


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_child_told_to_stop_removes_its_file(tmp_path: Path, large_source: Path) -> None:
    child, part = _slow_child(tmp_path, large_source)
    assert part.exists()
    child.send_signal(signal.SIGTERM)
    assert child.wait(30) == 1
    assert not part.exists()


def test_child_whose_parent_is_gone_removes_its_file(tmp_path: Path, large_source: Path) -> None:
    child, part = _slow_child(tmp_path, large_source)
    assert part.exists()
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(30) == 1
    assert not part.exists()
