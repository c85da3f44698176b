"""The hosted app: one exported file for visitors, and nothing of the server."""

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from liob_core.analysis.runs import list_runs
from liob_core.config import PROJECT_DIR
from liob_core.store import database
from liob_core.store.share import export_run
from liob_core.ui.blocks import OWN_BENCHMARK
from liob_core.ui.nav import SCREENS
from tests.app.support import Open, html_of

SHARED = [screen.name for screen in SCREENS if screen.is_shared]
OTHERS = [screen.name for screen in SCREENS if not screen.is_shared]

# Opens every page in a fresh process and tells what that process has imported.
_VISIT = """
import sys
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash
for name in sys.argv[1:]:
    app = AppTest.from_file("streamlit_app.py", default_timeout=60)
    app._page_hash = calc_hash(name)
    app.run()
    assert not app.exception, app.exception
    assert not app.error, app.error
    assert app.title, name
print("\\n".join(sys.modules))
"""


@pytest.fixture
def shared(made_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    run_id = str(list_runs(made_database)["run_id"].iloc[0])
    path = export_run(made_database, run_id, "duckdb", tmp_path / "server" / "results.duckdb")
    monkeypatch.setenv("LIOB_SHARE", str(path))
    return path


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.usefixtures("shared")
def test_result_pages_are_shown_without_a_way_to_measure(open_page: Open, name: str) -> None:
    app = open_page(name)

    assert not app.exception
    assert not app.error
    assert html_of(app)
    assert OWN_BENCHMARK not in [button.label for button in app.button]


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.usefixtures("shared")
def test_other_pages_do_not_exist(open_page: Open, name: str) -> None:
    app = open_page(name)

    assert app.title[0].value == open_page("overview").title[0].value


def test_no_engine_and_no_bench_is_imported(shared: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _VISIT, *SHARED],
        cwd=PROJECT_DIR, env={**os.environ, "LIOB_SHARE": str(shared)}, capture_output=True, text=True,
        check=True, timeout=240,
    )  # fmt: skip
    imported = done.stdout.splitlines()
    assert "liob_core.analysis.overview" in imported
    forbidden = ("liob_core.engines", "liob_core.bench", "xllamacpp", "llama_cpp", "ollama", "pynvml")
    assert [name for name in imported if name.startswith(forbidden)] == []


@pytest.mark.parametrize("damage", ["gone", "foreign", "empty"])
def test_visitor_sees_no_path_when_something_is_wrong(open_page: Open, shared: Path, damage: str) -> None:
    shared.unlink()
    if damage == "foreign":
        with duckdb.connect(str(shared)) as con:
            con.execute("CREATE TABLE mine (a INTEGER)")
    elif damage == "empty":
        with database.write(shared):
            pass

    app = open_page("results")

    assert not app.exception
    assert "server's log" in app.error[0].value
    assert "duckdb" not in app.error[0].value


@pytest.mark.usefixtures("shared")
def test_visitor_sees_no_traceback(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liob_core.ui.reads.frame", lambda *_: 1 / 0)

    app = open_page("results")

    assert not app.exception
    assert "server's log" in app.error[0].value


@pytest.mark.usefixtures("shared")
def test_unknown_run_and_prompt_in_the_address_are_ignored(open_page: Open) -> None:
    app = open_page("answers", run="../../etc/passwd", prompt="' OR 1=1 --", source="own")

    assert not app.exception
    assert not app.error
    assert html_of(app)


def test_shared_file_is_never_written(open_page: Open, shared: Path) -> None:
    before = shared.read_bytes()
    for name in SHARED:
        open_page(name)
    assert shared.read_bytes() == before
    assert list(shared.parent.iterdir()) == [shared]
