"""The Trade-offs page: limits in, variant out, kept in the address."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from liob_core.analysis import summary
from liob_core.store import database
from tests.app.support import Open, collect_charts, html_of

SIZES = {"F16": 400, "Q8_0": 300, "Q4_K_M": 200, "Q2_K": 100}  # MiB


@pytest.fixture
def with_ladder(made_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The made run with memory that falls down the ladder, and 60 checked prompts that all pass."""
    path = Path(shutil.copy(made_database, tmp_path / "ladder.duckdb"))
    with database.write(path) as con:
        run_id = con.execute("SELECT run_id FROM raw.runs").fetchone()[0]
        for label, mib in SIZES.items():
            con.execute("UPDATE raw.loads SET peak_memory_bytes = ? WHERE variant = ?", [mib * 2**20, label])
        con.execute("UPDATE raw.variants SET file_name = 'tiny-' || variant || '.gguf'")
        con.execute("DELETE FROM raw.samples WHERE task = 'suite' AND NOT warmup AND prompt_id <> 'p1'")
        con.execute(
            "INSERT INTO raw.samples BY NAME SELECT samples.* REPLACE (sample_id || n AS sample_id, "
            "cell_id || n AS cell_id, 'q' || n AS prompt_id, 'pass' AS check_result, 'ok' AS outcome) "
            "FROM raw.samples AS samples, range(60) AS numbers(n) "
            "WHERE task = 'suite' AND NOT warmup AND block = 0"
        )
        summary.summarize(con, run_id)
    monkeypatch.setattr("liob_core.ui.source.SAMPLE_DATABASE", path)


def title(app: Any) -> str:
    return str(app.title[0].value).replace("\\", "").replace("\u00a0", " ")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    return collect_charts(monkeypatch)


@pytest.mark.usefixtures("with_ladder")
def test_the_pick_has_its_evidence_its_runner_up_and_its_command(
    open_page: Open, drawn: list[dict[str, Any]]
) -> None:
    app = open_page("tradeoffs", gib="0.25")
    assert not app.exception
    assert title(app).startswith("Q2_K: ")
    assert any("Runner-up: **Q4\\_K\\_M**" in text.value for text in app.markdown)
    page = html_of(app)
    assert "300 MiB" in page
    assert page.count("missed") == 2  # F16 and Q8_0 are too large
    text = json.dumps(drawn[0])
    assert '"mark": "pick"' in text
    assert "Shaded is what the limits forbid" in text
    assert app.code[0].value.startswith("llama-server --model tiny-Q2_K.gguf")


@pytest.mark.usefixtures("with_ladder")
def test_a_slider_changes_the_answer_and_the_address(open_page: Open) -> None:
    app = open_page("tradeoffs")
    assert app.query_params["gib"] == "any"

    app.select_slider(key="liob_pick_gib").set_value("0.07812").run()  # 80 MiB

    assert not app.exception
    assert title(app).startswith("Nothing is shown to meet this. Q2_K comes nearest")
    assert app.query_params["gib"] == "0.07812"


@pytest.mark.usefixtures("with_ladder")
def test_a_link_shows_what_its_sender_saw(open_page: Open) -> None:
    app = open_page("tradeoffs", gib="0.1234", loss="10", x="file_bytes", y="decode_tps")
    assert app.select_slider(key="liob_pick_gib").value == "0.1234"
    assert app.select_slider(key="liob_pick_loss").value == "10"
    assert app.query_params["x"] == "file_bytes"
    assert app.query_params["y"] == "decode_tps"
    assert title(app).startswith("Q2_K")


@pytest.mark.usefixtures("with_ladder")
@pytest.mark.parametrize("wrong", ["nan", "1e999", "<b>"])
def test_a_link_with_nonsense_is_ignored(open_page: Open, wrong: str) -> None:
    app = open_page("tradeoffs", gib=wrong, tps=wrong, loss=wrong, x=wrong, y=wrong)
    assert not app.exception
    assert not app.error
    assert app.select_slider(key="liob_pick_gib").value == "any"


@pytest.mark.usefixtures("with_ladder")
def test_presets_set_the_sliders_and_are_undone(open_page: Open) -> None:
    app = open_page("tradeoffs")
    app.button(key="liob_preset_Small memory").click().run()
    assert app.query_params["gib"] == "0.1953"  # half of 400 MiB, in GiB
    assert title(app).startswith("Q2_K")
    app.button(key="liob_preset_No limits").click().run()
    assert app.query_params["gib"] == "any"


@pytest.mark.usefixtures("with_sample")
def test_a_run_with_too_few_prompts_says_so(open_page: Open) -> None:
    app = open_page("tradeoffs")
    assert not app.exception
    assert not app.error
    assert "No pick" in title(app) or "Too few prompts" in title(app)
