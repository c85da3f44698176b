"""Model files a user named, read as far as a choice needs: the header, not the whole file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from liob_core.errors import LiobError
from liob_core.models.gguf import find_models, read_model
from liob_core.models.memory import Fit, fits, memory_need
from liob_core.models.variant import make_variant, order_by_bits, quant_of, unique_labels
from liob_core.types import LoadSettings, ModelFile, Variant

# Reading this much for the digests takes about a second; with them the estimate knows earlier runs.
_QUICK_BYTES = 1_500_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One variant that could run, and whether the memory that is free is enough."""

    variant: Variant
    fit: Fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the named paths hold, most bits first, and one sentence for each that cannot be used."""

    candidates: tuple[Candidate, ...]
    problems: tuple[str, ...]


def find_candidates(
    paths: Sequence[str], engine: str, asked: LoadSettings, available: int, cache_dir: Path
) -> Found:
    """The variants in `paths` (files and folders), labelled as a run would label them."""
    files: list[Path] = []
    problems: list[str] = []
    for path in paths:
        try:
            files += find_models(Path(path).expanduser())
        except LiobError as error:
            problems.append(str(error))
    variants = []
    for file in dict.fromkeys(files):
        try:
            variants.append(_variant(file, engine, asked, cache_dir))
        except LiobError as error:
            problems.append(str(error))
    try:
        variants = unique_labels(order_by_bits(variants))
    except LiobError as error:
        problems.append(str(error))
    candidates = tuple(Candidate(variant=v, fit=fits(v.need, available)) for v in variants)
    return Found(candidates=candidates, problems=tuple(problems))


def _variant(file: Path, engine: str, asked: LoadSettings, cache_dir: Path) -> Variant:
    model = read_model(file)
    n_ctx = min(asked.n_ctx, model.n_ctx_train or asked.n_ctx)
    settings = replace(asked, n_ctx=n_ctx)
    if model.file_bytes <= _QUICK_BYTES:
        return make_variant(file, engine, settings, cache_dir)
    return _without_digests(model, engine, settings)


def _without_digests(model: ModelFile, engine: str, settings: LoadSettings) -> Variant:
    """A variant good enough to choose by; the run itself is made from one with digests."""
    path = str(Path(model.paths[0]).resolve())
    return Variant(
        key=path,
        label=Path(path).stem,
        quant=quant_of(model),
        engine=engine,
        engine_model=path,
        load_settings=settings,
        weights_sha256=None,
        file_sha256=None,
        model=model,
        need=memory_need(model, settings),
    )
