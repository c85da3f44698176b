"""JSON in a model's answer: in a code fence, alone, or between sentences."""

import json
import re
from dataclasses import dataclass

from liob_core.types import JsonValue

MAX_JSON_CHARS = 100_000

_MAX_STARTS = 1000  # places tried in a text that is full of brackets
_FENCE = re.compile(r"```[A-Za-z0-9_-]{0,20}[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundJson:
    """One JSON value of a text and the text it was written as."""

    value: JsonValue
    text: str


def _refuse_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def find_json(cleaned: str) -> FoundJson | None:
    """The last JSON value: of the code fences, else the whole text, else of the objects and lists in it."""
    for fenced in reversed(_FENCE.findall(cleaned)):
        found = _whole(fenced)
        if found is not None:
            return found
    return _whole(cleaned) or _last_between_words(cleaned)


def _whole(text: str) -> FoundJson | None:
    try:
        return FoundJson(value=_DECODER.decode(text), text=text.strip())
    except (ValueError, RecursionError):
        return None


def _last_between_words(text: str) -> FoundJson | None:
    last, at = None, 0
    for _ in range(_MAX_STARTS):
        starts = [i for i in (text.find("{", at), text.find("[", at)) if i >= 0]
        if not starts:
            break
        start = min(starts)
        try:
            value, at = _DECODER.raw_decode(text, start)
            last = FoundJson(value=value, text=text[start:at])
        except (ValueError, RecursionError):
            at = start + 1
    return last
