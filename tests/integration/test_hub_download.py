"""Downloads through the real library against a scripted Hub: resumed, verified, never half."""

import errno
import io
import os
import random
import signal
import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from filelock import FileLock

from liob_core.config import PROJECT_DIR
from liob_core.errors import BusyError, FileError, LiobError, MissingError
from liob_core.models.hub import list_variants
from liob_core.models.hub_cache import cached_repos, remove_cached
from liob_core.models.hub_download import DownloadCancelledError, DownloadProgress, download
from liob_core.models.hub_errors import HubUnreachableError
from liob_core.models.hub_repo import HubRef, HubRepo, HubVariant
from tests.integration.hub_server import REPO, ScriptedHub, scripted_hub

NAME = "tiny-Q4_0.gguf"
CONTENT = random.Random(7).randbytes(300_000)
REF = HubRef(repo_id=REPO)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedHub]:
    with scripted_hub(tmp_path, monkeypatch) as hub:
        hub.files = {NAME: CONTENT}
        yield hub


def one() -> tuple[HubRepo, HubVariant]:
    repo = list_variants(REF)
    return repo, repo.variants[0]


def cache() -> Path:
    return Path(huggingface_hub.constants.HF_HUB_CACHE)


def kept() -> list[Path]:
    """All content in the cache, whole or begun."""
    return sorted(cache().glob("*/blobs/*"))


def snapshots() -> list[Path]:
    return [path for path in cache().glob("*/snapshots/*/**/*") if path.is_file()]


def test_a_file_is_fetched_once(hub: ScriptedHub) -> None:
    repo, variant = one()
    (path,) = download(repo, variant)
    assert path.read_bytes() == CONTENT
    assert path.name == NAME
    assert [blob.name for blob in kept()] == [hub.sha256(NAME)]
    n_asked = len(hub.asked)
    assert download(repo, variant) == [path]
    assert len(hub.asked) == n_asked
    # The library finds it too, and LIOB's list says so.
    assert huggingface_hub.hf_hub_download(REPO, NAME, revision=repo.commit) == str(path)
    assert one()[1].is_cached
    assert len(hub.requests("store")) == 1


def test_what_the_library_fetched_is_not_fetched_again(hub: ScriptedHub) -> None:
    huggingface_hub.hf_hub_download(REPO, NAME)
    repo, variant = one()
    assert variant.is_cached
    assert download(repo, variant)[0].read_bytes() == CONTENT
    assert len(hub.requests("store")) == 1


def test_the_same_content_at_a_newer_commit_is_not_fetched_again(hub: ScriptedHub) -> None:
    first = download(*one())
    hub.commit = "f" * 40
    repo, variant = one()
    assert not variant.is_cached
    second = download(repo, variant)
    assert second != first
    assert second[0].read_bytes() == CONTENT
    assert len(hub.requests("store")) == 1


