"""What Linux can refuse a process that asks for it, root or not: system calls, files, privileges.

Each function either binds this process (and what it starts) for good or raises OSError; whether it
did is tried out afterwards, never assumed.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Iterable
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)

_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SIGKILL = 9
_EPERM, _ENOSYS = 1, 38

_CLONE_THREAD = 0x0001_0000
_CLONE_NEWIPC = 0x0800_0000
_CLONE_NEWUSER = 0x1000_0000
_CLONE_NEWPID = 0x2000_0000
_CLONE_NEWNET = 0x4000_0000

# System calls that are refused, by their numbers on x86-64 and on 64-bit Arm (None: does not exist).
# fmt: off
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # other processes
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "unshare": (272, 97), "setns": (308, 268), "perf_event_open": (298, 241), "bpf": (321, 280),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
    # the network, and sockets of this machine
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    # what would stay after the process
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # rights and times of files, which Landlock does not cover
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
}
# fmt: on
# Calls whose first argument says which process: only this one (or 0, which means the same) is allowed.
_ON_ITSELF = {"kill": (62, 129), "tgkill": (234, 131), "prlimit64": (302, 261)}
_CLONE, _CLONE3 = (56, 220), (435, 435)
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, the kernel's own id
_X32_BIT = 0x4000_0000  # x86-64's second set of numbers, which would slip past the first

# Classic BPF: load a word of the call's record, compare, decide.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _MACHINE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_ALLOW, _ERROR, _KILL_PROCESS = 0x7FFF_0000, 0x0005_0000, 0x8000_0000

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_FILE_RIGHTS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15  # those that a rule on a file may name
_NOT_IN_FOLDER = 1 << 0 | 1 << 6 | 1 << 9 | 1 << 11 | 1 << 15  # execute, devices, sockets, ioctl on them
_N_FS_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # by the kernel's version of Landlock; 16 from 5 on


def end_with_parent() -> None:
    """The kernel ends this process when the thread that started it is gone."""
    _libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)


def forbid_new_privileges() -> None:
    """Nothing this process starts has more rights than it has; needed by the two functions below."""
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def enter_namespaces() -> None:
    """This process goes on as the first of its own world: no network, no process but those it starts.

    They end with it. Needs root, or a system on which anyone may do this. It returns in a child; the
    process that called it only waits for that child.
    """
    apart = _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWPID
    if _libc.unshare(_CLONE_NEWUSER | apart) != 0:
        _checked(_libc.unshare(apart))
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os._exit(1)
    end_with_parent()


def drop_capabilities() -> None:
    """Root's powers are given up: limits cannot be raised again, nor protections lifted."""
    header = ctypes.create_string_buffer(struct.pack("<Ii", 0x2008_0522, 0))
    _checked(_libc.capset(header, ctypes.create_string_buffer(24)))


def can_filter() -> bool:
    """Whether `refuse_system_calls` knows this kind of machine."""
    return platform.machine() in _MACHINES and struct.calcsize("P") == 8


def refuse_system_calls() -> None:
    """System calls that reach other processes, the network or what outlives this process fail (EPERM).

    Threads and signals to itself stay possible.
    """
    if not can_filter():
        raise OSError(_ENOSYS, "no list of system calls for this kind of machine")
    code = _filter_program(*_MACHINES[platform.machine()])
    buffer = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer)))
    _checked(_libc.prctl(_PR_SET_SECCOMP, 2, ctypes.addressof(program), 0, 0))


def _filter_program(column: int, machine: int) -> bytes:
    refuse = (_RETURN, 0, 0, _ERROR | _EPERM)
    allow = (_RETURN, 0, 0, _ALLOW)
    own = os.getpid()
    steps = [(_LOAD, 0, 0, _MACHINE_AT), (_EQUAL, 1, 0, machine), (_RETURN, 0, 0, _KILL_PROCESS)]
    steps += [(_LOAD, 0, 0, _NUMBER_AT), (_AT_LEAST, 0, 1, _X32_BIT), refuse]
    for numbers in _REFUSED.values():
        number = numbers[column]
        if number is not None:
            steps += [(_EQUAL, 0, 1, number), refuse]
    for numbers in _ON_ITSELF.values():
        steps += [(_EQUAL, 0, 5, numbers[column]), (_LOAD, 0, 0, _FIRST_ARGUMENT_AT)]
        steps += [(_EQUAL, 1, 0, own), (_EQUAL, 0, 1, 0), allow, refuse]
    steps += [(_EQUAL, 0, 4, _CLONE[column]), (_LOAD, 0, 0, _FIRST_ARGUMENT_AT)]
    steps += [(_ANY_BIT, 0, 1, _CLONE_THREAD), allow, refuse]
    # Its flags lie in memory, where a filter cannot look; "unknown" makes the C library use clone.
    steps += [(_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _ERROR | _ENOSYS)]
    steps += [allow]
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def restrict_files(folder: Path, readable: Iterable[Path]) -> None:
    """Only `folder` can be written, only it and `readable` read; nothing can be executed (Landlock)."""
    version = _call(_CREATE_RULESET, 0, 0, 1)
    rights = (1 << _N_FS_RIGHTS.get(version, 16)) - 1
    tcp = 0b11 if version >= 4 else 0
    scoped = 0b11 if version >= 6 else 0  # abstract sockets and signals
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    asked = ctypes.create_string_buffer(struct.pack("=QQQ", rights, tcp, scoped))
    ruleset = _call(_CREATE_RULESET, ctypes.addressof(asked), size, 0)
    try:
        _allow(ruleset, folder, rights & ~_NOT_IN_FOLDER)
        for path in readable:
            if path.exists():
                _allow(ruleset, path, _READ_FILE | _READ_DIR)
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        granted = rights if path.is_dir() else rights & _FILE_RIGHTS
        rule = ctypes.create_string_buffer(struct.pack("=Qi", granted, handle))
        _call(_ADD_RULE, ruleset, 1, ctypes.addressof(rule), 0)
    finally:
        os.close(handle)


def _call(*numbers: int) -> int:
    return _checked(_libc.syscall(*(ctypes.c_long(number) for number in numbers)))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
