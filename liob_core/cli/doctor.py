"""`doctor`: what works here, what is missing, and the one thing that fixes it."""

from rich.markup import escape

from liob_core import __version__
from liob_core.analysis.words import memory
from liob_core.bench.examine import Finding, examine, versions
from liob_core.cli.options import JsonOption
from liob_core.cli.output import out, print_json, print_table
from liob_core.config import load_settings
from liob_core.monitor.machine import read_machine


def doctor(as_json: JsonOption = False) -> None:
    """Say what works on this machine, what is missing, and what fixes it."""
    settings = load_settings()
    machine = read_machine()
    findings = examine(settings, machine)
    if as_json:
        print_json({"version": __version__, "versions": versions(), "machine": machine, "findings": findings})
        return
    out.print(
        f"LIOB {__version__} on {escape(machine.cpu_name or machine.cpu_arch)}, {memory(machine.ram_bytes)}"
    )
    print_table(
        "",
        [("what", "left"), ("state", "left"), ("", "left")],
        [(finding.what, finding.state, escape(_told(finding))) for finding in findings],
    )


def _told(finding: Finding) -> str:
    """The finding's sentence, with the command that fixes it where the sentence does not name it."""
    named = not finding.fix or finding.fix in finding.sentence
    return finding.sentence if named else f"{finding.sentence}: {finding.fix}"
