"""What crashes, full disks and other programs do to a run's journal and to the database."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from liob_core.errors import BusyError, MissingError
from liob_core.store import database, journal
from tests.unit.store.builders import RUN_ID, make_run_folder, make_sample

ROOT = Path(__file__).parents[2]
posix = pytest.mark.skipif(os.name == "nt", reason="POSIX signals and limits")

APPENDER = """
import sys
from pathlib import Path
from liob_core.store.journal import Journal, finished_cells
from tests.unit.store.builders import make_sample
run_dir = Path(sys.argv[1])
number = len(finished_cells(run_dir))
with Journal(run_dir) as journal:
    while True:
        journal.append(make_sample(number, response="text " * (number % 500)))
        print(number, flush=True)
        number += 1
"""

INGESTER = """
import sys
from pathlib import Path
from liob_core.store import database
print("ready", flush=True)
with database.write(Path(sys.argv[1])) as con:
    database.ingest(con, Path(sys.argv[2]))
"""

FILLER = """
import resource, sys
from pathlib import Path
from liob_core.errors import LiobError
from liob_core.store.journal import Journal, read_lines
from tests.unit.store.builders import make_sample
run_dir, limit = Path(sys.argv[1]), int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
n_stored = 0
with Journal(run_dir) as journal:
    try:
        while True:
            journal.append(make_sample(n_stored, response="x" * 700))
            n_stored += 1
    except LiobError as error:
        print(n_stored)
        print(error)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        journal.append_event("failed", "disk full")
"""

FULL_DISK_INGESTER = """
import sys
from pathlib import Path
from liob_core.errors import LiobError
from liob_core.store import database
db = Path(sys.argv[1])
try:
    with database.write(db) as con:
        database.ingest(con, Path(sys.argv[2]))
    print("stored")
except LiobError as error:
    print(error)
with database.read(db) as con:
    print(con.execute("SELECT count(*) FROM samples").fetchone()[0])
