"""JSON Schema validation that ends: no remote references, patterns with a time limit."""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import regex
from jsonschema.validators import extend
from referencing.jsonschema import EMPTY_REGISTRY


def make_validator(schema: Mapping[str, Any], time_limit_s: float) -> Any:
    """A validator (draft 2020-12) for one use; its patterns raise TimeoutError past the limit in seconds.

    The stock one backtracks without limit on `pattern`, compares all pairs for `uniqueItems`, and
    fetches references from the network.
    """
    deadline = time.monotonic() + time_limit_s

    def matches(pattern: str, text: str) -> bool:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return regex.search(pattern, text, timeout=left_s) is not None

    def check_pattern(
        _validator: Any, pattern: str, instance: object, _schema: object
    ) -> Iterator[jsonschema.ValidationError]:
        if isinstance(instance, str) and not matches(pattern, instance):
            yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")

    def check_pattern_properties(
        validator: Any, properties: Mapping[str, Any], instance: object, _schema: object
    ) -> Iterator[jsonschema.ValidationError]:
        if isinstance(instance, dict):
            for pattern, subschema in properties.items():
                for key, value in instance.items():
                    if matches(pattern, key):
                        yield from validator.descend(value, subschema, path=key, schema_path=pattern)

    def check_additional_properties(
        validator: Any, rule: Any, instance: object, parent: Mapping[str, Any]
    ) -> Iterator[jsonschema.ValidationError]:
        if not isinstance(instance, dict):
            return
        named, patterns = parent.get("properties", {}), parent.get("patternProperties", {})
        for key, value in instance.items():
            if key in named or any(matches(pattern, key) for pattern in patterns):
                continue
            if rule is False:
                yield jsonschema.ValidationError(f"the property {key!r} is not allowed")
            else:
                yield from validator.descend(value, rule, path=key)

    def check_unique_items(
        _validator: Any, is_wanted: bool, instance: object, _schema: object
    ) -> Iterator[jsonschema.ValidationError]:
        if is_wanted and isinstance(instance, list):
            distinct = {json.dumps(item, sort_keys=True) for item in instance}
            if len(distinct) < len(instance):
                yield jsonschema.ValidationError("the list has equal items")

    bounded = extend(  # type: ignore[no-untyped-call]
        jsonschema.Draft202012Validator,
        {
            "pattern": check_pattern,
            "additionalProperties": check_additional_properties,
            "patternProperties": check_pattern_properties,
            "uniqueItems": check_unique_items,
        },
    )
    return bounded(schema, registry=EMPTY_REGISTRY)
