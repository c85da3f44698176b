"""Commands about runs by their state: `resume`, `cancel`, `list`."""

from rich.markup import escape

from liob_core.bench import jobs
from liob_core.cli.following import follow
from liob_core.cli.options import JsonOption, RunArgument
from liob_core.cli.output import out, print_json, print_table
from liob_core.config import load_settings


def resume(run_id: RunArgument, as_json: JsonOption = False) -> None:
    """Do what was left of a run that was killed or cancelled."""
    settings = load_settings()
    follow(jobs.resume(run_id, settings), settings, as_json=as_json)


def cancel(run_id: RunArgument = "last", as_json: JsonOption = False) -> None:
    """End a run within a second; every finished sample is kept."""
    settings = load_settings()
    name = jobs.find_run(run_id, settings).name
    jobs.cancel(name, settings)
    if as_json:
        print_json({"run_id": name, "cancelled": True})
    else:
        out.print(f"Run {name} is ending.")


def list_runs(as_json: JsonOption = False) -> None:
    """List the runs of this data folder, newest first."""
    found = jobs.list_runs(load_settings())
    if as_json:
        print_json(found)
    elif not found:
        out.print("No run yet. Start one: python -m liob_core run --model FILE.gguf --model FILE.gguf")
    else:
        print_table(
            "",
            [("run", "left"), ("state", "left"), ("done", "right"), ("failed", "right"), ("what", "left")],
            [(s.run_id, s.state, f"{s.n_done}/{s.n_cells}", str(s.n_failed), escape(s.title)) for s in found],
        )
