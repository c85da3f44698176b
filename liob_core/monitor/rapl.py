"""RAPL counters of processors and their memory, as Linux shows them under powercap."""

import re
from pathlib import Path

_ZONE = re.compile(r"intel-rapl:\d+(:\d+)?")  # intel-rapl-mmio counts the same package a second time


class Zone:
    """One counter: it counts in uJ, and starts again at 0 after its range."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "energy_uj"
        self._range_uj = int((folder / "max_energy_range_uj").read_text())
        self._last_uj = self._read()
        self._total_uj = 0

    def joules(self) -> float:
        """What it counted since it was opened; raises OSError or ValueError where it cannot be read."""
        now_uj = self._read()
        step_uj = now_uj - self._last_uj
        self._total_uj += step_uj if step_uj >= 0 else step_uj + self._range_uj
        self._last_uj = now_uj
        return self._total_uj / 1e6

    def _read(self) -> int:
        return int(self._file.read_text())


def open_zones(powercap: Path) -> tuple[tuple[list[Zone], list[Zone]], bool]:
    """Packages and memories, each empty unless every one of them can be read; whether one may not be read.

    A sum over some of the processors is not the machine's.
    """
    found: dict[str, list[Zone]] = {"package": [], "dram": []}
    broken: set[str] = set()
    is_shut = False
    try:
        folders = sorted(path for path in powercap.iterdir() if _ZONE.fullmatch(path.name))
    except OSError:
        return ([], []), False
    for folder in folders:
        kind = None
        try:
            kind = (folder / "name").read_text().strip().partition("-")[0]  # package-0, dram, core, psys
            if kind in found:
                found[kind].append(Zone(folder))
        except (OSError, ValueError) as error:
            is_shut = is_shut or isinstance(error, PermissionError)
            broken |= {kind} if kind else found.keys()
    packages, memories = ([] if kind in broken else zones for kind, zones in found.items())
    return (packages, memories), is_shut
