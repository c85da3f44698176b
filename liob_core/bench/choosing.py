"""From the models and engines that a user names to variants: files, and models that Ollama has installed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from liob_core.bench.spec import variants_of_files
from liob_core.engines.registry import ENGINES, default_engine, describe_ollama
from liob_core.errors import MissingError, UsageError
from liob_core.models.digests import file_sha256, weights_sha256
from liob_core.models.labels import is_blob
from liob_core.models.ollama_files import registered_variant
from liob_core.models.ollama_variant import make_ollama_variant, open_server
from liob_core.models.variant import variant_key
from liob_core.types import LoadSettings, Variant

# Engines that load a model by themselves; a llama-server of the user's has one loaded already.
LOADING = ("embedded", "ollama")
AUTOMATIC = "auto"


def choose_engines(named: Sequence[str], url: str | None) -> tuple[tuple[str, ...], str | None]:
    """The engines to use, and where none was named one sentence on which and why.

    Raises MissingError where Ollama is among them and does not answer, before anything is read.
    """
    engines = tuple(dict.fromkeys(named))
    unknown = next((name for name in engines if name not in ENGINES), None)
    if unknown is not None:
        raise UsageError(f"There is no engine {unknown!r}: choose from {', '.join(ENGINES)}.")
    other = next((name for name in engines if name not in LOADING), None)
    if len(engines) > 1 and other is not None:
        raise UsageError(
            f"{other} cannot be compared with another engine in one run: take {' and '.join(LOADING)}."
        )
    if not engines:
        if url is not None:
            raise UsageError("Say whose address --url is: --engine ollama or --engine llama-server.")
        name, sentence = default_engine()
        return (name,), sentence
    if "ollama" in engines:
        state = describe_ollama(url)
        if not state.available:
            raise MissingError(state.sentence)
    return engines, None


def variants_of(
    models: Sequence[str],
    engines: Sequence[str],
    settings: LoadSettings,
    cache_dir: Path,
    *,
    url: str | None = None,
) -> tuple[Variant, ...]:
    """The variants of every model on every engine; each text is a file, a folder, or a name on Ollama.

    A file gets its name on Ollama here, and is registered when the run begins.
    """
    files = [Path(text).expanduser() for text in models if is_file(text, engines)]
    names = [text for text in models if not is_file(text, engines)]
    variants: list[Variant] = []
    for engine in engines:
        made = variants_of_files(files, engine, settings, cache_dir)
        variants += map(registered_variant, made) if engine == "ollama" else made
    if names:
        with open_server(url) as server:
            for name in names:
                found = server.find(name)
                variants += [make_ollama_variant(found, settings, cache_dir, engine=one) for one in engines]
    return tuple(variants)


def with_digests(variant: Variant, cache_dir: Path) -> Variant:
    """The variant with its weights' digest, read from its file whole where that was put off."""
    model = variant.model
    if variant.weights_sha256 is not None or model is None or not model.paths:
        return variant
    path = Path(model.paths[0])
    weights = weights_sha256(path, cache_dir)
    # Ollama's own files are written anew by it, so theirs is the digest of no file that was published.
    file = None if is_blob(model.paths[0]) else file_sha256(path, cache_dir)
    key = variant_key(weights, variant.engine, variant.load_settings)
    known = replace(variant, key=key, weights_sha256=weights, file_sha256=file)
    return registered_variant(known) if file and variant.engine == "ollama" else known


def read_gpu_layers(text: str) -> int | None:
    """The layers asked to be on the graphics device; None for `auto`, as many as the engine has room for."""
    asked = text.strip().lower()
    if asked == AUTOMATIC:
        return None
    if asked.isdecimal() and asked.isascii() and len(asked) < 5:
        return int(asked)
    raise UsageError(f"{text!r} is no number of layers on the GPU: write {AUTOMATIC}, 0 (none) or more.")


def is_file(text: str, engines: Sequence[str]) -> bool:
    """Whether a text names a file or folder, and not a model that Ollama has."""
    is_named_as_one = text.lower().endswith(".gguf")
    return "ollama" not in engines or is_named_as_one or Path(text).expanduser().exists()