"""

HOLDER = """
import sys, time
import duckdb
con = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "read")
print("held", flush=True)
time.sleep(float(sys.argv[3]))
"""


def start(code: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, **options)


def kill(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGKILL)
    output, _ = process.communicate()
    return output


def stored_ids(db: Path) -> list[str]:
    with database.read(db) as con:
        return [row[0] for row in con.execute("SELECT cell_id FROM samples ORDER BY cell_index").fetchall()]


@posix
def test_every_sample_whose_append_returned_survives_sigkill_exactly_once(tmp_path: Path) -> None:
    run_dir, db = make_run_folder(tmp_path, n_samples=0), tmp_path / "liob.duckdb"
    picker, reported = random.Random(3), []
    for _ in range(8):
        appender = start(APPENDER, run_dir)
        reported.append(int(appender.stdout.readline()))
        time.sleep(picker.uniform(0, 0.05))
        reported += [int(line) for line in kill(appender).splitlines()]
        with database.write(db) as con:
            database.ingest(con, run_dir)
    n_stored = len(journal.finished_cells(run_dir))
    # The last sample before a kill may be stored without having been reported; never the other way.
    assert set(reported) <= set(range(n_stored))
    assert n_stored > 8
    assert stored_ids(db) == [f"c{number}" for number in range(n_stored)]


@posix
def test_an_ingest_killed_at_any_moment_leaves_all_or_nothing(tmp_path: Path) -> None:
    run_dir, db = make_run_folder(tmp_path, n_samples=0), tmp_path / "liob.duckdb"
    n_samples = 4000
    template = json.dumps({"kind": "sample", "data": journal.to_json(make_sample(0)), "schema_version": 1})
    with (run_dir / journal.JOURNAL_FILE).open("a", encoding="utf-8") as file:
        for number in range(n_samples):
            file.write(template.replace('"c0"', f'"c{number}"').replace("c0@1", f"c{number}@1") + "\n")
    picker = random.Random(5)
    for _ in range(6):
        ingester = start(INGESTER, db, run_dir)
        ingester.stdout.readline()
        time.sleep(picker.uniform(0, 1.5))
        kill(ingester)
        with contextlib.suppress(MissingError):  # killed before there was a table
            assert len(stored_ids(db)) in {0, n_samples}
    with database.write(db) as con:
        database.ingest(con, run_dir)
        assert con.execute("SELECT count(*), count(DISTINCT sample_id) FROM samples").fetchone() == (
            n_samples,
            n_samples,
        )


@posix
def test_a_disk_that_fills_up_in_the_middle_of_a_line_keeps_whole_lines(tmp_path: Path) -> None:
    """A file size limit makes the kernel write part of the line, as a full disk does."""
    filler = start(FILLER, tmp_path, 20_000)
    output, _ = filler.communicate()
    n_stored, sentence = output.splitlines()
    assert filler.returncode == 0
    assert "free some space and resume the run" in sentence
    records, offset = journal.read_lines(tmp_path)
    assert offset == (tmp_path / journal.JOURNAL_FILE).stat().st_size
    assert [record["kind"] for record in records] == ["sample"] * int(n_stored) + ["event"]
    assert int(n_stored) > 3


@contextlib.contextmanager
def small_disk_shell(folder: Path, size: str) -> Iterator[list[str]]:
    """The start of a command that runs with a disk of its own of that size, and that small, at `folder`."""
    folder.mkdir()
    mount = f"mount -t tmpfs -o size={size} tmpfs {folder}"
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here")
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    yield ["unshare", "-rm", "sh", "-c", f'{mount} && "$@"', "sh"]


@posix
def test_a_full_disk_stops_the_journal_with_one_sentence(tmp_path: Path) -> None:
    with small_disk_shell(tmp_path / "disk", "128k") as shell:
        command = [*shell, sys.executable, "-c", FILLER, str(tmp_path / "disk"), "0"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    n_stored, sentence = done.stdout.splitlines()
    assert "No space left on device" in sentence
    assert int(n_stored) > 20


@posix
def test_a_full_disk_stops_an_ingest_and_the_database_stays_whole(tmp_path: Path) -> None:
    run_dir = make_run_folder(tmp_path, n_samples=0)
    with (run_dir / journal.JOURNAL_FILE).open("a", encoding="utf-8") as file:
        for number in range(4000):
            text = random.Random(number).randbytes(1500).hex()  # does not compress away
            data = journal.to_json(make_sample(number, response=text, sample_id=f"{RUN_ID}/{number}"))
            file.write(json.dumps({"kind": "sample", "data": data, "schema_version": 1}) + "\n")
    with small_disk_shell(tmp_path / "disk", "6m") as shell:
        code = [
            sys.executable,
            "-c",
            FULL_DISK_INGESTER,
            str(tmp_path / "disk" / "liob.duckdb"),
            str(run_dir),
        ]
        done = subprocess.run([*shell, *code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sentence, n_samples = done.stdout.splitlines()
    assert "could not be used" in sentence
    assert n_samples == "0"


@pytest.mark.parametrize("mode", ["write", "read"])
def test_a_database_held_by_another_process_names_it_after_a_bounded_wait(tmp_path: Path, mode: str) -> None:
    db = tmp_path / "liob.duckdb"
    with database.write(db):
        pass
    holder = start(HOLDER, db, mode, 600)
    try:
        assert holder.stdout.readline() == "held\n"
        began = time.monotonic()
        opening = database.read if mode == "write" else database.write
        with pytest.raises(BusyError) as caught, opening(db, wait_s=0.3):
            pass
        assert time.monotonic() - began >= 0.3
        assert f"(process {holder.pid})" in str(caught.value)
        assert "python" in str(caught.value).lower()
        assert caught.value.exit_code == 3
    finally:
        holder.kill()
        holder.communicate()


def test_a_database_that_becomes_free_within_the_wait_is_opened(tmp_path: Path) -> None:
    db = tmp_path / "liob.duckdb"
    with database.write(db):
        pass
    holder = start(HOLDER, db, "write", 0.5)
    assert holder.stdout.readline() == "held\n"
    with database.read(db, wait_s=60) as con:
        assert con.execute("SELECT count(*) FROM results").fetchone() == (0,)
    holder.communicate()
