import threading
from pathlib import Path
from typing import Any

import pytest

from liob_core.bench.judge_model import EngineJudge
from liob_core.bench.runner import Cancelled
from liob_core.bench.status import RunStatus
from liob_core.bench.supervisor import Supervisor
from liob_core.engines.fake import FakeEngine
from liob_core.errors import LiobError
from liob_core.types import Limits, Outcome, Sampling
from tests.unit.bench.judging_builders import make_judging

ASKING = Sampling(max_tokens=5)


def make_model(folder: Path, limits: Limits | None = None, **script: Any) -> tuple[EngineJudge, Supervisor]:
    engine = FakeEngine({"sleep": False, "answers": {"grade": "seven of ten"}, **script})
    status = RunStatus(run_id="r", title="t", state="running")
    supervisor = Supervisor(folder, status, abort=engine.abort, latest=lambda: None)
    model = EngineJudge(
        engine, make_judging().judge, supervisor=supervisor, folder=folder, limits=limits or Limits()
    )
    return model, supervisor


def test_reply_is_the_text_and_whether_it_was_cut_off(tmp_path: Path) -> None:
    model, _ = make_model(tmp_path)
    model.load()
    assert model.ask("grade", ASKING).text == "seven of ten"
    assert not model.ask("grade", ASKING).is_cut_off
    cut = model.ask("grade", Sampling(max_tokens=2))
    assert (cut.text, cut.is_cut_off, cut.failure) == ("seven of", True, None)


def test_engine_that_died_is_loaded_again_for_the_next_question(tmp_path: Path) -> None:
    model, _ = make_model(tmp_path, faults=[{"kind": "die", "request": 1}])
    model.load()
    reply = model.ask("grade", ASKING)
    assert reply.failure is not None
    assert reply.failure.outcome is Outcome.ENGINE_DIED
    assert reply.text == "seven of", "what came before is kept"
    assert model.ask("grade", ASKING).text == "seven of ten"
    assert sorted(path.name for path in tmp_path.glob("engine-*")) == ["engine-0001.log", "engine-0002.log"]


def test_reload_that_fails_is_a_failed_question_not_the_end(tmp_path: Path) -> None:
    faults = [{"kind": "die", "request": 1}, {"kind": "load_fails", "load": 2}]
    model, _ = make_model(tmp_path, faults=faults)
    model.load()
    assert model.ask("grade", ASKING).failure is not None
    assert model.ask("grade", ASKING).failure is not None
    assert model.ask("grade", ASKING).failure is None


def test_judge_that_cannot_be_loaded_at_all_is_told(tmp_path: Path) -> None:
    model, _ = make_model(tmp_path, faults=[{"kind": "load_fails"}])
    with pytest.raises(LiobError, match=r"judge could not be loaded.*scripted"):
        model.load()


def test_judge_that_hangs_is_stopped_at_its_deadline(tmp_path: Path) -> None:
    model, supervisor = make_model(
        tmp_path, Limits(between_tokens_s=0.1), faults=[{"kind": "hang", "request": 1}]
    )
    supervisor.start()
    model.load()
    reply = model.ask("grade", ASKING)
    assert reply.failure is not None
    assert reply.failure.outcome is Outcome.TIMEOUT
    assert model.ask("grade", ASKING).failure is None
    supervisor.stop("finished", None)


def test_cancel_ends_a_question_under_way(tmp_path: Path) -> None:
    model, supervisor = make_model(tmp_path, faults=[{"kind": "hang"}])
    supervisor.start()
    model.load()
    threading.Timer(0.05, supervisor.cancel).start()
    with pytest.raises(Cancelled):
        model.ask("grade", ASKING)
    supervisor.stop("cancelled", None)


def test_token_count_of_a_piece_is_the_engines(tmp_path: Path) -> None:
    model, _ = make_model(tmp_path)
    assert model.is_one_token("two words"), "before it is loaded nobody can tell"
    model.load()
    assert model.is_one_token("word")
    assert not model.is_one_token("two words")
