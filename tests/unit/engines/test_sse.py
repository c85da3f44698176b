from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from liob_core.engines import sse
from liob_core.engines.sse import EventReader

STREAM = 'data: {"content":"héé\u2028 😀"}\n\n: ping\n\ndata: two\r\n\r\ndata:three\n\n'.encode()
EVENTS = ['{"content":"héé\u2028 😀"}'.encode(), b"two", b"three"]


def test_reader_whole_stream_gives_its_events():
    assert EventReader().feed(STREAM) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_reader_cut_at_any_bytes_gives_the_same_events(cuts):
    reader = EventReader()
    edges = sorted({0, len(STREAM), *cuts})
    events = []
    for start, end in pairwise(edges):
        events += reader.feed(STREAM[start:end])
    assert events == EVENTS


def test_reader_pings_alone_give_nothing():
    assert EventReader().feed(b": ping\n\n:\n\n\n\n") == []


def test_reader_event_without_its_blank_line_is_not_complete():
    reader = EventReader()
    assert reader.feed(b"data: x\n") == []
    assert reader.feed(b"\n") == [b"x"]


def test_reader_endless_line_is_refused(monkeypatch):
    monkeypatch.setattr(sse, "MAX_LINE_BYTES", 100)
    with pytest.raises(ValueError, match="100 bytes"):
        EventReader().feed(b"x" * 101)
