"""The one clock of a process: wall time anchored once, then carried by `perf_counter_ns`.

A step of the wall clock (NTP, daylight saving) cannot move a stamp. While a laptop sleeps the clock
may stand still, so stamps after a suspend can lag behind the wall.
"""

import time
from datetime import UTC, datetime

_NS_PER_S = 1_000_000_000
_ANCHOR_NS = time.time_ns() - time.perf_counter_ns()


def utc_ns() -> int:
    """Now in ns since the epoch; never goes backwards within a process."""
    return _ANCHOR_NS + time.perf_counter_ns()


def utc_iso(ns: int) -> str:
    """The stamp `ns` (ns since the epoch) as ISO 8601 UTC with microseconds, ending in Z."""
    seconds, rest = divmod(ns, _NS_PER_S)
    moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
