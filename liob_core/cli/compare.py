"""`compare`: a gate for continuous integration, as a Markdown table and an exit code."""

from pathlib import Path
from typing import Annotated

import typer

from liob_core.analysis import comparing, words
from liob_core.analysis.comparing import Change, Comparison, compare_runs
from liob_core.analysis.deltas import NOT_COMPARABLE
from liob_core.analysis.runs import find_run
from liob_core.bench import catch_up
from liob_core.cli.options import JsonOption
from liob_core.cli.output import out, print_json
from liob_core.cli.share import check_current
from liob_core.config import load_settings
from liob_core.metrics import METRICS

EXIT_CODES = {
    comparing.NO_REGRESSION: 0,
    comparing.REGRESSION: 1,
    NOT_COMPARABLE: 2,
    comparing.INCONCLUSIVE: 4,
}
_HEADS = ("variant", "metric", "A", "B", "B against A", "95 % interval", "margin", "verdict")
_METHOD = (
    "Speed: ratio of geometric means over blocks, Welch's t on their logarithms, since blocks of two runs "
    "are not paired. Checks: difference paired by prompt, score interval (Tango)."
)
RunOrFile = Annotated[
    str, typer.Argument(help="A run's id, its beginning, `last`, or a file (its newest run).")
]


def compare(
    a: RunOrFile,
    b: RunOrFile,
    margin_speed: Annotated[float, typer.Option(help="Speed that may be lost, in %.", min=0, max=100)] = 5,
    margin_pass: Annotated[
        float, typer.Option(help="Pass rate that may be lost, in points.", min=0, max=100)
    ] = 5,
    as_json: JsonOption = False,
) -> None:
    """Is B worse than A? Exit code 0: no regression, 1: regression, 4: inconclusive, 2: not comparable."""
    found = compare_runs(
        _resolved(a), _resolved(b), margin_speed=margin_speed / 100, margin_pass=margin_pass / 100
    )
    if as_json:
        print_json(found)
    else:
        out.file.write(as_markdown(found))
    raise typer.Exit(EXIT_CODES[found.verdict])


def as_markdown(found: Comparison) -> str:
    """The comparison as Markdown: the verdict, a table, and how it came about."""
    lines = [f"### {found.verdict.capitalize()}: run {found.run_b} (B) against run {found.run_a} (A)", ""]
    if found.differences:
        return "\n".join([*lines, *(f"- {_inert(text)}" for text in found.differences), ""])
    lines += [_line(_HEADS), "|" + " --- |" * len(_HEADS)]
    lines += [_line(_cells(change)) for change in found.changes]
    notes = [*found.notes, _METHOD]
    return "\n".join([*lines, "", *(f"{_inert(note)}\n" for note in notes)])


def _cells(change: Change) -> tuple[str, ...]:
    unit = "points" if change.metric == "pass_rate" else "%"
    between = (
        words.UNKNOWN
        if change.low is None or change.high is None
        else f"{change.low * 100:+.1f} to {change.high * 100:+.1f} {unit}"
    )
    estimate = words.UNKNOWN if change.estimate is None else f"{change.estimate * 100:+.1f} {unit}"
    n = f" (n = {change.n_a}, {change.n_b})" if change.n_a != change.n_b else f" (n = {change.n_a})"
    return (
        change.variant,
        METRICS[change.metric].label,
        words.value(change.metric, change.value_a),
        words.value(change.metric, change.value_b),
        estimate + n,
        between,
        f"{change.margin * 100:g} {unit}",
        f"{change.verdict}: {change.reason}" if change.reason else change.verdict,
    )


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_inert(cell) for cell in cells) + " |"


def _inert(text: str) -> str:
    """Labels come from files of others: no cell ends early and no HTML begins."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _resolved(name: str) -> tuple[Path, str]:
    """The database and the id of a run that is named by its id, or by a file whose newest run it is."""
    path = Path(name)
    if path.is_file():
        check_current(path)
        return path, find_run(path, "last")
    settings = load_settings()
    catch_up.catch_up(settings)
    return settings.database, find_run(settings.database, name)
