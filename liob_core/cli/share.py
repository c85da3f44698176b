"""Commands that take results from one person or machine to another: `import`, `report`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from liob_core.analysis.runs import find_run
from liob_core.analysis.summary import summarize
from liob_core.bench import catch_up
from liob_core.cli.options import JsonOption
from liob_core.cli.output import out, print_json
from liob_core.config import load_settings
from liob_core.errors import FileError
from liob_core.report.make import write_report
from liob_core.store.connection import is_outdated
from liob_core.store.importing import import_file


def import_runs(
    file: Annotated[
        Path,
        typer.Argument(
            help="What `export` made (DuckDB, JSON, a folder or ZIP of CSV or Parquet), or the original "
            "study's table."
        ),
    ],
    machine: Annotated[
        str | None,
        typer.Option(help="Of the original study: the machine it was measured on, which it does not name."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Merge the runs of another machine's export into this database; again adds nothing."""
    merged = import_file(load_settings().database, file, finish=summarize, machine=machine)
    if as_json:
        print_json(merged)
        return
    for what, run_ids in (("Added", merged.added), ("Brought further", merged.updated)):
        for run_id in run_ids:
            out.print(f"{what}: run {escape(run_id)}", soft_wrap=True)
    if merged.unchanged:
        out.print(f"Here already: {escape(', '.join(merged.unchanged))}", soft_wrap=True)
    out.print(f"{merged.n_samples} new samples")


def report(
    run_id: Annotated[str, typer.Argument(help="A run's id, its beginning, or `last`.")] = "last",
    db: Annotated[
        Path | None, typer.Option("--db", help="An exported file instead of your database.")
    ] = None,
    out_path: Annotated[Path | None, typer.Option("--out", help="The HTML file to write.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write one run as an HTML file that opens offline, and its summary as a PNG beside it."""
    settings = load_settings()
    if db is None:
        catch_up.catch_up(settings)
    database = db or settings.database
    check_current(database)
    name = find_run(database, run_id)
    made = write_report(database, name, out_path or Path(f"liob-{name}.html"))
    if as_json:
        print_json(made)
        return
    for path in filter(None, (made.html, made.png)):
        out.print(escape(str(path)), soft_wrap=True)


def check_current(database: Path) -> None:
    """Refuse a file that lacks tables of this LIOB: it is only ever read, so nothing can add them."""
    if is_outdated(database):
        raise FileError(
            f"{database} was made by an older LIOB. Import it (`python -m liob_core import FILE`) and name "
            "its run instead."
        )
