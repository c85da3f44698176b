"""An app with nothing in it, an app with one run made by the scripted engine, and a way to open a page."""

import time
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from liob_core.analysis import summary
from liob_core.bench import jobs
from liob_core.bench.spec import Choices, make_spec
from liob_core.config import Settings
from liob_core.engines.registry import EngineStatus
from liob_core.store import database
from liob_core.suites.load import suite_from_text
from liob_core.types import Task
from tests.app.support import ENTRY, HOSTILE, Open, fake_variants


@pytest.fixture(scope="session")
def made_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of one finished run of four variants, whose first prompt got a hostile answer."""
    folder = tmp_path_factory.mktemp("made")
    settings = Settings(data_dir=folder / "data", machine_dir=folder / "machine")
    spec = make_spec(
        Choices(
            engine="fake",
            variants=fake_variants(),
            tasks=(Task.SPEED, Task.SUITE),
            suite=suite_from_text("Say something hostile.\n---\nSay something else."),
            n_blocks=2,
            title="Made for tests",
            engine_options={
                "sleep": False,
                "answers": {"hostile": HOSTILE},
                "faults": [{"kind": "error", "variant": "Q2_K", "prompt": "something else"}],
            },
        )
    )
    jobs.start(spec, settings)
    deadline = time.monotonic() + 120
    while jobs.read_status(spec.run_id, settings).is_live:
        assert time.monotonic() < deadline, jobs.read_status(spec.run_id, settings)
        time.sleep(0.2)
    with database.write(settings.database) as con:
        # A busy machine must not decide what these pages show.
        con.execute("UPDATE raw.samples SET contended = false")
        # The scripted engine takes no memory, and the memory picture is to be drawn too.
        con.execute("UPDATE raw.loads SET weights_bytes = 90e6, kv_bytes = 30e6, peak_memory_bytes = 150e6")
        summary.summarize(con, spec.run_id)
    return settings.database


@pytest.fixture(autouse=True)
def engines_without_a_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    status = EngineStatus(name="embedded", available=True, version="1", sentence="Ready on a test.")
    absent = EngineStatus(name="ollama", available=False, version=None, sentence="No Ollama in this test.")
    monkeypatch.setattr("liob_core.ui.setup.engine_step.describe_engines", lambda url=None: [status])
    monkeypatch.setattr("liob_core.ui.setup.engine_step.describe_ollama", lambda: absent)
    monkeypatch.setattr("liob_core.ui.setup.engine_step.find_binary", lambda: None)
    st.cache_data.clear()


@pytest.fixture
def with_sample(made_database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The app as a new user finds it: the shipped results and nothing of their own."""
    monkeypatch.setattr("liob_core.ui.source.SAMPLE_DATABASE", made_database)


@pytest.fixture
def without_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liob_core.ui.source.SAMPLE_DATABASE", tmp_path / "none.duckdb")


@pytest.fixture
def open_page() -> Open:
    def run(name: str, **selection: str) -> AppTest:
        app = AppTest.from_file(str(ENTRY), default_timeout=60)
        for key, value in selection.items():
            app.query_params[key] = value
        # Pages are functions, so there is no file to switch to; their address is their identity.
        app._page_hash = calc_hash(name)
        return app.run()

    return run
