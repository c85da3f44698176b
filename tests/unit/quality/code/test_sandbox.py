"""What code from an answer can and cannot do: each limit is broken, or the attempt is refused."""

import os
import signal
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from liob_core.quality.code.sandbox import CodeRun, run_code

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's protections of Linux")
# On a machine whose kernel lacks one of these, the child says so and the test has nothing to prove.
FULL = run_code("", [], time_limit_s=5)


def needs(*limits: str) -> pytest.MarkDecorator:
    missing = [name for name in limits if not (FULL.enforced or {}).get(name)]
    return pytest.mark.skipif(bool(missing), reason=f"not enforced here: {', '.join(missing)}")


def run(code: str, *expressions: str, time_limit_s: float = 10, **options) -> CodeRun:
    steps = [("value", expression) for expression in expressions]
    return run_code(textwrap.dedent(code), steps, time_limit_s=time_limit_s, **options)


def values(found: CodeRun) -> list[object]:
    return [result.get("value", result.get("error")) for result in found.results]


def attempt(statement: str, **options) -> str:
    """What the statement raises in the sandbox, e.g. "PermissionError"; "done" where it went through."""
    code = "def attempt():\n" + textwrap.indent(textwrap.dedent(statement), "    ") + "\n    return 'done'\n"
    found = run(code, "attempt()", **options)
    assert found.is_done, found
    (said,) = values(found)
    return str(said).split(":")[0]


def test_code_is_run_and_each_step_reported() -> None:
    found = run("def double(x):\n    return 2 * x\n", "double(4)", "double('ab')", "double()", "dooble(1)")
    assert values(found)[:2] == [8, "abab"]
    assert values(found)[2].startswith("TypeError: double() missing 1 required positional argument")
    assert values(found)[3].startswith("NameError: name 'dooble' is not defined")
    assert (found.is_loaded, found.is_done, found.ended, found.load_error) == (True, True, None, None)


def test_standard_library_works_inside() -> None:
    code = """
        import asyncio, dataclasses, datetime, decimal, hashlib, json, random, re, sqlite3, statistics
        import tempfile, threading, zoneinfo
        @dataclasses.dataclass
        class Point:
            x: int
        async def later():
            await asyncio.sleep(0)
            return 7
        def threads():
            seen = []
            made = [threading.Thread(target=seen.append, args=(i,)) for i in range(4)]
            for thread in made: thread.start()
            for thread in made: thread.join()
            return sorted(seen)
        def files():
            with tempfile.NamedTemporaryFile("w+") as file:
                file.write("kept"); file.seek(0)
                return file.read()
    """
    found = run(
        code, "Point(3).x", "asyncio.run(later())", "threads()", "files()", "open('a', 'w').write('b')"
    )
    assert values(found) == [3, 7, {"list": [0, 1, 2, 3]}, "kept", 1]


def test_environment_is_empty_and_same_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIOB_SECRET", "s3cret")
    code = "import os, sys"
    found = run(code, "sorted(os.environ)", "os.environ['HOME'] == os.getcwd()", "hash('a')", "sys.path[0]")
    names = values(found)[0]["list"]
    assert "LIOB_SECRET" not in names
    assert set(names) <= {
        "HOME",
        "LANG",
        "LC_CTYPE",
        "PATH",
        "PYTHONHASHSEED",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "TMPDIR",
    }
    assert values(found)[1] is True
    assert values(found)[2] == values(run(code, "hash('a')"))[0]
    assert not values(found)[3].startswith(str(Path(__file__).parents[4]))


def test_neither_packages_nor_liob_can_be_imported() -> None:
    found = run("", "__import__('numpy')", "__import__('liob_core')")
    assert [value.split(":")[0] for value in values(found)] == ["ModuleNotFoundError"] * 2


# --- network and sockets ---------------------------------------------------------------------------


