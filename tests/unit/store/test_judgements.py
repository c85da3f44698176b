"""Opinions from the journal to the view and out of the house."""

import json
from pathlib import Path

from liob_core.store import database
from liob_core.store.journal import Journal
from liob_core.store.share import export_run
from liob_core.types import JudgeMode, JudgeState
from tests.unit.store.builders import (
    MODEL_FOLDER,
    RUN_ID,
    make_calibration,
    make_judgement,
    make_run_folder,
)


def ingested(tmp_path: Path, db: Path) -> Path:
    run_dir = make_run_folder(tmp_path)
    with database.write(db) as con:
        database.ingest(con, run_dir)
    with Journal(run_dir) as journal:
        journal.append(make_calibration())
        journal.append(make_judgement(1))
        journal.append(
            make_judgement(
                2,
                state=JudgeState.PARSE_ERROR,
                score=None,
                reason="the reply is not one JSON object",
                raw_reply="I think \ud83d it is 7",
                attempts=2,
                earlier_replies=("seven",),
            )
        )
        journal.append(
            make_judgement(
                3,
                mode=JudgeMode.PAIRWISE,
                score=None,
                result="win",
                preferred_first="variant",
                preferred_second="variant",
                state=JudgeState.SCORED,
                is_self=None,
            )
        )
        journal.append(
            make_judgement(4, state=JudgeState.JUDGE_ERROR, score=None, reason=f"{MODEL_FOLDER}/x: gone")
        )
    return run_dir


def test_judgements_are_appended_and_ingesting_twice_changes_nothing(tmp_path: Path, db: Path) -> None:
    run_dir = ingested(tmp_path, db)
    for n_new in (4, 0):
        with database.write(db) as con:
            assert database.ingest(con, run_dir).n_judgements == n_new
    rows = database.query(db, "SELECT * FROM judgements ORDER BY judgement_id")
    assert rows["state"].tolist() == ["scored", "parse_error", "scored", "judge_error"]
    assert rows["score"].fillna(-1).tolist() == [7, -1, -1, -1], "no number where none was given"
    assert rows["raw_reply"][1] == "I think \ufffd it is 7"
    assert json.loads(rows["earlier_replies"][1]) == ["seven"]
    assert rows["result"][2] == "win"
    assert rows["is_self"].isna().tolist() == [False, False, True, False]
    calibration = database.query(db, "SELECT item_kind, got, is_right FROM calibrations")
    assert calibration.values.tolist() == [["gold", "9", True]]


def test_judging_leaves_the_state_of_the_run_alone(tmp_path: Path, db: Path) -> None:
    run_dir = ingested(tmp_path, db)
    with Journal(run_dir) as journal:
        journal.append_event("judging finished", "by a judge")
    with database.write(db) as con:
        assert database.ingest(con, run_dir).state == "finished"


def test_export_holds_judgements_without_paths(tmp_path: Path, db: Path) -> None:
    run_dir = ingested(tmp_path, db)
    with database.write(db) as con:
        database.ingest(con, run_dir)
    document = json.loads(export_run(db, RUN_ID, "json", tmp_path / "out.json").read_text())
    assert len(document["judgements"]) == 4
    assert len(document["calibrations"]) == 1
    assert "jane" not in json.dumps(document["judgements"])
