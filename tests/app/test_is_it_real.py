"""Is it real? On the Quality page; and the seeds that answer it, in a new benchmark."""

from pathlib import Path

import pytest

from tests.app.seeded import make_seeded
from tests.app.support import Open, collect_charts, fake_variants, html_of


@pytest.fixture
def with_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liob_core.ui.source.SAMPLE_DATABASE", make_seeded(tmp_path / "seeds.duckdb"))


@pytest.mark.usefixtures("with_seeds")
def test_flips_stand_beside_the_references_own(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = collect_charts(monkeypatch)
    app = open_page("quality")
    assert not app.exception
    assert "Is it real?" in [heading.value for heading in app.subheader]
    # F16 passes p0 with two of three seeds, so two of the three pairs of its answers differ there.
    assert any(
        "F16 against itself: from one seed to another 0.667 of 3 prompts flip" in c.value for c in app.caption
    )
    page = html_of(app)
    assert "1 gained, 1 lost of 3 prompts" in page
    assert "Over all seeds" in page
    chart = next(one for one in drawn if one["title"]["text"] == "Flips against the reference")
    assert "Grey: as many flips as F16 has against itself" in chart["title"]["subtitle"]
    assert not [block for block in app.code if "--seeds" in block.value]


@pytest.mark.usefixtures("with_sample")
def test_a_run_without_checked_answers_says_what_is_missing(open_page: Open) -> None:
    app = open_page("quality")
    assert not app.exception
    assert any("needs checked answers of two variants" in caption.value for caption in app.caption)


@pytest.mark.usefixtures("without_sample")
def test_seeds_of_a_new_benchmark_are_told_where_they_are_chosen_and_in_the_summary(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    from liob_core.ui.setup import variants_step

    chosen = variants_step.Choice
    monkeypatch.setattr(
        "pages.new_page.pick_variants",
        lambda *_: chosen(
            variants=fake_variants(),
            reference=None,
            engines=variants_step.EngineChoice(names=("fake",), url=None, has_ollama=False),
        ),
    )
    app = open_page("new")
    assert not app.exception
    before = {box.label for box in app.expander}
    assert "Seeds: one greedy answer a prompt" in before
    app.number_input(key="liob_new_n_seeds").set_value(5).run()
    assert not app.exception
    assert "Seeds: 5 answers a prompt at temperature 0.8" in {box.label for box in app.expander}
    assert any("with 5 seeds" in text.value for text in app.markdown)
