"""The command `judge`: a language model grades the answers of a finished run."""

from collections.abc import Hashable, Mapping
from typing import Annotated, Any

import pandas as pd
import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from liob_core.analysis import judged, words
from liob_core.bench import catch_up, jobs, judge_jobs
from liob_core.bench.judge_source import ensure_on_ollama
from liob_core.bench.judging import DEFAULT_OLLAMA_JUDGE, JUDGE_CTX, JudgingSpec, make_judge
from liob_core.bench.status import RunStatus, wait_for_end
from liob_core.cli.following import FOLLOW_EVERY_S
from liob_core.cli.options import JsonOption, RunArgument
from liob_core.cli.output import err, out, print_json, print_table
from liob_core.config import Settings, load_settings
from liob_core.errors import LiobError, UsageError
from liob_core.types import JudgeMode


def judge(
    run_id: RunArgument,
    judge_engine: Annotated[str, typer.Option(help="embedded, ollama, or llama-server.")] = "embedded",
    judge_model: Annotated[
        str | None,
        typer.Option(help=f"A GGUF file, or a model's name on Ollama ({DEFAULT_OLLAMA_JUDGE}, 2.0 GB)."),
    ] = None,
    pairwise: Annotated[bool, typer.Option(help="Compare with the reference, in both orders.")] = False,
    judge_all: Annotated[bool, typer.Option("--all", help="Prompts without a rubric too.")] = False,
    judge_url: Annotated[str | None, typer.Option(help="Address of the judge's server.")] = None,
    pull: Annotated[bool, typer.Option(help="Fetch the model where Ollama lacks it.")] = False,
    threads: Annotated[int | None, typer.Option(help="Threads of the judge's engine.", min=1)] = None,
    gpu_layers: Annotated[
        int | None, typer.Option(help="Layers on the GPU; Ollama decides by itself.", min=0)
    ] = None,
    context: Annotated[int, typer.Option(help="Context length in tokens.", min=1024)] = JUDGE_CTX,
    as_json: JsonOption = False,
) -> None:
    """Let a language model grade the answers of a run, after questions whose right answer is known."""
    settings = load_settings()
    name = jobs.find_run(run_id, settings).name
    model = judge_model or (DEFAULT_OLLAMA_JUDGE if judge_engine == "ollama" else None)
    if model is None:
        raise UsageError("Name the judge's model with --judge-model: a GGUF file, the larger the better.")
    if judge_engine == "ollama":
        _ensure(model, judge_url, may_pull=pull)
    with err.status("Reading the judge's model…"):
        variant = make_judge(
            judge_engine,
            model,
            settings.cache_dir,
            threads=threads or settings.threads,
            n_ctx=context,
            gpu_layers=gpu_layers,
        )
    spec = JudgingSpec(
        run_id=name,
        judge=variant,
        engine=judge_engine,
        engine_url=judge_url,
        mode=JudgeMode.PAIRWISE if pairwise else JudgeMode.SINGLE,
        judge_all=judge_all,
    )
    n_answers = judge_jobs.start(spec, settings)
    status = _follow(spec, n_answers, settings) if n_answers else None
    catch_up.catch_up(settings)
    _show(spec, settings, status, as_json=as_json)
    if status is not None and (status.state != "finished" or status.n_failed):
        raise typer.Exit(1)


def _ensure(model: str, url: str | None, *, may_pull: bool) -> None:
    with err.status(f"Looking for {model} on Ollama…") as line:
        ensure_on_ollama(
            model, url, may_pull=may_pull, progress=lambda words, *_: line.update(escape(f"{model}: {words}"))
        )


def _follow(spec: JudgingSpec, n_answers: int, settings: Settings) -> RunStatus:
    """Show progress until the judging ends; raises LiobError where it did nothing."""
    err.print(f"{escape(spec.judge_name)} looks at {n_answers} answers, after its calibration.")
    try:
        status = _watch(spec.run_id, settings)
    except KeyboardInterrupt:
        judge_jobs.cancel(spec.run_id, settings)
        err.print("Cancelling; every opinion is kept.")
        status = _watch(spec.run_id, settings)
    if status.state == "failed" and not status.n_done:
        raise LiobError(status.reason or "The judging did not start; see judge.log in the run's folder.")
    if status.reason:
        err.print(f"[yellow]{escape(status.reason)}[/yellow]")
    return status


def _watch(run_id: str, settings: Settings) -> RunStatus:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, auto_refresh=False) as bar:
        row = bar.add_task("starting", total=None)
        while True:
            status = judge_jobs.read_status(run_id, settings)
            if status is None:
                raise LiobError(f"The judging of run {run_id} is gone from its folder; start it again.")
            what = status.activity or f"{status.current_variant or ''} {status.current_prompt or ''}"
            bar.update(
                row,
                total=status.n_cells or None,
                completed=status.n_done,
                description=escape(what.strip()),
                refresh=True,
            )
            if not status.is_live:
                return status
            wait_for_end(status, FOLLOW_EVERY_S)


def _show(spec: JudgingSpec, settings: Settings, status: RunStatus | None, *, as_json: bool) -> None:
    facts = judged.judge_facts(settings.database, spec.run_id, spec.judge_key, spec.mode)
    read = judged.scores if spec.mode is JudgeMode.SINGLE else judged.pairs
    table = read(settings.database, spec.run_id, spec.judge_key)
    if as_json:
        print_json({"run_id": spec.run_id, "judge": facts, "status": status, "variants": table})
        return
    if facts is None:
        out.print("No opinion was stored.")
        return
    out.print(f"{escape(facts.judge)}: {facts.calibration_sentence}", soft_wrap=True)
    if spec.mode is JudgeMode.SINGLE:
        heads = ("score", "scored", "failed itself", "against the reference")
        rows = [_score_row(row) for row in table.to_dict("records")]
    else:
        heads = ("win/tie/loss", "compared", "other length", "verdict")
        rows = [_pair_row(row) for row in table.to_dict("records")]
    print_table("", [("variant", "left"), *((head, "right") for head in heads)], rows)


def _score_row(row: Mapping[Hashable, Any]) -> tuple[str, ...]:
    interval = f"\n{row['ci_low']:.1f} to {row['ci_high']:.1f}" if pd.notna(row["ci_low"]) else ""
    mean = words.UNKNOWN if pd.isna(row["mean_score"]) else f"{row['mean_score']:.1f}{interval}"
    mark = " (the judge itself)" if row["is_self"] else ""
    return (
        f"{escape(row['variant'])}{mark}",
        mean,
        f"{row['n_scored']} of {row['n_judgeable']}",
        str(row["n_own_failures"]),
        escape(row["words"]),
    )


def _pair_row(row: Mapping[Hashable, Any]) -> tuple[str, ...]:
    mark = " (the judge itself)" if row["is_self"] else ""
    return (
        f"{escape(row['variant'])}{mark}",
        f"{row['n_wins']}/{row['n_ties']}/{row['n_losses']}",
        f"{row['n_scored']} of {row['n_judgeable']}",
        str(row["n_lengths_differ"]),
        escape(row["words"]),
    )
