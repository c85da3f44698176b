import json
import os
import stat
from pathlib import Path

import pytest

from liob_core.errors import FileError
from liob_core.store import journal
from liob_core.store.journal import Journal
from liob_core.types import Outcome, RunSpec, Sample
from tests.unit.store.builders import make_sample, make_spec


def test_append_writes_one_line_that_reads_back_as_the_same_record(tmp_path: Path) -> None:
    sample = make_sample(response='a\nb\x00 "quoted" \ud800 😀')
    with Journal(tmp_path) as lines:
        lines.append(sample)
    raw = (tmp_path / "journal.jsonl").read_bytes()
    assert raw.count(b"\n") == 1
    records, offset = journal.read_lines(tmp_path)
    assert offset == len(raw)
    assert records[0]["kind"] == "sample"
    assert records[0]["schema_version"] == 1
    assert journal.read_record(Sample, json.dumps(records[0]["data"])) == sample


def test_read_lines_goes_on_from_an_offset_and_leaves_an_unfinished_line(tmp_path: Path) -> None:
    with Journal(tmp_path) as lines:
        lines.append_event("started")
        _, offset = journal.read_lines(tmp_path)
        lines.append_event("finished", "all")
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"kind": "event", "da')
    records, end = journal.read_lines(tmp_path, offset)
    assert [record["data"]["event"] for record in records] == ["finished"]
    assert journal.read_lines(tmp_path, end) == ([], end)


@pytest.mark.parametrize("torn", [b'{"kind": "sample", "da', b"\x00" * 5000, b"x" * 200_000])
def test_opening_cuts_off_what_a_crash_left_after_the_last_line(tmp_path: Path, torn: bytes) -> None:
    with Journal(tmp_path) as lines:
        lines.append(make_sample(1))
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(torn)
    with Journal(tmp_path) as lines:
        lines.append(make_sample(2))
    records, _ = journal.read_lines(tmp_path)
    assert [record["data"]["cell"]["cell_id"] for record in records] == ["c1", "c2"]
    assert (tmp_path / "journal.jsonl").read_bytes().count(b"\n") == 2


def test_finished_cells_counts_every_outcome_but_cancelled(tmp_path: Path) -> None:
    with Journal(tmp_path) as lines:
        lines.append_event("started")
        lines.append(make_sample(1))
        lines.append(make_sample(2, outcome=Outcome.TIMEOUT))
        lines.append(make_sample(3, outcome=Outcome.CANCELLED))
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"kind": "sample", "data": {"outcome": "ok"}}\n{broken\n[]\n')
    assert journal.finished_cells(tmp_path) == {"c1", "c2"}


def test_finished_cells_without_a_journal_is_empty(tmp_path: Path) -> None:
    assert journal.finished_cells(tmp_path) == set()


def test_spec_reads_back_equal(tmp_path: Path) -> None:
    spec = make_spec()
    journal.write_spec(tmp_path, spec)
    assert journal.read_spec(tmp_path) == spec


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "not the folder of a run"), ("{", "not JSON"), ('{"run_id": 3}', "run_id"), ("\xff", "damaged")],
)
def test_a_spec_that_cannot_be_read_is_one_sentence(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "spec.json").write_text(content, encoding="utf-8")
    with pytest.raises(FileError, match=said):
        journal.read_spec(tmp_path)


def test_read_record_names_the_field_that_is_wrong() -> None:
    wrong = json.dumps(journal.to_json(make_spec()) | {"n_blocks": "many"})
    with pytest.raises(FileError, match="n_blocks"):
        journal.read_record(RunSpec, wrong)


def test_write_atomic_replaces_and_leaves_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    journal.write_atomic(path, "old")
    journal.write_atomic(path, "new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_write_atomic_that_fails_keeps_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    journal.write_atomic(path, "old")
    with pytest.raises(UnicodeEncodeError):
        journal.write_atomic(path, "\ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="modes are a POSIX notion")
def test_write_atomic_lets_others_read(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        journal.write_atomic(tmp_path / "spec.json", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "spec.json").stat().st_mode) == 0o644


def test_a_journal_in_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be written"):
        Journal(tmp_path / "nowhere")
