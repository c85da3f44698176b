"""Energy on the pages: shown, limited and offered where there is any, and absent elsewhere."""

import shutil
from pathlib import Path

import pytest

from liob_core.analysis import summary
from liob_core.store import database
from tests.app.support import Open, html_of


@pytest.fixture
def with_energy(made_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The made run with two blocks of windows: 1 and 1.1 J a token for F16, half of it for the others."""
    path = Path(shutil.copy(made_database, tmp_path / "energy.duckdb"))
    with database.write(path) as con:
        con.execute(
            "INSERT INTO raw.energy BY NAME SELECT run_id, variant, block, 'tg128' AS shape, "
            "'package' AS scope, 'rapl' AS source, 10 AS window_s, 1 AS n_requests, 100 AS output_tokens, "
            "(100 + 10 * block) / if(is_reference, 1, 2) AS energy_j, 2 AS idle_before_w, 2 AS idle_after_w "
            "FROM raw.variants, range(2) AS blocks(block)"
        )
        summary.summarize(con, con.execute("SELECT run_id FROM raw.runs").fetchone()[0])
    monkeypatch.setattr("liob_core.ui.source.SAMPLE_DATABASE", path)


@pytest.mark.usefixtures("with_energy")
def test_results_show_it_with_its_interval_scope_and_net(open_page: Open) -> None:
    app = open_page("results")
    assert not app.exception
    page = html_of(app)
    assert ">J/token<" in page
    assert "processor, rapl" in page
    # (1 + 1.1) / 2 and half of it; 2 W for 10 s are 0.2 J a token.
    for text in (">1.05", ">0.525", "net 0.850", "net 0.325"):
        assert text in page


@pytest.mark.usefixtures("with_energy")
def test_tradeoffs_limit_it_by_the_upper_end(open_page: Open) -> None:
    app = open_page("tradeoffs", joules="1.5", x="j_per_output_token")
    assert not app.exception
    assert app.query_params["x"] == "j_per_output_token"
    page = html_of(app)
    # 0.525 +- 12.7 x 0.0354 / sqrt(2) for those that halve it; F16 has 1.05 +- 0.635.
    assert "0.207 to 0.843 J/token" in page
    assert "0.415 to 1.69 J/token" in page
    assert page.count("missed") >= 1


@pytest.mark.usefixtures("with_sample")
@pytest.mark.parametrize("name", ["results", "tradeoffs"])
def test_a_run_without_it_shows_nothing_of_it(open_page: Open, name: str) -> None:
    app = open_page(name)
    assert not app.exception
    assert "nergy" not in html_of(app)
    assert not any(slider.key == "liob_pick_joules" for slider in app.select_slider)


@pytest.mark.usefixtures("without_sample")
def test_a_new_run_offers_it_where_a_counter_can_be_read(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("liob_core.ui.setup.work_step.energy_problem", lambda: "none here")
    assert not any(box.key == "liob_new_energy" for box in open_page("new").checkbox)
    monkeypatch.setattr("liob_core.ui.setup.work_step.energy_problem", lambda: None)
    import streamlit as st

    st.cache_data.clear()
    assert open_page("new").checkbox(key="liob_new_energy").value is True
