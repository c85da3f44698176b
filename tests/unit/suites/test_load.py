"""Suites are found, read, hashed, and refused in one sentence that names file, prompt and field."""

import json
import os
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from liob_core.config import SHIPPED_SUITES
from liob_core.errors import FileError, LiobError, MissingError, UsageError
from liob_core.quality.checks import run_check
from liob_core.suites import load
from liob_core.suites.load import list_suites, load_suite, suite_from_text
from liob_core.suites.params import AnyCheck
from liob_core.suites.schema import PromptEntry, SuiteFile
from liob_core.types import CheckResult, Message

GOOD = """
description = "Two prompts"
version = "3"
[[prompts]]
id = "a"
category = "math"
prompt = "What is 1 + 1?"
check = { kind = "number", value = 2 }
[[prompts]]
id = "b"
category = "talk"
system = "Be brief."
few_shot = [{ user = "Hi", assistant = "Hello" }]
prompt = "Hey"
rubric = "5: friendly. 1: not."
reference = "Hello"
max_tokens = 20
"""


def _write(folder: Path, text: str | bytes, name: str = "mine.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_load_toml_gives_records_with_all_turns(tmp_path: Path) -> None:
    suite = load_suite(_write(tmp_path, GOOD))
    assert (suite.name, suite.description, suite.version) == ("mine", "Two prompts", "3")
    first, second = suite.prompts
    assert first.check is not None
    assert (first.check.kind, first.check.params) == ("number", {"value": 2})
    assert second.messages == (
        Message(role="system", content="Be brief."),
        Message(role="user", content="Hi"),
        Message(role="assistant", content="Hello"),
        Message(role="user", content="Hey"),
    )
    assert (second.check, second.rubric, second.max_tokens) == (None, "5: friendly. 1: not.", 20)


def test_hash_is_of_content_not_of_layout(tmp_path: Path) -> None:
    toml = load_suite(_write(tmp_path, GOOD))
    tree = {
        "version": "4",
        "prompts": [
            {
                "id": "b",
                "category": "talk",
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "Hi"},
                    {"role": "assistant", "content": "Hello"},
                    {"role": "user", "content": "Hey"},
                ],
                "rubric": "5: friendly. 1: not.",
                "reference": "Hello",
                "max_tokens": 20,
            },
            {
                "id": "a",
                "category": "math",
                "prompt": "What is 1 + 1?",
                "check": {"kind": "number", "value": 2.0, "tolerance": 0},
            },
        ],
    }
    as_json = load_suite(_write(tmp_path, json.dumps(tree, indent=3), "other.json"))
    with_windows_lines = load_suite(_write(tmp_path, "\ufeff" + GOOD.replace("\n", "\r\n"), "win.toml"))
    assert toml.sha256 == as_json.sha256 == with_windows_lines.sha256
    assert len(toml.sha256) == 64
    for change in [("1 + 1", "1 + 2"), ("value = 2", "value = 3"), ("5: friendly", "5: kind"), ("20", "21")]:
        assert load_suite(_write(tmp_path, GOOD.replace(*change), "c.toml")).sha256 != toml.sha256


def test_load_by_name_takes_the_first_folder_that_has_it(tmp_path: Path) -> None:
    mine, shipped = tmp_path / "mine", tmp_path / "shipped"
    _write(mine, GOOD, "both.toml")
    _write(shipped, GOOD.replace("Two prompts", "Shipped"), "both.toml")
    _write(shipped, GOOD, "only.toml")
    folders = [mine, shipped, tmp_path / "absent"]
    assert load_suite("both", folders).description == "Two prompts"
    assert load_suite("only", folders).name == "only"
    with pytest.raises(MissingError, match=r"no suite 'neither'; known suites: both, only"):
        load_suite("neither", folders)


def test_load_file_too_big_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "MAX_SUITE_BYTES", 100)
    with pytest.raises(FileError, match="split it"):
        load_suite(_write(tmp_path, GOOD))


def test_load_what_is_no_suite_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(FileError, match="not a file"):
        load_suite(tmp_path / "folder.toml")
    with pytest.raises(MissingError, match="no such file"):
        load_suite(tmp_path / "absent.toml")
    with pytest.raises(FileError, match=r"\.toml or \.json"):
        load_suite(_write(tmp_path, "x", "suite.yaml"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads every file")
def test_load_unreadable_file_says_so(tmp_path: Path) -> None:
    path = _write(tmp_path, GOOD)
    path.chmod(0)
    with pytest.raises(FileError, match="cannot be read"):
        load_suite(path)


SUBSET = 'subset_of = "base"\nprompt_ids = ["b"]\n'


def test_subset_takes_prompts_by_id_from_the_suite_beside_it(tmp_path: Path) -> None:
    _write(tmp_path, GOOD, "base.toml")
    suite = load_suite(_write(tmp_path, SUBSET))
    assert [prompt.prompt_id for prompt in suite.prompts] == ["b"]
    assert suite.prompts[0] == load_suite(tmp_path / "base.toml").prompts[1]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('subset_of = "nobase"\nprompt_ids = ["b"]', "field 'subset_of': there is no suite 'nobase'"),
        ('subset_of = "base"\nprompt_ids = ["zz"]', "prompt 'zz', field 'prompt_ids': base.toml has no"),
        ('subset_of = "base"\nprompt_ids = ["b", "b"]', "prompt 'b', field 'prompt_ids': it is named twice"),
        ('subset_of = "mine"\nprompt_ids = ["b"]', "cannot be a subset of itself"),
        ('subset_of = "sub"\nprompt_ids = ["b"]', "sub.toml is itself a subset"),
        ('subset_of = "base"', "belong together"),
        ('prompt_ids = ["b"]', "belong together"),
        ('subset_of = "../base"\nprompt_ids = ["b"]', "field 'subset_of'"),
        (SUBSET + GOOD.split("\n", 3)[3], "cannot be given together with 'subset_of'"),
    ],
)
def test_subset_mistake_is_named(tmp_path: Path, text: str, named: str) -> None:
    _write(tmp_path, GOOD, "base.toml")
    _write(tmp_path, SUBSET, "sub.toml")
    with pytest.raises(FileError) as caught:
        load_suite(_write(tmp_path, text))
    assert named in str(caught.value)


