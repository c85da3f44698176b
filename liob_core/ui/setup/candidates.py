"""Models a user could run, read as far as a choice needs: the header, not the whole file."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from liob_core.errors import LiobError
from liob_core.models.gguf import find_models, read_model
from liob_core.models.memory import Fit, fits, memory_need
from liob_core.models.ollama_files import registered_variant
from liob_core.models.ollama_variant import OllamaModel, make_ollama_variant
from liob_core.models.variant import make_variant, order_by_bits, quant_of, unique_labels
from liob_core.types import LoadSettings, ModelFile, Variant

# Reading this much for the digests takes about a second; with them the estimate knows earlier runs.
_QUICK_BYTES = 1_500_000_000
_REPOSITORY = re.compile(r"(?:https://huggingface\.co/|hf\.co/)?[\w-][\w.-]*/[\w.-]+(?::[\w.-]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One variant that could run, whether the memory that is free is enough, and where it is from."""

    variant: Variant
    fit: Fit
    source: str  # the file's name, or the model's on Ollama
    is_installed: bool = False  # Ollama has it, so that the user did not name it here


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What can be chosen, most bits first, and one sentence for each that cannot be used."""

    candidates: tuple[Candidate, ...]
    problems: tuple[str, ...]


def find_candidates(
    paths: Sequence[str],
    engines: Sequence[str],
    asked: LoadSettings,
    *,
    available: int,
    cache_dir: Path,
    installed: Sequence[OllamaModel] = (),
) -> Found:
    """The variants in `paths` (files and folders) and of Ollama's models, labelled as a run would."""
    problems: list[str] = []
    variants: list[Variant] = []
    sources: dict[str, tuple[str, bool]] = {}
    for file in _files(paths, problems):
        for engine in engines:
            try:
                variant = _variant(file, engine, asked, cache_dir)
            except LiobError as error:
                problems.append(str(error))
                break
            variants.append(variant)
            sources[variant.key] = (file.name, False)
    for model in installed:
        for engine in engines:
            if engine != "ollama" and model.blob is None:
                continue  # its own row on Ollama is still there
            variant = make_ollama_variant(model, asked, cache_dir, engine=engine, with_digests=False)
            if variant.key in sources or variant.engine_model in {one.engine_model for one in variants}:
                continue  # another name for the same weights, or a file above that is registered already
            variants.append(variant)
            sources[variant.key] = (model.name, True)
    try:
        variants = unique_labels(order_by_bits(variants))
    except LiobError as error:
        problems.append(str(error))
        variants = unique_labels(list({variant.key: variant for variant in variants}.values()))
    return Found(
        candidates=tuple(
            Candidate(
                variant=one,
                fit=fits(one.need, available),
                source=sources[one.key][0],
                is_installed=sources[one.key][1],
            )
            for one in variants
        ),
        problems=tuple(problems),
    )


def _files(paths: Sequence[str], problems: list[str]) -> Iterable[Path]:
    files: list[Path] = []
    for path in paths:
        place = Path(path).expanduser()
        if _REPOSITORY.fullmatch(path) and not path.endswith(".gguf") and not place.exists():
            problems.append(
                f"{path} is no file or folder here. If it is on the Hugging Face Hub, get it on the page "
                "Models."
            )
            continue
        try:
            files += find_models(place)
        except LiobError as error:
            problems.append(str(error))
    return dict.fromkeys(files)


def _variant(file: Path, engine: str, asked: LoadSettings, cache_dir: Path) -> Variant:
    model = read_model(file)
    n_ctx = min(asked.n_ctx, model.n_ctx_train or asked.n_ctx)
    settings = replace(asked, n_ctx=n_ctx)
    if model.file_bytes > _QUICK_BYTES:
        return _without_digests(model, engine, settings)
    variant = make_variant(file, engine, settings, cache_dir)
    return registered_variant(variant) if engine == "ollama" else variant


def _without_digests(model: ModelFile, engine: str, settings: LoadSettings) -> Variant:
    """A variant good enough to choose by; the run itself is made from one with digests."""
    path = str(Path(model.paths[0]).resolve())
    return Variant(
        key=f"{engine}:{path}",
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
