"""Headers of Hub files are asked for once: after that a listing costs one request, that of the list."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from liob_core.models import hub_headers
from liob_core.models.hub import list_variants, read_remote_model
from liob_core.models.hub_offers import read_offers
from liob_core.models.hub_repo import HubRef
from liob_core.types import LoadSettings
from tests.integration.hub_server import REPO, ScriptedHub, scripted_hub
from tests.unit.models.conftest import TEMPLATE, write_gguf

REF = HubRef(repo_id=REPO)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedHub]:
    with scripted_hub(tmp_path, monkeypatch) as hub:
        for name, file_type in (("tiny-Q8_0.gguf", 7), ("tiny-Q4_0.gguf", 2)):
            path = write_gguf(
                tmp_path / name, file_type=file_type, metadata={"tokenizer.chat_template": TEMPLATE}
            )
            hub.files[name] = path.read_bytes()
        yield hub


def test_second_listing_asks_for_no_header_and_says_the_same(hub: ScriptedHub, tmp_path: Path) -> None:
    first = read_offers(list_variants(REF), LoadSettings(), tmp_path / "cache")
    assert hub.requests("store")
    n_asked = len(hub.asked)
    again = read_offers(list_variants(REF), LoadSettings(n_ctx=512), tmp_path / "cache")
    assert [one.path for one in hub.asked[n_asked:]] == [f"/api/models/{REPO}"]
    assert [one.model for one in again] == [one.model for one in first]
    assert all(one.model is not None for one in again)
    assert [one.need for one in again] != [one.need for one in first], "the need is that of the context"


def test_new_commit_asks_only_for_what_changed(hub: ScriptedHub, tmp_path: Path) -> None:
    read_offers(list_variants(REF), LoadSettings(), tmp_path / "cache")
    n_read = len(hub.requests("store", "GET"))
    hub.commit = "f" * 40
    changed = write_gguf(tmp_path / "new.gguf", file_type=2, tokens=99)
    hub.files["tiny-Q4_0.gguf"] = changed.read_bytes()
    offers = read_offers(list_variants(REF), LoadSettings(), tmp_path / "cache")
    assert len(hub.requests("store", "GET")) == n_read + 1
    sizes = {one.variant.label: one.model.vocab_size for one in offers if one.model}
    assert sizes["Q4_0"] == 99
    assert sizes["Q8_0"] != 99


@pytest.mark.parametrize("content", [b"", b"{", b'{"paths": 7}', b"[1]", b"\xff"])
def test_damaged_entry_is_read_anew(hub: ScriptedHub, tmp_path: Path, content: bytes) -> None:
    repo = list_variants(REF)
    first = read_remote_model(repo, repo.variants[0], tmp_path)
    (entry,) = (tmp_path / "headers").glob("*.json")
    entry.write_bytes(content)
    assert read_remote_model(repo, repo.variants[0], tmp_path) == first
    assert entry.read_bytes() != content


def test_another_version_of_liob_reads_anew(
    hub: ScriptedHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = list_variants(REF)
    read_remote_model(repo, repo.variants[0], tmp_path)
    n_read = len(hub.requests("store", "GET"))
    monkeypatch.setattr(hub_headers, "__version__", "99")
    read_remote_model(repo, repo.variants[0], tmp_path)
    assert len(hub.requests("store", "GET")) == n_read + 1


def test_files_without_a_digest_are_not_kept(hub: ScriptedHub, tmp_path: Path) -> None:
    repo = list_variants(REF)
    variant = repo.variants[0]
    model = read_remote_model(repo, variant, tmp_path)
    nameless = replace(
        variant, files=tuple(replace(file, sha256=None, git_sha1=None) for file in variant.files)
    )
    hub_headers.keep_header(repo, nameless, model, tmp_path / "other")
    assert hub_headers.known_header(repo, nameless, tmp_path / "other") is None
    assert not (tmp_path / "other").exists()


def test_cache_that_cannot_be_written_is_no_hindrance(hub: ScriptedHub, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    repo = list_variants(REF)
    assert read_remote_model(repo, repo.variants[0], tmp_path / "cache").n_tensors > 0
