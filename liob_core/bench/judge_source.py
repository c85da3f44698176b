"""A judge's model on Ollama: there, or pulled with the user's consent."""

from collections.abc import Callable

from liob_core.engines.ollama_host import find_host
from liob_core.engines.ollama_models import OllamaModels, full_name
from liob_core.engines.ollama_register import OllamaRegistry
from liob_core.engines.ollama_stream import OllamaStream
from liob_core.errors import MissingError

Progress = Callable[[str, int | None, int | None], None]  # words, bytes so far, bytes in all


def ensure_on_ollama(
    model: str, url: str | None, *, may_pull: bool, progress: Progress | None = None
) -> None:
    """Nothing, once the server has the model; raises MissingError where it has not and must not pull it."""
    host = find_host(url)
    stream = OllamaStream(host)
    try:
        installed = {full_name(found.name) for found in OllamaModels(stream).installed()}
    finally:
        stream.close()
    if full_name(model) in installed:
        return
    if not may_pull:
        raise MissingError(f"Ollama does not have {model}: add --pull to fetch it, or name one that it has.")
    registry = OllamaRegistry(host)
    try:
        registry.pull(model, progress)
    finally:
        registry.close()
