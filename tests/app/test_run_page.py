import os
from dataclasses import replace

import psutil
import pytest

from liob_core.bench import jobs
from liob_core.bench.spec import Choices, make_spec
from liob_core.bench.status import Progress, RunStatus, write_status
from liob_core.bench.supervisor import CANCEL_FILE
from liob_core.config import Settings
from liob_core.store.journal import write_spec
from liob_core.types import Task
from tests.app.support import HOSTILE, LABELS, Open, fake_variants, html_of

RUN_ID = "20261130-120000-aaaa"


def make_run(settings: Settings, state: str, run_id: str = RUN_ID, **values: object) -> None:
    """A run folder whose worker is this very process."""
    spec = make_spec(Choices(engine="fake", variants=fake_variants(), tasks=(Task.SPEED,), title="A *title*"))
    run_dir = settings.runs_dir / run_id
    run_dir.mkdir(parents=True)
    write_spec(run_dir, replace(spec, run_id=run_id))
    process = psutil.Process(os.getpid())
    status = RunStatus(
        run_id=run_id,
        title=spec.title,
        state=state,
        n_cells=40,
        n_done=10,
        pid=process.pid,
        pid_created=process.create_time(),
        per_cell={f"{label}|speed": Progress(total=10, done=4, failed=1) for label in LABELS},
    )
    write_status(run_dir, replace(status, **values))


def labels(app: object) -> list[str]:
    return [button.label for button in app.button]


def test_running_shows_progress_and_the_answer_as_text(open_page: Open, settings: Settings) -> None:
    make_run(settings, "running", text_tail=HOSTILE, decode_tps_live=47.31, eta_s=300.0, n_failed=4)

    app = open_page("run")

    assert not app.exception
    assert app.title[0].value == "Running: 10 of 40 requests"
    assert labels(app) == ["Cancel"]
    page = html_of(app)
    assert "4 / 10" in page
    assert "<script" not in page
    assert "‹ESC›[31m" in page
    assert any("4 of 10 requests failed" in text.value for text in app.markdown)


def test_cancel_asks_the_worker_to_end(open_page: Open, settings: Settings) -> None:
    make_run(settings, "running")
    app = open_page("run")

    app.button(key="liob_cancel").click().run()

    assert not app.exception
    assert (settings.runs_dir / RUN_ID / CANCEL_FILE).exists()
    assert app.title[0].value == "Cancelling: 10 of 40 requests"
    assert app.button(key="liob_cancel").disabled


@pytest.mark.parametrize(
    ("state", "title", "buttons"),
    [
        ("finished", "Finished: 10 requests", ["See results", "New benchmark"]),
        ("cancelled", "Cancelled after 10 of 40 requests", ["See results", "Resume", "New benchmark"]),
        ("failed", "Failed after 10 of 40 requests", ["See results", "Resume", "New benchmark"]),
    ],
)
def test_ended_run_offers_what_comes_next(
    open_page: Open, settings: Settings, state: str, title: str, buttons: list[str]
) -> None:
    make_run(settings, state, reason="The reason.")

    app = open_page("run", run=RUN_ID)

    assert not app.exception
    assert app.title[0].value == title
    assert labels(app) == buttons


def test_killed_worker_shows_as_interrupted(open_page: Open, settings: Settings) -> None:
    make_run(settings, "running", pid_created=1.0)

    app = open_page("run")

    assert app.title[0].value == "Interrupted after 10 of 40 requests"
    assert "Resume" in labels(app)
    assert "worker is gone" in app.info[0].value


def test_resume_starts_the_rest(open_page: Open, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    resumed: list[str] = []
    monkeypatch.setattr(jobs, "resume", lambda run_id, _: resumed.append(run_id))
    make_run(settings, "cancelled")
    app = open_page("run")

    app.button(key="liob_resume").click().run()

    assert resumed == [RUN_ID]


def test_unknown_run_in_the_address_shows_the_newest(open_page: Open, settings: Settings) -> None:
    make_run(settings, "finished")

    app = open_page("run", run="nonsense")

    assert not app.exception
    assert app.title[0].value.startswith("Finished")


def test_run_at_work_comes_before_newer_ones(open_page: Open, settings: Settings) -> None:
    make_run(settings, "running")
    make_run(settings, "cancelled", run_id="20261130-130000-bbbb")

    app = open_page("run")

    assert app.title[0].value.startswith("Running")
    assert app.query_params["run"] == RUN_ID
