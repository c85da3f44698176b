"""What each kind of check may be told: validated here, graded in `quality.checks`."""

import ast
import json
import math
import re
from typing import Annotated, Any, Literal

import jsonschema
import regex
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainValidator,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from referencing.exceptions import Unresolvable

from liob_core.suites.bounded_schema import make_validator
from liob_core.suites.tested_names import names_to_define
from liob_core.types import Check

MAX_PATTERN_CHARS = 2000
MAX_CODE_S = 60

_REGEX_FLAGS = {"i": regex.IGNORECASE, "m": regex.MULTILINE, "s": regex.DOTALL}

NOT_BLANK = r"\S"

_OVERLAP_KINDS = ("rouge_l", "bleu", "token_f1")
_KINDS = {"number", "exact", "regex", "contains", "choice", "json_schema", *_OVERLAP_KINDS, "unit_tests"}
_PLAIN_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is not a known field",
    "union_tag_not_found": "needs a 'kind'",
    "model_type": "must be a table of fields",
    "model_attributes_type": "must be a table of fields",
    "dict_type": "must be a table",
}

NonEmpty = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]


def _finite(value: object) -> int | float:
    """The number as given, whole floats as int, so that 7 and 7.0 are one content."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")  # noqa: TRY004 - pydantic turns ValueError into a report
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    # Past 2^53 a float's own digits are no longer the ones that were written.
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if is_whole else value


def _finite_from_zero(value: object) -> int | float:
    number = _finite(value)
    if number < 0:
        raise ValueError("must not be negative")
    return number


def _alternatives(value: object) -> list[list[str]]:
    """Each item as a list of spellings of which one is enough."""
    if not isinstance(value, list) or not value:
        raise ValueError("must be a list with at least one item")
    items = [[item] if isinstance(item, str) else item for item in value]
    for item in items:
        if not isinstance(item, list) or not item or not all(isinstance(s, str) and s.strip() for s in item):
            raise ValueError("each item must be a non-empty text or a list of such texts")
    return items


def _share(value: object) -> int | float:
    number = _finite(value)
    if not 0 < number <= 1:
        raise ValueError("must be above 0 and at most 1")
    return number


def _time_limit(value: object) -> int | float:
    number = _finite(value)
    if not 0 < number <= MAX_CODE_S:
        raise ValueError(f"must be above 0 and at most {MAX_CODE_S} (seconds)")
    return number


Number = Annotated[int | float, PlainValidator(_finite)]
Tolerance = Annotated[int | float, PlainValidator(_finite_from_zero)]
Share = Annotated[int | float, PlainValidator(_share)]


class _Params(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class NumberCheck(_Params):
    """The answer's number is within `tolerance` (absolute) or `rel_tolerance` of `value`."""

    kind: Literal["number"]
    value: Number
    tolerance: Tolerance = 0
    rel_tolerance: Tolerance = 0


class ExactCheck(_Params):
    """The answer, or what follows its last "Answer:", equals one of `values`."""

    kind: Literal["exact"]
    values: Annotated[list[NonEmpty], Field(min_length=1)]
    ignore_case: bool = True
    ignore_space: bool = True  # runs of white space count as one blank
    ignore_punctuation: bool = True  # around the answer, Markdown marks too


class RegexCheck(_Params):
    """`pattern` is found in the answer (`search`) or describes all of it (`fullmatch`)."""

    kind: Literal["regex"]
    flags: Annotated[str, StringConstraints(pattern="^[ims]*$")] = ""
    pattern: Annotated[str, StringConstraints(min_length=1, max_length=MAX_PATTERN_CHARS)]
    mode: Literal["search", "fullmatch"] = "search"
    part: Literal["text", "answer"] = "text"

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str, info: ValidationInfo) -> str:
        try:
            compile_pattern(pattern, info.data.get("flags", ""))
        except (regex.error, RecursionError, OverflowError) as error:
            raise ValueError(f"is not a regular expression: {error}") from error
        return pattern


class ContainsCheck(_Params):
    """The answer holds every item of `all`, one of `any`, none of `none`, in the stated length."""

    kind: Literal["contains"]
    all: Annotated[list[list[str]] | None, PlainValidator(_alternatives)] = None
    any: Annotated[list[NonEmpty] | None, Field(min_length=1, validate_default=True)] = None
    none: list[NonEmpty] = []
    ignore_case: bool = True
    whole_words: bool = True
    part: Literal["text", "answer"] = "text"
    min_words: Annotated[int, Field(ge=0)] = 0
    max_words: Annotated[int | None, Field(ge=1)] = None

    @field_validator("any")
    @classmethod
    def _asks_for_something(cls, value: list[str] | None, info: ValidationInfo) -> list[str] | None:
        if value is None and info.data.get("all", ()) is None:
            raise ValueError("give 'all' or 'any': without them an answer that says nothing passes")
        return value


