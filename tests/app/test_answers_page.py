"""Answers: what judges and seeds say on top of each, and the blind vote that names nobody."""

import json
import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from liob_core.config import Settings
from liob_core.store import database
from liob_core.store.journal import read_lines
from tests.app.seeded import make_seeded
from tests.app.support import LABELS, Open, html_of
from tests.unit.analysis.conftest import RunWriter


@pytest.fixture
def own_run(settings: Settings, made_database: Path) -> Path:
    """The made run as one of the user's own, with its folder."""
    shutil.copytree(made_database.parent, settings.data_dir)
    return next(settings.runs_dir.iterdir())


@pytest.fixture
def with_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liob_core.ui.source.SAMPLE_DATABASE", make_seeded(tmp_path / "seeds.duckdb"))


@pytest.mark.usefixtures("with_seeds")
def test_what_judges_and_seeds_say_stands_on_top_of_an_answer(open_page: Open) -> None:
    app = open_page("answers", prompt="p0")
    assert not app.exception
    page = html_of(app)
    assert "tiny on embedded, which failed its calibration: 3 of 10" in page
    assert "“It is &lt;b&gt;wrong&lt;/b&gt;.”" in page
    assert "people: worse than the reference" in page
    assert "1 of 3 seeds passed" in page
    assert page.index("people: worse") < page.rindex("with seed 1")


@pytest.mark.usefixtures("with_seeds")
def test_every_seed_of_a_prompt_can_be_read(open_page: Open) -> None:
    app = open_page("answers", prompt="p0")
    assert "with</mark> seed 1" not in html_of(app)
    assert not app.expander
    app.selectbox(key="liob_pick_seed").select("2").run()
    page = html_of(app)
    assert app.query_params["seed"] == "2"
    assert "F16 with seed 2" in page
    assert "tiny on embedded" not in page, "the judge saw the graded answer"
    assert [box.label for box in app.expander] == ["Thinking", "Thinking"]


def test_of_one_variant_nothing_is_said_to_agree(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "alone.duckdb"
    with database.write(path):
        pass
    writer = RunWriter(path)
    writer.run()
    writer.machine()
    writer.variant("Q4_1", 5.7)
    writer.answer("Q4_1", "p1", "pass")
    writer.prompt("p1", 0)
    writer.summarize()
    writer.close()
    monkeypatch.setattr("liob_core.ui.source.SAMPLE_DATABASE", path)

    app = open_page("answers")

    assert not app.exception
    box = app.selectbox(key="liob_pick_prompt")
    assert box.label == "Prompt"
    assert "all the same" not in box.options[0]


@pytest.mark.usefixtures("with_sample")
def test_the_sample_takes_no_votes(open_page: Open) -> None:
    app = open_page("answers")
    assert not app.exception
    assert not [box for box in app.segmented_control if box.key == "liob_answers_mode"]


def test_visitors_of_a_hosted_app_cannot_vote(
    open_page: Open, made_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIOB_SHARE", str(made_database))
    app = open_page("answers")
    assert not app.exception
    assert app.title
    assert not [box for box in app.segmented_control if box.key == "liob_answers_mode"]


def opened(open_page: Open) -> AppTest:
    app = open_page("answers")
    app.segmented_control(key="liob_answers_mode").select("Vote blind").run()
    assert not app.exception
    return app


def said_on(app: AppTest) -> str:
    """All words on the page but the run's own, and those of the box in which a pair can be chosen."""
    bodies = [element.proto.body for element in app.main.get("html")]
    words = [body for body in bodies if "liob-kicker" not in body]
    words += [element.value for element in (*app.main.markdown, *app.main.caption)]
    words += [button.label for button in app.main.button]
    return "\n".join([*words, json.dumps(app.query_params)])


@pytest.mark.usefixtures("without_sample")
def test_a_vote_names_nobody_before_it_is_cast_and_both_afterwards(own_run: Path, open_page: Open) -> None:
    app = opened(open_page)
    before = said_on(app)
    assert not [label for label in LABELS if label in before]
    assert "tokens" not in before
    assert "<mark>" not in before
    assert not {key for key in (button.key or "" for button in app.button) if any(n in key for n in LABELS)}

    app.button(key="liob_vote_left").click().run()

    assert not app.exception
    named = next(text.value for text in app.markdown if "You preferred the left one" in text.value)
    [vote] = [line["data"] for line in read_lines(own_run)[0] if line["kind"] == "judgement"]
    told = json.loads(vote["raw_reply"])
    left = f"Left: {told['left']}.".replace("_", "\\_")
    assert left in named
    assert vote["result"] == ("win" if told["left"] == vote["variant"] else "loss")


@pytest.mark.usefixtures("without_sample")
def test_votes_go_on_until_every_pair_has_one_and_are_then_counted(
    own_run: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened(open_page)
    # Prompt p1 has the same text everywhere and Q2_K failed at p2: three variants are left, so three pairs.
    app.selectbox(key="liob_vote_which").select("any two variants").run()
    with monkeypatch.context() as patched:
        # A browser draws the vote alone anew; here each click draws the page, which would store every vote.
        patched.setattr("liob_core.ui.source._bring_up_to_date", lambda _: None)
        for key in ("left", "both_bad", "skip", "tie"):
            app.button(key=f"liob_vote_{key}").click().run()
            app.button(key="liob_vote_next").click().run()
            assert not app.exception
    assert [message.value for message in app.success] == ["There is a vote on every pair."]
    votes = [line["data"] for line in read_lines(own_run)[0] if line["kind"] == "judgement"]
    assert [vote["state"] for vote in votes] == ["scored", "scored", "refused", "scored"]
    pairs = [(vote["sample_id"], vote["reference_sample_id"]) for vote in votes]
    assert pairs[2] == pairs[3], "what was skipped comes again, last"
    assert len(set(pairs)) == 3
    app.button(key="liob_vote_count").click().run()
    page = html_of(app)
    assert page.count(">n = 1<") == 3
    assert "not distinguishable" in page


@pytest.mark.usefixtures("without_sample")
def test_a_vote_that_is_refused_says_why(own_run: Path, open_page: Open) -> None:
    app = opened(open_page)
    shutil.rmtree(own_run)
    app.button(key="liob_vote_right").click().run()
    assert not app.exception
    assert "vote where the run was made" in app.error[0].value