def test_list_shows_a_broken_file_with_its_error(tmp_path: Path) -> None:
    shipped = tmp_path / "shipped"
    _write(tmp_path, GOOD, "good.toml")
    broken = _write(tmp_path, "x = ", "broken.toml")
    _write(tmp_path, "text", "README.md")
    _write(shipped, GOOD, "good.toml")
    found = list_suites([tmp_path, tmp_path, shipped, tmp_path / "absent"])
    assert [info.name for info in found] == ["broken", "good", "good"]
    assert found[0].path == broken
    assert found[0].error is not None
    assert "not valid TOML" in found[0].error
    assert found[0].n_prompts is None
    good = found[1]
    assert (good.n_prompts, good.n_checked, good.categories, good.error) == (2, 1, ("math", "talk"), None)
    assert found[2].error is not None
    assert "same name" in found[2].error


def test_pasted_text_is_split_at_lines_of_dashes() -> None:
    suite = suite_from_text("\n---\nFirst\n\nstill first -- really\n---\r\nSecond\n------\n \n", "mine")
    assert suite.name == "mine"
    assert [prompt.messages[0].content for prompt in suite.prompts] == [
        "First\n\nstill first -- really",
        "Second",
    ]
    assert [prompt.prompt_id for prompt in suite.prompts] == ["p1", "p2"]
    assert all(prompt.check is None for prompt in suite.prompts)
    assert suite.sha256 == suite_from_text("First\n\nstill first -- really\n---\nSecond").sha256


@pytest.mark.parametrize("text", ["", " \n", "---\n---", "\ud800"])
def test_pasted_text_without_a_prompt_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        suite_from_text(text)


def test_pasted_text_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "MAX_SUITE_BYTES", 10)
    with pytest.raises(LiobError, match="fewer prompts"):
        suite_from_text("x" * 11)


def test_documented_example_loads_and_its_check_works(tmp_path: Path) -> None:
    readme = (SHIPPED_SUITES / "README.md").read_text(encoding="utf-8")
    example = readme.split("```toml\n")[1].split("```")[0]
    hours, tone = load_suite(_write(tmp_path, example)).prompts
    assert hours.check is not None
    assert run_check(hours.check, str(hours.reference)).result is CheckResult.PASS
    assert run_check(hours.check, "Answer: yes").result is CheckResult.FAIL
    assert len(tone.messages) == 3


@pytest.mark.parametrize("model", [SuiteFile, PromptEntry, *get_args(get_args(AnyCheck)[0])])
def test_every_field_is_documented(model: type[BaseModel]) -> None:
    readme = (SHIPPED_SUITES / "README.md").read_text(encoding="utf-8")
    for name, field in model.model_fields.items():
        if name != "kind":
            assert f"`{field.alias or name}`" in readme


def test_documented_counts_are_those_of_the_files() -> None:
    readme = (SHIPPED_SUITES / "README.md").read_text(encoding="utf-8")
    core, quick = load_suite("core").prompts, load_suite("quick").prompts
    n_checked = sum(prompt.check is not None for prompt in core)
    assert f"`core` | {len(core)} prompts" in readme
    assert f"; {n_checked} have a deterministic check" in readme
    assert f"`quick` | {len(quick)} prompts" in readme
    assert f"`code` | {len(load_suite('code').prompts)} programs" in readme


def test_reference_goes_into_the_check_that_compares_with_it(tmp_path: Path) -> None:
    text = """
[[prompts]]
id = "a"
category = "talk"
prompt = "Say hello to Ana."
reference = "Hello, Ana!"
check = { kind = "token_f1", min_score = 1 }
"""
    [prompt] = load_suite(_write(tmp_path, text)).prompts
    assert prompt.check.params == {"min_score": 1, "references": ["Hello, Ana!"]}
    assert run_check(prompt.check, "hello ana").result is CheckResult.PASS
    own = text.replace("min_score = 1", 'min_score = 1, references = ["Hi", "Hey"]')
    [prompt] = load_suite(_write(tmp_path, own)).prompts
    assert prompt.check.params["references"] == ["Hi", "Hey"]
