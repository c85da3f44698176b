"""The engines of one run: most have one, a comparison of engines has several, used one at a time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from liob_core.engines.protocol import Capabilities, Chunk, Engine, LoadReport, Request
from liob_core.engines.registry import make_engine
from liob_core.types import LoadSettings, Message, RunSpec, Variant


def open_engines(spec: RunSpec, machine_dir: Path) -> Engine:
    """The engine of the run, or all of them as one, each used for the variants that name it."""
    names = engine_names(spec)
    address = address_engine(names)
    engines = {
        name: make_engine(
            name,
            url=spec.engine_url if name == address else None,
            options=spec.engine_options,
            machine_dir=machine_dir,
        )
        for name in names
    }
    return EngineSet(engines) if len(engines) > 1 else engines[names[0]]


def engine_names(spec: RunSpec) -> tuple[str, ...]:
    """The engines that a run uses, that of the run itself first."""
    return tuple(dict.fromkeys((spec.engine, *(variant.engine for variant in spec.variants))))


def address_engine(names: Sequence[str]) -> str:
    """The engine whose address a run's URL is: llama-server needs one, Ollama can have one."""
    return next((name for name in ("llama-server", "ollama") if name in names), names[0])


class EngineSet:
    """Several engines that look like one: each question goes to the engine of the variant in use."""

    def __init__(self, engines: Mapping[str, Engine]) -> None:
        self._engines = dict(engines)
        self._current = next(iter(self._engines.values()))

    def of(self, variant: Variant) -> Engine:
        """The engine that runs a variant."""
        return self._engines[variant.engine]

    @property
    def name(self) -> str:
        """The name of the engine in use."""
        return self._current.name

    @property
    def capabilities(self) -> Capabilities:
        """What the engine in use can do; what all must do alike to be compared, as the least of them can."""
        takes_ids = all(engine.capabilities.takes_token_ids for engine in self._engines.values())
        return replace(self._current.capabilities, takes_token_ids=takes_ids)

    def load(self, variant: Variant, settings: LoadSettings, *, log_path: Path, load_s: float) -> LoadReport:
        """What the load took, on the variant's own engine; what another engine holds is freed first."""
        engine = self.of(variant)
        if engine is not self._current:
            self._current.unload()
        self._current = engine
        return engine.load(variant, settings, log_path=log_path, load_s=load_s)

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt text that the engine in use makes of `messages`."""
        return self._current.render(messages)

    def tokenize(self, text: str, *, add_special: bool) -> list[int]:
        """The token ids of `text` by the engine in use."""
        return self._current.tokenize(text, add_special=add_special)

    def bos_id(self) -> int | None:
        """The id that begins a sequence on the engine in use."""
        return self._current.bos_id()

    def generate(self, request: Request) -> Iterator[Chunk]:
        """The chunks of one answer by the engine in use."""
        return self._current.generate(request)

    def abort(self) -> None:
        """Make whatever is under way on any engine fail at once."""
        for engine in self._engines.values():
            engine.abort()

    def pids(self) -> tuple[int, ...]:
        """The processes of the engine in use."""
        return self._current.pids()

    def unload(self) -> None:
        """Free the variant in use."""
        self._current.unload()

    def close(self) -> None:
        """Free everything on every engine."""
        for engine in self._engines.values():
            engine.close()


def renders_as_the_file_says(engine: Engine, variant: Variant) -> bool:
    """Whether a prompt of this variant is rendered with the template in its own file."""
    own = engine.of(variant) if isinstance(engine, EngineSet) else engine
    return own.capabilities.uses_file_template
