"""The child's side of the limits: set as far as this system can, then tried out one by one."""

import contextlib
import mmap
import os
import socket
import sys
import sysconfig
from collections.abc import Callable, Collection
from pathlib import Path

if sys.platform != "win32":
    import resource
if sys.platform == "linux":
    from liob_core.quality.code import linux

MAX_FILE_BYTES = 16 * 2**20
MAX_OPEN_FILES = 64

# What Python reads of a Linux system besides its own library: shared libraries, time zones, devices.
_SYSTEM_PATHS = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"),
    *("/usr/share/zoneinfo", "/etc/localtime", "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"),
)


def set_limits(folder: Path, *, cpu_s: int, memory_bytes: int, leave_out: Collection[str]) -> None:
    """Set every limit that this system has; `leave_out` names layers that a test goes without."""
    layers: list[tuple[str, Callable[[], None]]] = []
    if sys.platform == "linux":
        layers.append(("parent", linux.end_with_parent))
        if "seccomp" in leave_out or not linux.can_filter():
            layers.append(("namespaces", linux.enter_namespaces))
    if sys.platform != "win32":
        layers.append(("rlimits", lambda: _set_rlimits(cpu_s, memory_bytes)))
    if sys.platform == "linux":
        layers += [
            ("privileges", linux.forbid_new_privileges),
            ("files", lambda: linux.restrict_files(folder, _readable())),
            ("capabilities", linux.drop_capabilities),
            ("seccomp", linux.refuse_system_calls),
        ]
    for name, layer in layers:
        if name not in leave_out:
            with contextlib.suppress(OSError, ValueError):  # what did not work shows when it is tried out
                layer()
    if sys.platform != "win32" and "processes" not in leave_out and _can_fork():
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def try_out(outside: Path, *, parent: int, memory_bytes: int) -> dict[str, bool]:
    """Which limits hold here, by trying to break each: on a folder made for this, on process `parent`."""
    return {
        # Without a way out the error is another one than where it is forbidden.
        "network": _is_refused(_reach_network, OSError),
        "local sockets": not hasattr(socket, "AF_UNIX") or _is_refused(lambda: _reach_socket(outside)),
        "reading files": _is_refused((outside / "read").read_bytes),
        "writing files": _is_refused(lambda: (outside / "written").write_bytes(b"")),
        # On Windows signal 0 is no question but a Ctrl-C.
        "signals to other processes": sys.platform != "win32"
        and _is_refused(lambda: os.kill(parent, 0), OSError),
        "starting processes": not _can_fork(),
        "memory": _is_refused(lambda: mmap.mmap(-1, memory_bytes + 2**24).close(), OSError),
        "size of files": sys.platform != "win32"
        and resource.getrlimit(resource.RLIMIT_FSIZE)[1] == MAX_FILE_BYTES,
    }


def _set_rlimits(cpu_s: int, memory_bytes: int) -> None:
    for name, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, MAX_FILE_BYTES),
        (resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
        (resource.RLIMIT_AS, memory_bytes),
    ):
        with contextlib.suppress(OSError, ValueError):  # macOS knows not all of them
            resource.setrlimit(name, (limit, limit))


def _readable() -> list[Path]:
    own = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    return [Path(path) for path in (*own, *_SYSTEM_PATHS) if path]


def _is_refused(attempt: Callable[[], object], by: type[OSError] = PermissionError) -> bool:
    try:
        attempt()
    except by:
        return True
    except OSError:  # it failed, but not because it is forbidden
        return False
    return False


def _reach_network() -> None:
    # A datagram socket's connect sends nothing: it only asks the system whether there is a way.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as attempt:
        attempt.connect(("127.0.0.1", 9))


def _reach_socket(outside: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as attempt:
        attempt.connect(str(outside / "socket"))


def _can_fork() -> bool:
    if not hasattr(os, "fork"):
        return True  # Windows starts processes in another way, which nothing here refuses
    try:
        child = os.fork()
    except OSError:
        return False
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True
