import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from liob_core.engines.children import is_alive, kill_leftovers, register_child

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def child():
    process = subprocess.Popen(SLEEPER)
    yield process
    process.kill()
    process.wait()


def rewrite(note: Path, **changes: object) -> None:
    note.write_text(json.dumps({**json.loads(note.read_text()), **changes}))


def test_kill_leftovers_child_of_a_living_worker_is_left_alone(tmp_path, child):
    note = register_child(tmp_path, child.pid)
    assert kill_leftovers(tmp_path) == []
    assert child.poll() is None
    assert note.exists()


@pytest.mark.parametrize("changes", [{"worker_pid": 2**22 - 3}, {"worker_create_time": 5.0}])
def test_kill_leftovers_child_whose_worker_is_gone_is_ended(tmp_path, child, changes):
    note = register_child(tmp_path, child.pid)
    rewrite(note, **changes)  # no such process; another process with that id
    assert kill_leftovers(tmp_path) == [child.pid]
    assert child.poll() is not None
    assert not note.exists()


def test_kill_leftovers_zombie_worker_counts_as_gone(tmp_path, child):
    worker = subprocess.Popen([sys.executable, "-c", "pass"])
    created = psutil.Process(worker.pid).create_time()
    while psutil.Process(worker.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    rewrite(register_child(tmp_path, child.pid), worker_pid=worker.pid, worker_create_time=created)
    assert kill_leftovers(tmp_path) == [child.pid]
    worker.wait()


def test_kill_leftovers_process_that_got_the_child_s_id_lives_on(tmp_path, child):
    note = register_child(tmp_path, child.pid)
    rewrite(note, worker_pid=2**22 - 3, create_time=5.0)
    assert kill_leftovers(tmp_path) == []
    assert child.poll() is None
    assert not note.exists()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"pid": "x"}'])
def test_kill_leftovers_unreadable_note_is_passed_over(tmp_path, text):
    (tmp_path / "children").mkdir()
    (tmp_path / "children" / "1.json").write_text(text)
    assert kill_leftovers(tmp_path) == []


def test_kill_leftovers_no_folder_is_nothing(tmp_path):
    assert kill_leftovers(tmp_path / "none") == []


def test_is_alive_this_process_is():
    assert is_alive(os.getpid(), psutil.Process().create_time())
    assert not is_alive(os.getpid(), None)
