"""From what a user chose to the frozen spec of a run."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import psutil

from liob_core import __version__
from liob_core.bench.closeness import check_add_on, closeness_specs
from liob_core.bench.plan import SEED_LIMIT, SHAPE_TOKENS
from liob_core.engines.ollama_options import sampling_problem, settings_problem
from liob_core.errors import UsageError
from liob_core.models.family import by_model, default_reference
from liob_core.models.gguf import find_models
from liob_core.models.variant import make_variant, model_name_of, order_by_bits, unique_labels
from liob_core.types import ClosenessAsk, JsonValue, LoadSettings, RunSpec, Sampling, Suite, Task, Variant

# Blocks of `speed`: enough for an interval, for a tight one, for a paper.
PRESETS = {"quick": 3, "standard": 5, "thorough": 10}
DEFAULT_MAX_TOKENS = 1024
DEFAULT_CTX = 4096
# Greedy answers to one prompt are all alike, so seeds need a temperature; engines have this one by default.
SEEDS_TEMPERATURE = 0.8
MOST_SEEDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a user chooses for a run; everything else has one right value."""

    engine: str
    variants: tuple[Variant, ...]
    tasks: tuple[Task, ...]
    suite: Suite | None = None
    reference: str | None = None  # a variant's label; None: the one with the most bits
    n_blocks: int = 3
    suite_repeats: int | None = None  # None: 1 beside `speed`, which times better; else every block
    max_tokens: int = DEFAULT_MAX_TOKENS
    seed: int = 1
    n_seeds: int = 1  # each prompt is repeated over so many, from `seed` on
    temperature: float | None = None  # of several seeds; None: SEEDS_TEMPERATURE
    monitor_hz: float = 10.0
    prompt_mode: str = "reference"
    engine_url: str | None = None
    engine_options: Mapping[str, JsonValue] = field(default_factory=dict)
    allow_code: bool = False  # checks `unit_tests` may run code from answers
    closeness: ClosenessAsk | None = None
    title: str | None = None
    energy: bool = False  # beside `speed`, where `energy_problem` names none


def make_spec(choices: Choices) -> RunSpec:
    """The spec of a new run; raises UsageError for what cannot be run."""
    _check(choices)
    variants = tuple(order_by_bits(unique_labels(choices.variants)))
    reference = _reference(choices, variants)
    now = datetime.now(UTC)
    has_speed = Task.SPEED in choices.tasks
    repeats = min(choices.suite_repeats or (1 if has_speed else choices.n_blocks), choices.n_blocks)
    is_seeded = choices.n_seeds > 1
    spec = RunSpec(
        run_id=f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}",
        title=choices.title or _title(variants),
        created_utc=now.isoformat(timespec="seconds").replace("+00:00", "Z"),
        engine=choices.engine,
        engine_url=choices.engine_url,
        variants=variants,
        reference=reference,
        tasks=choices.tasks,
        suite=choices.suite if Task.SUITE in choices.tasks else None,
        sampling=_sampling(choices),
        n_blocks=choices.n_seeds if is_seeded and not has_speed else choices.n_blocks,
        suite_repeats=choices.n_seeds if is_seeded else repeats,
        n_seeds=choices.n_seeds,
        energy=choices.energy and has_speed,
        monitor_hz=choices.monitor_hz,
        prompt_mode=choices.prompt_mode,
        liob_version=__version__,
        engine_options=choices.engine_options,
        allow_code=choices.allow_code,
        closeness=choices.closeness if Task.CLOSENESS in choices.tasks else None,
    )
    if Task.CLOSENESS in spec.tasks:
        closeness_specs(spec)  # whether it can be carried out
    return spec


def default_threads() -> int:
    """Threads for the engine: every physical core but one, which stays with the system and the monitor."""
    cores = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    return max(1, cores - 1)


def variants_of_files(
    paths: Sequence[Path], engine: str, settings: LoadSettings, cache_dir: Path
) -> tuple[Variant, ...]:
    """A variant for each model file, folders taken apart; the context is never beyond the model's own."""
    files = [file for path in paths for file in find_models(path)]
    variants = []
    for file in dict.fromkeys(files):
        variant = make_variant(file, engine, settings, cache_dir)
        trained = variant.model.n_ctx_train if variant.model else None
        if trained is not None and trained < settings.n_ctx:
            variant = make_variant(file, engine, replace(settings, n_ctx=trained), cache_dir)
        variants.append(variant)
    return tuple(variants)


