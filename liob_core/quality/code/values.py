"""Plain Python values as JSON, so that a value made by tested code is compared outside of its process.

Only content travels: of a subclass the value of the plain type beneath it, of anything else its type's
name. So an object that claims to equal everything equals nothing.
"""

from typing import Any

MAX_DEPTH = 40
MAX_ITEMS = 20_000
MAX_DIGITS = 4_000  # of an int, below Python's own limit on reading one

_LISTS: dict[str, type[Any]] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


class NotPlainError(ValueError):
    """A value that is more than numbers, texts and containers of them, or too large to travel."""


def pack(value: object) -> Any:
    """What `json.dumps` can write of a plain value; raises NotPlainError for any other."""
    room = [MAX_ITEMS]
    return _pack(value, MAX_DEPTH, room)


def unpack(packed: Any) -> Any:
    """The value that was packed; raises NotPlainError for what no packing made."""
    if packed is None or isinstance(packed, bool | str | float | int):
        return packed
    if not isinstance(packed, dict) or len(packed) != 1:
        raise NotPlainError("not a packed value")
    kind, content = next(iter(packed.items()))
    try:
        if kind in _LISTS:
            return _LISTS[kind](unpack(item) for item in content)
        if kind == "dict":
            return {unpack(key): unpack(item) for key, item in content}
        if kind == "bytes":
            return bytes.fromhex(content)
        if kind == "complex":
            return complex(*content)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotPlainError(str(error)) from error
    raise NotPlainError(f"unknown kind {kind!r}")


def _pack(value: object, depth: int, room: list[int]) -> Any:
    room[0] -= 1
    if depth == 0 or room[0] < 0:
        raise NotPlainError(f"a {type(value).__name__} too large to be compared")
    if value is None or value is True or value is False:
        return value
    for kind, make in _LISTS.items():
        if isinstance(value, make):
            return {kind: [_pack(item, depth - 1, room) for item in make.__iter__(value)]}
    if isinstance(value, dict):
        items = dict.items(value)
        return {"dict": [[_pack(key, depth - 1, room), _pack(item, depth - 1, room)] for key, item in items]}
    return _pack_scalar(value)


def _pack_scalar(value: object) -> Any:
    # The base type's own methods: a subclass may have overridden them to say anything.
    if isinstance(value, int):
        number = int.__add__(value, 0)
        if int.bit_length(number) > MAX_DIGITS * 3:
            raise NotPlainError("an int too large to be compared")
        return number
    if isinstance(value, float):
        return float.__add__(value, 0.0)
    if isinstance(value, str):
        return str.__str__(value)[:]
    if isinstance(value, bytes | bytearray):
        return {"bytes": bytes.hex(bytes(value)) if isinstance(value, bytes) else bytearray.hex(value)}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    raise NotPlainError(f"a {type(value).__name__}")
