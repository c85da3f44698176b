"""How repositories are named and which variants a list of files holds."""

from pathlib import PurePosixPath

import huggingface_hub
import pytest
from hypothesis import given
from hypothesis import strategies as st

from liob_core.errors import MissingError, UsageError
from liob_core.models.hub_repo import (
    HubFile,
    HubRef,
    HubVariant,
    find_variants,
    group_files,
    parse_repo,
    select,
)

REPO = "Qwen/Qwen2.5-0.5B-Instruct-GGUF"
FILE = "qwen2.5-0.5b-instruct-q4_k_m.gguf"


@pytest.mark.parametrize(
    ("text", "revision", "path", "label"),
    [
        (REPO, None, None, None),
        (f"  {REPO}/ \n", None, None, None),
        (f'"{REPO}"', None, None, None),
        (f"{REPO}@v1.0", "v1.0", None, None),
        (f"{REPO}:Q4_K_M", None, None, "Q4_K_M"),
        (f"{REPO}:latest", None, None, None),
        (f"{REPO}/{FILE}", None, FILE, None),
        (f"{REPO}/tree/main/UD-Q4", "main", "UD-Q4", None),
        (f"hf.co/{REPO}", None, None, None),
        (f"hf.co/{REPO}:UD-Q4_K_XL", None, None, "UD-Q4_K_XL"),
        (f"huggingface.co/{REPO}", None, None, None),
        (f"hf://{REPO}@v1/{FILE}", "v1", FILE, None),
        (f"https://hf.co/{REPO}:Q8_0", None, None, "Q8_0"),
        (f"https://huggingface.co/{REPO}", None, None, None),
        (f"https://huggingface.co/{REPO}/tree/main", "main", None, None),
        (f"https://huggingface.co/{REPO}/tree/refs/pr/3", "refs/pr/3", None, None),
        (f"https://huggingface.co/{REPO}/tree/feature%2Fx/sub", "feature/x", "sub", None),
        (f"https://huggingface.co/{REPO}/blob/main/{FILE}", "main", FILE, None),
        (f"https://huggingface.co/{REPO}/blob/main/a%20b.gguf", "main", "a b.gguf", None),
        (f"https://huggingface.co/{REPO}/resolve/0123abc/{FILE}?download=true", "0123abc", FILE, None),
        (f"https://huggingface.co/{REPO}?show_file_info={FILE}", None, FILE, None),
        (f"https://huggingface.co/{REPO}/tree/v2?show_file_info={FILE}", "v2", FILE, None),
        (f"https://huggingface.co/{REPO}?local-app=ollama", None, None, None),
    ],
)
def test_usual_forms(text: str, revision: str | None, path: str | None, label: str | None) -> None:
    assert parse_repo(text) == HubRef(repo_id=REPO, revision=revision, path=path, label=label)


def test_addresses_of_a_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://localhost:8080/hf")
    assert parse_repo(f"http://localhost:8080/hf/{REPO}/tree/v1").revision == "v1"
    assert parse_repo(f"https://huggingface.co/{REPO}").repo_id == REPO


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpt2",
        "llama3.2:1b",
        "https://huggingface.co/Qwen",
        "https://huggingface.co",
        f"https://huggingface.co/{REPO}/discussions/3",
        f"https://example.com/{REPO}",
        "C:\\models\\x.gguf",
        "../../etc/passwd",
        "/srv/models/x.gguf",
        "./models/x.gguf",
        "~/models/x.gguf",
        "a b/c d",
        f"{REPO}@",
        "http://[",
    ],
)
def test_what_names_no_repository(text: str) -> None:
    with pytest.raises(UsageError, match=r"does not name a Hub repository\. Write OWNER/NAME"):
        parse_repo(text)


def test_a_repository_of_another_kind() -> None:
    with pytest.raises(UsageError, match="is a dataset on the Hub"):
        parse_repo("https://huggingface.co/datasets/owner/name")


@given(st.text(max_size=80) | st.from_regex(r"(https?://|hf\.co/|hf://)?[\w./@:?=%#-]{0,60}"))
def test_any_text_gives_a_repository_or_one_sentence(text: str) -> None:
    try:
        ref = parse_repo(text)
    except UsageError:
        return
    assert ref.repo_id.count("/") == 1
    assert ".." not in ref.repo_id


def files(*paths: str) -> list[HubFile]:
    """Files whose sizes fall with their place."""
    return [HubFile(path=path, n_bytes=1000 - place, sha256=None) for place, path in enumerate(paths)]


def labels(*paths: str) -> dict[str, list[str]]:
    return {one.label: [file.path for file in one.files] for one in group_files(files(*paths))}


