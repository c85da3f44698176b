"""What every test shares: its own data and machine folders, and the one real model."""

import os
from pathlib import Path

import pytest
from hypothesis import settings as examples

from liob_core.config import Settings

examples.register_profile("same", derandomize=True)


def pytest_configure(config: pytest.Config) -> None:
    """The same commit has the same result; `--hypothesis-profile default` looks for new examples."""
    if config.getoption("hypothesis_profile", None) is None:
        examples.load_profile("same")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Where tests run on several workers (`-n 2`), who gets which."""
    from tests.workers import MeasuringApart

    return MeasuringApart(config, log)


@pytest.fixture(autouse=True)
def isolated_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the user's data, nor waits for the machine's one run."""
    monkeypatch.setenv("LIOB_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LIOB_MACHINE_DIR", str(tmp_path / "machine"))
    monkeypatch.delenv("LIOB_SHARE", raising=False)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings whose folders are this test's own."""
    return Settings(data_dir=tmp_path / "data", machine_dir=tmp_path / "machine")


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2-135M-Instruct Q4_1: LIOB_TEST_MODEL, else fetched as a user fetches it."""
    given = os.environ.get("LIOB_TEST_MODEL")
    if given:
        return Path(given)
    from liob_core.models.sample import fetch_sample

    return fetch_sample(tmp_path_factory.mktemp("sample"))
