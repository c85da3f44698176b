"""Files registered with Ollama and models it pulls, as the app starts them: in processes of their own."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from liob_core.bench import downloads, ollama_transfers
from liob_core.bench.downloads import DownloadStatus
from liob_core.cli.app import app
from liob_core.config import Settings
from liob_core.errors import UsageError
from liob_core.models.digests import weights_sha256
from liob_core.models.hub_repo import HubFile, HubRepo, HubVariant
from tests.integration.hub_server import REPO as HUB_REPO
from tests.integration.hub_server import scripted_hub
from tests.integration.living_ollama import LivingOllama, status_line
from tests.unit.models.conftest import write_gguf

FILE = HubFile(path="tiny-Q4_0.gguf", n_bytes=1000, sha256="0" * 64)
VARIANT = HubVariant(label="Q4_0", files=(FILE,))
REPO = HubRepo(repo_id="me/tiny", revision=None, commit="c", gated=None, private=False, variants=(VARIANT,))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LivingOllama]:
    made = LivingOllama()
    monkeypatch.setenv("OLLAMA_HOST", made.url)
    yield made
    made.close()


def wait(settings: Settings, until: Callable[[DownloadStatus], bool]) -> DownloadStatus:
    deadline = time.monotonic() + 60
    while True:
        (status,) = downloads.list_downloads(settings)
        if until(status):
            return status
        assert time.monotonic() < deadline, status
        time.sleep(0.05)


def is_over(status: DownloadStatus) -> bool:
    return not status.is_live


def test_registered_file_has_its_name_and_stays_where_it_is(
    server: LivingOllama, settings: Settings, tmp_path: Path
) -> None:
    file = write_gguf(tmp_path / "tiny-Q4_0.gguf")
    ollama_transfers.start_register(file, file.stat().st_size, settings)
    status = wait(settings, is_over)
    assert (status.state, status.paths) == ("finished", (str(file),)), status.reason
    digest = weights_sha256(file, tmp_path / "cache")
    assert status.ollama_name == f"liob/tiny:q4_0-{digest[:12]}"
    assert status.ollama_name in {model["name"] for model in server.tags["models"]}
    assert file.exists()


def test_pulled_model_is_asked_for_by_the_hubs_name(server: LivingOllama, settings: Settings) -> None:
    ollama_transfers.start_pull(REPO, VARIANT, settings)
    status = wait(settings, is_over)
    assert (status.state, status.ollama_name, status.paths) == ("finished", "hf.co/me/tiny:Q4_0", ())
    assert [body["model"] for body in server.bodies("/api/pull")] == ["hf.co/me/tiny:Q4_0"]
    assert (status.done_bytes, status.total_bytes) == (1000, 1000)


def test_refused_pull_tells_the_servers_words(server: LivingOllama, settings: Settings) -> None:
    server.answer("/api/pull", status_line(error="pull model manifest: 400: sharded GGUF"))
    ollama_transfers.start_pull(REPO, VARIANT, settings)
    status = wait(settings, is_over)
    assert status.state == "failed"
    assert status.reason is not None
    assert "sharded GGUF. Download the file instead" in status.reason


def test_what_cannot_be_pulled_is_refused_at_once(settings: Settings) -> None:
    with pytest.raises(UsageError, match="split into 2 files"):
        ollama_transfers.start_pull(REPO, HubVariant(label="Q4_0", files=(FILE, FILE)), settings)
    assert downloads.list_downloads(settings) == []


def test_cancel_ends_a_pull_under_way(server: LivingOllama, settings: Settings) -> None:
    gone = threading.Event()
    step = status_line(status="pulling abc", digest="sha256:abc", total=1000, completed=10)
    server.answer("/api/pull", step, lambda: gone.wait(20), step, status_line(status="success"))
    download_id = ollama_transfers.start_pull(REPO, VARIANT, settings)
    wait(settings, lambda status: status.done_bytes == 10)
    downloads.cancel(download_id, settings)
    gone.set()
    status = wait(settings, is_over)
    assert status.state == "cancelled"
    assert "go on from there" in str(status.reason)


def test_command_pulls_through_ollama_and_removes_only_on_a_yes(
    server: LivingOllama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["models", *arguments, "--json"])

    with scripted_hub(tmp_path, monkeypatch) as hub:
        hub.files = {"tiny-Q4_0.gguf": b"GGUF"}
        pulled = ask("pull", HUB_REPO, "Q4_0", "--ollama")
        assert json.loads(pulled.stdout) == {"names": [f"hf.co/{HUB_REPO}:Q4_0"]}, pulled.output
        assert hub.requests("store") == [], "not a byte came through LIOB"
    name = f"hf.co/{HUB_REPO}:Q4_0"
    refused = ask("remove", name)
    assert isinstance(refused.exception, UsageError)
    assert name in {model["name"] for model in server.tags["models"]}
    assert ask("remove", name, "--yes").exit_code == 0
    assert name not in {model["name"] for model in server.tags["models"]}
