"""What the end of an engine's process means, in words."""

import re
import signal
import sys
from pathlib import Path

_SENTENCES = {
    4: "this processor lacks an instruction the engine was built with",
    6: "the engine aborted on an internal check",
    7: "the model file was changed or cut while it was mapped",
    9: "killed",
    11: "the engine crashed (invalid memory access)",
}


def oom_kills() -> int | None:
    """How often the system killed a process of this one's memory group, or None where it does not tell."""
    if sys.platform != "linux":
        return None
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            candidates = [f"/sys/fs/cgroup{group}/memory.events", "/sys/fs/cgroup/memory.events"]
        elif "memory" in controllers.split(","):
            base = "/sys/fs/cgroup/memory"
            candidates = [f"{base}{group}/memory.oom_control", f"{base}/memory.oom_control"]
        else:
            continue
        for candidate in candidates:
            count = _read_count(Path(candidate))
            if count is not None:
                return count
    return None


def _read_count(path: Path) -> int | None:
    try:
        found = re.search(r"^oom_kill (\d+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return None
    return int(found.group(1)) if found else None


def explain_exit(returncode: int, oom_before: int | None, oom_after: int | None) -> str:
    """What a process's return code says about its end, e.g. `killed by signal 9, possibly out of memory`."""
    if returncode >= 0:
        return f"it ended with code {returncode}"
    number = -returncode
    if number != signal.SIGKILL:
        known = _SENTENCES.get(number)
        return f"it ended by signal {number}" + (f": {known}" if known else "")
    if oom_before is None or oom_after is None:
        return "killed by signal 9, possibly out of memory"
    if oom_after > oom_before:
        return "killed by signal 9, out of memory (the system's count of such kills went up)"
    return "killed by signal 9, though the system counted no kill for want of memory"
