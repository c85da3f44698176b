"""Commands about runs: `run`, `resume`, `cancel`, `list`, `show`, `export`."""

import time
from collections.abc import Hashable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from liob_core.analysis import words
from liob_core.analysis.results import results_table, warnings
from liob_core.bench import catch_up, jobs
from liob_core.bench.choosing import choose_engines, variants_of
from liob_core.bench.closeness import DEFAULT_WINDOW, check_add_on, make_ask
from liob_core.bench.estimate import estimate
from liob_core.bench.spec import DEFAULT_CTX, Choices, default_threads, make_spec
from liob_core.bench.status import RunStatus
from liob_core.cli.closeness import print_closeness, with_reference
from liob_core.cli.models import JsonOption
from liob_core.cli.output import err, out, print_json, print_table
from liob_core.config import SHIPPED_SUITES, Settings, load_settings
from liob_core.errors import LiobError, MissingError, UsageError
from liob_core.monitor.machine import thread_warning
from liob_core.quality.closeness.corpora import BUNDLED
from liob_core.quality.closeness.records import UNQUANTIZED_KV
from liob_core.quality.code.grade import code_note
from liob_core.store.database import query
from liob_core.store.share import export_run
from liob_core.suites.load import load_suite
from liob_core.types import LoadSettings, Task

FOLLOW_EVERY_S = 0.25


class PromptMode(StrEnum):
    """What an engine is sent: the rendered text as it is, or the turns, to apply its own template to."""

    RAW = "raw"
    ENGINE = "engine"


RunArgument = Annotated[str, typer.Argument(help="A run's id, its beginning, or `last`.")]


