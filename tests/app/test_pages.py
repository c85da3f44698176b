import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from liob_core.analysis import summary
from liob_core.analysis.overview import headline
from liob_core.analysis.runs import list_runs
from liob_core.config import Settings
from liob_core.errors import BusyError
from liob_core.store import database
from liob_core.ui.blocks import OWN_BENCHMARK
from tests.app.support import ENTRY, HOSTILE, LABELS, Open, collect_charts, html_of

PAGES = ("overview", "new", "run", "results", "answers", "quality", "tradeoffs")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("without_sample")
def test_page_without_any_data_says_what_to_do(open_page: Open, name: str) -> None:
    app = open_page(name)

    assert not app.exception
    assert not app.error
    if name == "new":
        assert app.button(key="liob_start").disabled
    else:
        assert OWN_BENCHMARK in [button.label for button in app.button]


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("with_sample")
def test_page_with_the_sample_has_no_error(open_page: Open, name: str) -> None:
    app = open_page(name)

    assert not app.exception
    assert not app.error


@pytest.mark.parametrize("path", sorted((ENTRY.parent / "pages").glob("*.py")), ids=lambda path: path.stem)
def test_page_file_run_alone_does_nothing(path: Path) -> None:
    app = AppTest.from_file(str(path), default_timeout=60).run()

    assert not app.exception
    assert len(app.main) == 0
    assert len(app.sidebar) == 0


def test_page_addresses_differ_from_file_names() -> None:
    files = {path.stem for path in (ENTRY.parent / "pages").glob("*.py")}

    assert files
    assert not files & set(PAGES)


@pytest.mark.usefixtures("with_sample")
def test_overview_begins_with_the_pick_and_one_button(open_page: Open, made_database: Path) -> None:
    app = open_page("overview")

    expected = headline(made_database, str(list_runs(made_database)["run_id"].iloc[0])).sentence
    assert app.title[0].value.replace("\\", "") == expected
    primary = [button.label for button in app.button if button.proto.type == "primary"]
    assert primary == [OWN_BENCHMARK]
    assert "made by LIOB" in app.caption[0].value


@pytest.mark.usefixtures("with_sample")
def test_button_of_the_first_screen_leads_to_a_new_benchmark(open_page: Open) -> None:
    app = open_page("overview")

    next(button for button in app.button if button.label == OWN_BENCHMARK).click().run()

    assert app.title[0].value == "New benchmark"


@pytest.mark.usefixtures("with_sample")
def test_results_show_every_variant_reference_first(open_page: Open) -> None:
    page = html_of(open_page("results"))

    places = [page.index(f"</i>{label}</div>") for label in LABELS]
    assert places == sorted(places)
    assert page.index("reference") < places[1]


