"""Files of others come in through the Data page, or are refused there in one sentence."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from liob_core.analysis.history import history
from liob_core.config import Settings
from liob_core.store import database
from liob_core.ui.downloads import export_bytes
from tests.app.support import HOSTILE, Open, html_of

STUDY = Path(__file__).parents[1] / "unit" / "store" / "data" / "original_study.csv"


@dataclass
class Upload:
    """What the app gets of a file that a person chose."""

    name: str
    content: bytes

    def getvalue(self) -> bytes:
        return self.content


def import_on_page(app: AppTest, monkeypatch: pytest.MonkeyPatch, upload: Upload) -> AppTest:
    monkeypatch.setattr("streamlit.file_uploader", lambda *_, **__: upload)
    return next(button for button in app.button if button.label == "Import").click().run()


@pytest.mark.usefixtures("without_sample")
def test_study_comes_in_by_upload_and_is_kept_as_any_run(
    open_page: Open, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page("data")
    app.text_input[0].set_value("Apple M4 Pro")
    app = import_on_page(app, monkeypatch, Upload("../../study.csv", STUDY.read_bytes()))

    assert not app.exception
    assert not app.error
    assert "1 run with 15 new samples" in app.success[0].value
    run = history(settings.database).iloc[0]
    assert (run["kind"], run["cpu_name"]) == ("original study", "Apple M4 Pro")
    runs = open_page("runs")
    runs.text_input[0].set_value("The study, again")
    next(button for button in runs.button if button.label == "Save").click().run()
    assert history(settings.database).iloc[0]["title"] == "The study, again"
    runs = open_page("runs")
    runs.button(key=f"liob_runs_delete_{run['run_id']}").click().run()
    assert history(settings.database)["deleted_utc"].notna().all()
    runs.button(key="liob_runs_undo").click().run()
    assert history(settings.database)["deleted_utc"].isna().all()
    for name, part in (("results", "7.20"), ("quality", "not distinguishable"), ("answers", "512 tokens")):
        page = open_page(name)
        assert not page.exception, name
        assert part in html_of(page), name


@pytest.mark.usefixtures("without_sample")
@pytest.mark.parametrize(
    ("upload", "sentence"),
    [
        (Upload("<img src=x>.zip", b"PK\x03\x04" + b"\0" * 100), "damaged ZIP"),
        (Upload("x.duckdb", b"\0" * 8 + b"DUCK" + b"\0" * 5000), "no DuckDB database"),
        (Upload("x.json", b"[" * 100_000), "no JSON"),
    ],
)
def test_hostile_upload_is_one_sentence_without_a_path(
    open_page: Open, settings: Settings, monkeypatch: pytest.MonkeyPatch, upload: Upload, sentence: str
) -> None:
    app = import_on_page(open_page("data"), monkeypatch, upload)

    assert not app.exception
    assert sentence in app.error[0].value
    assert "liob-upload-" not in app.error[0].value
    assert "<img" not in app.error[0].value
    assert not settings.database.exists() or database.query(settings.database, "FROM runs").empty


@pytest.mark.usefixtures("without_sample")
def test_export_without_texts_holds_none_and_comes_back(
    open_page: Open, settings: Settings, made_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = str(history(made_database)["run_id"].iloc[0])
    content = export_bytes(made_database, run_id, "csv", with_texts=False)
    app = import_on_page(open_page("data"), monkeypatch, Upload(f"liob-{run_id}.csv.zip", content))

    assert not app.exception
    assert not app.error
    text = database.query(settings.database, "SELECT * FROM samples").to_csv()
    assert HOSTILE[:20] not in text
    answers = open_page("answers")
    assert not answers.exception
