"""Votes are appended to the run's journal, once a pair, and never while the run is at work."""

from pathlib import Path

import psutil
import pytest

from liob_core.bench.judge_jobs import JUDGING_DIR
from liob_core.bench.status import RunStatus, write_status
from liob_core.bench.voting import cast_vote
from liob_core.config import Settings
from liob_core.errors import MissingError, UsageError
from liob_core.quality.judge.people import BlindPair, Choice
from liob_core.store.journal import JOURNAL_FILE, read_lines
from tests.unit.bench.judging_builders import RUN_ID, make_judged_run


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = Settings(data_dir=tmp_path / "data", machine_dir=tmp_path / "machine")
    make_judged_run(made.runs_dir)
    return made


def pair(prompt_id: str = "river", variant: str = "Q4_0", **changes: str) -> BlindPair:
    sample = f"{RUN_ID}/b0/{{}}/suite/{prompt_id}@1"
    known = {
        "run_id": RUN_ID,
        "prompt_id": prompt_id,
        "variant": variant,
        "sample_id": sample.format(variant),
        "base": "F16",
        "base_sample_id": sample.format("F16"),
    }
    return BlindPair(**(known | changes), is_base_left=False)


def votes(settings: Settings) -> list[dict[str, object]]:
    lines, _ = read_lines(settings.runs_dir / RUN_ID)
    return [line["data"] for line in lines if line["kind"] == "judgement"]


def test_a_vote_is_one_more_line_and_changes_no_other(settings: Settings) -> None:
    journal = settings.runs_dir / RUN_ID / JOURNAL_FILE
    before = journal.read_bytes()
    made = cast_vote(pair(), Choice.LEFT, settings)
    assert journal.read_bytes().startswith(before)
    [stored] = votes(settings)
    assert (stored["result"], stored["judge"], stored["judgement_id"]) == ("win", "people", made.judgement_id)


def test_a_pair_that_has_a_vote_takes_no_other(settings: Settings) -> None:
    cast_vote(pair(), Choice.LEFT, settings)
    with pytest.raises(UsageError, match="never replaced"):
        cast_vote(pair(), Choice.RIGHT, settings)
    cast_vote(pair(prompt_id="colour"), Choice.TIE, settings)
    assert [vote["result"] for vote in votes(settings)] == ["win", "tie"]


def test_what_was_skipped_can_still_be_voted_on(settings: Settings) -> None:
    cast_vote(pair(), Choice.SKIP, settings)
    cast_vote(pair(), Choice.RIGHT, settings)
    assert [vote["state"] for vote in votes(settings)] == ["refused", "scored"]


@pytest.mark.parametrize("folder", ["", JUDGING_DIR])
def test_nobody_writes_beside_a_worker(settings: Settings, folder: str) -> None:
    at_work = settings.runs_dir / RUN_ID / folder
    at_work.mkdir(exist_ok=True)
    me = psutil.Process()
    write_status(
        at_work, RunStatus(run_id=RUN_ID, title="", state="running", pid=me.pid, pid_created=me.create_time())
    )
    with pytest.raises(UsageError, match="still at work"):
        cast_vote(pair(), Choice.LEFT, settings)
    assert votes(settings) == []


def test_a_run_without_its_folder_takes_no_vote(settings: Settings) -> None:
    with pytest.raises(MissingError, match="vote where the run was made"):
        cast_vote(pair(run_id="20990101-000000-none"), Choice.LEFT, settings)


def test_answers_that_are_not_there_take_no_vote(settings: Settings) -> None:
    with pytest.raises(UsageError, match="no such two answers"):
        cast_vote(pair(variant="Q1_0"), Choice.LEFT, settings)
