"""Resources, Runs, Data and Settings: empty, with the sample, and with runs of the user's own."""

import io
import shutil
import zipfile
from pathlib import Path

import pytest

from liob_core.analysis.history import history
from liob_core.config import Settings
from liob_core.engines.registry import EngineStatus
from liob_core.store import database
from liob_core.ui.blocks import OWN_BENCHMARK
from liob_core.ui.downloads import export_bytes, export_name
from tests.app.support import LABELS, Open, collect_charts, html_of

PAGES = ("resources", "runs", "data", "settings")


@pytest.fixture(autouse=True)
def no_search_for_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = EngineStatus(name="embedded", available=True, version="1", sentence="Ready on a test.")
    missing = EngineStatus(
        name="ollama", available=False, version=None, sentence="It is not running: start it (`ollama serve`)."
    )
    monkeypatch.setattr("liob_core.bench.examine.describe_engines", lambda: [ready, missing])
    monkeypatch.setattr("liob_core.bench.examine.busy_neighbours", list)


@pytest.fixture
def own_run(settings: Settings, made_database: Path) -> str:
    """The id of the one run in the user's own database."""
    settings.data_dir.mkdir()
    shutil.copy(made_database, settings.database)
    return str(history(settings.database)["run_id"].iloc[0])


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("without_sample")
def test_page_without_any_data_says_what_to_do(open_page: Open, name: str) -> None:
    app = open_page(name)

    assert not app.exception
    assert not app.error
    if name != "settings":
        assert OWN_BENCHMARK in [button.label for button in app.button]


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("with_sample")
def test_page_with_the_sample_has_no_error(open_page: Open, name: str) -> None:
    app = open_page(name)

    assert not app.exception
    assert not app.error
    assert not app.warning


