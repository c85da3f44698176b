"""A run as the command line follows it: a progress bar, then its results, then the exit code."""

from importlib import import_module

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from liob_core.analysis import words
from liob_core.bench import jobs
from liob_core.bench.status import RunStatus, wait_for_end
from liob_core.cli.output import err
from liob_core.config import Settings
from liob_core.errors import LiobError

FOLLOW_EVERY_S = 1.0  # each look takes time from what is measured
UNSEEN_EVERY_S = 5.0  # where the bar goes to a file or a pipe


def follow(run_id: str, settings: Settings, *, as_json: bool) -> None:
    """Show progress until the run ends, then its results; the exit code tells how it ended."""
    try:
        # What reads results takes a second to import; the run feels that least while its worker starts.
        import_module("liob_core.cli.results")
        status = _watch(run_id, settings)
    except KeyboardInterrupt:
        jobs.cancel(run_id, settings)
        err.print("Cancelling; the finished samples are kept.")
        status = _watch(run_id, settings)
    if status.reason:
        err.print(f"[yellow]{escape(status.reason)}[/yellow]")
    if status.n_done:
        from liob_core.cli.results import show_run  # noqa: PLC0415 - see above

        show_run(run_id, settings, as_json=as_json)
    if status.state == "failed" and not status.n_done:
        raise LiobError(f"Run {run_id} did not start: {status.reason}")
    if status.state != "finished" or status.n_failed:
        raise typer.Exit(1)


def _watch(run_id: str, settings: Settings) -> RunStatus:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, auto_refresh=False) as bar:
        row = bar.add_task("starting", total=None)
        while True:
            status = jobs.read_status(run_id, settings)
            bar.update(
                row,
                total=status.n_cells or None,
                completed=status.n_done,
                description=_doing(status),
                refresh=True,
            )
            if not status.is_live:
                return status
            is_seen = err.is_terminal or status.pid is None  # without a number it cannot be waited for
            wait_for_end(status, FOLLOW_EVERY_S if is_seen else UNSEEN_EVERY_S)


def _doing(status: RunStatus) -> str:
    if status.activity or status.current_variant is None:
        what = " ".join(part for part in (status.activity or status.state, status.current_variant) if part)
    else:
        what = f"{status.current_variant} {status.current_task} {status.current_prompt}"
    live = f", {status.decode_tps_live:.0f} tok/s" if status.decode_tps_live else ""
    memory = f", {words.memory(status.rss_bytes)}" if status.rss_bytes else ""
    return escape(f"{what}{live}{memory}")
