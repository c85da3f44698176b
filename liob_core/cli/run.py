"""The command `run`: from its options to a run that is at work."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.markup import escape

from liob_core.bench import jobs
from liob_core.bench.choosing import AUTOMATIC, choose_engines, read_gpu_layers, variants_of
from liob_core.bench.closeness import DEFAULT_WINDOW, check_add_on, make_ask
from liob_core.bench.energy import energy_problem
from liob_core.bench.estimate import estimate
from liob_core.bench.spec import DEFAULT_CTX, Choices, default_threads, make_spec
from liob_core.cli import run_options as given
from liob_core.cli.following import follow
from liob_core.cli.naming import with_reference
from liob_core.cli.options import JsonOption
from liob_core.cli.output import err
from liob_core.config import SHIPPED_SUITES, Settings, load_settings
from liob_core.errors import UsageError
from liob_core.monitor.machine import thread_warning
from liob_core.quality.closeness.corpora import BUNDLED
from liob_core.quality.closeness.records import UNQUANTIZED_KV
from liob_core.quality.code.grade import code_note
from liob_core.suites.load import load_suite
from liob_core.types import ClosenessAsk, LoadSettings, RunSpec, Task, Variant


def run(
    model: given.Models = None,
    engine: given.Engines = None,
    url: given.Url = None,
    reference: given.Reference = None,
    task: given.Tasks = None,
    suite: given.SuiteName = "quick",
    repeats: given.Repeats = 3,
    suite_repeats: given.SuiteRepeats = None,
    max_tokens: given.MaxTokens = 1024,
    seed: given.Seed = 1,
    n_seeds: given.Seeds = 1,
    temperature: given.Temperature = None,
    threads: given.Threads = None,
    context: given.Context = None,
    kv_type: given.KvTypes = None,
    gpu_layers: given.GpuLayers = AUTOMATIC,
    text: given.TextName = BUNDLED,
    windows: given.Windows = 32,
    from_start: given.FromStart = False,
    stop_at: given.StopAt = None,
    mmap: given.Mmap = False,
    own_template: given.OwnTemplate = False,
    prompt_mode: given.PromptModeOption = given.PromptMode.RAW,
    allow_code: given.AllowCode = False,
    no_energy: given.NoEnergy = False,
    as_json: JsonOption = False,
) -> None:
    """Benchmark variants: run the tasks on each, watch the machine, keep everything."""
    settings = load_settings()
    tasks = tuple(dict.fromkeys(task or [Task.SPEED, Task.SUITE]))
    is_closeness_alone = tasks == (Task.CLOSENESS,)
    ask = None
    if Task.CLOSENESS in tasks:
        check_add_on()
        n_window = context if is_closeness_alone else None
        ask = _ask(settings, text, n_window, windows, from_start=from_start, stop_at=stop_at)
    named, reference = with_reference(model, reference)
    n_ctx = context or (DEFAULT_WINDOW if is_closeness_alone else DEFAULT_CTX)
    threads = threads or settings.threads or default_threads()
    asked = LoadSettings(
        n_ctx=n_ctx,
        threads=threads,
        gpu_layers=read_gpu_layers(gpu_layers),
        load_mode="mmap" if mmap else "none",
    )
    # Closeness reads the files itself, so no engine need be there.
    engines = _engines(engine or (["embedded"] if is_closeness_alone else ()), url)
    spec = make_spec(
        Choices(
            engine=engines[0],
            engine_url=url,
            variants=_variants(named, engines, _loads(kv_type or ["f16"], asked), settings, url),
            reference=reference,
            tasks=tasks,
            suite=load_suite(suite, _suite_folders(settings)) if Task.SUITE in tasks else None,
            n_blocks=repeats,
            suite_repeats=suite_repeats,
            max_tokens=max_tokens,
            seed=seed,
            n_seeds=n_seeds,
            temperature=temperature,
            monitor_hz=settings.monitor_hz,
            prompt_mode=_spec_mode(prompt_mode, own_template=own_template),
            allow_code=allow_code or settings.allow_code,
            closeness=ask,
            energy=not no_energy and energy_problem() is None,
        )
    )
    _tell(spec, threads, settings)
    follow(jobs.start(spec, settings), settings, as_json=as_json)


def _ask(
    settings: Settings,
    text: str,
    n_window: int | None,
    n_windows: int,
    *,
    from_start: bool,
    stop_at: float | None,
) -> ClosenessAsk:
    """What task closeness is to do; 0 windows are all of the text."""
    return make_ask(
        text,
        settings.cache_dir,
        n_ctx=n_window or DEFAULT_WINDOW,
        n_windows=n_windows or None,
        from_start=from_start,
        stop_half_width=stop_at,
    )


def _engines(asked: Sequence[str], url: str | None) -> Sequence[str]:
    """The engines to run on; says why where LIOB chose."""
    engines, why = choose_engines(asked, url)
    if why is not None:
        err.print(escape(why), soft_wrap=True)
    return engines


def _variants(
    named: Sequence[str],
    engines: Sequence[str],
    loads: Sequence[LoadSettings],
    settings: Settings,
    url: str | None,
) -> tuple[Variant, ...]:
    """Every named model on every engine under every load."""
    with err.status("Reading the model files…"):
        return tuple(
            variant
            for load in loads
            for variant in variants_of(named, engines, load, settings.cache_dir, url=url)
        )


def _tell(spec: RunSpec, threads: int, settings: Settings) -> None:
    """Say what a user should know before the run: warnings, its name, how long it takes."""
    for warning in (thread_warning(threads), code_note(spec.suite, allow_code=spec.allow_code)):
        if warning:
            err.print(f"[yellow]{escape(warning)}[/yellow]")
    cost = estimate(spec, settings.database)
    err.print(f"Run {spec.run_id}: {escape(spec.title)}, {cost.sentence}")
    if cost.closeness is not None:
        err.print(f"Closeness: {cost.closeness}")
    for sentence in cost.detectable:
        err.print(sentence)


def _loads(kv_types: list[str], asked: LoadSettings) -> list[LoadSettings]:
    """Load settings for each type of KV cache; what else differs between them would be compared too."""
    has_quantized = any(kv_type not in UNQUANTIZED_KV for kv_type in kv_types)
    return [
        replace(
            asked,
            kv_type_k=kv_type,
            kv_type_v=kv_type,
            flash_attn="on" if has_quantized else "auto",
        )
        for kv_type in dict.fromkeys(kv_types)
    ]


def _spec_mode(mode: given.PromptMode, *, own_template: bool) -> str:
    """The prompt mode of a spec: whose template makes the text, or that the engine gets the turns."""
    if mode is given.PromptMode.ENGINE and own_template:
        raise UsageError("With --prompt-mode engine no file's template is used: leave --own-template out.")
    if mode is given.PromptMode.ENGINE:
        return "engine"
    return "own" if own_template else "reference"


def _suite_folders(settings: Settings) -> list[Path]:
    """Where suites are looked for: the user's own first, then those that LIOB ships."""
    return [settings.data_dir / "suites", SHIPPED_SUITES]
