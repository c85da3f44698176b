"""The settings in force and where each comes from."""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from liob_core.config import Settings

_MEANINGS = {
    "data_dir": "where the database, runs and models are kept",
    "machine_dir": "where the lock lies that keeps two runs on this machine apart",
    "share": "the one file that a hosted app shows; it can then measure nothing",
    "config": "another place for liob.toml",
    "threads": "threads of a run, unless the run says otherwise",
    "monitor_hz": "how often the machine is read in a run, per second",
    "allow_code": "whether checks may run code that a model wrote, within limits",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingInForce:
    """One setting: its name in the environment, its value as text, who set it, and what it does."""

    name: str
    value: str | None
    origin: str  # environment, the configuration file's name, or default
    meaning: str


def settings_in_force(settings: Settings) -> list[SettingInForce]:
    """Every setting of LIOB, in the order of its declaration; the environment wins over the file."""
    path = Path(str(Settings.model_config.get("toml_file")))
    in_file = _names_in(path)
    rows = []
    for field in Settings.model_fields:
        name = f"LIOB_{field.upper()}"
        value = getattr(settings, field)
        # The names of variables have no case on Windows, and pydantic takes any elsewhere too.
        is_set = name in {variable.upper() for variable in os.environ}
        origin = "environment" if is_set else path.name if field in in_file else "default"
        rows.append(
            SettingInForce(
                name=name,
                value=None if value is None else str(value),
                origin=origin,
                meaning=_MEANINGS.get(field, ""),
            )
        )
    return rows


def _names_in(path: Path) -> set[str]:
    """The settings that the configuration file names; it was read without an error before."""
    try:
        return set(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return set()
