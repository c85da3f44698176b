"""`recommend` as a user calls it, with its exit codes."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from liob_core.cli.app import app
from liob_core.errors import UsageError
from tests.unit.analysis.conftest import RUN, RunWriter
from tests.unit.analysis.test_overview import ladder


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["recommend", *(str(argument) for argument in arguments)])


@pytest.fixture
def file(tmp_path: Path, empty_database: Path) -> Path:
    """F16, Q8_0, Q4_K_M and Q2_K; memory 2.5, 1.75, 1 and 0.25 GiB; Q2_K fails 30 of 120 checks."""
    db, _ = ladder(RunWriter(shutil.copy(empty_database, tmp_path / "run.duckdb")), 120, lost={"Q2_K": 30})
    return db


def test_a_pick_ends_with_0_and_is_one_json_document(file: Path) -> None:
    result = call("last", "--db", file, "--min-tps", "20", "--max-gib", "4", "--max-loss", "5", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["run_id"], found["kind"], found["pick"], found["runner_up"]) == (
        RUN, "pick", "Q4_K_M", "Q8_0",
    )  # fmt: skip
    assert found["limits"] == {
        "min_tps": 20.0, "max_bytes": 4 * 2**30, "max_joules": None, "max_loss": 0.05, "max_ln_ratio": 0.03,
    }  # fmt: skip
    own = next(one for one in found["candidates"] if one["variant"] == "Q4_K_M")
    assert [(one["limit"], one["verdict"]) for one in own["evidence"]] == [
        ("speed", "met"), ("memory", "met"), ("loss", "met"),
    ]  # fmt: skip
    assert found["command"].startswith("llama-server --model model-Q4_K_M.gguf")


def test_nothing_that_meets_it_ends_with_4_and_names_the_nearest(file: Path) -> None:
    result = call("last", "--db", file, "--max-gib", "0.9")
    assert result.exit_code == 4
    assert "Q4_K_M comes nearest" in result.stdout
    assert "missed: peak memory of at most 922 MiB: 1.00 GiB" in " ".join(result.stdout.split())


def test_energy_that_was_not_measured_meets_no_limit(file: Path) -> None:
    result = call("last", "--db", file, "--max-joules", "1000", "--json")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["misses"] == ["energy of at most 1,000 J a token: not measured"]


def test_people_are_shown_the_evidence_and_the_command(file: Path) -> None:
    shown = " ".join(call("last", "--db", file).stdout.split())
    assert "Use it: llama-server --model model-Q4_K_M.gguf" in shown
    assert "missed: may lose up to" in shown


def test_a_limit_that_means_nothing_is_refused(file: Path) -> None:
    result = call("last", "--db", file, "--min-tps", "0")
    assert isinstance(result.exception, UsageError)
