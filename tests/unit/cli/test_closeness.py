"""What the options of task `closeness` mean, and what is refused before anything is read."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from liob_core.bench import closeness
from liob_core.cli.app import app
from liob_core.cli.naming import with_reference
from liob_core.errors import MissingError, UsageError


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / name for name in ("a.gguf", "b.gguf")]
    for path in paths:
        path.touch()
    return paths


def test_a_reference_that_is_not_among_the_models_is_added_before_them(files: list[Path]) -> None:
    a, b = map(str, files)
    assert with_reference([b], a) == ([a, b], a)
    assert with_reference(None, a) == ([a], a)


def test_a_reference_among_the_models_is_not_named_twice(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = map(str, files)
    monkeypatch.chdir(files[0].parent)
    assert with_reference([a, b], "./a.gguf") == ([a, b], a)
    assert with_reference([str(files[0].parent)], "a.gguf") == ([str(files[0].parent)], a)


def test_a_label_stays_a_label(files: list[Path]) -> None:
    assert with_reference([str(files[0])], "F16") == ([str(files[0])], "F16")
    with pytest.raises(UsageError, match="--model"):
        with_reference(None, "F16")


def test_a_missing_add_on_is_told_before_any_file_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closeness, "find_spec", lambda name: None)
    done = CliRunner().invoke(app, ["run", "--task", "closeness", "--model", "nowhere.gguf"])
    assert isinstance(done.exception, MissingError)
    assert "pip install -r requirements-closeness.txt" in str(done.exception)