@pytest.mark.usefixtures("with_sample")
def test_results_draw_speed_waiting_and_memory(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = collect_charts(monkeypatch)

    open_page("results")

    assert [chart["title"]["text"] for chart in drawn] == [
        "Decode rate, chat512",
        "Prompt (prefill) rate, pp512",
        "Time to first token",
        "Time per output token",
        "Memory at its peak",
    ]


@pytest.mark.usefixtures("with_sample")
@pytest.mark.parametrize(("name", "n_pictures"), [("overview", 1), ("results", 5)])
def test_every_picture_can_be_taken_along(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, name: str, n_pictures: int
) -> None:
    offered: dict[str, object] = {}
    monkeypatch.setattr(
        "streamlit.download_button",
        lambda _, data, file_name, **__: offered.update({file_name.rpartition("-")[2]: data}),
    )

    open_page(name)

    endings = [file.rpartition(".")[2] for file, data in offered.items() if callable(data)]
    n_tables = 1 if name == "results" else 0
    expected = {"png": n_pictures, "svg": n_pictures, "csv": n_pictures + n_tables}
    assert {ending: endings.count(ending) for ending in endings} == expected
    for file, data in offered.items():
        made = data() if callable(data) else data
        if file.endswith("png"):
            assert made.startswith(b"\x89PNG")
        elif file.endswith("svg"):
            assert made.startswith("<svg")
            assert "LIOB" in made
        else:
            assert "Q4_K_M" in made


@pytest.mark.usefixtures("with_sample")
def test_results_can_be_ordered_and_the_reference_stays_first(open_page: Open) -> None:
    app = open_page("results")

    app.selectbox(key="results_order").select("Memory").run()

    assert not app.exception
    page = html_of(app)
    assert min(page.index(f"</i>{label}</div>") for label in LABELS) == page.index("</i>F16</div>")


@pytest.mark.usefixtures("with_sample")
def test_answers_keep_the_chosen_prompt_in_the_address(open_page: Open) -> None:
    app = open_page("answers", prompt="p2")

    assert app.query_params["prompt"] == "p2"
    assert "Say something else." in html_of(app)
    assert "engine_error" in html_of(app)


@pytest.mark.usefixtures("with_sample")
@pytest.mark.parametrize("is_rendered", [False, True])
def test_hostile_answer_is_text(open_page: Open, is_rendered: bool) -> None:
    app = open_page("answers", prompt="p1")
    app.toggle(key="liob_answers_markdown").set_value(is_rendered).run()

    page = html_of(app)
    assert not app.exception
    assert "evil.example" in page
    for forbidden in ("<script", "<img", "<a ", "onerror=alert(1)>", "\x1b", "\x00", "\u202e"):
        assert forbidden not in page.lower(), forbidden
    assert "&lt;script&gt;" in page
    assert "‹ESC›[31mred" in page
    assert ("<strong>bold</strong>" in page) == is_rendered
    assert "a[0] = 1" in page
    assert len(HOSTILE) > 100


@pytest.mark.usefixtures("with_sample")
def test_busy_database_is_one_sentence(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        raise BusyError("The database is in use by duckdb (process 7). Close it there.")

    monkeypatch.setattr("liob_core.ui.reads.frame", busy)
    app = open_page("results")

    assert not app.exception
    assert "in use by duckdb" in app.warning[0].value


@pytest.mark.usefixtures("with_sample")
def test_bug_stays_loud(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liob_core.ui.reads.frame", lambda *_: 1 / 0)
    app = open_page("results")

    assert "division by zero" in app.exception[0].message


@pytest.mark.parametrize("name", ["overview", "results"])
def test_unknown_speed_says_why_instead_of_an_empty_chart(
    open_page: Open, made_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    busy = Path(shutil.copy(made_database, tmp_path / "busy.duckdb"))
    with database.write(busy) as con:
        con.execute("UPDATE raw.samples SET contended = true, check_result = NULL")
        summary.summarize(con, con.execute("SELECT run_id FROM raw.runs").fetchone()[0])
    monkeypatch.setattr("liob_core.ui.source.SAMPLE_DATABASE", busy)

    app = open_page(name)

    assert not app.exception
    reasons = [caption.value for caption in app.caption if caption.value.startswith("—")]
    assert len(reasons) == {"overview": 1, "results": 4}[name]
    assert "busy neighbour" in reasons[0]


@pytest.mark.usefixtures("with_sample")
def test_choosing_prompts_back_and_forth_follows_every_choice(open_page: Open) -> None:
    app = open_page("answers")

    for prompt, text in (("p2", "something else"), ("p1", "something hostile"), ("p2", "something else")):
        app.selectbox[0].select(prompt).run()
        assert app.query_params["prompt"] == prompt
        assert f"Say {text}." in html_of(app)


@pytest.mark.usefixtures("with_sample")
def test_own_results_come_first_and_the_sample_stays_in_reach(
    open_page: Open, settings: Settings, made_database: Path
) -> None:
    settings.data_dir.mkdir()
    shutil.copy(made_database, settings.database)
    app = open_page("overview")

    assert not any("made by LIOB" in caption.value for caption in app.caption)
    assert app.query_params["source"] == "own"

    app.segmented_control(key="liob_source").select("sample").run()

    assert any("made by LIOB" in caption.value for caption in app.caption)
    assert app.query_params["source"] == "sample"
    assert not app.warning, "the run of the other source is no wrong address"


@pytest.mark.usefixtures("with_sample")
def test_an_address_of_a_run_that_is_not_here_is_told(open_page: Open) -> None:
    app = open_page("results", run="20200101-000000-gone")
    assert [warning.value for warning in app.warning] == [
        "There is no run 20200101-000000-gone here. This is another one."
    ]
    assert not open_page("results").warning


def test_own_database_is_brought_up_to_date_without_any_run_folder(
    open_page: Open, settings: Settings, made_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.data_dir.mkdir(parents=True)
    shutil.copy(made_database, settings.database)
    asked: list[Path] = []
    monkeypatch.setattr("liob_core.bench.catch_up.catch_up_in_child", lambda own: asked.append(own.database))

    open_page("results")

    assert asked == [settings.database]