@needs("network")
@pytest.mark.parametrize(
    "leave_out", [(), ("seccomp",), ("files",)], ids=lambda names: "-".join(names) or "all"
)
def test_network_is_refused(leave_out: tuple[str, ...]) -> None:
    with_server = """
        import socket
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=3)
    """
    assert attempt(with_server, leave_out=leave_out) in {"PermissionError", "OSError"}
    to_the_world = "import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=3)"
    assert attempt(to_the_world, leave_out=leave_out) in {"PermissionError", "OSError"}


@needs("local sockets")
def test_sockets_of_this_machine_are_refused() -> None:
    assert attempt("import socket\nsocket.socket(socket.AF_UNIX)") == "PermissionError"


# --- files -----------------------------------------------------------------------------------------


@needs("reading files", "writing files")
@pytest.mark.parametrize("leave_out", [(), ("seccomp",)], ids=["all", "without seccomp"])
@pytest.mark.parametrize(
    "statement",
    [
        "open('/etc/passwd').read()",
        "import os\nos.listdir('/')",
        "import os\nos.listdir('/proc')",
        "open('/proc/self/environ').read()",
        "import os\nos.symlink('/etc/passwd', 'link')\nopen('link').read()",
        "import os\nos.chdir('/')\nopen('etc/hosts').read()",
        "open('/tmp/liob-test-never', 'w')",
        "open('/dev/shm/liob-test-never', 'w')",
        "import os\nos.mkdir('/tmp/liob-test-never')",
        "import os\nos.rename('/etc/hostname', 'mine')",
    ],
)
def test_files_outside_are_refused(statement: str, leave_out: tuple[str, ...]) -> None:
    assert attempt(statement, leave_out=leave_out) == "PermissionError"


@needs("reading files", "writing files")
def test_link_to_a_file_outside_cannot_be_made() -> None:
    # As across two disks, or as a file that belongs to someone else.
    assert attempt("import os\nos.link('/etc/passwd', 'hard')") in {"OSError", "PermissionError"}


@needs("reading files", "writing files")
def test_files_of_the_user_are_neither_read_nor_changed(tmp_path: Path) -> None:
    private = tmp_path / "private.txt"
    private.write_text("private")
    before = private.stat()
    for statement in (
        f"open({str(private)!r}).read()",
        f"open({str(private)!r}, 'a')",
        f"import os\nos.remove({str(private)!r})",
        f"import os\nos.truncate({str(private)!r}, 0)",
        f"import os\nos.chmod({str(private)!r}, 0)",
        f"import os\nos.utime({str(private)!r}, (1, 1))",
        f"import os\nos.chown({str(private)!r}, 1, 1)",
    ):
        assert attempt(statement) == "PermissionError", statement
    after = private.stat()
    assert (private.read_text(), after.st_mode, after.st_mtime_ns) == (
        "private",
        before.st_mode,
        before.st_mtime_ns,
    )


