"""`recommend`: the variant to use under limits, with the evidence, and the command that runs it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from liob_core.analysis import words
from liob_core.analysis.limits import MET, NOT_TRIED, Limits
from liob_core.analysis.recommend import Candidate, Recommendation
from liob_core.analysis.recommend import recommend as decide
from liob_core.analysis.runs import find_run
from liob_core.bench import catch_up
from liob_core.cli.options import JsonOption
from liob_core.cli.output import out, print_json, print_table
from liob_core.cli.share import check_current
from liob_core.config import load_settings

NOTHING_MEETS_IT = 4


def recommend(
    run_id: Annotated[str, typer.Argument(help="A run's id, its beginning, or `last`.")] = "last",
    min_tps: Annotated[float | None, typer.Option(help="Least decode rate, tokens/s.")] = None,
    max_gib: Annotated[float | None, typer.Option(help="Most peak memory, GiB.")] = None,
    max_joules: Annotated[float | None, typer.Option(help="Most energy of an output token, J.")] = None,
    max_loss: Annotated[float, typer.Option(help="Pass rate that may be lost, in points.")] = 5,
    max_ln_ratio: Annotated[
        float, typer.Option(help="ln PPL ratio that may be lost, where closeness was measured.")
    ] = 0.03,
    db: Annotated[
        Path | None, typer.Option("--db", help="An exported file instead of your database.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Name the variant that meets your limits. Exit code 0: one does, 4: nothing is shown to."""
    settings = load_settings()
    limits = Limits(
        min_tps=min_tps,
        max_bytes=None if max_gib is None else max_gib * 2**30,
        max_joules=max_joules,
        max_loss=max_loss / 100,
        max_ln_ratio=max_ln_ratio,
    )
    if db is None:
        catch_up.catch_up(settings)
    database = db or settings.database
    check_current(database)
    found = decide(database, find_run(database, run_id), limits)
    if as_json:
        print_json(found)
    else:
        _show(found)
    if found.pick is None:
        raise typer.Exit(NOTHING_MEETS_IT)


def _show(found: Recommendation) -> None:
    """Print the answer, a row for each variant that was tried, and how to use the pick."""
    out.print(f"[bold]{escape(found.sentence)}[/bold]", soft_wrap=True)
    for line in (found.detail, *found.notes):
        if line:
            out.print(escape(line), soft_wrap=True)
    print_table(
        f"Run {found.run_id}",
        [("variant", "left"), ("", "left"), ("limits, and what is known", "left")],
        [_row(one, found) for one in found.candidates],
    )
    if found.command:
        out.print(f"Use it: {escape(found.command)}", soft_wrap=True)


def _row(candidate: Candidate, found: Recommendation) -> tuple[str, ...]:
    mark = {found.pick: "pick", found.runner_up: "runner-up", found.nearest: "nearest"}.get(
        candidate.variant, ""
    )
    name = candidate.variant if candidate.model is None else f"{candidate.variant}\n{candidate.model}"
    lines = [
        one.sentence if one.verdict == NOT_TRIED else f"{one.verdict}: {one.sentence}"
        for one in candidate.evidence
    ]
    return (
        f"{escape(name)}\n{words.three_digits(candidate.bpw)} bits",
        mark,
        "\n".join(
            escape(line) if one.verdict == MET else f"[yellow]{escape(line)}[/yellow]"
            for one, line in zip(candidate.evidence, lines, strict=True)
        ),
    )
