"""Settings: what works here, what is missing, and what fixes it?"""

from dataclasses import asdict
from typing import Any

import streamlit as st

from liob_core.analysis.words import memory
from liob_core.bench.examine import Finding, examine, versions
from liob_core.bench.in_force import settings_in_force
from liob_core.config import load_settings
from liob_core.monitor.machine import read_machine
from liob_core.ui.blocks import show_heading
from liob_core.ui.findings import headline, show_findings
from liob_core.ui.storage_view import show_storage
from liob_core.ui.table import Cell, Column, Note, show_table


def show() -> None:
    """The findings of `doctor`, storage, the settings in force, and versions."""
    settings = load_settings()
    seen = _examine(str(settings.data_dir), str(settings.machine_dir))
    findings = [Finding(**finding) for finding in seen["findings"]]
    show_heading(seen["machine"], headline(findings))
    if st.button("Look again", icon=":material/refresh:", key="liob_settings_again"):
        _examine.clear()
        st.rerun()
    show_findings(findings)
    st.subheader("Storage", anchor=False)
    show_storage(settings)
    st.subheader("Settings in force", anchor=False)
    _show_settings()
    st.subheader("Versions", anchor=False)
    _show_versions()


@st.cache_data(ttl=600, max_entries=4, show_spinner="Looking for engines, devices and permissions")
def _examine(data_dir: str, machine_dir: str) -> dict[str, Any]:
    """The machine in a line and the findings, as `doctor` has them; takes some seconds."""
    machine = read_machine()
    cores = machine.physical_cores or machine.logical_cores
    parts = [
        machine.cpu_name or machine.cpu_arch,
        f"{cores} cores",
        memory(machine.ram_bytes),
        machine.os_version,
    ]
    return {
        "machine": ", ".join(parts),
        "findings": [asdict(finding) for finding in examine(load_settings(), machine)],
    }


def _show_settings() -> None:
    columns = [
        Column(label="Name", is_number=False),
        Column(label="Value", is_number=False),
        Column(
            label="From", is_number=False, hint="The environment wins over liob.toml, and that over defaults."
        ),
    ]
    rows = [
        [
            Cell(text=setting.name, notes=(Note(setting.meaning),)),
            Cell(
                text=setting.value if setting.value is not None else "—",
                hint="" if setting.value else "not set",
            ),
            Cell(text=setting.origin),
        ]
        for setting in settings_in_force(load_settings())
    ]
    show_table(columns, rows, caption="Settings in force")
    st.caption(
        "Set one in the environment under its name, or in liob.toml without LIOB_ and in small letters."
    )


def _show_versions() -> None:
    columns = [Column(label="What", is_number=False), Column(label="Version", is_number=False)]
    rows = [
        [Cell(text=name), Cell(text=version or "—", hint="" if version else "not installed")]
        for name, version in versions().items()
    ]
    show_table(columns, rows, caption="Versions")