@pytest.mark.usefixtures("with_sample")
def test_resources_draw_one_picture_of_at_most_2000_marks(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = collect_charts(monkeypatch)
    app = open_page("resources")

    assert not app.exception
    (chart,) = drawn
    assert chart["params"][0]["name"] == "brush"
    words = str(chart["datasets"])
    assert "Memory, " in words
    assert "Processor, % of all cores" in words
    for label in LABELS:
        assert label in words
    assert sum(len(rows) for rows in chart["datasets"].values()) < 4000


@pytest.mark.usefixtures("with_sample")
def test_resources_zoom_by_the_slider_and_to_one_load(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = collect_charts(monkeypatch)
    app = open_page("resources")
    parts = [box for box in app.selectbox if box.label == "Part of the run"]
    parts[0].select_index(2).run()

    assert not app.exception
    assert len(drawn) == 2
    assert drawn[0]["options"]["key"] != drawn[1]["options"]["key"]
    assert app.query_params["part"]


@pytest.mark.usefixtures("without_sample")
def test_run_is_renamed_and_annotated_by_a_child(open_page: Open, settings: Settings, own_run: str) -> None:
    app = open_page("runs")
    app.text_input[0].set_value("A name that says more")
    app.text_area[0].set_value("before the new driver")
    next(button for button in app.button if button.label == "Save").click().run()

    assert not app.exception
    assert not app.error
    row = history(settings.database).iloc[0]
    assert (row["title"], row["note"]) == ("A name that says more", "before the new driver")


@pytest.mark.usefixtures("without_sample")
def test_deleted_run_is_gone_from_every_page_and_comes_back(
    open_page: Open, settings: Settings, own_run: str
) -> None:
    app = open_page("runs")
    app.button(key=f"liob_runs_delete_{own_run}").click().run()

    assert not app.exception
    assert history(settings.database)["deleted_utc"].notna().all()
    assert OWN_BENCHMARK in [button.label for button in open_page("overview").button]
    assert len(database.query(settings.database, "SELECT * FROM raw.samples")) > 0

    app.button(key="liob_runs_undo").click().run()

    assert not app.exception
    assert history(settings.database)["deleted_utc"].isna().all()
    assert "liob_runs_undo" not in [button.key for button in app.button]


@pytest.mark.usefixtures("without_sample")
def test_deleted_run_can_be_restored_later(open_page: Open, settings: Settings, own_run: str) -> None:
    open_page("runs").button(key=f"liob_runs_delete_{own_run}").click().run()

    app = open_page("runs")
    app.button(key=f"liob_runs_restore_{own_run}").click().run()

    assert not app.exception
    assert history(settings.database)["deleted_utc"].isna().all()


@pytest.mark.usefixtures("without_sample")
def test_two_runs_are_compared_with_what_speaks_against_it(
    open_page: Open, settings: Settings, own_run: str
) -> None:
    other = own_run[:-4] + "zzzz"
    with database.write(settings.database) as con:
        for table in ("runs", "variants", "summary"):
            con.execute(f"CREATE TEMP TABLE copied AS FROM raw.{table} WHERE run_id = '{own_run}'")
            con.execute(f"UPDATE copied SET run_id = '{other}'")
            con.execute(f"INSERT INTO raw.{table} FROM copied")
            con.execute("DROP TABLE copied")
        con.execute(f"UPDATE raw.variants SET threads = 7 WHERE run_id = '{other}'")
        con.execute(f"UPDATE raw.runs SET engine_version = 'newer' WHERE run_id = '{other}'")
    app = open_page("runs", run=own_run)

    assert not app.exception
    told = "\n".join(element.value for element in app.markdown)
    assert "Other engine version" in told
    assert "Other number of threads" in told
    assert app.query_params["with"] == other


@pytest.mark.usefixtures("with_sample")
def test_sql_is_answered_and_a_mistake_is_one_sentence(open_page: Open) -> None:
    app = open_page("data")
    ask = next(button for button in app.button if button.label == "Ask")
    ask.click().run()
    assert not app.exception
    assert len(app.dataframe[0].value) == len(LABELS)

    app.text_area(key="liob_sql").set_value("DROP TABLE raw.runs")
    next(button for button in app.button if button.label == "Ask").click().run()
    assert not app.exception
    assert "Only a SELECT" in app.error[0].value


@pytest.mark.usefixtures("with_sample")
def test_every_example_is_a_question_that_has_an_answer(made_database: Path) -> None:
    from liob_core.store.ask import ask
    from liob_core.ui.sql_box import EXAMPLES

    for sql in EXAMPLES.values():
        ask(made_database, sql)


@pytest.mark.usefixtures("with_sample")
def test_data_explains_the_columns_of_the_chosen_view(open_page: Open) -> None:
    page = html_of(open_page("data", view="paired_deltas"))

    assert "p_holm" in page
    assert "after Holm" in page


@pytest.mark.parametrize("format_", ["csv", "parquet", "json", "duckdb"])
def test_export_is_one_file_in_each_format(made_database: Path, format_: str) -> None:
    run_id = str(history(made_database)["run_id"].iloc[0])
    data = export_bytes(made_database, run_id, format_)

    if export_name(run_id, format_).endswith(".zip"):
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
        assert f"liob-{run_id}/manifest.json" in names
        assert f"liob-{run_id}/samples.{format_}" in names
    else:
        assert data[:1] == b"{" if format_ == "json" else b"DUCK" in data[:64]


@pytest.mark.usefixtures("without_sample")
def test_settings_say_what_is_missing_with_its_command(open_page: Open) -> None:
    app = open_page("settings")

    assert app.title[0].value.startswith("Ready to measure with embedded")
    assert "ollama serve" in [code.value for code in app.code]
    page = html_of(app)
    assert "LIOB_DATA_DIR" in page
    assert "environment" in page
    assert "duckdb" in page


@pytest.mark.usefixtures("without_sample")
def test_settings_look_again_on_request(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_page("settings")
    broken = EngineStatus(name="embedded", available=False, version=None, sentence="It is broken.")
    monkeypatch.setattr("liob_core.bench.examine.describe_engines", lambda: [broken])
    app.button(key="liob_settings_again").click().run()

    assert app.title[0].value == "No engine can measure here yet"
