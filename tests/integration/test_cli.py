"""The command line as a user calls it, on the real engine and the real model."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from liob_core.config import PROJECT_DIR


def liob(*arguments: str, timeout_s: float = 280) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "liob_core", *arguments],
        cwd=PROJECT_DIR,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def document(result: subprocess.CompletedProcess[str]) -> Any:
    """The one JSON document; fails where anything else is on standard output."""
    return json.loads(result.stdout)


SUITE = """
[[prompts]]
id = "sum"
category = "math"
prompt = "What is 7 + 5? End with: Answer: <number>"
check = { kind = "number", value = 12 }

[[prompts]]
id = "capital"
category = "facts"
system = "You answer in one word."
prompt = "What is the capital of France?"
check = { kind = "contains", all = ["Paris"] }

[[prompts]]
id = "story"
category = "stories"
prompt = "Tell me of a lighthouse."
rubric = "10: a lighthouse. 1: none."
"""


@pytest.mark.model
def test_ladder_run_show_query_export(model_path: Path, tmp_path: Path) -> None:
    made = liob("ladder", str(model_path), "--types", "Q8_0,Q4_0", "--out", str(tmp_path), "--json")
    assert made.returncode == 0, made.stderr
    assert "already quantized" in made.stderr
    paths = document(made)["paths"]
    assert [Path(path).exists() for path in paths] == [True, True]

    suite = tmp_path / "mine.toml"
    suite.write_text(SUITE, encoding="utf-8")
    ran = liob(
        "run", "--model", paths[0], "--model", paths[1], "--task", "speed", "--task", "suite",
        "--suite", str(suite), "--repeats", "2", "--max-tokens", "24", "--threads", "1", "--json",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    result = document(ran)
    assert result["status"]["state"] == "finished"
    rows = {row["variant"]: row for row in result["results"]}
    assert set(rows) == {"Q8_0", "Q4_0"}
    for row in rows.values():
        assert row["n_ok"] + row["n_failed"] == row["n_samples"] == 2 * 3 + 3
        assert row["n_checked"] == 2
        assert row["n_blocks"] == 2 or row["n_contended"] > 0
        assert row["timing_task"] == "speed"
        # Weights that are in memory, and not the child's Python: between the file and twice the file.
        assert row["file_bytes"] < row["peak_memory_bytes"] < 4 * row["file_bytes"]
    assert rows["Q8_0"]["bpw"] > rows["Q4_0"]["bpw"]

    run_id = result["run_id"]
    shown = liob("show", run_id[:-2])
    assert shown.returncode == 0
    assert "Q4_0" in shown.stdout
    listed = document(liob("list", "--json"))
    assert [(run["run_id"], run["state"]) for run in listed] == [(run_id, "finished")]

    database = Path(os.environ["LIOB_DATA_DIR"]) / "liob.duckdb"
    with duckdb.connect(str(database), read_only=True) as con:
        counts = con.execute(
            "SELECT shape, prompt_tokens, output_tokens, count(*) FROM raw.samples "
            "WHERE task = 'speed' AND NOT warmup GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        doubled = con.execute(
            "SELECT count(DISTINCT prompt) FROM samples WHERE task = 'suite' AND NOT warmup "
            "GROUP BY prompt_id"
        ).fetchall()
    assert counts == [("chat512", 512, 128, 4), ("pp512", 512, 1, 4), ("tg128", 1, 128, 4)]
    assert set(doubled) == {(1,)}, "every variant got the same prompt bytes"

    exported = liob("export", run_id, "--format", "json", "--out", str(tmp_path / "run.json"), "--json")
    assert exported.returncode == 0, exported.stderr
    text = (tmp_path / "run.json").read_text()
    assert run_id in text
    assert str(tmp_path) not in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("inspect", "nowhere.gguf"), "nowhere.gguf"),
        (("run", "--model", "nowhere.gguf"), "nowhere.gguf"),
        (("show", "nothing"), "no run"),
        (("resume", "nothing"), "no run"),
        (("cancel", "nothing"), "no run"),
        (("export", "nothing", "--format", "json"), "no run"),
        (("ladder", "nowhere.gguf", "--types", "Q8_0"), "nowhere.gguf"),
        (("run",), "--model"),
        (("nonsense",), "nonsense"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(arguments: tuple[str, ...], words: str) -> None:
    result = liob(*arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.model
def test_inspect_tells_the_true_bits(model_path: Path) -> None:
    result = liob("inspect", str(model_path), "--json")
    assert result.returncode == 0, result.stderr
    (model,) = document(result)
    assert model["model"]["n_params"] == 134_515_008
    assert model["file_sha256"] == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    # 8 x 96,576,768 tensor bytes / 134,515,008 parameters
    assert model["model"]["bpw"] == pytest.approx(5.7437, abs=1e-4)


def test_doctor_says_what_works_as_json() -> None:
    result = liob("doctor", "--json")
    assert result.returncode == 0, result.stderr
    findings = {finding["what"]: finding["state"] for finding in document(result)["findings"]}
    assert findings["engine embedded"] == "ok"
    assert findings["data folder"] == "ok"


def test_broken_settings_are_named() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "liob_core", "list"],
        cwd=PROJECT_DIR,
        env={**os.environ, "LIOB_MONITOR_HZ": "fast"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert "monitor_hz" in result.stderr
