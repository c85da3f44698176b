"""`import`, `report` and `compare` as a user calls them, with their exit codes."""

import json
import shutil
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner, Result

from liob_core.cli.app import app
from liob_core.errors import FileError, UsageError
from liob_core.store.share import export_run
from tests.unit.analysis.conftest import RUN, RunWriter

SETTINGS = json.dumps({"n_ctx": 4096})


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def make_run(path: Path, chat_ms: tuple[float, ...]) -> Path:
    writer = RunWriter(path)
    writer.run(sampling="{}")
    writer.machine()
    writer.variant("F16", 16, load_settings=SETTINGS)
    writer.variant("Q4|0", 4.5, load_settings=SETTINGS)
    for label in ("F16", "Q4|0"):
        writer.load(label)
        for block, ms in enumerate(chat_ms):
            writer.speed(label, block, chat_ms=ms, prefill_ms=256.0 + block)
    writer.summarize()
    return writer.close()


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> dict[str, Path]:
    """A run, the same again and a slower one, each exported; made once, since that takes a second."""
    folder = tmp_path_factory.mktemp("exports")
    made = {}
    for name, chat_ms in (("a", (1270.0, 1275.0)), ("same", (1270.0, 1275.0)), ("slow", (1900.0, 1901.0))):
        path = make_run(Path(shutil.copy(empty_database, folder / f"{name}-full.duckdb")), chat_ms)
        made[name] = export_run(path, RUN, "duckdb", folder / f"{name}.duckdb")
    return made


@pytest.fixture
def runs(tmp_path: Path, exports: dict[str, Path]) -> dict[str, Path]:
    """Copies of the exports, which a test may change."""
    return {name: Path(shutil.copy(path, tmp_path / path.name)) for name, path in exports.items()}


@pytest.mark.parametrize(
    ("a", "b", "options", "code", "title"),
    [
        ("a", "same", (), 0, "### No regression"),
        ("a", "slow", (), 1, "### Regression"),
        ("slow", "a", (), 0, "### No regression"),
        ("a", "slow", ("--margin-speed", "50"), 0, "### No regression"),
    ],
)
def test_compare_is_a_gate(
    runs: dict[str, Path], a: str, b: str, options: tuple[str, ...], code: int, title: str
) -> None:
    done = call("compare", runs[a], runs[b], *options)
    assert (done.exit_code, done.stdout.splitlines()[0].partition(":")[0]) == (code, title)
    lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 4
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    assert "Welch" in done.stdout


def test_compare_as_json_and_with_what_it_cannot_compare(runs: dict[str, Path]) -> None:
    done = call("compare", runs["a"], runs["slow"], "--json")
    document = json.loads(done.stdout)
    assert (done.exit_code, document["verdict"]) == (1, "regression")
    assert document["changes"][0]["metric"] == "decode_tps"
    with duckdb.connect(str(runs["same"])) as con:
        con.execute("UPDATE raw.runs SET machine_id = 'm2'")
    done = call("compare", runs["a"], runs["same"])
    assert (done.exit_code, "- other machine" in done.stdout) == (2, True)


def test_inconclusive_has_a_code_of_its_own(
    runs: dict[str, Path], tmp_path: Path, empty_database: Path
) -> None:
    one = make_run(Path(shutil.copy(empty_database, tmp_path / "one.duckdb")), (1270.0,))
    assert call("compare", runs["a"], one).exit_code == 4


def test_import_report_and_compare_by_id(runs: dict[str, Path], tmp_path: Path) -> None:
    assert "Added: run" in call("import", runs["a"]).stdout
    again = json.loads(call("import", runs["a"], "--json").stdout)
    assert (again["added"], again["unchanged"], again["n_samples"]) == ([], [RUN], 0)
    assert call("compare", "last", runs["same"]).exit_code == 0

    done = call("report", "--out", tmp_path / "r.html")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "r.html").exists()
    assert (tmp_path / "r.png").exists()
    done = call("report", RUN[:8], "--db", runs["slow"], "--out", tmp_path / "s.html", "--json")
    assert json.loads(done.stdout)["html"] == str(tmp_path / "s.html")


def test_imported_run_is_shown_and_exported_without_a_folder(runs: dict[str, Path], tmp_path: Path) -> None:
    call("import", runs["a"])
    for name in ("last", RUN[:8]):
        done = call("show", name)
        assert (done.exit_code, "Q4|0" in done.stdout) == (0, True), done.output
    assert json.loads(call("show", RUN, "--json").stdout)["status"] is None
    done = call("export", "last", "--format", "csv", "--no-texts", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    again = json.loads(call("import", tmp_path / "out", "--json").stdout)
    assert (again["added"], again["unchanged"]) == ([], [RUN])
    assert isinstance(call("show", "nope").exception, UsageError)


def test_study_is_imported_with_the_name_of_its_machine(tmp_path: Path) -> None:
    study = Path(__file__).parents[1] / "store" / "data" / "original_study.csv"
    done = call("import", study, "--machine", "Apple M4 Pro")
    assert (done.exit_code, "15 new samples" in done.stdout) == (0, True), done.output
    done = call("show", "study")
    assert (done.exit_code, "248" in done.stdout) == (0, True), done.output
    assert call("report", "study", "--out", tmp_path / "r.html").exit_code == 0
    assert call("compare", "study", "study").exit_code == 4  # one load of each has no interval


def test_file_of_an_older_version_is_refused_until_it_is_imported(runs: dict[str, Path]) -> None:
    with duckdb.connect(str(runs["a"])) as con:
        con.execute("DELETE FROM raw.migrations WHERE number > 2")
    for arguments in (("report", "--db", runs["a"]), ("compare", runs["a"], runs["same"])):
        done = call(*arguments)
        assert isinstance(done.exception, FileError), arguments
        assert "older LIOB" in str(done.exception)
    assert call("import", runs["a"]).exit_code == 0
    assert call("compare", "last", runs["same"]).exit_code == 0


def test_run_that_is_not_there_is_told(runs: dict[str, Path]) -> None:
    call("import", runs["a"])
    done = call("report", "nope")
    assert isinstance(done.exception, UsageError)
    assert RUN in str(done.exception)