def test_after_an_interruption_at_any_byte_only_the_rest_is_fetched(
    hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("liob_core.models.hub_stream.MAX_ATTEMPTS", 1)
    points = [0, 1, len(CONTENT) - 1, *(random.Random(3).randrange(len(CONTENT)) for _ in range(8))]
    for point in points:
        repo, variant = one()
        hub.asked.clear()
        hub.cuts = [point]
        with pytest.raises(HubUnreachableError, match="the connection breaks"):
            download(repo, variant)
        assert snapshots() == []
        (part,) = kept()
        assert part.read_bytes() == CONTENT[:point]
        (path,) = download(repo, variant)
        assert path.read_bytes() == CONTENT
        assert hub.bytes_asked() == [f"bytes={start}-{len(CONTENT) - 1}" for start in (0, point)]
        assert remove_cached(repo, variant) == len(CONTENT)
        assert kept() == []


def test_a_connection_that_breaks_is_taken_up_in_the_same_call(hub: ScriptedHub) -> None:
    hub.cuts = [100_000, 50_000, 0]
    (path,) = download(*one())
    assert path.read_bytes() == CONTENT
    assert hub.bytes_asked() == [f"bytes={start}-299999" for start in (0, 100_000, 150_000, 150_000)]


def test_faults_that_pass_are_waited_for_and_others_are_not(hub: ScriptedHub) -> None:
    repo, variant = one()
    hub.next_bytes = [503, 429, "close"]
    assert download(repo, variant)[0].read_bytes() == CONTENT
    assert len(hub.requests("store")) == 4
    remove_cached(repo, variant)
    hub.asked.clear()
    hub.next_bytes = [410]
    with pytest.raises(MissingError, match=r"storage behind the Hub refuses tiny-Q4_0\.gguf \(HTTP 410\)"):
        download(repo, variant)
    assert len(hub.requests("store")) == 1


def test_attempts_without_a_byte_end(hub: ScriptedHub) -> None:
    hub.cuts = [0] * 50
    with pytest.raises(HubUnreachableError):
        download(*one())
    assert len(hub.requests("store")) == 5


def test_a_server_without_ranges_still_gives_the_right_file(
    hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("liob_core.models.hub_stream.MAX_ATTEMPTS", 1)
    hub.knows_ranges = False
    hub.cuts = [123_456]
    with pytest.raises(HubUnreachableError):
        download(*one())
    assert download(*one())[0].read_bytes() == CONTENT


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL")
def test_a_killed_process_leaves_what_it_had(hub: ScriptedHub) -> None:
    hub.stall_after = 200_000
    environment = {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": str(cache()), "HF_HUB_DISABLE_TELEMETRY": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "liob_core", "models", "pull", REPO],
        cwd=PROJECT_DIR,
        env={**os.environ, **environment},
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + 60
        while sum(path.stat().st_size for path in kept()) < 150_000 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert snapshots() == []
    n_bytes = kept()[0].stat().st_size
    assert 150_000 <= n_bytes <= 200_000
    # Its lock died with it, and what it wrote is not asked for again.
    assert download(*one())[0].read_bytes() == CONTENT
    assert hub.bytes_asked() == ["bytes=0-299999", f"bytes={n_bytes}-299999"]


def test_wrong_content_is_not_used(hub: ScriptedHub) -> None:
    repo, variant = one()
    hub.lies = {NAME: CONTENT[:1000] + b"?" + CONTENT[1001:]}
    with pytest.raises(FileError, match=r"What came as tiny-Q4_0.gguf .* its digest is wrong"):
        download(repo, variant)
    assert kept() == []
    assert snapshots() == []
    hub.lies = {}
    assert download(repo, variant)[0].read_bytes() == CONTENT


def test_a_damaged_beginning_is_found_out(hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liob_core.models.hub_stream.MAX_ATTEMPTS", 1)
    hub.cuts = [1000]
    with pytest.raises(HubUnreachableError):
        download(*one())
    kept()[0].write_bytes(b"x" * 1000)
    with pytest.raises(FileError, match="digest is wrong"):
        download(*one())
    assert download(*one())[0].read_bytes() == CONTENT


@pytest.mark.parametrize("content", [CONTENT[:1000], b""])
def test_a_file_that_is_shorter_than_the_list_says(hub: ScriptedHub, content: bytes) -> None:
    hub.lies = {NAME: content}
    with pytest.raises(LiobError):
        download(*one())
    assert snapshots() == []


def test_a_file_that_is_longer_than_the_list_says_is_cut_and_right(hub: ScriptedHub) -> None:
    hub.lies, hub.knows_ranges = {NAME: CONTENT + b"more"}, False
    assert download(*one())[0].read_bytes() == CONTENT


def test_a_list_that_differs_from_the_file_is_told(hub: ScriptedHub) -> None:
    repo, variant = one()
    hub.files = {NAME: b"other"}
    with pytest.raises(FileError, match="not what the Hub's own list says"):
        download(repo, variant)
    assert hub.requests("store") == []


def test_a_damaged_cache_is_repaired(hub: ScriptedHub) -> None:
    (path,) = download(*one())
    path.resolve().write_bytes(CONTENT[:10])
    repo, variant = one()
    assert not variant.is_cached
    assert download(repo, variant)[0].read_bytes() == CONTENT


def test_too_little_disk_is_told_before_the_first_byte(
    hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(10**9, 10**9, len(CONTENT) - 1))
    with pytest.raises(MissingError, match=r"needs 0\.00 GB more of disk, but .* HF_HUB_CACHE"):
        download(*one())
    assert hub.requests("store") == []
    # What came before does not have to fit again.
    repo, variant = one()
    part = cache() / "models--owner--Tiny-GGUF" / "blobs" / f"{hub.sha256(NAME)}.liob.incomplete"
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT[:10])
    assert download(repo, variant)[0].read_bytes() == CONTENT


def test_a_disk_that_fills_up_keeps_what_came(hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.FileIO):
        def write(self, data: Any) -> int:
            if self.tell() + len(data) > 150_000:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(data)

    plain_open = Path.open

    def open_full(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if path.name.endswith(".liob.incomplete"):
            return Full(path, mode.replace("b", ""))
        return plain_open(path, mode, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", open_full)
        with pytest.raises(MissingError, match=r"The disk is full: .* goes on from there"):
            download(*one())
    assert snapshots() == []
    (part,) = kept()
    n_bytes = part.stat().st_size
    assert 0 < n_bytes <= 150_000
    assert download(*one())[0].read_bytes() == CONTENT
    assert hub.bytes_asked()[-1] == f"bytes={n_bytes}-299999"


def test_a_cache_that_cannot_be_written_is_told(hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    repo, variant = one()
    cache().parent.mkdir(parents=True)
    cache().write_bytes(b"a file where a folder should be")
    with pytest.raises(FileError, match=r"cannot be kept in .* HF_HUB_CACHE"):
        download(repo, variant)


def test_another_program_at_the_same_file(hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liob_core.models.hub_download._LOCK_WAIT_S", 0.05)
    repo, variant = one()
    lock = cache() / ".locks" / "models--owner--Tiny-GGUF" / f"{hub.sha256(NAME)}.lock"
    lock.parent.mkdir(parents=True)
    with FileLock(lock), pytest.raises(BusyError, match=r"tiny-Q4_0\.gguf is being downloaded by another"):
        download(repo, variant)


def test_cancel_keeps_what_came(hub: ScriptedHub) -> None:
    repo, variant = one()
    seen: list[DownloadProgress] = []
    with pytest.raises(DownloadCancelledError):
        download(repo, variant, on_progress=seen.append, cancel=lambda: len(seen) >= 2)
    assert snapshots() == []
    n_bytes = kept()[0].stat().st_size
    assert n_bytes == seen[-1].done_bytes > 0
    assert download(repo, variant)[0].read_bytes() == CONTENT
    assert hub.bytes_asked()[-1] == f"bytes={n_bytes}-299999"


def test_progress_over_all_parts(hub: ScriptedHub) -> None:
    names = [f"UD-Q2_K_XL/big-UD-Q2_K_XL-0000{number}-of-00002.gguf" for number in (1, 2)]
    hub.files = dict(zip(names, (CONTENT, CONTENT[:100_000]), strict=True))
    repo, variant = one()
    assert variant.label == "UD-Q2_K_XL"
    seen: list[DownloadProgress] = []
    paths = download(repo, variant, on_progress=seen.append)
    assert [path.read_bytes() for path in paths] == [CONTENT, CONTENT[:100_000]]
    assert paths[0].parent == paths[1].parent
    done = [progress.done_bytes for progress in seen]
    assert done == sorted(done)
    assert done[-1] == seen[0].total_bytes == 400_000
    assert {progress.path for progress in seen} == set(names)


def test_content_in_git_itself_is_verified_by_gits_digest(hub: ScriptedHub) -> None:
    hub.in_git = {NAME}
    repo, variant = one()
    assert variant.sha256s == (None,)
    assert download(repo, variant)[0].read_bytes() == CONTENT
    assert [blob.name for blob in kept()] == [hub.git_sha1(NAME)]


def test_incomplete_models_are_not_downloaded(hub: ScriptedHub) -> None:
    hub.files = {"x-Q8_0-00001-of-00003.gguf": CONTENT}
    with pytest.raises(FileError, match="Only 1 of its 3 parts"):
        download(*one())
    assert hub.requests("store") == []


def test_removing_one_variant_leaves_the_others(hub: ScriptedHub) -> None:
    hub.files["tiny-Q8_0.gguf"] = CONTENT + b"8"
    repo = list_variants(REF)
    for variant in repo.variants:
        download(repo, variant)
    (before,) = cached_repos()
    assert [one.label for one in before.variants] == ["Q8_0", "Q4_0"]
    assert remove_cached(repo, repo.variants[0]) == len(CONTENT) + 1
    (after,) = cached_repos()
    assert [one.label for one in after.variants] == ["Q4_0"]
    assert [blob.name for blob in kept()] == [hub.sha256(NAME)]