class ChoiceCheck(_Params):
    """The answer settles on the option labelled `correct` among `options` (label to text)."""

    kind: Literal["choice"]
    options: Annotated[
        dict[Annotated[str, StringConstraints(pattern="^[A-Z]$")], NonEmpty],
        Field(min_length=2, max_length=26),
    ]
    correct: str

    @field_validator("correct")
    @classmethod
    def _is_an_option(cls, correct: str, info: ValidationInfo) -> str:
        options = info.data.get("options")
        if options is not None and correct not in options:
            raise ValueError(f"must be one of the labels in 'options': {', '.join(options)}")
        return correct


class JsonSchemaCheck(_Params):
    """The JSON value in the answer fits `schema` (JSON Schema, draft 2020-12)."""

    kind: Literal["json_schema"]
    schema_: Annotated[dict[str, JsonValue], Field(alias="schema")]

    @field_validator("schema_")
    @classmethod
    def _is_a_schema(cls, schema: dict[str, Any]) -> dict[str, Any]:
        words = json.dumps(schema)
        if "unevaluatedProperties" in words and "patternProperties" in words:
            # jsonschema matches these two together without a time limit.
            raise ValueError("uses 'unevaluatedProperties' with 'patternProperties': use one of them")
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
            # A first use finds what the meta-schema cannot: references that lead nowhere or in circles.
            make_validator(schema, time_limit_s=1.0).is_valid({})
        except jsonschema.SchemaError as error:
            raise ValueError(f"is not a JSON schema: {error.message}") from error
        except RecursionError as error:
            raise ValueError("is not a usable JSON schema: it refers to itself without end") from error
        except (Unresolvable, regex.error) as error:
            raise ValueError(f"is not a usable JSON schema: {error}") from error
        return schema


class OverlapCheck(_Params):
    """The answer's likeness to the nearest of `references` is at least `min_score`, 0 to 1."""

    kind: Literal["rouge_l", "bleu", "token_f1"]
    min_score: Share
    references: Annotated[list[NonEmpty] | None, Field(min_length=1)] = None  # None: the prompt's own
    part: Literal["text", "answer"] = "text"


class UnitTestsCheck(_Params):
    """The Python code in the answer passes `tests` within `time_limit_s`."""

    kind: Literal["unit_tests"]
    tests: Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
    time_limit_s: Annotated[int | float, PlainValidator(_time_limit)] = 10

    @field_validator("tests")
    @classmethod
    def _tests_the_answer(cls, tests: str) -> str:
        try:
            program = ast.parse(tests)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"is not a Python program: {error}") from error
        if not any(isinstance(node, ast.Assert) for node in ast.walk(program)):
            raise ValueError("holds no assert, so that any program would pass")
        if not names_to_define(program):
            raise ValueError("uses no name that the answer defines")
        return tests


AnyCheck = Annotated[
    NumberCheck
    | ExactCheck
    | RegexCheck
    | ContainsCheck
    | ChoiceCheck
    | JsonSchemaCheck
    | OverlapCheck
    | UnitTestsCheck,
    Field(discriminator="kind"),
]
_ADAPTER: TypeAdapter[AnyCheck] = TypeAdapter(AnyCheck)


def compile_pattern(pattern: str, flags: str) -> "regex.Pattern[str]":
    """The pattern compiled by `regex`, whose matching can be given a time limit."""
    bits = 0
    for letter in flags:
        bits |= _REGEX_FLAGS[letter]
    return regex.compile(pattern, bits)


def parse_check(check: Check) -> AnyCheck:
    """The check's parameters as a validated model; raises pydantic's ValidationError."""
    return _ADAPTER.validate_python({**check.params, "kind": check.kind})


def to_check(params: AnyCheck) -> Check:
    """The frozen record of validated parameters; defaults are left out, so writing them changes nothing."""
    return Check(
        kind=params.kind, params=params.model_dump(by_alias=True, exclude_defaults=True, exclude={"kind"})
    )


def first_problem(error: ValidationError) -> tuple[tuple[int | str, ...], str]:
    """Where the first mistake is and what it is, in plain words."""
    first = error.errors(include_url=False)[0]
    context = first.get("ctx", {})
    if first["type"] == "union_tag_invalid":
        message = f"kind {context['tag']!r} is unknown: use one of {context['expected_tags']}"
    elif context.get("pattern") == NOT_BLANK:
        message = "must not be blank"
    else:
        message = _PLAIN_WORDS.get(first["type"]) or re.sub(
            r"^(?:Value error, |(?:Input|String|List|Dictionary) (?=should))", "", first["msg"]
        )
    location = first["loc"]
    # pydantic names the chosen kind between 'check' and the field; the file has no such level
    plain = tuple(
        part
        for i, part in enumerate(location)
        if not (part in _KINDS and (i == 0 or location[i - 1] == "check"))
    )
    return plain, message


def validate_check(check: Check) -> str | None:
    """What is wrong with a check, in one sentence; None where it is usable."""
    try:
        parse_check(check)
    except ValidationError as error:
        location, message = first_problem(error)
        return f"field {'.'.join(map(str, location)) or 'kind'!r} {message}"
    return None
