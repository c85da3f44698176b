"""The options of one request to llama-server: what is sent, what is refused, what came of them."""

import json
import math
from collections.abc import Mapping
from typing import Any

import jsonschema
from jsonschema.protocols import Validator
from referencing.exceptions import Unresolvable

from liob_core.engines.protocol import Request
from liob_core.types import JsonValue, Sampling

MAX_SEED = 2**32 - 2  # 2^32 - 1 means "any" to the engine, and larger ones are cut silently

# What LIOB does not offer is sent as off: a server may take other defaults from its command line or the file.
OFF: Mapping[str, JsonValue] = {
    "typical_p": 1.0,
    "xtc_probability": 0.0,
    "dry_multiplier": 0.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "mirostat": 0,
    "dynatemp_range": 0.0,
}


def sampling_problem(sampling: Sampling) -> str | None:
    """One sentence on why the engine cannot do what is asked, or None where it can."""
    if not 0 <= sampling.seed <= MAX_SEED:
        return f"Seed {sampling.seed} is not usable: choose one from 0 to {MAX_SEED}."
    if sampling.max_tokens < 1:
        return f"A limit of {sampling.max_tokens} tokens is not usable: ask for at least 1."
    if sampling.temperature < 0 or not math.isfinite(sampling.temperature):
        return f"Temperature {sampling.temperature} is not usable: choose 0 or more."
    return schema_refusal(sampling)


def schema_refusal(sampling: Sampling) -> str | None:
    """Why a request's JSON schema cannot be used, in one sentence; None where it can or is absent."""
    if sampling.json_schema is None:
        return None
    if sampling.ignore_eos:
        return (
            "A JSON schema and 'ignore end of text' exclude each other: the answer would run past the object."
        )
    try:
        _validator(sampling.json_schema)
    except jsonschema.SchemaError as error:
        place = "/".join(str(part) for part in error.path) or "its top level"
        return f"The JSON schema is not valid at {place}: {error.message}."
    return None


def request_body(request: Request) -> dict[str, JsonValue]:
    """The body of a `/completion` request with every option explicit."""
    sampling = request.sampling
    body: dict[str, JsonValue] = {
        "prompt": request.prompt if isinstance(request.prompt, str) else list(request.prompt),
        "stream": True,
        "cache_prompt": sampling.cache_prompt,
        **_echoed_options(sampling),
        **OFF,
    }
    if sampling.json_schema is not None:
        body["json_schema"] = dict(sampling.json_schema)
    return body


def _echoed_options(sampling: Sampling) -> dict[str, JsonValue]:
    return {
        "n_predict": sampling.max_tokens,
        "seed": sampling.seed,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "repeat_penalty": sampling.repeat_penalty,
        "stop": list(sampling.stop),
        "ignore_eos": sampling.ignore_eos,
    }


def unaccepted_option(sampling: Sampling, echoed: Mapping[str, Any]) -> str | None:
    """The first option that the engine did not take as asked, in words; None where it took them all."""
    for name, asked in {**_echoed_options(sampling), **OFF}.items():
        if name not in echoed:
            return f"the engine did not confirm the option {name!r}"
        got = echoed[name]
        if isinstance(asked, float):
            same = isinstance(got, int | float) and math.isclose(asked, got, rel_tol=1e-6, abs_tol=1e-7)
        else:
            same = asked == got
        if not same:
            return f"the engine took {name!r} as {got!r} instead of {asked!r}"
    if sampling.json_schema is not None and not echoed.get("grammar"):
        return "the engine did not take the JSON schema"
    return None


def schema_problem(schema: Mapping[str, JsonValue], answer: str) -> str | None:
    """Why an answer does not follow its JSON schema, in words; None where it does."""
    try:
        value = json.loads(answer)
    except ValueError:
        return "the answer is not JSON, though a schema was asked for"
    try:
        _validator(schema).validate(value)
    except jsonschema.ValidationError as error:
        return f"the answer does not follow the JSON schema: {error.message[:200]}"
    except Unresolvable as error:
        return f"the JSON schema refers to something that is not in it: {error}"
    return None


def _validator(schema: Mapping[str, JsonValue]) -> Validator:
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    kind.check_schema(dict(schema))
    return kind(dict(schema))
