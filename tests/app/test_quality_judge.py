"""The Quality page's judges and categories, and how a judge is started there."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from liob_core.analysis import summary
from liob_core.bench import judge_jobs
from liob_core.config import Settings
from liob_core.errors import UsageError
from liob_core.store import database
from liob_core.types import JudgeMode
from tests.app.support import Open, collect_charts, html_of

SCORES = {"F16": 8, "Q8_0": 8, "Q4_K_M": 5, "Q2_K": 3}
_CALIBRATION = """
    INSERT INTO raw.calibrations (calibration_id, run_id, judge, judge_key, mode, item_id, item_kind,
        expected, got, is_right, state, raw_reply, attempts, judged_utc)
    SELECT $judge || $mode || range, (SELECT run_id FROM raw.runs), $judge, $judge, $mode, 'item-' || range,
        if(range < 6, 'gold', 'identical'), 'good', '8', range < $n_right, 'scored', '{}', 1, now()::TIMESTAMP
    FROM range(10)
"""
_OPINIONS = """
    INSERT INTO raw.judgements (judgement_id, run_id, sample_id, variant, prompt_id, judge, judge_key, mode,
        state, score, result, preferred_first, preferred_second, raw_reply, attempts, is_self, judged_utc)
    SELECT $judge || $mode || sample_id, run_id, sample_id, variant, prompt_id, $judge, $judge, $mode,
        if(variant = 'Q2_K', 'parse_error', 'scored'),
        if($mode = 'single' AND variant <> 'Q2_K', 8 - 3 * (variant = 'Q4_K_M')::INT, NULL),
        if($mode = 'pairwise' AND variant <> 'Q2_K', 'tie', NULL),
        if($mode = 'pairwise' AND variant <> 'Q2_K', 'variant', NULL),
        if($mode = 'pairwise' AND variant <> 'Q2_K', 'reference', NULL),
        '{}', 1, variant = 'F16', now()::TIMESTAMP
    FROM raw.samples
    WHERE task = 'suite' AND NOT warmup AND block = (SELECT min(block) FROM raw.samples WHERE task = 'suite')
        AND ($mode = 'single' OR variant <> 'F16')
"""
Judged = Callable[..., Path]


@pytest.fixture
def judged(made_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judged:
    """Adds a judge's opinions to the run that the app shows."""
    path = Path(shutil.copy(made_database, tmp_path / "judged.duckdb"))
    monkeypatch.setattr("liob_core.ui.source.SAMPLE_DATABASE", path)

    def add(judge: str, n_right: int | None, mode: str = "single") -> Path:
        with database.write(path) as con:
            if n_right is not None:
                con.execute(_CALIBRATION, {"judge": judge, "mode": mode, "n_right": n_right})
            con.execute(_OPINIONS, {"judge": judge, "mode": mode})
            summary.summarize(con, con.execute("SELECT run_id FROM raw.runs").fetchone()[0])
        return path

    return add


def test_a_judge_that_failed_its_calibration_says_so_before_its_scores(
    judged: Judged, open_page: Open
) -> None:
    judged("weak", 4)
    app = open_page("quality")
    assert not app.exception
    (warning,) = [warning.value for warning in app.warning]
    assert warning.startswith("This judge gives no verdict because it failed its calibration: 4 of 10")
    page = html_of(app)
    assert page.index("4 of 6") < page.index("Mean score")
    assert "judged by itself" in page
    assert "not readable" in page
    assert ">worse<" not in page
    assert "no verdict" in page


def test_a_calibrated_judge_shows_coverage_and_what_it_could_not_score(
    judged: Judged, open_page: Open
) -> None:
    judged("good", 10)
    app = open_page("quality")
    assert not app.exception
    page = html_of(app)
    assert "5.00" in page
    assert "-3.00" in page
    # What it could not read has no score, and what has no score is not ranked.
    assert "0 of 1" in page
    assert "only 0 of 1 answers were scored" in page
    assert any("The judge failed on" in caption.value for caption in app.caption)


