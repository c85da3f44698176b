from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from liob_core.bench.measure import (
    Recording,
    count_mismatch,
    ending_of,
    loop_unit,
    prompt_sha256,
    record,
)
from liob_core.engines.protocol import Chunk
from liob_core.types import Counters, Outcome


def recorded(*chunks: Chunk) -> Recording:
    recording = Recording(started_utc_ns=0)
    record(recording, iter(chunks), 0, lambda _tokens, _text: None)
    return recording


END = Chunk(n_tokens=0, counters=Counters(stop_type="eos"))
LIMIT = Chunk(n_tokens=0, counters=Counters(stop_type="limit"))


def test_record_stamps_the_first_token_before_the_first_text() -> None:
    recording = recorded(Chunk(), Chunk(thinking="hm"), Chunk(text="yes"), Chunk(), END)
    stamps = recording.stamps()
    assert stamps.first_token_ns is not None
    assert stamps.first_text_ns is not None
    assert stamps.first_output_ns is not None
    assert stamps.last_token_ns is not None
    assert stamps.end_ns is not None
    assert stamps.first_token_ns < stamps.first_text_ns < stamps.first_output_ns
    assert stamps.first_output_ns < stamps.last_token_ns < stamps.end_ns
    assert (recording.response, recording.thoughts) == ("yes", "hm")


def test_record_ignores_events_without_a_token() -> None:
    recording = recorded(Chunk(n_tokens=0), END)
    assert recording.first_token_ns is None
    assert recording.stamps().first_text_ns is None


def test_record_keeps_what_came_before_a_failure() -> None:
    def broken() -> Iterator[Chunk]:
        yield Chunk(text="half")
        raise ConnectionError

    recording = Recording(started_utc_ns=0)
    with pytest.raises(ConnectionError):
        record(recording, broken(), 0, lambda _tokens, _text: None)
    assert recording.response == "half"
    assert recording.counters is None


@pytest.mark.parametrize(
    ("chunks", "outcome"),
    [
        ((Chunk(text="a"), END), Outcome.OK),
        ((Chunk(text="a"), LIMIT), Outcome.LENGTH),
        ((Chunk(text=" \n"), END), Outcome.EMPTY),
        ((Chunk(thinking="a"), END), Outcome.THINKING_ONLY),
        ((Chunk(thinking="a"), LIMIT), Outcome.TRUNCATED_THINKING),
        ((Chunk(text="a"),), Outcome.INCOMPLETE),
        ((Chunk(text="so it goes. " * 40), LIMIT), Outcome.REPETITION),
        ((Chunk(text="so it goes. " * 40), END), Outcome.OK),
        (
            (Chunk(text="a"), Chunk(counters=Counters(stop_type="limit"), truncated=True)),
            Outcome.CONTEXT_EXCEEDED,
        ),
    ],
)
def test_ending_of_a_stream_is_exactly_one_outcome(chunks: tuple[Chunk, ...], outcome: Outcome) -> None:
    assert ending_of(recorded(*chunks), fixed_length=False).outcome is outcome


def test_ending_of_a_fixed_shape_needs_no_text() -> None:
    assert ending_of(recorded(Chunk(), LIMIT), fixed_length=True).outcome is Outcome.LENGTH


def test_count_mismatch_names_both_counts() -> None:
    assert count_mismatch(Counters(prompt_tokens=512, output_tokens=128), 512, 128) is None
    sentence = count_mismatch(Counters(prompt_tokens=530, output_tokens=12), 512, 128)
    assert sentence is not None
    assert "530" in sentence
    assert "12" in sentence


def test_loop_unit_needs_a_long_loop() -> None:
    assert loop_unit("ha " * 100) == "ha "
    assert loop_unit("ha " * 10) is None
    assert loop_unit("A list:\n" + "".join(f"{n}. item number {n}\n" for n in range(60))) is None
    assert loop_unit(" " * 400) is None


@given(st.text(max_size=2000))
def test_loop_unit_never_fails(text: str) -> None:
    unit = loop_unit(text)
    assert unit is None or text.endswith(unit)


def test_prompt_sha256_tells_text_from_ids() -> None:
    # sha256 of b"abc", from the standard's own test vectors.
    assert prompt_sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert prompt_sha256((1, 2)) != prompt_sha256((2, 1))