def test_folder_is_gone_afterwards_whatever_was_put_into_it(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir(mode=0o500)
    code = f"""
        import os
        os.mkdir('locked', mode=0)
        os.makedirs('a/b/c')
        os.symlink({str(tmp_path / "kept")!r}, 'link')
    """
    found = run(code, "os.getcwd()")
    assert not Path(str(values(found)[0])).exists()
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o500


@needs("size of files")
def test_file_cannot_grow_without_end() -> None:
    assert attempt("open('big', 'wb').write(bytes(2**25))") == "OSError"


# --- processes and signals -------------------------------------------------------------------------


@needs("starting processes")
@pytest.mark.parametrize(
    "statement",
    [
        "import os\nos.fork()",
        "import os\nos.execv('/bin/true', ['true'])",
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', ''])",
        "import os\nos.posix_spawn('/bin/true', ['true'], {})",
        "import multiprocessing\np = multiprocessing.Process(target=print)\np.start()",
    ],
)
def test_processes_cannot_be_started(statement: str) -> None:
    assert attempt(statement) == "PermissionError"


@LINUX
def test_fork_bomb_does_no_harm() -> None:
    bomb = """
        import os
        while True:
            try:
                os.fork()
            except OSError:
                pass
    """
    found = run(bomb, time_limit_s=0.5)
    assert found.ended == "it did not end within 0.5 s"


def _left_with_mark(mark: str) -> list[int]:
    """The same, once those that were killed had time to end; each would sleep for a minute."""
    deadline = time.monotonic() + 10
    while (left := _with_mark(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _with_mark(mark: str) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if mark in (process.info["cmdline"] or []) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


@LINUX
@pytest.mark.skipif(
    os.name == "posix" and os.geteuid() != 0, reason="only root starts processes without seccomp"
)
@pytest.mark.parametrize(
    "leave_out", [("seccomp", "files"), ("seccomp", "files", "namespaces")], ids=["namespaces", "none"]
)
def test_processes_left_behind_are_ended(leave_out: tuple[str, ...]) -> None:
    mark = f"liob-mark-{os.getpid()}"
    code = f"""
        import subprocess, sys
        started = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)', {mark!r}],
                                   start_new_session=True)
    """
    found = run(code, "started.poll()", leave_out=(*leave_out, "processes"))
    assert values(found) == [None]
    assert _left_with_mark(mark) == []


@LINUX
@pytest.mark.skipif(
    os.name == "posix" and os.geteuid() != 0, reason="only root starts processes without seccomp"
)
def test_processes_whose_parent_left_them_end_with_their_namespace() -> None:
    mark = f"liob-orphan-{os.getpid()}"
    code = f"""
        import os, subprocess, sys
        if os.fork() == 0:
            subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)', {mark!r}],
                             start_new_session=True)
            os._exit(0)
        os.wait()
        os._exit(0)
    """
    found = run(code, leave_out=("seccomp", "files", "processes"))
    assert not found.is_loaded
    assert _left_with_mark(mark) == []


@needs("signals to other processes")
@pytest.mark.parametrize(
    "leave_out", [(), ("seccomp",), ("files",)], ids=lambda names: "-".join(names) or "all"
)
def test_signals_reach_no_other_process(leave_out: tuple[str, ...]) -> None:
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
    try:
        calls = [f"os.kill({os.getpid()}, 10)", f"os.kill(-{os.getpgid(0)}, 10)"]
        if os.getppid() != 1:  # in a process namespace of its own the tested code is number 1 itself
            calls.append(f"os.kill({os.getppid()}, 0)")
        for call in calls:
            said = attempt(f"import os\n{call}", leave_out=leave_out)
            assert said in {"PermissionError", "ProcessLookupError"}, call
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == []


@needs("signals to other processes")
def test_limits_and_priority_of_others_cannot_be_changed() -> None:
    parent = os.getpid()
    assert (
        attempt(f"import resource\nresource.prlimit({parent}, resource.RLIMIT_NOFILE, (1, 1))")
        == "PermissionError"
    )
    assert attempt(f"import os\nos.setpriority(os.PRIO_PROCESS, {parent}, 19)") == "PermissionError"
    assert attempt(f"import os\nos.sched_setaffinity({parent}, [0])") == "PermissionError"


def test_signal_to_itself_ends_only_itself() -> None:
    found = run("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert found.ended == "the process was ended by SIGKILL"


def test_ignored_signals_do_not_keep_it_alive() -> None:
    code = """
        import signal
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, 32, 33}:
            signal.signal(number, signal.SIG_IGN)
        while True:
            pass
    """
    assert run(code, time_limit_s=0.5).ended == "it did not end within 0.5 s"


# --- time, memory, output --------------------------------------------------------------------------


def test_endless_loop_is_ended_wherever_it_runs() -> None:
    assert run("while True: pass", time_limit_s=0.3).ended == "it did not end within 0.3 s"
    found = run("def f():\n    while True: pass\n", "1", "f()", "2", time_limit_s=0.3)
    assert (values(found), found.is_loaded, found.ended) == ([1], True, "it did not end within 0.3 s")
    assert run("import time\ntime.sleep(60)", time_limit_s=0.3).ended == "it did not end within 0.3 s"


def test_cpu_time_is_limited_by_the_system_too() -> None:
    found = run("import resource", "list(resource.getrlimit(resource.RLIMIT_CPU))", time_limit_s=3)
    assert values(found) == [{"list": [4, 4]}]


@needs("memory")
@pytest.mark.parametrize(
    "statement", ["bytearray(2**30)", "x = 'a' * 2**31", "y = []\nwhile True: y.append(bytes(2**20))"]
)
def test_memory_hog_is_refused(statement: str) -> None:
    assert attempt(statement) == "MemoryError"


@needs("memory")
def test_limits_cannot_be_raised_again() -> None:
    for name in ("AS", "CPU", "FSIZE", "NOFILE"):
        raised = f"import resource\nresource.setrlimit(resource.RLIMIT_{name}, (resource.RLIM_INFINITY,) * 2)"
        assert attempt(raised) in {"ValueError", "PermissionError"}, name


def test_without_a_limit_of_the_system_memory_is_watched() -> None:
    hog = "y = []\nwhile True: y.append(bytearray(2**22))"
    found = run(hog, time_limit_s=30, leave_out=("rlimits",))
    assert found.enforced is not None
    assert not found.enforced["memory"]
    assert found.ended == "it took more than 512 MiB of memory"


def test_huge_output_goes_nowhere() -> None:
    code = """
        import sys
        for _ in range(300): print('x' * 2**20)
        sys.stderr.write('y' * 2**24)
        sys.__stdout__.write('z' * 2**24)
    """
    assert values(run(code, "5")) == [5]


def test_flood_of_reports_is_cut_off() -> None:
    code = """
        import os
        for fd in range(3, 64):
            try:
                while True: os.write(fd, b'x' * 65536)
            except OSError:
                pass
    """
    found = run(code, "1")
    assert (found.is_done, found.results, found.ended) == (False, [], "it reported too much")


def test_deep_recursion_or_a_crash_is_told() -> None:
    found = run("def f(n): return f(n + 1)", "f(0)")
    assert str(values(found)[0]).startswith("RecursionError")
    crash = "import ctypes\nctypes.string_at(0)"
    assert run(crash).ended == "the process was ended by SIGSEGV"


def test_cancel_ends_it_at_once() -> None:
    began = time.monotonic()
    found = run("while True: pass", time_limit_s=60, is_cancelled=lambda: time.monotonic() > began + 0.5)
    assert (found.is_cancelled, found.ended) == (True, "the run was cancelled")
    assert time.monotonic() < began + 30


# --- no pass by deceit -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos._exit(0)",
        "raise SystemExit(0)",
        "import sys\nsys.exit()",
        "exit()",
        "raise KeyboardInterrupt",
        "import os\nprint('{\"done\": true}', flush=True)\nos._exit(0)",
        "import os\nos.write(3, b'{\"done\": true}\\n')\nos.write(4, b'x')\nos._exit(0)",
        "import atexit, os\natexit.register(os._exit, 0)\nraise ValueError('no')",
    ],
)
def test_early_end_is_no_end_of_the_tests(code: str) -> None:
    found = run(code, "1")
    assert not found.is_done
    assert found.results == []
    assert found.load_error or found.ended


def test_unknown_system_says_what_does_not_hold() -> None:
    bare = run("", leave_out=("rlimits", "files", "seccomp", "namespaces", "processes", "capabilities"))
    expected = {"network", "reading files", "writing files", "local sockets", "size of files"}
    assert expected <= set(bare.unenforced)
    assert bare.is_done


@LINUX
def test_everything_holds_on_a_recent_linux() -> None:
    if psutil.LINUX and tuple(int(n) for n in os.uname().release.split("-")[0].split(".")[:2]) < (6, 2):
        pytest.skip("an older kernel")
    assert FULL.unenforced == ()
