"""The commands, and what a failure becomes: one sentence and an exit code."""

import sys

import typer
from rich.markup import escape

from liob_core import __version__
from liob_core.cli import doctor, hub, judge, models, ollama, reference, runs
from liob_core.cli.compare import compare
from liob_core.cli.output import err
from liob_core.cli.share import import_runs, report
from liob_core.errors import LiobError

app = typer.Typer(
    name="liob",
    help="Which quantization of this model should I run here, what does it cost me, and how sure are we?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(models.inspect)
app.command()(models.sample)
app.command()(models.ladder)
app.command()(runs.run)
app.command()(runs.resume)
app.command()(runs.cancel)
app.command("list")(runs.list_runs)
app.command()(runs.show)
app.command()(runs.export)
app.command("import")(import_runs)
app.command()(report)
app.command()(compare)
app.command()(judge.judge)
app.command()(doctor.doctor)
hub.models_app.command()(ollama.register)
hub.models_app.command()(ollama.remove)
app.add_typer(hub.models_app, name="models")
app.command("reference", hidden=True)(reference.reference)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print LIOB's version.")) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 something failed, 2 wrong use or missing thing, 3 busy."""
    try:
        app()
    except LiobError as error:
        err.print(f"[red]{escape(str(error))}[/red]", soft_wrap=True)
        sys.exit(error.exit_code)
