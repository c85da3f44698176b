"""Numbers as people read them: three significant digits, the unit, an em dash for unknown."""

import math
from numbers import Real

UNKNOWN = "—"


def is_known(value: object) -> bool:
    """Whether `value` is a number that can be shown; None, NaN and NA are not."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def three_digits(value: float | None) -> str:
    """`value` to three significant digits, whole thousands grouped; an em dash where unknown."""
    if value is None or not is_known(value):
        return UNKNOWN
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    rounded = round(float(value), 2 - size)
    size = math.floor(math.log10(abs(rounded)))  # 9.996 has become 10.0
    return f"{rounded:,.{max(0, min(2 - size, 6))}f}"


def with_unit(value: float | None, unit: str) -> str:
    """`value` to three significant digits and its unit; an em dash alone where unknown."""
    shown = three_digits(value)
    return shown if shown == UNKNOWN or not unit else f"{shown} {unit}"


def memory(n_bytes: float | None) -> str:
    """`n_bytes` in the binary unit people say: KiB, MiB or GiB."""
    if n_bytes is None or not is_known(n_bytes):
        return UNKNOWN
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(n_bytes) >= 0.9765 * size:
            return with_unit(n_bytes / size, unit)
    return f"{n_bytes:.0f} B"


def duration(milliseconds: float | None) -> str:
    """`milliseconds` as ms below a second, else s, else minutes and seconds."""
    if milliseconds is None or not is_known(milliseconds):
        return UNKNOWN
    if abs(milliseconds) < 1000:
        return with_unit(milliseconds, "ms")
    seconds = milliseconds / 1000
    if seconds < 120:
        return with_unit(seconds, "s")
    return clock(seconds)


def clock(seconds: float | None) -> str:
    """`seconds` as "42 s", "3 min 20 s" or "2 h 5 min"."""
    if seconds is None or not is_known(seconds):
        return UNKNOWN
    whole = round(max(0.0, float(seconds)))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def percent(share: float | None) -> str:
    """`share` (0 to 1) as a percentage: one decimal place below 10 %, whole above."""
    if share is None or not is_known(share):
        return UNKNOWN
    return f"{share * 100:.1f} %" if 0 < share < 0.0995 else f"{share * 100:.0f} %"


def interval(low: float | None, high: float | None) -> str | None:
    """Both ends to three significant digits as "12.1 to 13.4"; None where either is unknown."""
    if low is None or high is None or not is_known(low) or not is_known(high):
        return None
    return f"{three_digits(low)} to {three_digits(high)}"