def run(
    model: Annotated[
        list[str] | None,
        typer.Option(help="A GGUF file, a folder, or a name on Ollama; repeat for more."),
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(help="ollama, embedded, or llama-server; repeat to compare. Ollama where it answers."),
    ] = None,
    url: Annotated[str | None, typer.Option(help="Address of your Ollama or llama-server.")] = None,
    reference: Annotated[
        str | None, typer.Option(help="The file or label all others are compared with.")
    ] = None,
    task: Annotated[
        list[Task] | None, typer.Option(help="speed, suite (both if none is given), closeness.")
    ] = None,
    suite: Annotated[str, typer.Option(help="A suite's name or file.")] = "quick",
    repeats: Annotated[int, typer.Option(help="Blocks: loads and repetitions of each variant.", min=1)] = 3,
    suite_repeats: Annotated[int | None, typer.Option(help="Blocks that run the suite.", min=1)] = None,
    max_tokens: Annotated[int, typer.Option(help="Longest answer, in tokens.", min=1)] = 1024,
    seed: Annotated[int, typer.Option(help="Seed of the sampler.", min=0)] = 1,
    threads: Annotated[int | None, typer.Option(help="Threads of the engine.", min=1)] = None,
    context: Annotated[
        int | None,
        typer.Option(help="Context in tokens, 4096; of closeness alone, its windows, 512.", min=8),
    ] = None,
    kv_type: Annotated[
        list[str] | None, typer.Option(help="Type of the KV cache, f16; repeat for variants of each.")
    ] = None,
    text: Annotated[str, typer.Option(help="Of closeness: bundled, wikitext-2, or a text file.")] = BUNDLED,
    windows: Annotated[int, typer.Option(help="Of closeness, spread over the text; 0: all.", min=0)] = 32,
    from_start: Annotated[bool, typer.Option("--from-start", help="Its first windows instead.")] = False,
    stop_at: Annotated[
        float | None,
        typer.Option(help="End closeness once every ln PPL ratio is known to this +-.", min=0.0),
    ] = None,
    mmap: Annotated[bool, typer.Option(help="Map the file instead of reading it into memory.")] = False,
    own_template: Annotated[bool, typer.Option(help="Render with each file's own template.")] = False,
    prompt_mode: Annotated[
        PromptMode, typer.Option(help="raw: the same text to all; engine: each applies its own template.")
    ] = PromptMode.RAW,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Let checks run code from answers, within limits.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Benchmark variants: run the tasks on each, watch the machine, keep everything."""
    settings = load_settings()
    tasks = tuple(dict.fromkeys(task or [Task.SPEED, Task.SUITE]))
    is_closeness_alone = tasks == (Task.CLOSENESS,)
    if Task.CLOSENESS in tasks:
        check_add_on()
    named, reference = with_reference(model, reference)
    n_ctx = context or (DEFAULT_WINDOW if is_closeness_alone else DEFAULT_CTX)
    loads = _loads(
        kv_type or ["f16"], n_ctx, threads or settings.threads or default_threads(), is_mapped=mmap
    )
    # Closeness reads the files itself, so no engine need be there.
    engines, why = choose_engines(engine or (["embedded"] if is_closeness_alone else ()), url)
    if why is not None:
        err.print(escape(why), soft_wrap=True)
    with err.status("Reading the model files…"):
        variants = tuple(
            variant
            for load in loads
            for variant in variants_of(named, engines, load, settings.cache_dir, url=url)
        )
    spec = make_spec(
        Choices(
            engine=engines[0],
            engine_url=url,
            variants=variants,
            reference=reference,
            tasks=tasks,
            suite=load_suite(suite, suite_folders(settings)) if Task.SUITE in tasks else None,
            n_blocks=repeats,
            suite_repeats=suite_repeats,
            max_tokens=max_tokens,
            seed=seed,
            monitor_hz=settings.monitor_hz,
            prompt_mode=_spec_mode(prompt_mode, own_template=own_template),
            allow_code=allow_code or settings.allow_code,
            closeness=make_ask(
                text,
                settings.cache_dir,
                n_ctx=n_ctx if is_closeness_alone else DEFAULT_WINDOW,
                n_windows=windows or None,
                from_start=from_start,
                stop_half_width=stop_at,
            )
            if Task.CLOSENESS in tasks
            else None,
        )
    )
    for warning in (thread_warning(loads[0].threads), code_note(spec.suite, allow_code=spec.allow_code)):
        if warning:
            err.print(f"[yellow]{escape(warning)}[/yellow]")
    cost = estimate(spec, settings.database)
    err.print(f"Run {spec.run_id}: {escape(spec.title)}, {cost.sentence}")
    if cost.closeness is not None:
        err.print(f"Closeness: {cost.closeness}")
    _follow(jobs.start(spec, settings), settings, as_json=as_json)


def _loads(kv_types: list[str], n_ctx: int, threads: int, *, is_mapped: bool) -> list[LoadSettings]:
    """Load settings for each type of KV cache; what else differs between them would be compared too."""
    has_quantized = any(kv_type not in UNQUANTIZED_KV for kv_type in kv_types)
    return [
        LoadSettings(
            n_ctx=n_ctx,
            threads=threads,
            kv_type_k=kv_type,
            kv_type_v=kv_type,
            flash_attn="on" if has_quantized else "auto",
            load_mode="mmap" if is_mapped else "none",
        )
        for kv_type in dict.fromkeys(kv_types)
    ]


def _spec_mode(mode: PromptMode, *, own_template: bool) -> str:
    """The prompt mode of a spec: whose template makes the text, or that the engine gets the turns."""
    if mode is PromptMode.ENGINE and own_template:
        raise UsageError("With --prompt-mode engine no file's template is used: leave --own-template out.")
    if mode is PromptMode.ENGINE:
        return "engine"
    return "own" if own_template else "reference"


def resume(run_id: RunArgument, as_json: JsonOption = False) -> None:
    """Do what was left of a run that was killed or cancelled."""
    settings = load_settings()
    _follow(jobs.resume(run_id, settings), settings, as_json=as_json)


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


def show(run_id: RunArgument = "last", as_json: JsonOption = False) -> None:
    """Show a run's results: one row a variant, the reference first."""
    settings = load_settings()
    name = jobs.find_run(run_id, settings).name
    _show(name, settings, as_json=as_json)


def export(
    run_id: RunArgument,
    format_: Annotated[str, typer.Option("--format", help="json, csv, parquet or duckdb.")] = "json",
    out_path: Annotated[Path | None, typer.Option("--out", help="Where to write.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write one run to files that can be shared: no host name, user name or path in them."""
    settings = load_settings()
    name = jobs.find_run(run_id, settings).name
    catch_up.catch_up(settings)
    path = export_run(settings.database, name, format_, out_path)
    if as_json:
        print_json({"run_id": name, "path": str(path)})
    else:
        out.print(escape(str(path)), soft_wrap=True)


def suite_folders(settings: Settings) -> list[Path]:
    """Where suites are looked for: the user's own first, then those that LIOB ships."""
    return [settings.data_dir / "suites", SHIPPED_SUITES]


def _follow(run_id: str, settings: Settings, *, as_json: bool) -> None:
    """Show progress until the run ends, then its results; the exit code tells how it ended."""
    try:
        status = _watch(run_id, settings)
    except KeyboardInterrupt:
        jobs.cancel(run_id, settings)
        err.print("Cancelling; the finished samples are kept.")
        status = _watch(run_id, settings)
    if status.reason:
        err.print(f"[yellow]{escape(status.reason)}[/yellow]")
    if status.n_done:
        _show(run_id, settings, as_json=as_json)
    if status.state == "failed" and not status.n_done:
        raise LiobError(f"Run {run_id} did not start: {status.reason}")
    if status.state != "finished" or status.n_failed:
        raise typer.Exit(1)


def _watch(run_id: str, settings: Settings) -> RunStatus:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        row = bar.add_task("starting", total=None)
        while True:
            status = jobs.read_status(run_id, settings)
            bar.update(row, total=status.n_cells or None, completed=status.n_done, description=_doing(status))
            if not status.is_live:
                return status
            time.sleep(FOLLOW_EVERY_S)


def _doing(status: RunStatus) -> str:
    if status.activity or status.current_variant is None:
        what = " ".join(part for part in (status.activity or status.state, status.current_variant) if part)
    else:
        what = f"{status.current_variant} {status.current_task} {status.current_prompt}"
    live = f", {status.decode_tps_live:.0f} tok/s" if status.decode_tps_live else ""
    memory = f", {words.memory(status.rss_bytes)}" if status.rss_bytes else ""
    return escape(f"{what}{live}{memory}")


def _show(run_id: str, settings: Settings, *, as_json: bool) -> None:
    catch_up.catch_up(settings)
    if not settings.database.exists():
        raise MissingError(f"Run {run_id} has stored nothing yet; `list` shows its state.")
    if as_json:
        results = query(settings.database, "SELECT * FROM results WHERE run_id = ?", (run_id,))
        status = jobs.read_status(run_id, settings)
        closeness = query(settings.database, "SELECT * FROM closeness WHERE run_id = ?", (run_id,))
        print_json({"run_id": run_id, "status": status, "results": results, "closeness": closeness})
        return
    table = results_table(settings.database, run_id)
    columns = [("variant", "left")]
    columns += [(name, "right") for name in ("tok/s", "prefill", "TTFT", "memory", "checks", "failed")]
    if table["n_samples"].fillna(0).any():
        rows = [_result_row(row) for row in table.to_dict("records")]
        print_table(f"Run {run_id}", columns, rows)
    print_closeness(settings.database, run_id)
    for warning in warnings(settings.database, run_id):
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
