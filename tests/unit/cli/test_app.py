"""The list of commands is complete and true, and a command imports only what it needs."""

import inspect
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from liob_core.cli import app as commands
from liob_core.cli.later import Later
from liob_core.config import PROJECT_DIR

# Runs one command in a fresh process and tells what that process has imported.
_CALL = """
import sys
from liob_core.cli.app import app
try:
    app(sys.argv[1:])
except SystemExit as ending:
    assert not ending.code, ending.code
print("IMPORTED", *sys.modules)
"""
SLOW = {"pandas", "scipy.special", "scipy.optimize", "altair", "vl_convert", "streamlit", "huggingface_hub"}
HEAVY = SLOW | {"numpy", "duckdb", "pyarrow", "gguf", "httpx", "jsonschema", "psutil", "regex"}


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (("--help",), HEAVY),
        (("--version",), HEAVY),
        (("run", "--help"), SLOW),
        (("list",), SLOW),
    ],
    ids=["--help", "--version", "run", "list"],
)
def test_command_imports_only_what_it_needs(arguments: tuple[str, ...], unwanted: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CALL, *arguments], cwd=PROJECT_DIR, capture_output=True, text=True, check=True
    )
    printed, _, imported = done.stdout.rpartition("IMPORTED")
    assert printed.strip()
    assert unwanted & set(imported.split()) == set()


@pytest.mark.parametrize("command", commands.Commands.listed, ids=lambda command: command.name)
def test_what_is_said_of_a_command_is_what_it_says_itself(command: Later) -> None:
    found = command.load()
    assert command.help == inspect.cleandoc(found.help or "").splitlines()[0]


def test_a_group_keeps_its_commands() -> None:
    done = CliRunner().invoke(commands.app, ["models", "--help"])
    assert done.exit_code == 0
    assert {"list", "hub", "pull", "register", "remove"} <= set(done.stdout.split())


def test_a_mistyped_command_is_told_with_what_is_near() -> None:
    done = CliRunner().invoke(commands.app, ["shwo"])
    assert done.exit_code == 2
    assert "'show'" in done.stderr
