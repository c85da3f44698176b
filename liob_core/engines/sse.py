"""Server-sent events out of raw bytes."""

MAX_LINE_BYTES = 64 * 2**20


class EventReader:
    r"""Takes bytes in any pieces and returns the data of whole events.

    Lines end at the byte `\n` alone: text splitters also cut at U+2028 and the like, which model text
    contains, and a piece may end inside a character.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that `piece` completes; comments (pings) are left out.

        Raises ValueError where a line is longer than any event can be.
        """
        self._rest += piece
        events = []
        *lines, rest = self._rest.split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            raise ValueError(f"a line of more than {MAX_LINE_BYTES} bytes")
        self._rest = rest
        for line in lines:
            field, _, value = bytes(line).rstrip(b"\r").partition(b":")
            if field in {b"data", b"error"}:
                self._data.append(value.removeprefix(b" "))
            elif not field and not value and self._data:
                events.append(b"\n".join(self._data))
                self._data.clear()
        return events
