"""The Models page against a scripted Hub and a scripted Ollama."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import huggingface_hub
import pytest

from liob_core.bench import downloads, ollama_transfers
from liob_core.bench.downloads import DownloadStatus
from liob_core.config import load_settings
from liob_core.engines.registry import describe_ollama
from tests.app.support import Open, html_of
from tests.integration.hub_server import REPO, ScriptedHub, scripted_hub
from tests.integration.living_ollama import LivingOllama
from tests.integration.ollama_server import MODEL
from tests.unit.models.conftest import write_gguf

pytestmark = pytest.mark.usefixtures("without_sample")


@pytest.fixture(autouse=True)
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedHub]:
    with scripted_hub(tmp_path, monkeypatch) as hub:
        hub.files = {
            "tiny-Q8_0.gguf": write_gguf(tmp_path / "a.gguf", file_type=7).read_bytes(),
            "tiny-Q4_0.gguf": write_gguf(tmp_path / "b.gguf").read_bytes(),
            "README.md": b"# Tiny",
        }
        monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
        yield hub


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[LivingOllama]:
    server = LivingOllama()
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    monkeypatch.setattr("liob_core.ui.library.local_part.describe_ollama", describe_ollama)
    yield server
    server.close()


def finished(**changes: object) -> DownloadStatus:
    status = DownloadStatus(
        download_id="d1",
        repo_id=REPO,
        label="Q4_0",
        state="finished",
        total_bytes=1000,
        done_bytes=1000,
        paths=("/models/tiny-Q4_0.gguf",),
    )
    return replace(status, **changes)


def test_nothing_here_yet_says_so(open_page: Open) -> None:
    app = open_page("models")

    assert not app.exception
    assert any("No model is here yet" in caption.value for caption in app.caption)


def test_repository_shows_its_variants_before_a_download(open_page: Open, hub: ScriptedHub) -> None:
    app = open_page("models")

    app.text_input(key="liob_hub_repo").set_value(f"https://huggingface.co/{REPO}").run()

    assert not app.exception
    assert not app.error
    table = app.dataframe[0].value
    assert set(table["variant"]) == {"Q8_0", "Q4_0"}
    assert table["bits"].notna().all()
    assert set(table["verdict"]) == {"fits"}
    assert app.button(key="liob_hub_get").disabled, "nothing is chosen"


def test_refusal_of_the_hub_is_one_sentence(open_page: Open, hub: ScriptedHub) -> None:
    app = open_page("models")

    app.text_input(key="liob_hub_repo").set_value("owner/absent").run()

    assert not app.exception
    assert "no repository owner/absent" in app.warning[0].value


def test_what_is_no_repository_is_told(open_page: Open) -> None:
    app = open_page("models")

    app.text_input(key="liob_hub_repo").set_value("not a repository").run()

    assert not app.exception
    assert "does not name a Hub repository" in app.error[0].value


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (finished(), r"Q4\_0, "),
        (finished(state="failed", reason="The disk is full"), "The disk is full"),
        (finished(state="interrupted", reason="Its process is gone."), "Its process is gone."),
    ],
)
def test_downloads_that_are_over_are_told(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, status: DownloadStatus, words: str
) -> None:
    monkeypatch.setattr(downloads, "list_downloads", lambda _: [status])
    app = open_page("models")

    assert not app.exception
    assert any(words in one.value for one in app.markdown)


def test_a_download_under_way_can_be_cancelled(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled: list[str] = []
    status = finished(state="running", done_bytes=500)
    monkeypatch.setattr(downloads, "list_downloads", lambda _: [status])
    monkeypatch.setattr(downloads, "cancel", lambda download_id, _: cancelled.append(download_id))
    app = open_page("models")

    app.button(key="liob_get_cancel_d1").click().run()

    assert not app.exception
    assert cancelled == ["d1"]


def test_finished_download_leads_to_a_benchmark(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "list_downloads", lambda _: [finished()])
    app = open_page("models")

    app.button(key="liob_get_use_d1").click().run()

    assert app.title[0].value == "New benchmark"
    assert app.text_area(key="liob_new_paths").value == "/models/tiny-Q4_0.gguf"


def test_file_is_removed_only_once_it_is_confirmed(open_page: Open) -> None:
    folder = load_settings().models_dir
    folder.mkdir(parents=True)
    file = write_gguf(folder / "tiny-Q4_0.gguf")
    app = open_page("models")
    assert "tiny-Q4_0.gguf" in html_of(app)

    box = app.selectbox(key="liob_remove_what")
    box.select(box.options[0]).run()
    assert app.button(key="liob_remove").disabled
    app.checkbox[0].check().run()
    app.button(key="liob_remove").click().run()

    assert not app.exception
    assert not file.exists()


def test_models_on_ollama_are_shown_and_the_users_own_cannot_be_removed(
    open_page: Open, ollama: LivingOllama
) -> None:
    ollama.tags["models"].append({**ollama.tags["models"][2], "name": "liob/tiny:q4_0-123"})
    app = open_page("models")

    assert not app.exception
    page = html_of(app)
    assert MODEL in page
    assert "5.74" in page
    assert "registered by LIOB" in page
    offered = app.selectbox(key="liob_remove_what").options
    assert len(offered) == 1
    assert "liob/tiny:q4_0-123" in offered[0]


def test_file_is_registered_with_ollama_by_a_click(
    open_page: Open, ollama: LivingOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[Path, int]] = []
    monkeypatch.setattr(
        ollama_transfers, "start_register", lambda path, n_bytes, _: started.append((path, n_bytes))
    )
    folder = load_settings().models_dir
    folder.mkdir(parents=True)
    file = write_gguf(folder / "tiny-Q4_0.gguf")
    app = open_page("models")
    assert app.button(key="liob_register").disabled

    box = app.selectbox(key="liob_register_what")
    box.select(box.options[0]).run()
    app.button(key="liob_register").click().run()

    assert not app.exception
    assert started == [(file, file.stat().st_size)]


def test_registering_is_not_offered_without_ollama(open_page: Open) -> None:
    folder = load_settings().models_dir
    folder.mkdir(parents=True)
    write_gguf(folder / "tiny-Q4_0.gguf")
    app = open_page("models")

    assert not [button for button in app.button if button.key == "liob_register"]


def test_name_on_ollama_is_shown_once_it_has_the_model(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = finished(repo_id="Ollama", label="pull hf.co/me/tiny:Q4_0", ollama_name="hf.co/me/tiny:Q4_0")
    monkeypatch.setattr(downloads, "list_downloads", lambda _: [replace(status, paths=())])
    app = open_page("models")

    assert any("tiny" in one.value and "** on Ollama" in one.value for one in app.markdown)
    app.button(key="liob_get_use_d1").click().run()
    assert app.title[0].value == "New benchmark"


def test_ollama_pulls_where_that_is_chosen(
    open_page: Open, ollama: LivingOllama, hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulled: list[str] = []
    monkeypatch.setattr(ollama_transfers, "start_pull", lambda _, variant, __: pulled.append(variant.label))
    app = open_page("models")
    app.text_input(key="liob_hub_repo").set_value(REPO).run()
    app.session_state[f"liob_hub_table_{REPO}_{hub.commit}"] = {
        "edited_rows": {1: {"get": True}},
        "added_rows": [],
        "deleted_rows": [],
    }
    app.run()
    assert app.button(key="liob_hub_get").label.startswith("Download ")

    app.segmented_control(key="liob_hub_way").set_value("Have Ollama pull it").run()
    assert app.button(key="liob_hub_get").label.startswith("Pull ")
    app.button(key="liob_hub_get").click().run()

    assert not app.exception
    assert len(pulled) == 1


def test_unfinished_download_is_listed_and_removed(open_page: Open) -> None:
    blobs = Path(huggingface_hub.constants.HF_HUB_CACHE) / "models--owner--Tiny-GGUF" / "blobs"
    blobs.mkdir(parents=True)
    part = blobs / f"{'a' * 64}.liob.incomplete"
    part.write_bytes(bytes(3 * 2**20))
    app = open_page("models")

    assert any(expander.label.startswith("Unfinished downloads, 3") for expander in app.expander)
    app.button(key=f"liob_unfinished_{part.name}").click().run()

    assert not app.exception
    assert not part.exists()
    assert not any("Unfinished" in expander.label for expander in app.expander)
