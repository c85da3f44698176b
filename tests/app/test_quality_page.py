"""The Quality page and the task's choice in a new benchmark."""

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

from liob_core.analysis import summary
from liob_core.errors import MissingError
from liob_core.store import database
from tests.app.support import Open, collect_charts, html_of

RUN = "SELECT run_id FROM raw.runs"
COLUMNS = (
    "run_id, variant, reference, text, n_ctx, n_windows, n_tokens, window_choice, ppl, ppl_se, ppl_se_iid, "
    "ln_ratio, ln_ratio_se, ln_ratio_se_iid, ln_ratio_low, ln_ratio_high, ln_ratio_bound, ln_ratio_p, "
    "kld_mean, kld_se, kld_se_iid, kld_p99, kld_max, same_top, same_top_se, same_top_se_iid, delta_p_mean, "
    "delta_p_rms, broken, prefill_tps, build, cpu_features, ending, reason, unknown"
)
UNKNOWN = '{"kld_mean": "no reference to compare with"}'


def rows(run_id: str) -> list[tuple[Any, ...]]:
    basis = ("bundled", 512, 32, 8160, "spread")
    made_by = (500.0, "llama-cpp-python 0.3", "AVX2 = 1", "done", None)
    reference = (28.5, 1.2, 0.6, *[None] * 18)
    near = (28.6, 1.2, 0.6, 0.0012, 0.001, 0.0009, -0.001, 0.003, 0.0029, 0.2, 0.0014, 0.0002, 0.0001)
    broken = (240.0, 9.0, 6.0, 2.1, 0.1, 0.05, 1.9, 2.3, 2.27, 0.0, 2.9, 0.2, 0.1)
    return [
        (run_id, "F16", None, *basis, *reference, *made_by, UNKNOWN),
        (
            run_id,
            "Q8_0",
            "F16",
            *basis,
            *near,
            0.02,
            0.4,
            0.97,
            0.002,
            0.001,
            -0.001,
            0.02,
            None,
            *made_by,
            "{}",
        ),
        (
            *(run_id, "Q4_K_M", "F16", *[None] * 29),
            *("other_vocabulary", "its vocabulary has 7 tokens", "{}"),
        ),
        (
            *(run_id, "Q2_K", "F16", *basis, *broken, 9.0, 14.0, 0.3, 0.02, 0.01, -0.2, 0.4),
            *("perplexity 240, where the reference has 28.5", *made_by, "{}"),
        ),
    ]


@pytest.fixture
def with_closeness(made_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(shutil.copy(made_database, tmp_path / "close.duckdb"))
    with database.write(path) as con:
        run_id = con.execute(RUN).fetchone()[0]
        for row in rows(run_id):
            marks = ", ".join("?" * len(row))
            con.execute(f"INSERT INTO raw.fidelities ({COLUMNS}) VALUES ({marks})", row)
        summary.summarize(con, run_id)
    monkeypatch.setattr("liob_core.ui.source.SAMPLE_DATABASE", path)


@pytest.mark.usefixtures("with_closeness")
def test_quality_begins_with_the_answer_and_names_what_is_broken(open_page: Open) -> None:
    app = open_page("quality")
    assert not app.exception
    title = app.title[0].value.replace("\u00a0", " ")
    assert title == "Down to Q8\\_0: perplexity at most 0.3 % higher than F16's (95 %)."
    broken = [warning.value for warning in app.warning]
    assert broken == [
        "Q2\\_K is broken at this size: perplexity 240, where the reference has 28.5.",
        "On this ladder it starts at 5.10 true bits per weight.",
    ]


@pytest.mark.usefixtures("with_closeness")
def test_the_table_shows_both_errors_and_says_why_a_figure_is_unknown(open_page: Open) -> None:
    page = html_of(open_page("quality"))
    assert "28.5" in page
    assert "± 1.20 (0.600)" in page
    assert "not distinguishable" in page
    assert "no reference to compare with" in page
    assert "its vocabulary has 7 tokens" in page
    assert "other_vocabulary" in page
    assert "nan" not in page.lower()


@pytest.mark.usefixtures("with_closeness")
def test_the_ladder_names_build_and_guides(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = collect_charts(monkeypatch)
    open_page("quality")
    (chart,) = drawn
    assert chart["title"]["text"] == "KL divergence from F16"
    notes = " ".join(chart["title"]["subtitle"])
    assert "llama-cpp-python 0.3, AVX2" in notes
    assert "Llama-3-8B" in notes


@pytest.mark.usefixtures("with_sample")
def test_a_run_without_closeness_says_how_to_get_it(open_page: Open) -> None:
    app = open_page("quality")
    assert not app.exception
    assert any("add the task Closeness" in caption.value for caption in app.caption)


@pytest.mark.usefixtures("with_closeness")
def test_results_have_a_column_of_closeness(open_page: Open) -> None:
    page = html_of(open_page("results"))
    assert "Closeness" in page
    assert "0.00140" in page


@pytest.mark.usefixtures("without_sample")
def test_without_the_add_on_the_task_is_not_offered_but_the_command_is(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise MissingError("Closeness needs the add-on: pip install it.")

    monkeypatch.setattr("liob_core.ui.setup.work_step.check_add_on", missing)
    app = open_page("new")
    assert not app.exception
    assert "Closeness" not in app.pills(key="liob_new_tasks").options
    assert any("pip install it" in caption.value for caption in app.caption)


@pytest.mark.skipif(importlib.util.find_spec("llama_cpp") is None, reason="needs llama-cpp-python")
@pytest.mark.usefixtures("without_sample")
def test_with_the_add_on_a_text_can_be_chosen(open_page: Open) -> None:
    app = open_page("new")
    app.pills(key="liob_new_tasks").set_value(["closeness"]).run()
    assert not app.exception
    assert app.selectbox(key="liob_new_text").value == "bundled"
