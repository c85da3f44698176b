"""Downloads that never came to their end: found, sized, removed, and never taken from who is at them."""

import json
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from filelock import FileLock
from typer.testing import CliRunner

from liob_core.cli.app import app
from liob_core.errors import BusyError
from liob_core.models.hub import list_variants
from liob_core.models.hub_download import DownloadCancelledError, download
from liob_core.models.hub_repo import HubRef
from liob_core.models.hub_unfinished import remove_unfinished, unfinished_downloads
from tests.integration.hub_server import REPO, ScriptedHub, scripted_hub

CONTENT = b"GGUF" + bytes(range(256)) * 1200
NAME = "tiny-Q4_0.gguf"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedHub]:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    with scripted_hub(tmp_path, monkeypatch) as hub:
        hub.files = {NAME: CONTENT}
        yield hub


@pytest.fixture
def part(hub: ScriptedHub) -> Path:
    """The first bytes of a file, as a cancelled download leaves them."""
    repo, seen = list_variants(HubRef(repo_id=REPO)), []
    with pytest.raises(DownloadCancelledError):
        download(repo, repo.variants[0], on_progress=seen.append, cancel=lambda: len(seen) >= 2)
    (path,) = Path(huggingface_hub.constants.HF_HUB_CACHE).rglob("*.incomplete")
    return path


def test_nothing_downloaded_is_nothing_unfinished(hub: ScriptedHub) -> None:
    assert unfinished_downloads() == []


def test_part_is_found_with_its_repository_and_size(hub: ScriptedHub, part: Path) -> None:
    (found,) = unfinished_downloads()
    assert (found.repo_id, found.n_bytes, found.path) == (REPO, part.stat().st_size, part)
    assert found.digest == hub.sha256(NAME)
    assert found.n_bytes > 0


def test_part_of_the_librarys_own_is_found_and_whole_files_are_not(hub: ScriptedHub, part: Path) -> None:
    repo = list_variants(HubRef(repo_id=REPO))
    (whole,) = download(repo, repo.variants[0])
    theirs = part.parent / f"{'a' * 64}.incomplete"
    theirs.write_bytes(b"12345")
    (found,) = unfinished_downloads()
    assert (found.digest, found.n_bytes) == ("a" * 64, 5)
    assert remove_unfinished(found) == 5
    assert whole.read_bytes() == CONTENT


def test_removed_part_frees_its_bytes_once(hub: ScriptedHub, part: Path) -> None:
    (found,) = unfinished_downloads()
    assert remove_unfinished(found) == found.n_bytes
    assert unfinished_downloads() == []
    assert remove_unfinished(found) == 0


def test_part_that_is_being_filled_is_left_alone(hub: ScriptedHub, part: Path) -> None:
    (found,) = unfinished_downloads()
    folder = Path(huggingface_hub.constants.HF_HUB_CACHE) / ".locks" / part.parents[1].name
    with FileLock(folder / f"{found.digest}.lock"), pytest.raises(BusyError, match="is being downloaded"):
        remove_unfinished(found)
    assert part.exists()


def test_command_lists_and_removes(hub: ScriptedHub, part: Path) -> None:
    def ask(*arguments: str) -> object:
        result = CliRunner().invoke(app, ["models", "unfinished", *arguments, "--json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    n_bytes = part.stat().st_size
    entry = {"repo_id": REPO, "digest": hub.sha256(NAME), "n_bytes": n_bytes, "path": str(part)}
    assert ask() == [entry]
    assert part.exists()
    assert ask("--remove") == [{**entry, "freed_bytes": n_bytes}]
    assert not part.exists()
    assert ask() == []