def _check(choices: Choices) -> None:
    if not choices.variants:
        raise UsageError("No variant is chosen; name at least one model file.")
    if not choices.tasks:
        raise UsageError("No task is chosen; take `speed`, `suite`, `closeness` or several.")
    if Task.SUITE in choices.tasks and choices.suite is None:
        raise UsageError("Task `suite` needs a suite of prompts; name one, such as `quick`.")
    if not 1 <= choices.n_blocks <= 100:
        raise UsageError(f"{choices.n_blocks} repeats cannot be run; choose 1 to 100.")
    if not 1 <= choices.max_tokens <= 1_000_000:
        raise UsageError(f"A limit of {choices.max_tokens} tokens cannot be run; choose 1 to 1,000,000.")
    if not 0 <= choices.seed < SEED_LIMIT:
        raise UsageError(f"Seed {choices.seed} is not one an engine takes; choose 0 to {SEED_LIMIT - 1}.")
    _check_seeds(choices)
    _check_ollama(choices)
    if Task.CLOSENESS in choices.tasks:
        check_add_on()
    if Task.SPEED in choices.tasks:
        _check_context(choices.variants)


def _sampling(choices: Choices) -> Sampling:
    """Greedy, unless each prompt is answered with several seeds."""
    temperature = choices.temperature or SEEDS_TEMPERATURE if choices.n_seeds > 1 else 0.0
    return Sampling(max_tokens=choices.max_tokens, seed=choices.seed, temperature=temperature)


def _check_seeds(choices: Choices) -> None:
    if not 1 <= choices.n_seeds <= MOST_SEEDS:
        raise UsageError(f"{choices.n_seeds} seeds cannot be run; choose 1 to {MOST_SEEDS}.")
    if choices.n_seeds == 1:
        if choices.temperature is not None:
            raise UsageError("One answer a prompt is greedy: name several seeds, or no temperature.")
        return
    if Task.SUITE not in choices.tasks:
        raise UsageError("Seeds repeat the prompts of a suite: add the task `suite`, or leave --seeds out.")
    if choices.suite_repeats is not None:
        raise UsageError("With --seeds every seed is one repeat of the suite: leave --suite-repeats out.")
    if choices.temperature is not None and not 0 < choices.temperature <= 2:
        raise UsageError(
            f"Seeds at temperature {choices.temperature:g} tell nothing: choose one above 0, at most 2."
        )
    if choices.seed + choices.n_seeds > SEED_LIMIT:
        raise UsageError(f"Seed {choices.seed} leaves no room for {choices.n_seeds}; choose a smaller one.")


def _check_ollama(choices: Choices) -> None:
    """Refuse now what an Ollama server would refuse, or do otherwise, at every single request."""
    sampling = _sampling(choices)
    for variant in choices.variants:
        if variant.engine == "ollama":
            problem = settings_problem(variant.load_settings) or sampling_problem(sampling)
            if problem is not None:
                raise UsageError(problem)


def _check_context(variants: Sequence[Variant]) -> None:
    need = max(n_in + n_out for n_in, n_out in SHAPE_TOKENS.values())
    small = [v.label for v in variants if v.load_settings.n_ctx < need]
    if small:
        raise UsageError(
            f"Task `speed` needs a context of at least {need} tokens; {', '.join(small)} has less. "
            "Raise the context or leave `speed` out."
        )


def _reference(choices: Choices, ordered: Sequence[Variant]) -> str:
    labels = [variant.label for variant in ordered]
    if choices.reference is None:
        return default_reference(ordered).label
    named = [
        variant
        for variant in ordered
        if choices.reference in {variant.label, variant.engine_model, Path(variant.engine_model).name}
    ]
    # One file with several types of KV cache is several variants; f16 comes before the quantized ones.
    if len({variant.engine_model for variant in named}) != 1:
        raise UsageError(f"Reference {choices.reference!r} is none of the variants: {', '.join(labels)}.")
    return named[0].label


def _title(variants: Sequence[Variant]) -> str:
    names = " and ".join(model_name_of(members[0]) for members in by_model(variants))
    return f"{names}: {', '.join(variant.label for variant in variants)}"
