"""Each kind of mistake in a suite file is one sentence that names file, prompt and field."""

from pathlib import Path

import pytest

from liob_core.errors import FileError
from liob_core.suites.load import load_suite

GOOD = """
[[prompts]]
id = "a"
category = "math"
prompt = "What is 1 + 1?"
check = { kind = "number", value = 2 }
[[prompts]]
id = "b"
category = "talk"
prompt = "Hey"
"""


def _write(folder: Path, text: str | bytes, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _prompt(fields: str) -> str:
    return f'[[prompts]]\nid = "p1"\ncategory = "x"\n{fields}\n'


# Each mistake: the file's text, then what the sentence must name.
MISTAKES = {
    "not toml": ("[[prompts]\n", ["not valid TOML", "line 1"]),
    "empty file": ("", ["field 'prompts'", "empty"]),
    "empty suite": ("prompts = []", ["field 'prompts'", "empty"]),
    "prompts not a list": ('prompts = "x"', ["field 'prompts'", "list"]),
    "unknown field of the suite": ('nme = "x"\n' + GOOD, ["field 'nme'", "not a known field"]),
    "prompt not a table": ("prompts = [1]", ["prompt number 1", "table of fields"]),
    "missing id": ('[[prompts]]\ncategory = "x"\nprompt = "y"', ["prompt number 1", "field 'id'", "missing"]),
    "bad id": (_prompt("").replace("p1", "a b") + 'prompt = "x"', ["prompt 'a b'", "field 'id'"]),
    "id not a text": (
        '[[prompts]]\nid = 7\ncategory = "x"\nprompt = "y"',
        ["prompt number 1", "field 'id'", "string"],
    ),
    "missing category": ('[[prompts]]\nid = "p1"\nprompt = "y"', ["'p1'", "field 'category'", "missing"]),
    "missing prompt": (_prompt(""), ["'p1'", "field 'prompt'", "missing"]),
    "blank prompt": (_prompt('prompt = " "'), ["'p1'", "field 'prompt'", "must not be blank"]),
    "unknown field": (_prompt('prompt = "x"\nchek = 1'), ["'p1'", "field 'chek'", "not a known field"]),
    "duplicate id": (GOOD.replace('"b"', '"A"'), ["'A'", "field 'id'", "prompts 1 and 2 have the same id"]),
    "prompt and messages": (
        _prompt('prompt = "x"\nmessages = [{ role = "user", content = "y" }]'),
        ["'p1'", "field 'prompt'", "together with 'messages'"],
    ),
    "system and messages": (
        _prompt('system = "x"\nmessages = [{ role = "user", content = "y" }]'),
        ["'p1'", "field 'messages'", "'system'"],
    ),
    "empty messages": (_prompt("messages = []"), ["'p1'", "field 'messages'", "at least one"]),
    "last message not user": (
        _prompt('messages = [{ role = "user", content = "y" }, { role = "assistant", content = "z" }]'),
        ["'p1'", "field 'messages'", "last message"],
    ),
    "messages do not alternate": (
        _prompt('messages = [{ role = "user", content = "y" }, { role = "user", content = "z" }]'),
        ["'p1'", "field 'messages'", "message 2 must be the assistant's"],
    ),
    "unknown role": (
        _prompt('messages = [{ role = "robot", content = "y" }]'),
        ["'p1'", "field 'messages.0.role'", "'user'"],
    ),
    "bad few-shot": (
        _prompt('prompt = "x"\nfew_shot = [{ user = "y" }]'),
        ["'p1'", "field 'few_shot.0.assistant'", "missing"],
    ),
    "wrong type": (_prompt('prompt = "x"\nmax_tokens = "20"'), ["'p1'", "field 'max_tokens'", "integer"]),
    "max_tokens zero": (_prompt('prompt = "x"\nmax_tokens = 0'), ["'p1'", "field 'max_tokens'"]),
    "check without kind": (
        _prompt('prompt = "x"\ncheck = { value = 1 }'),
        ["'p1'", "field 'check'", "'kind'"],
    ),
    "unknown check kind": (
        _prompt('prompt = "x"\ncheck = { kind = "meteor" }'),
        ["'p1'", "field 'check'", "'meteor' is unknown", "json_schema"],
    ),
    "likeness without a reference": (
        _prompt('prompt = "x"\ncheck = { kind = "bleu", min_score = 0.3 }'),
        ["'p1'", "field 'reference'", "missing", "'bleu'"],
    ),
    "likeness threshold": (
        _prompt('prompt = "x"\nreference = "y"\ncheck = { kind = "rouge_l", min_score = 30 }'),
        ["'p1'", "field 'check.min_score'", "at most 1"],
    ),
    "unit tests no program": (
        _prompt('prompt = "x"\ncheck = { kind = "unit_tests", tests = "assert f(" }'),
        ["'p1'", "field 'check.tests'", "not a Python program"],
    ),
    "unit tests without assert": (
        _prompt('prompt = "x"\ncheck = { kind = "unit_tests", tests = "f(1)" }'),
        ["'p1'", "field 'check.tests'", "no assert"],
    ),
    "unit tests of nothing": (
        _prompt('prompt = "x"\ncheck = { kind = "unit_tests", tests = "assert len([]) == 0" }'),
        ["'p1'", "field 'check.tests'", "no name"],
    ),
    "unit tests too long": (
        _prompt('prompt = "x"\ncheck = { kind = "unit_tests", tests = "assert f()", time_limit_s = 61 }'),
        ["'p1'", "field 'check.time_limit_s'", "at most 60"],
    ),
    "number without value": (
        _prompt('prompt = "x"\ncheck = { kind = "number" }'),
        ["'p1'", "field 'check.value'", "missing"],
    ),
    "number as text": (
        _prompt('prompt = "x"\ncheck = { kind = "number", value = "7" }'),
        ["'p1'", "field 'check.value'", "must be a number"],
    ),
    "number not finite": (
        _prompt('prompt = "x"\ncheck = { kind = "number", value = nan }'),
        ["'p1'", "field 'check.value'", "finite"],
    ),
    "negative tolerance": (
        _prompt('prompt = "x"\ncheck = { kind = "number", value = 1, tolerance = -1 }'),
        ["'p1'", "field 'check.tolerance'", "negative"],
    ),
    "unknown check field": (
        _prompt('prompt = "x"\ncheck = { kind = "number", value = 1, tol = 1 }'),
        ["'p1'", "field 'check.tol'", "not a known field"],
    ),
    "no exact values": (
        _prompt('prompt = "x"\ncheck = { kind = "exact", values = [] }'),
        ["'p1'", "field 'check.values'"],
    ),
    "bad regex": (
        _prompt('prompt = "x"\ncheck = { kind = "regex", pattern = "(a" }'),
        ["'p1'", "field 'check.pattern'", "not a regular expression"],
    ),
    "bad regex flags": (
        _prompt('prompt = "x"\ncheck = { kind = "regex", pattern = "a", flags = "q" }'),
        ["'p1'", "field 'check.flags'"],
    ),
    "bad regex mode": (
        _prompt('prompt = "x"\ncheck = { kind = "regex", pattern = "a", mode = "find" }'),
        ["'p1'", "field 'check.mode'", "'search' or 'fullmatch'"],
    ),
    "contains nothing": (
        _prompt('prompt = "x"\ncheck = { kind = "contains", none = ["a"] }'),
        ["'p1'", "field 'check.any'", "'all' or 'any'"],
    ),
    "contains a number": (
        _prompt('prompt = "x"\ncheck = { kind = "contains", all = [1] }'),
        ["'p1'", "field 'check.all'", "text"],
    ),
    "choice of none": (
        _prompt('prompt = "x"\ncheck = { kind = "choice", options = { A = "a", B = "b" }, correct = "C" }'),
        ["'p1'", "field 'check.correct'", "A, B"],
    ),
    "one option": (
        _prompt('prompt = "x"\ncheck = { kind = "choice", options = { A = "a" }, correct = "A" }'),
        ["'p1'", "field 'check.options'", "at least 2"],
    ),
    "bad schema": (
        _prompt('prompt = "x"\ncheck = { kind = "json_schema", schema = { type = "objekt" } }'),
        ["'p1'", "field 'check.schema'", "not a JSON schema"],
    ),
    "schema refers to the network": (
        _prompt(
            'prompt = "x"\ncheck = { kind = "json_schema", schema = { "$ref" = "http://127.0.0.1:9/s" } }'
        ),
        ["'p1'", "field 'check.schema'", "not a usable JSON schema"],
    ),
    "schema in circles": (
        _prompt('prompt = "x"\ncheck = { kind = "json_schema", schema = { "$ref" = "#" } }'),
        ["'p1'", "field 'check.schema'", "refers to itself"],
    ),
    "schema with a date": (
        _prompt('prompt = "x"\ncheck = { kind = "json_schema", schema = { const = 2024-01-01 } }'),
        ["'p1'", "field 'check.schema"],
    ),
    "not utf-8": (b"description = 'x'\n# \xff\xfe\n", ["line 2 is not UTF-8"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_load_mistake_is_one_sentence_naming_file_prompt_and_field(tmp_path: Path, mistake: str) -> None:
    text, named = MISTAKES[mistake]
    path = _write(tmp_path, text)
    with pytest.raises(FileError) as caught:
        load_suite(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: ")
    assert sentence.endswith(".")
    for part in named:
        assert part in sentence


JSON_MISTAKES = {
    "not json": ("{", "not valid JSON"),
    "not an object": ("[]", "a suite is an object"),
    "key given twice": ('{"version": "1", "version": "2"}', "'version' is given twice"),
    "too deep": ("[" * 100_000, "not valid JSON"),
    "half a character": (
        '{"prompts": [{"id": "p1", "category": "x", "prompt": "\\ud800"}]}',
        "prompt 'p1', field 'prompt'",
    ),
}


@pytest.mark.parametrize("mistake", JSON_MISTAKES)
def test_load_json_mistake_is_named(tmp_path: Path, mistake: str) -> None:
    text, named = JSON_MISTAKES[mistake]
    with pytest.raises(FileError, match=named.replace("(", r"\(")):
        load_suite(_write(tmp_path, text, "s.json"))


def test_load_counts_the_other_mistakes(tmp_path: Path) -> None:
    text = _prompt('prompt = "x"\nchek = 1') + _prompt('prompt = "x"\nmax_tokens = 0')
    with pytest.raises(FileError, match=r"field 'chek'.*\(1 more mistake in this file\)"):
        load_suite(_write(tmp_path, text))
