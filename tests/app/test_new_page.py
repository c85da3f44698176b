from pathlib import Path

import pytest

from liob_core.bench import jobs
from liob_core.config import Settings
from liob_core.errors import MissingError
from liob_core.types import RunSpec, Task
from tests.app.support import Open

pytestmark = pytest.mark.usefixtures("without_sample")


def test_wrong_path_is_one_sentence_beside_the_field(open_page: Open, tmp_path: Path) -> None:
    app = open_page("new")

    app.text_area(key="liob_new_paths").set_value(str(tmp_path / "no_such_*file*.gguf")).run()

    assert not app.exception
    assert len(app.error) == 1
    assert "does not exist" in app.error[0].value
    assert app.button(key="liob_start").disabled
    assert any("Take the sample model in step 1" in text.value for text in app.markdown)


def test_repository_in_the_field_for_files_leads_to_the_page_that_gets_it(open_page: Open) -> None:
    app = open_page("new")

    app.text_area(key="liob_new_paths").set_value("Qwen/Qwen2.5-0.5B-Instruct-GGUF\nmodels/a.gguf").run()

    told = [error.value for error in app.error]
    assert "Qwen/Qwen2.5-0.5B-Instruct-GGUF is no file or folder here." in told[0]
    assert "the page Models" in told[0]
    assert "does not exist. Check the path." in told[1]


def test_sample_that_cannot_be_fetched_says_why(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> Path:
        raise MissingError("The sample model cannot be fetched without a network.")

    monkeypatch.setattr("liob_core.ui.setup.sample_step.fetch_sample", offline)
    app = open_page("new")

    next(button for button in app.button if button.label == "Take the sample model").click().run()

    assert not app.exception
    assert "without a network" in app.warning[0].value


@pytest.mark.model
def test_model_is_described_estimated_and_started(
    open_page: Open, model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[RunSpec] = []

    def start(spec: RunSpec, _: Settings) -> str:
        started.append(spec)
        return spec.run_id

    monkeypatch.setattr(jobs, "start", start)
    app = open_page("new")

    app.text_area(key="liob_new_paths").set_value(str(model_path)).run()
    app.number_input(key="liob_new_max_tokens").set_value(64).run()

    assert not app.exception
    assert not app.error
    assert any(text.value.startswith("About ") for text in app.subheader)
    app.button(key="liob_start").click().run()
    assert [spec.sampling.max_tokens for spec in started] == [64]
    assert started[0].tasks == (Task.SPEED, Task.SUITE)
    assert started[0].variants[0].quant == "Q4_1"
    assert started[0].variants[0].weights_sha256


def test_pasted_prompts_become_a_suite(open_page: Open) -> None:
    app = open_page("new")

    app.selectbox(key="liob_new_suite").select("Paste prompts").run()
    app.text_area(key="liob_new_prompts").set_value("One?\n---\nTwo?").run()

    assert not app.exception
