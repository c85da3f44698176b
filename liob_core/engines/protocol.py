"""What every engine is to the runner. The runner owns the clock; an engine only yields and reports."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from liob_core.types import Counters, JsonValue, Limits, LoadSettings, Message, Sampling, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine can do; callers branch on these, never on its class."""

    takes_token_ids: bool  # prompts as exact token ids, and `ignore_eos`: token counts are met exactly
    reports_cached_tokens: bool
    renders_templates: bool
    is_local: bool  # its processes can be watched
    is_restartable: bool  # LIOB can start it again after it died
    tokenizes: bool = True
    uses_file_template: bool = True  # False: it renders with a template that need not be the file's


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """What a load took and what the engine says became of the settings; None: not told."""

    load_ms: float | None  # None: nothing was loaded (a server that the user runs)
    host_rss_bytes: int | None = None
    effective: Mapping[str, JsonValue] | None = None
    weights_bytes: int | None = None
    kv_bytes: int | None = None
    compute_bytes: int | None = None
    output_bytes: int | None = None
    engine_version: str | None = None
    system_info: str | None = None
    devices: tuple[Mapping[str, JsonValue], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One generation: the prompt as text or as token ids, and every option."""

    prompt: str | tuple[int, ...]
    sampling: Sampling
    limits: Limits = field(default_factory=Limits)
    # Where the prompt itself opened the thinking tag, the answer starts inside it.
    starts_thinking: bool = False
    # Turns to which the engine applies its own template; `prompt` is then what that is expected to give.
    messages: tuple[Message, ...] = ()
    expected_prompt_tokens: int | None = None  # as counted before; fewer mean that the engine cut the prompt
    fixed_length: tuple[int, int] | None = None  # tokens in and out that the request is there to have


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One event of a stream. `n_tokens` is how many tokens it carries, None where that is not known.

    An event may carry a token without visible text (the end token, half a character). The last chunk,
    and only it, has `counters`.
    """

    text: str = ""
    thinking: str = ""
    n_tokens: int | None = 1
    counters: Counters | None = None
    truncated: bool = False  # the engine ran out of context
    note: str | None = None  # on the last chunk: what is odd about an answer that is whole


class Engine(Protocol):
    """One engine with at most one variant loaded. Failures raise `EngineFailure`, and nothing else."""

    @property
    def name(self) -> str:
        """The engine's name as stored in results."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""
        ...

    def load(self, variant: Variant, settings: LoadSettings, *, log_path: Path, load_s: float) -> LoadReport:
        """What the load took; the engine's log goes to `log_path`. Raises after `load_s` seconds."""
        ...

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt text that the loaded file's own template makes of `messages`, without a leading BOS."""
        ...

    def tokenize(self, text: str, *, add_special: bool) -> list[int]:
        """The token ids of `text`; with `add_special`, as the engine would read it as a prompt."""
        ...

    def bos_id(self) -> int | None:
        """The id of the token that begins a sequence, or None where the vocabulary has none."""
        ...

    def generate(self, request: Request) -> Iterator[Chunk]:
        """The chunks of one answer as they arrive, ending with the one that has `counters`.

        What has to be asked before a request is asked here; the request itself is sent with the first
        `next`, which is what the runner times.
        """
        ...

    def abort(self) -> None:
        """Make a `generate` or `load` under way fail at once; safe to call from another thread."""
        ...

    def pids(self) -> tuple[int, ...]:
        """Process ids whose trees are the engine; empty where it is not on this machine."""
        ...

    def unload(self) -> None:
        """Free the loaded variant; nothing where none is loaded."""
        ...

    def close(self) -> None:
        """Free everything; no child is left."""
        ...
