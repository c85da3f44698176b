"""Model files on an Ollama server: named for their weights, uploaded once, removed on request."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from liob_core.engines.ollama_host import find_host
from liob_core.engines.ollama_models import full_name
from liob_core.engines.ollama_register import OllamaRegistry, RegisterFile, is_ours, model_name
from liob_core.models.digests import part_sha256s
from liob_core.models.labels import plain_stem
from liob_core.models.variant import make_variant
from liob_core.types import LoadSettings, Variant

# Told what is happening, and the share that is done, 0 to 1, where it is known.
Tell = Callable[[str, float | None], None]


def registered_variant(variant: Variant) -> Variant:
    """The variant of a file on Ollama, under the name that the file gets there; nothing is uploaded yet."""
    if variant.model is None or variant.weights_sha256 is None:
        raise LookupError("a file that is registered is one whose weights were read")
    name = model_name(plain_stem(Path(variant.model.paths[0])), variant.quant, variant.weights_sha256)
    return replace(variant, engine="ollama", engine_model=name)


def variant_to_register(path: Path, settings: LoadSettings, cache_dir: Path) -> Variant:
    """The variant that a file will be on Ollama; reads the whole file once for its digests."""
    return registered_variant(make_variant(path, "ollama", settings, cache_dir))


def needs_registering(variant: Variant) -> bool:
    """Whether a variant is a file that LIOB registers with Ollama under its own name."""
    return (
        variant.engine == "ollama"
        and is_ours(variant.engine_model)
        and variant.model is not None
        and bool(variant.model.paths)
        and Path(variant.model.paths[0]).suffix.lower() == ".gguf"
    )


def register_variant(registry: OllamaRegistry, variant: Variant, cache_dir: Path, tell: Tell) -> bool:
    """Whether the file was registered now; False where the server has those weights already."""
    if variant.model is None:
        raise LookupError("a variant without a file cannot be registered")
    name = variant.engine_model
    if any(full_name(ours) == full_name(name) for ours in registry.ours()):
        return False
    digests = part_sha256s(Path(variant.model.paths[0]), cache_dir)
    files = [RegisterFile(path=path, sha256=sha256) for path, sha256 in digests.items()]

    def progress(status: str, done: int | None, total: int | None) -> None:
        tell(status, done / total if done is not None and total else None)

    registry.register(name, files, progress)
    return True


@contextmanager
def open_registry(url: str | None = None) -> Iterator[OllamaRegistry]:
    """The registry of the server at `url` or OLLAMA_HOST, closed at the end."""
    registry = OllamaRegistry(find_host(url))
    try:
        yield registry
    finally:
        registry.close()
