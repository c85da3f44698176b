"""Commands that read what a run has found: `show`, `export`."""

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.markup import escape

from liob_core.analysis import words
from liob_core.analysis.results import results_table, warnings
from liob_core.analysis.runs import find_run, run_facts
from liob_core.bench import catch_up, jobs
from liob_core.cli.closeness import print_closeness
from liob_core.cli.flips import print_flips
from liob_core.cli.options import JsonOption, RunArgument
from liob_core.cli.output import out, print_json, print_table
from liob_core.config import Settings, load_settings
from liob_core.errors import MissingError
from liob_core.monitor.energy import SCOPES
from liob_core.store.database import query, read
from liob_core.store.share import export_run


def show(
    run_id: RunArgument = "last",
    flips: Annotated[
        bool, typer.Option("--flips", help="Whether wins are real: flips against the reference, and its own.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a run's results: one row a variant, the reference first."""
    settings = load_settings()
    name = _find(run_id, settings)
    if not flips:
        show_run(name, settings, as_json=as_json)
        return
    print_flips(settings.database, name, as_json=as_json)


def export(
    run_id: RunArgument,
    format_: Annotated[str, typer.Option("--format", help="json, csv, parquet or duckdb.")] = "json",
    out_path: Annotated[Path | None, typer.Option("--out", help="Where to write.")] = None,
    texts: Annotated[
        bool, typer.Option("--texts/--no-texts", help="With prompts, answers and judges' replies.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Write one run to files that can be shared: no host name, user name or path in them."""
    settings = load_settings()
    name = _find(run_id, settings)
    path = export_run(settings.database, name, format_, out_path, with_texts=texts)
    if as_json:
        print_json({"run_id": name, "path": str(path)})
    else:
        out.print(escape(str(path)), soft_wrap=True)


def _find(run_id: str, settings: Settings) -> str:
    """The id of a run that has a folder here, else of one in the database, which others may have made.

    `last` is the newest that was made here.
    """
    catch_up.catch_up(settings)
    try:
        return jobs.find_run(run_id, settings).name
    except MissingError:
        if not settings.database.exists():
            raise
    return find_run(settings.database, run_id)


def show_run(run_id: str, settings: Settings, *, as_json: bool) -> None:
    """Print the results of a run: its table, its closeness, and what limits them."""
    catch_up.catch_up(settings)
    if not settings.database.exists():
        raise MissingError(f"Run {run_id} has stored nothing yet; `list` shows its state.")
    if as_json:
        results = query(settings.database, "SELECT * FROM results WHERE run_id = ?", (run_id,))
        has_folder = (settings.runs_dir / run_id).is_dir()
        status = jobs.read_status(run_id, settings) if has_folder else None
        closeness = query(settings.database, "SELECT * FROM closeness WHERE run_id = ?", (run_id,))
        print_json({"run_id": run_id, "status": status, "results": results, "closeness": closeness})
        return
    with read(settings.database):  # kept open, so that each question below finds it open
        _print_tables(settings.database, run_id)


def _print_tables(database: Path, run_id: str) -> None:
    table = results_table(database, run_id)
    columns = [("variant", "left")]
    columns += [(name, "right") for name in ("tok/s", "prefill", "TTFT", "memory", "checks", "failed")]
    if table["n_samples"].fillna(0).any():
        rows = [_result_row(row) for row in table.to_dict("records")]
        print_table(f"Run {run_id}", columns, rows)
    _print_energy(table)
    print_closeness(database, run_id)
    if offload := run_facts(database, run_id).offload:
        out.print(f"Layers: {escape(offload)}.")
    for warning in warnings(database, run_id):
        out.print(f"[yellow]{escape(warning)}[/yellow]")


def _result_row(row: Mapping[Hashable, Any]) -> tuple[str, ...]:
    """One variant in two or three short lines, so that the table fits a narrow terminal."""
    interval = words.interval("decode_tps", row["decode_tps_ci_low"], row["decode_tps_ci_high"])
    against = "reference" if row["is_reference"] else row.get("decode_tps_words")
    rate = (words.three_digits(row["decode_tps"]), (interval or "").removesuffix(" tok/s"), against)
    return (
        f"{escape(row['variant'])}\n{words.three_digits(row['bpw'])} bits, {words.memory(row['file_bytes'])}",
        "\n".join(part for part in rate if isinstance(part, str) and part),
        words.three_digits(row["prefill_tps"]),
        words.value("ttft_ms_p50", row["ttft_ms_p50"]),
        words.memory(row["peak_memory_bytes"]),
        f"{words.percent(row['pass_rate'])}\nof {row['n_checked']}" if row["n_checked"] else words.UNKNOWN,
        str(row["n_samples"] - row["n_ok"]),
    )


def _print_energy(table: pd.DataFrame) -> None:
    """A line of what an output token takes, where that is known; a column more fits no narrow terminal."""
    known = table.dropna(subset=["j_per_output_token"]).to_dict("records")
    if not known:
        return
    told = []
    for row in known:
        low, high = row["j_per_output_token_ci_low"], row["j_per_output_token_ci_high"]
        between = words.interval("j_per_output_token", low, high) or "one block, no interval"
        told.append(
            f"{row['variant']} {words.value('j_per_output_token', row['j_per_output_token'])} ({between})"
        )
    scope = SCOPES.get(known[0]["energy_scope"], known[0]["energy_scope"])
    out.print(escape(f"Energy, {scope} by {known[0]['energy_source']}: {'; '.join(told)}."), soft_wrap=True)