def test_one_of_several_judges_is_chosen_and_pairs_show_the_order(judged: Judged, open_page: Open) -> None:
    judged("good", 10)
    judged("good", 10, "pairwise")
    app = open_page("quality", judge="good-pairwise")
    assert not app.exception
    options = app.selectbox(key="liob_pick_judge").options
    assert len(options) == 2
    page = html_of(app)
    assert "Same in both orders" in page
    assert "decided by the order" in page
    assert any("it said the same in both orders on 0 of" in caption.value for caption in app.caption)


def test_people_are_a_judge_without_a_calibration(judged: Judged, open_page: Open) -> None:
    judged("people", None, "pairwise")
    app = open_page("quality")
    assert not app.exception
    assert not app.warning
    assert any("Blind votes of people" in text.value for text in app.markdown)
    assert any(caption.value.startswith("People skipped") for caption in app.caption)
    assert "Calibration" not in html_of(app)


@pytest.mark.usefixtures("with_sample")
def test_without_a_judge_and_checks_the_page_says_why(open_page: Open) -> None:
    app = open_page("quality")
    assert not app.exception
    captions = " ".join(caption.value for caption in app.caption)
    assert "no judge has looked at this run's answers" in captions
    assert "has a check that decided" in captions


def test_checks_by_category_are_drawn(
    made_database: Path, tmp_path: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copy(made_database, tmp_path / "checked.duckdb"))
    with database.write(path) as con:
        con.execute("UPDATE raw.samples SET check_result = if(variant = 'Q2_K', 'fail', 'pass')")
        con.execute("UPDATE raw.samples SET check_score = 0.75, check_reason = 'its ROUGE-L is 0.750'")
        con.execute("UPDATE raw.prompts SET category = prompt_id, check_kind = 'rouge_l'")
        summary.summarize(con, con.execute("SELECT run_id FROM raw.runs").fetchone()[0])
    monkeypatch.setattr("liob_core.ui.source.SAMPLE_DATABASE", path)
    drawn = collect_charts(monkeypatch)
    app = open_page("quality")
    assert not app.exception
    titles = [chart["title"]["text"] for chart in drawn]
    assert "Checks passed, against F16" in titles
    page = html_of(app)
    assert "ROUGE-L" in page
    assert "0.750" in page
    assert "score 0.75" in html_of(open_page("answers"))


@pytest.fixture
def own_run(made_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The run as the user's own, its folder beside the database."""
    settings = Settings(data_dir=tmp_path / "data", machine_dir=tmp_path / "machine")
    shutil.copytree(made_database.parent, settings.data_dir)
    monkeypatch.setenv("LIOB_DATA_DIR", str(settings.data_dir))
    monkeypatch.setenv("LIOB_MACHINE_DIR", str(settings.machine_dir))
    monkeypatch.setattr("liob_core.ui.source.SAMPLE_DATABASE", tmp_path / "none.duckdb")
    return settings


def test_an_own_run_offers_a_judge_with_the_command_for_it(
    own_run: Settings, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def start(spec: Any, _: Settings) -> int:
        asked.append(spec)
        raise UsageError("Not started in this test.")

    monkeypatch.setattr(judge_jobs, "start", start)
    monkeypatch.setattr("liob_core.ui.quality.judge_start.make_judge", lambda engine, model, *_, **__: model)
    app = open_page("quality")
    assert not app.exception
    (command,) = [code.value for code in app.code if "liob_core judge" in code.value]
    assert "--judge-engine embedded --judge-model MODEL.gguf" in command
    app.button(key="liob_judge_start").click().run()
    assert "Name the judge's model" in app.error[0].value
    app.text_input(key="liob_judge_model_embedded").set_value("big judge.gguf")
    app.segmented_control(key="liob_judge_mode").set_value(JudgeMode.PAIRWISE)
    app.button(key="liob_judge_start").click().run()
    assert any("--judge-model 'big judge.gguf' --pairwise" in code.value for code in app.code)
    (spec,) = asked
    assert (spec.judge, spec.mode) == ("big judge.gguf", JudgeMode.PAIRWISE)
    assert app.error[0].value == "Not started in this test."