def test_variants_of_one_model() -> None:
    assert labels(
        "README.md",
        "config.json",
        "model-F16.gguf",
        "model-Q8_0.gguf",
        "model-UD-Q4_K_XL.gguf",
        "model-Q4_K_M.gguf",
        "model-IQ4_NL.gguf",
        "model.i1-Q4_K_M.gguf",
        "model-q4_k_s.GGUF",
        "model-mxfp4_moe.gguf",
        "model.imatrix.gguf",
        "imatrix_unsloth.gguf",
        "imatrix.dat",
        "mmproj-F16.gguf",
        "mmproj/model-BF16.gguf",
        "model-mmproj-f32.gguf",
        "model-Q6_K.gguf.part1of2",
    ) == {
        "F16": ["model-F16.gguf"],
        "Q8_0": ["model-Q8_0.gguf"],
        "UD-Q4_K_XL": ["model-UD-Q4_K_XL.gguf"],
        "Q4_K_M": ["model-Q4_K_M.gguf"],
        "IQ4_NL": ["model-IQ4_NL.gguf"],
        "i1-Q4_K_M": ["model.i1-Q4_K_M.gguf"],
        "Q4_K_S": ["model-q4_k_s.GGUF"],
        "MXFP4_MOE": ["model-mxfp4_moe.gguf"],
    }


def test_a_model_made_with_a_matrix_is_a_model() -> None:
    assert labels("model-imatrix-Q4_K_M.gguf") == {"Q4_K_M": ["model-imatrix-Q4_K_M.gguf"]}


def test_parts_in_folders_are_one_variant() -> None:
    parts = [f"UD-Q2_K_XL/DeepSeek-UD-Q2_K_XL-0000{number}-of-00003.gguf" for number in (3, 1, 2)]
    (variant,) = group_files(files(*parts))
    assert variant.label == "UD-Q2_K_XL"
    assert [file.path for file in variant.files] == sorted(parts)
    assert variant.file_bytes == 1000 + 999 + 998
    assert variant.problem is None


def test_the_folder_names_the_quantization() -> None:
    assert labels("Q4_K_M/model-00001-of-00001.gguf", "BF16/model.gguf").keys() == {"Q4_K_M", "BF16"}


def test_a_missing_part_is_a_problem() -> None:
    (variant,) = group_files(files("x-Q8_0-00001-of-00002.gguf"))
    assert variant.problem is not None
    assert variant.problem.startswith("Only 1 of its 2 parts")


def test_labels_are_unique() -> None:
    assert labels("a-Q8_0.gguf", "b-Q8_0.gguf", "old/a-Q8_0.gguf", "plain.gguf").keys() == {
        "a-Q8_0",
        "b-Q8_0",
        "old/a-Q8_0",
        "plain",
    }


@given(
    st.lists(
        st.from_regex(
            r"([a-z]{1,3}/)?[a-z]{1,3}(-(Q8_0|Q4_K_M|i1-Q4_0))?(-0000[12]-of-00002)?\.gguf", fullmatch=True
        ),
        unique=True,
    )
)
def test_each_model_file_is_in_one_variant_and_labels_are_unique(paths: list[str]) -> None:
    variants = group_files(files(*paths))
    assert sorted(file.path for one in variants for file in one.files) == sorted(paths)
    assert len({one.label for one in variants}) == len(variants)
    for one in variants:
        assert len({PurePosixPath(file.path).parent for file in one.files}) == 1


def variants() -> tuple[HubVariant, ...]:
    return group_files(
        files("a-Q8_0.gguf", "sub/a-Q4_0-00001-of-00002.gguf", "sub/a-Q4_0-00002-of-00002.gguf")
    )


@pytest.mark.parametrize(
    ("ref", "wanted"),
    [
        (HubRef(repo_id=REPO), ["Q4_0", "Q8_0"]),
        (HubRef(repo_id=REPO, label="q8_0"), ["Q8_0"]),
        (HubRef(repo_id=REPO, path="sub"), ["Q4_0"]),
        (HubRef(repo_id=REPO, path="sub/a-Q4_0-00002-of-00002.gguf"), ["Q4_0"]),
    ],
)
def test_what_is_asked_for_is_selected(ref: HubRef, wanted: list[str]) -> None:
    assert sorted(one.label for one in select(ref, variants())) == wanted


@pytest.mark.parametrize("ref", [HubRef(repo_id=REPO, label="Q4"), HubRef(repo_id=REPO, path="su")])
def test_what_is_not_there_is_told_with_what_is(ref: HubRef) -> None:
    with pytest.raises(MissingError, match=r"has no (Q4|su)\. It has: "):
        select(ref, variants())


def test_variants_are_found_by_label_file_and_folder_once() -> None:
    found = find_variants(variants(), ["q8_0", "a-Q8_0.gguf", "sub"], REPO)
    assert [one.label for one in found] == ["Q8_0", "Q4_0"]
    with pytest.raises(MissingError, match="has no Q2_K"):
        find_variants(variants(), ["Q8_0", "Q2_K"], REPO)
