from pathlib import Path

import pytest

from liob_core.bench.in_force import settings_in_force
from liob_core.config import Settings, load_settings


def test_each_setting_says_who_set_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = tmp_path / "liob.toml"
    config.write_text("threads = 3\nmonitor_hz = 5.0\n")
    monkeypatch.setitem(Settings.model_config, "toml_file", str(config))
    monkeypatch.setenv("LIOB_MONITOR_HZ", "20")
    found = {row.name: row for row in settings_in_force(load_settings())}

    assert (found["LIOB_MONITOR_HZ"].value, found["LIOB_MONITOR_HZ"].origin) == ("20.0", "environment")
    assert (found["LIOB_THREADS"].value, found["LIOB_THREADS"].origin) == ("3", "liob.toml")
    assert (found["LIOB_SHARE"].value, found["LIOB_SHARE"].origin) == (None, "default")
    assert found["LIOB_DATA_DIR"].origin == "environment"
    assert all(row.meaning for row in found.values())
