import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from liob_core.engines.ollama_lines import LineReader, read_line, read_object
from liob_core.errors import EngineFailure
from liob_core.types import Outcome
from tests.integration.ollama_server import line, recording

AWKWARD = "a\u0085b\u2028c\u2029d\x0be\x1cf\r\ng😀 \t𝔘"


def texts(data: bytes) -> list[str]:
    reader = LineReader()
    lines = reader.feed(data) + reader.finish()
    return [read_line(read_object(one), one).answer for one in lines]


@given(
    pieces=st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=8),
    cuts=st.lists(st.integers(0, 4000), max_size=20),
)
def test_reader_any_split_of_the_bytes_gives_the_same_lines(pieces, cuts):
    data = b"".join(line(response=piece, done=False) for piece in pieces)
    reader, places = LineReader(), [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    got = [one for a, b in pairwise(places) for one in reader.feed(data[a:b])]
    assert [read_line(read_object(one), one).answer for one in got] == pieces
    assert reader.finish() == []


@given(size=st.integers(1, 300))
def test_reader_recorded_answer_in_pieces_of_any_size_is_the_same(size):
    body = recording("generate-raw-unicode").body
    reader = LineReader()
    got = [one for at in range(0, len(body), size) for one in reader.feed(body[at : at + size])]
    assert got == body.rstrip(b"\n").split(b"\n")


def outcome_of(data: bytes) -> Outcome | None:
    try:
        read_line(read_object(data), data)
    except EngineFailure as failure:
        return failure.outcome
    return None


@given(data=st.binary(max_size=200))
def test_reader_any_bytes_are_lines_or_one_bad_reply(data):
    reader = LineReader()
    lines = reader.feed(data) + reader.finish()
    assert {outcome_of(one) for one in lines} <= {None, Outcome.BAD_REPLY}


def test_reader_text_with_every_odd_character_is_kept_to_the_letter():
    assert texts(line(response=AWKWARD)) == [AWKWARD]
    raw = json.dumps({"response": AWKWARD}, ensure_ascii=False).replace("\\t", "\t").encode() + b"\n"
    assert texts(raw) == [AWKWARD]


def test_reader_blank_lines_are_nothing():
    assert texts(b"\n \r\n" + line(response="a") + b"\n\n" + line(response="b")) == ["a", "b"]


def test_reader_last_object_needs_no_line_end():
    assert texts(b'{"response":"a"}') == ["a"]


def test_reader_line_of_a_megabyte_is_one():
    assert texts(line(response="x" * 2**20)) == ["x" * 2**20]


def test_reader_endless_line_is_a_bad_reply(monkeypatch):
    monkeypatch.setattr("liob_core.engines.ollama_lines.MAX_LINE_BYTES", 100)
    with pytest.raises(EngineFailure, match="more than 100 bytes"):
        LineReader().feed(b"x" * 101)


@pytest.mark.parametrize(
    "data",
    [
        b"<html>hello",
        b'"oops"',
        b"[1]",
        b"null",
        b"{",
        b"[" * 100_000,
        b'{"eval_count": -1}',
        b'{"eval_count": 1e400}',
        b'{"eval_count": NaN}',
        b'{"eval_count": "7"}',
        b'{"eval_count": true}',
        b'{"eval_duration": 99999999999999999999}',
        b'{"response": 7}',
        b'{"message": "hi"}',
    ],
)
def test_line_that_is_not_ollamas_is_a_bad_reply_that_keeps_its_beginning(data):
    with pytest.raises(EngineFailure) as caught:
        read_line(read_object(data), data)
    assert caught.value.outcome is Outcome.BAD_REPLY
    assert data[:15].decode() in str(caught.value)


def test_line_absent_and_zero_are_told_apart():
    value = {"prompt_eval_cached_count": 0}
    assert read_line(value, b"").prompt_eval_cached_count == 0
    assert read_line({}, b"").prompt_eval_cached_count is None


def test_line_nulls_are_absent():
    got = read_line({"response": None, "thinking": None, "message": None, "eval_count": None}, b"")
    assert (got.answer, got.thoughts, got.eval_count) == ("", "", None)


def test_line_tool_call_is_shown_as_its_json():
    calls = [{"function": {"name": "w", "arguments": {}}}]
    assert json.loads(read_line({"message": {"content": "", "tool_calls": calls}}, b"").answer) == calls


def test_line_half_a_surrogate_pair_is_a_replacement_character():
    assert texts(b'{"response": "\\ud83d\\ude00 \\ud83d|"}') == ["😀 \ufffd|"]
