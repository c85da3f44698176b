"""What was found on this machine, the worst first, each with the command that fixes it."""

from collections.abc import Sequence

import streamlit as st

from liob_core.bench.examine import Finding
from liob_core.ui.text import as_html

# State -> the class of its look, its mark, and its word.
_LOOKS = {
    "problem": ("worse", "▼", "problem"),
    "missing": ("same", "○", "missing"),
    "ok": ("better", "✓", "works"),
}
_ORDER = list(_LOOKS)
_SENSOR = "sensor "
_ENGINES = {"embedded": "embedded llama.cpp", "ollama": "Ollama"}


def headline(findings: Sequence[Finding]) -> str:
    """What the findings come to, in a sentence."""
    problems = [finding for finding in findings if finding.state == "problem"]
    engines = [finding for finding in findings if finding.what.startswith("engine ")]
    ready = [finding.what.removeprefix("engine ") for finding in engines if finding.state == "ok"]
    if not ready:
        return "No engine can measure here yet"
    first = f"Ready to measure with {_joined([_ENGINES.get(name, name) for name in ready])}"
    if not problems:
        return first
    return f"{first}; {'one thing' if len(problems) == 1 else f'{len(problems)} things'} to look at"


def show_findings(findings: Sequence[Finding]) -> None:
    """Every finding; sensors are folded, for there is nothing to do about one that is not there."""
    ordered = sorted(findings, key=lambda finding: _ORDER.index(finding.state))
    for finding in ordered:
        if not finding.what.startswith(_SENSOR):
            _show(finding)
    sensors = [finding for finding in ordered if finding.what.startswith(_SENSOR)]
    if sensors:
        with st.expander(f"Sensors that give nothing here ({len(sensors)})", icon=":material/sensors_off:"):
            for finding in sensors:
                _show(finding)


def _show(finding: Finding) -> None:
    look, mark, word = _LOOKS[finding.state]
    name = finding.what.removeprefix(_SENSOR).replace("_", " ")
    st.html(
        f'<div class="liob-finding"><div class="liob-{look}"><b aria-hidden="true">{mark}</b> {word}</div>'
        f"<div><strong>{as_html(name[:1].upper() + name[1:])}</strong>"
        f'<div class="note">{as_html(finding.sentence)}</div></div></div>'
    )
    if finding.fix and finding.state != "ok":
        st.code(finding.fix, language="bash", wrap_lines=True)


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
