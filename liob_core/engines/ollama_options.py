"""What is sent to Ollama: every option explicit, none that it would ignore or misread."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from liob_core.engines.options import schema_refusal
from liob_core.engines.protocol import Request
from liob_core.errors import UsageError
from liob_core.types import JsonValue, LoadSettings, Message, Sampling

MAX_SEED = 2**31 - 1
DEFAULT_KEEP_ALIVE_S = 600
THINK_LEVELS = ("low", "medium", "high", "max")
_DURATION = re.compile(r"-?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+")

# Options of a user's profile and the type Ollama wants: it ignores a misspelt name without a word.
PROFILE_OPTIONS: Mapping[str, type] = {
    "num_keep": int,
    "typical_p": float,
    "repeat_last_n": int,
    "presence_penalty": float,
    "frequency_penalty": float,
    "main_gpu": int,
    "draft_num_predict": int,
    "num_batch": int,
    "use_mmap": bool,
}

# What LIOB does not offer is sent as off: a model's registration may carry parameters of its own.
OFF: Mapping[str, JsonValue] = {
    "typical_p": 1.0,
    "repeat_last_n": 64,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "draft_num_predict": 0,
}


@dataclass(frozen=True, slots=True)
class Profile:
    """What a user may choose beside load settings and sampling (`RunSpec.engine_options`)."""

    options: Mapping[str, JsonValue] = field(default_factory=dict)
    think: bool | str | None = None  # None: as the server would for each model
    keep_alive: int | float | str = DEFAULT_KEEP_ALIVE_S
    allow_remote: bool = False


def read_profile(given: Mapping[str, JsonValue]) -> Profile:
    """The profile in a run's engine options; raises UsageError for what Ollama would ignore or refuse."""
    unknown = set(given) - {"options", "think", "keep_alive", "allow_remote"}
    if unknown:
        raise UsageError(
            f"Ollama has no setting {sorted(unknown)[0]!r} here: choose from options, think, keep_alive, "
            "allow_remote."
        )
    think = given.get("think")
    if not (think is None or isinstance(think, bool) or think in THINK_LEVELS):
        raise UsageError(
            f"Thinking {think!r} is not known: choose true, false or one of {', '.join(THINK_LEVELS)}."
        )
    options = given.get("options", {})
    if not isinstance(options, Mapping):
        raise UsageError("The options for Ollama must be a table of names and values.")
    for name, value in options.items():
        _check_option(name, value)
    allow_remote = given.get("allow_remote", False)
    if not isinstance(allow_remote, bool):
        raise UsageError("allow_remote must be true or false.")
    keep_alive = read_keep_alive(given.get("keep_alive", DEFAULT_KEEP_ALIVE_S))
    return Profile(dict(options), think, keep_alive, allow_remote)


def _check_option(name: str, value: JsonValue) -> None:
    wanted = PROFILE_OPTIONS.get(name)
    if wanted is None:
        raise UsageError(
            f"Ollama would ignore the option {name!r} without a word: choose from "
            f"{', '.join(PROFILE_OPTIONS)}. Sampling and context are settings of the run."
        )
    fits = isinstance(value, wanted) or (wanted is float and isinstance(value, int))
    if not fits or (wanted is not bool and isinstance(value, bool)):
        raise UsageError(f"Option {name!r} must be of type {wanted.__name__}, not {value!r}.")


def read_keep_alive(value: JsonValue) -> int | float | str:
    """How long a model stays loaded, as Ollama takes it: a number of seconds, or a duration like 5m."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return value
    text = str(value).strip()
    if re.fullmatch(r"-?\d+", text):
        return int(text)  # Ollama refuses a string without a unit
    if isinstance(value, str) and _DURATION.fullmatch(text):
        return text
    raise UsageError(f"keep_alive {value!r} is no duration: write seconds, or one like 5m; -1 is for ever.")


def settings_problem(settings: LoadSettings) -> str | None:
    """One sentence on what a request cannot set on an Ollama server, or None where it sets everything."""
    if settings.n_parallel != 1:
        return "Ollama's parallel requests are set for the whole server: start it with OLLAMA_NUM_PARALLEL."
    if (settings.kv_type_k, settings.kv_type_v) != ("f16", "f16"):
        return (
            "Ollama's KV cache type is set for the whole server: start it with OLLAMA_KV_CACHE_TYPE and "
            "leave the type at f16 here."
        )
    return None


def sampling_problem(sampling: Sampling) -> str | None:
    """One sentence on why Ollama cannot do what is asked, or None where it can."""
    if not 0 <= sampling.seed <= MAX_SEED:
        return f"Seed {sampling.seed} is not usable on Ollama: choose one from 0 to {MAX_SEED}."
    if sampling.max_tokens < 1:
        return f"A limit of {sampling.max_tokens} tokens is not usable: Ollama takes 0 as unlimited."
    if sampling.temperature < 0 or not math.isfinite(sampling.temperature):
        return f"Temperature {sampling.temperature} is not usable: choose 0 or more."
    if sampling.ignore_eos:
        return "Ollama has no way to go on after the end token."
    return schema_refusal(sampling)


def load_options(settings: LoadSettings, profile: Profile) -> dict[str, JsonValue]:
    """The options whose change makes Ollama load a model again."""
    # Left out, Ollama fits as many layers as there is room for when it loads.
    offload = {} if settings.gpu_layers is None else {"num_gpu": settings.gpu_layers}
    return {
        "num_ctx": settings.n_ctx,
        # Ollama uses one number for the logical and the physical batch; the physical one is what counts.
        "num_batch": min(settings.n_batch, settings.n_ubatch),
        **offload,
        "num_thread": settings.threads,
        "use_mmap": settings.load_mode == "mmap",
        **OFF,
        **profile.options,
    }


def load_body(model: str, settings: LoadSettings, profile: Profile) -> dict[str, JsonValue]:
    """The body that loads a model with the very options of the requests to come."""
    return {
        "model": model,
        "prompt": "",
        "stream": False,
        "options": load_options(settings, profile),
        "truncate": False,
        "shift": False,
        "keep_alive": profile.keep_alive,
    }


def request_body(
    model: str, settings: LoadSettings, profile: Profile, request: Request, think: bool | str | None
) -> tuple[str, dict[str, JsonValue]]:
    """Path and body of one measured request.

    Where the request has messages, Ollama applies its own template to them; else the prompt goes as it is.
    `think` is None for a model that cannot: the field is then left out, since Ollama would refuse it.
    """
    sampling = request.sampling
    options = {
        **load_options(settings, profile),
        "seed": sampling.seed,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "repeat_penalty": sampling.repeat_penalty,
        "num_predict": sampling.max_tokens,
    }
    body: dict[str, JsonValue] = {
        **load_body(model, settings, profile),
        "options": options,
        "stream": True,
    }
    if sampling.json_schema is not None:
        body["format"] = dict(sampling.json_schema)
    if think is not None:
        body["think"] = think
    if request.messages:
        if sampling.stop:
            options["stop"] = list(sampling.stop)
        del body["prompt"]
        body["messages"] = messages_body(request.messages)
        return "/api/chat", body
    # The stop sequences of the model's registration belong to its template, which is not used here.
    options["stop"] = list(sampling.stop)
    return "/api/generate", {**body, "prompt": request.prompt, "raw": True}


def messages_body(messages: Sequence[Message]) -> list[JsonValue]:
    """The turns of a chat request."""
    return [{"role": message.role, "content": message.content} for message in messages]
