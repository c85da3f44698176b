import errno
import json
import os

import pytest

from liob_core.monitor.readings import ReadingsFile
from liob_core.types import Reading, to_json


def stored(path):
    return [json.loads(line)["utc_ns"] for line in path.read_bytes().splitlines()]


def append(file, *stamps):
    for stamp in stamps:
        file.append(Reading(utc_ns=stamp))
    file.flush()


def test_readings_are_whole_json_lines(tmp_path):
    path = tmp_path / "readings.jsonl"
    reading = Reading(utc_ns=1, rss_bytes=2, other_cpu_share=0.25)
    file = ReadingsFile(path)
    file.append(reading)
    assert path.read_bytes() == b""
    file.close()

    assert path.read_bytes().endswith(b"\n")
    assert json.loads(path.read_bytes()) == json.loads(json.dumps(to_json(reading)))


@pytest.mark.parametrize("left", [b"", b'{"utc_ns":1}\n', b'{"utc_ns":1}\n{"utc_n', b'{"utc_n'])
def test_reopen_cuts_half_a_line_that_a_killed_worker_left(tmp_path, left):
    path = tmp_path / "readings.jsonl"
    path.write_bytes(left)
    file = ReadingsFile(path)
    append(file, 2)
    file.close()

    assert stored(path) == [1] * left.count(b"\n") + [2]


def test_full_disk_counts_the_lost_and_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "readings.jsonl"
    file = ReadingsFile(path)
    append(file, 1)

    def refuse(_fd, _data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", refuse)
        append(file, 2, 3)
    append(file, 4)
    file.close()

    assert stored(path) == [1, 4]
    assert file.n_lost == 2
    assert "No space left" in file.reason


def test_disk_that_takes_half_a_line_keeps_whole_ones(tmp_path, monkeypatch):
    path = tmp_path / "readings.jsonl"
    file = ReadingsFile(path)
    real_write = os.write

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: real_write(fd, data[: len(data) * 5 // 6]))
        append(file, 1, 2, 3)
    append(file, 4)
    file.close()

    assert stored(path) == [1, 2, 4]
    assert file.n_lost == 1


def test_unwritable_place_loses_readings_and_says_so(tmp_path):
    file = ReadingsFile(tmp_path / "no such folder" / "readings.jsonl")
    append(file, 1, 2)
    file.close()

    assert file.n_lost == 2
    assert "No such file" in file.reason
