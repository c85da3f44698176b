"""Listing, remote headers and refusals, through the real library against a scripted Hub."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import huggingface_hub
import pytest
from typer.testing import CliRunner

from liob_core.cli.app import app
from liob_core.config import PROJECT_DIR, load_settings
from liob_core.errors import FileError, LiobError, MissingError, UsageError
from liob_core.models.gguf import read_model
from liob_core.models.hub import list_variants, read_remote_model
from liob_core.models.hub_download import download
from liob_core.models.hub_errors import HubUnreachableError
from liob_core.models.hub_repo import HubRef
from liob_core.models.hub_stream import stream_file
from liob_core.models.memory import memory_need
from liob_core.types import LoadSettings
from tests.integration.hub_server import COMMIT, REPO, ScriptedHub, scripted_hub
from tests.unit.models.conftest import write_gguf

REF = HubRef(repo_id=REPO)
TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedHub]:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")  # nobody: `models list` asks there too
    with scripted_hub(tmp_path, monkeypatch) as hub:
        yield hub


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "tiny-Q4_0.gguf")


def with_model(hub: ScriptedHub, model: Path) -> ScriptedHub:
    hub.files = {model.name: model.read_bytes(), "README.md": b"# Tiny"}
    hub.in_git = {"README.md"}
    return hub


def test_lists_what_is_there(hub: ScriptedHub, model: Path) -> None:
    with_model(hub, model)
    repo = list_variants(REF)
    assert (repo.commit, repo.gated, repo.private, repo.note) == (COMMIT, None, False, None)
    (variant,) = repo.variants
    assert (variant.label, variant.file_bytes, variant.is_cached) == ("Q4_0", model.stat().st_size, False)
    assert variant.sha256s == (hub.sha256(model.name),)
    assert [(one.method, one.path) for one in hub.asked] == [("GET", f"/api/models/{REPO}")]


def test_a_revision_is_asked_for(hub: ScriptedHub, model: Path) -> None:
    with_model(hub, model)
    hub.revisions |= {"refs/pr/3"}
    assert list_variants(replace(REF, revision="refs/pr/3")).revision == "refs/pr/3"
    assert hub.asked[-1].path == f"/api/models/{REPO}/revision/refs/pr/3"


def test_header_is_the_same_as_of_the_local_file(hub: ScriptedHub, model: Path) -> None:
    with_model(hub, model)
    repo = list_variants(REF)
    remote = read_remote_model(repo, repo.variants[0])
    local = read_model(model)
    assert remote == replace(local, paths=(model.name,))
    assert memory_need(remote, LoadSettings()) == memory_need(local, LoadSettings())
    assert not Path(huggingface_hub.constants.HF_HUB_CACHE).exists()


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_large_file_is_not_fetched_for_its_header(
    hub: ScriptedHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, knows_ranges: bool
) -> None:
    monkeypatch.setattr("liob_core.models.hub.FIRST_PREFIX_BYTES", 2048)
    taken = []

    def counted(*arguments: object, **options: object) -> Iterator[bytes]:
        for piece in stream_file(*arguments, **options):  # type: ignore[arg-type]
            taken.append(len(piece))
            yield piece

    monkeypatch.setattr("liob_core.models.hub.stream_file", counted)
    # A header of 60 kB in a file of 40 MB: the beginning has to grow five times.
    path = write_gguf(tmp_path / "big-Q4_0.gguf", tokens=5000)
    hub.files = {"big-Q4_0.gguf": path.read_bytes() + bytes(40_000_000)}
    hub.knows_ranges = knows_ranges
    repo = list_variants(REF)
    model = read_remote_model(repo, repo.variants[0])
    assert (model.vocab_size, model.file_bytes) == (5000, len(hub.files["big-Q4_0.gguf"]))
    assert sum(taken) < 400_000
    assert len(hub.requests("store", "GET")) == 1
    assert hub.bytes_asked() == [f"bytes=0-{min(64 * 2**20, model.file_bytes) - 1}"]


def test_parts_are_one_model(hub: ScriptedHub, tmp_path: Path) -> None:
    names = [f"Q8_0/tiny-Q8_0-0000{number}-of-00002.gguf" for number in (1, 2)]
    split = {"split.count": 2}
    tensors = ["token_embd.weight", "blk.0.attn_q.weight"]
    for name, tensor in zip(names, tensors, strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_gguf(tmp_path / name, metadata=split, names=[tensor])
    hub.files = {name: (tmp_path / name).read_bytes() for name in names}
    repo = list_variants(REF)
    (variant,) = repo.variants
    assert (variant.label, len(variant.files)) == ("Q8_0", 2)
    model = read_remote_model(repo, variant)
    assert model == replace(read_model(tmp_path / names[0]), paths=tuple(names))
    assert model.n_tensors == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"<!DOCTYPE html>", "web page"),
        (b"", "is empty"),
    ],
)
def test_a_file_that_is_no_model_is_told(hub: ScriptedHub, content: bytes, words: str) -> None:
    hub.files = {"x-Q4_0.gguf": content}
    repo = list_variants(REF)
    with pytest.raises(FileError, match=words) as caught:
        read_remote_model(repo, repo.variants[0])
    assert str(caught.value).startswith(f"{REPO}/x-Q4_0.gguf")


def test_a_header_that_ends_early_is_told(hub: ScriptedHub, model: Path) -> None:
    hub.files = {"x-Q4_0.gguf": model.read_bytes()[:300]}
    repo = list_variants(REF)
    with pytest.raises(FileError, match="cut short"):
        read_remote_model(repo, repo.variants[0])


def read_first(ref: HubRef) -> None:
    repo = list_variants(ref)
    read_remote_model(repo, repo.variants[0])


def refusal(ref: HubRef = REF) -> str:
    with pytest.raises(LiobError) as caught:
        read_first(ref)
    text = str(caught.value)
    assert "\n" not in text
    assert "signature" not in text
    return text


def test_each_refusal_is_told_apart(hub: ScriptedHub, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_model(hub, model)
    said = {
        "missing": refusal(HubRef(repo_id="owner/nothing")),
        "revision": refusal(replace(REF, revision="v9")),
        "path": refusal(replace(REF, path="other.gguf")),
        "label": refusal(replace(REF, label="Q8_0")),
    }
    hub.gated = "manual"
    said["gated"] = refusal()
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    said["no access"] = refusal()
    monkeypatch.setenv("HF_TOKEN", "expired_token_of_somebody")
    said["token"] = refusal()
    monkeypatch.delenv("HF_TOKEN")
    hub.gated, hub.disabled = False, True
    said["disabled"] = refusal()
    hub.disabled = False
    hub.next_api = [429]
    said["busy"] = refusal()
    hub.next_api = [503]
    said["fault"] = refusal()
    hub.next_api = ["html"]
    said["not a hub"] = refusal()
    hub.next_api = ["close"]
    said["breaks"] = refusal()
    hub.next_api = [418]
    said["teapot"] = refusal()
    hub.files = {"README.md": b"# no model"}
    said["no gguf"] = refusal()
    wanted = {
        "missing": ["no repository owner/nothing", "private", "hf auth login"],
        "revision": ["no revision 'v9'"],
        "path": ["has no other.gguf", "It has: Q4_0"],
        "label": ["has no Q8_0", "It has: Q4_0"],
        "gated": ["is gated", "accept its terms", f"{hub.url}/{REPO}", "hf auth login"],
        "no access": ["is gated", "your account has no access yet"],
        "token": ["refuses your token"],
        "disabled": ["disabled"],
        "busy": ["too many requests"],
        "fault": ["has a fault now (HTTP 503)"],
        "not a hub": ["does not answer as the Hub does", "HF_ENDPOINT"],
        "breaks": ["cannot be reached", "the connection breaks"],
        "teapot": ["HTTP 418"],
        "no gguf": ["holds no GGUF model"],
    }
    assert {name: [word for word in words if word not in said[name]] for name, words in wanted.items()} == {
        name: [] for name in wanted
    }
    assert len(set(said.values())) == len(said)
    assert not [text for text in said.values() if TOKEN in text or "expired_token" in text]


def test_nothing_listens(hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(HubUnreachableError, match=r"http://127\.0\.0\.1:9 cannot be reached"):
        list_variants(REF)


@pytest.mark.parametrize("endpoint", ["ftp://hub.example", "hub.example", "http://a b"])
def test_an_endpoint_that_is_no_address(
    hub: ScriptedHub, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", endpoint)
    with pytest.raises(MissingError, match="HF_ENDPOINT"):
        list_variants(REF)


def test_a_list_that_would_write_elsewhere_is_refused(hub: ScriptedHub, model: Path) -> None:
    with_model(hub, model)
    hub.commit = "../../../../etc"
    with pytest.raises(FileError, match="does not answer as the Hub does"):
        list_variants(REF)


def test_gated_with_a_token_that_has_access(
    hub: ScriptedHub, model: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with_model(hub, model)
    hub.gated, hub.tokens = "auto", {TOKEN}
    repo = list_variants(REF)
    assert repo.gated == "auto"
    assert read_remote_model(repo, repo.variants[0]).n_tensors == 7
    assert download(repo, repo.variants[0])[0].read_bytes() == model.read_bytes()
    # The Hub gets the token with each request, the other host and the log never.
    assert {one.headers.get("authorization") for one in hub.requests("hub")} == {f"Bearer {TOKEN}"}
    assert {one.headers.get("authorization") for one in hub.requests("store")} == {None}
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(repo)
    kept = [path for path in Path(huggingface_hub.constants.HF_HUB_CACHE).rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if TOKEN.encode() in path.read_bytes()]


def test_xet_storage_is_read_without_its_client_and_without_leaking(
    hub: ScriptedHub, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with_model(hub, model).xet = True
    repo = list_variants(REF)
    assert read_remote_model(repo, repo.variants[0]).n_tensors == 7
    assert download(repo, repo.variants[0])[0].read_bytes() == model.read_bytes()
    assert {one.headers.get("authorization") for one in hub.requests("store")} == {None}


def test_offline_shows_and_reads_what_is_cached(
    hub: ScriptedHub, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_model(hub, model)
    hub.files["tiny-Q8_0.gguf"] = model.read_bytes() + b"other"
    repo = list_variants(REF)
    small = next(variant for variant in repo.variants if variant.label == "Q4_0")
    (path,) = download(repo, small)
    n_asked = len(hub.asked)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    huggingface_hub.close_session()
    for revision in (None, COMMIT, COMMIT[:8]):
        offline = list_variants(replace(REF, revision=revision))
        assert [(one.label, one.is_cached) for one in offline.variants] == [("Q4_0", True)]
        assert offline.note is not None
        assert offline.note.startswith("Only what is on this machine is shown. HF_HUB_OFFLINE is set")
    assert offline.variants[0].sha256s == small.sha256s
    assert read_remote_model(offline, offline.variants[0]).n_tensors == 7
    assert download(offline, offline.variants[0]) == [path]
    with pytest.raises(HubUnreachableError, match="HF_HUB_OFFLINE is set"):
        list_variants(HubRef(repo_id="owner/other"))
    with pytest.raises(HubUnreachableError, match="HF_HUB_OFFLINE is set"):
        list_variants(replace(REF, revision="v1"))
    with pytest.raises(HubUnreachableError, match=r"tiny-Q8_0\.gguf of .* is not in the Hub cache"):
        download(repo, next(variant for variant in repo.variants if variant.label == "Q8_0"))
    assert len(hub.asked) == n_asked


def test_a_hub_that_is_down_leaves_the_cache(hub: ScriptedHub, model: Path) -> None:
    with_model(hub, model)
    repo = list_variants(REF)
    download(repo, repo.variants[0])
    hub.next_api = [503]
    down = list_variants(REF)
    assert [one.label for one in down.variants] == ["Q4_0"]
    assert down.note is not None
    assert "HTTP 503" in down.note


def liob(
    hub: ScriptedHub, tmp_path: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    library = {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "liob_core", "models", *arguments],
        cwd=PROJECT_DIR,
        env={**os.environ, **library, **environment, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_commands_on_a_mirror_then_offline(hub: ScriptedHub, model: Path, tmp_path: Path) -> None:
    with_model(hub, model)
    hub.files["mmproj-F16.gguf"] = b"GGUF"
    shown = liob(hub, tmp_path, "hub", f"{hub.url}/{REPO}/tree/main", "--json")
    assert shown.returncode == 0, shown.stderr
    document = json.loads(shown.stdout)
    (variant,) = document["variants"]
    assert variant["label"] == "Q4_0"
    assert variant["bpw"] == pytest.approx(read_model(model).bpw)
    assert variant["need"]["need_bytes"] > 0
    assert variant["fit"] == "fits"

    pulled = liob(hub, tmp_path, "pull", f"hf.co/{REPO}:q4_0", "--json")
    assert pulled.returncode == 0, pulled.stderr
    (path,) = json.loads(pulled.stdout)["paths"]
    assert Path(path).read_bytes() == model.read_bytes()
    assert Path(path).is_relative_to(tmp_path / "home")

    n_asked = len(hub.asked)
    table = liob(hub, tmp_path, "hub", REPO, HF_HUB_OFFLINE="1")
    assert table.returncode == 0, table.stderr
    assert "Q4_0" in table.stdout
    assert "Only what is on this machine" in table.stdout
    assert len(hub.asked) == n_asked


def test_commands_say_what_to_do(hub: ScriptedHub, model: Path) -> None:
    with_model(hub, model)
    hub.files["tiny-Q8_0.gguf"] = b"x"
    with pytest.raises(UsageError, match=r"Name what to pull of owner/Tiny-GGUF: Q4_0, Q8_0\."):
        CliRunner().invoke(app, ["models", "pull", REPO], catch_exceptions=False)
    hub.gated = "auto"
    gated = CliRunner().invoke(app, ["models", "hub", REPO, "--json"], catch_exceptions=False)
    variants = json.loads(gated.stdout)["variants"]
    assert [(one["label"], one["fit"], one["bpw"]) for one in variants] == [
        ("Q4_0", "unknown", None),
        ("Q8_0", "unknown", None),
    ]
    assert "is gated: accept its terms" in variants[0]["reason"]


def test_commands_pull_and_list(hub: ScriptedHub, model: Path) -> None:
    with_model(hub, model)
    invoke = partial(CliRunner().invoke, app, catch_exceptions=False)
    assert invoke(["models", "list", "--json"]).stdout == "[]\n"
    own = load_settings().models_dir / "mine-Q8_0.gguf"
    own.parent.mkdir(parents=True)
    pulled = invoke(["models", "pull", REPO, model.name])
    path = pulled.stdout.strip()
    assert Path(path).read_bytes() == model.read_bytes()
    own.write_bytes(model.read_bytes())
    mine, entry = sorted(
        json.loads(invoke(["models", "list", "--json"]).stdout), key=lambda one: bool(one["repo_id"])
    )
    assert (mine["label"], mine["path"]) == ("Q8_0", str(own))
    assert entry == {
        "source": "hub",
        "repo_id": REPO,
        "commit": COMMIT,
        "label": "Q4_0",
        "file_bytes": model.stat().st_size,
        "path": path,
    }
