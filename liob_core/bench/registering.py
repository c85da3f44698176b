"""Files of a run that Ollama does not have yet are registered with it before anything is measured."""

from collections.abc import Callable

from liob_core.bench.engines import address_engine, engine_names
from liob_core.config import Settings
from liob_core.models.ollama_files import needs_registering, open_registry, register_variant
from liob_core.types import RunSpec


def register_files(
    spec: RunSpec, settings: Settings, say: Callable[[str, str], None], check: Callable[[], None]
) -> list[str]:
    """The names that were registered now. `say` is told what happens, `check` ends it by raising.

    They stay when the run is over: the same weights get the same name, so the next run finds them.
    """
    files = [variant for variant in spec.variants if needs_registering(variant)]
    if not files:
        return []
    names = []
    url = spec.engine_url if address_engine(engine_names(spec)) == "ollama" else None
    with open_registry(url) as registry:
        for variant in files:
            label = variant.label

            def tell(status: str, share: float | None, label: str = label) -> None:
                check()
                done = f", {share:.0%}" if share is not None else ""
                say(f"registering with Ollama: {status}{done}", label)

            tell("reading the file", None)
            if register_variant(registry, variant, settings.cache_dir, tell):
                names.append(variant.engine_model)
    return names
