"""One empty database, made once; every test gets its own copy."""

import shutil
from pathlib import Path

import pytest

from liob_core.store import connection


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "empty.duckdb"
    with connection.write(path):
        pass
    return path


@pytest.fixture
def db(tmp_path: Path, empty_database: Path) -> Path:
    return Path(shutil.copy(empty_database, tmp_path / "liob.duckdb"))
