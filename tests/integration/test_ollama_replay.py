"""What a real server sent, replayed: whole, in pieces, cut anywhere, stalled and garbled."""

import json
import threading
import time
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from liob_core.engines.ollama import OllamaEngine
from liob_core.engines.protocol import Request
from liob_core.errors import EngineFailure
from liob_core.metrics import sample_metrics
from liob_core.types import Counters, Limits, LoadSettings, Message, Outcome, Sampling, Stamps, Variant
from tests.integration.ollama_server import (
    MODEL,
    OllamaServer,
    in_pieces,
    last_line,
    line,
    recording,
)
from tests.unit.test_metrics import make_sample

RAW = Request(prompt="The capital of France is", sampling=Sampling(max_tokens=48))
STREAMS = [
    "chat-after-runner-killed",
    "chat-cold",
    "chat-emoji",
    "chat-format-json",
    "chat-gemma-cold",
    "chat-keepalive-minus-1",
    "chat-logprobs",
    "chat-no-stream",
    "chat-nonce-1",
    "chat-nonce-2",
    "chat-num-predict-1",
    "chat-num-predict-2",
    "chat-schema",
    "chat-schema-truncated",
    "chat-stop",
    "chat-thinking-false",
    "chat-thinking-level",
    "chat-thinking-only",
    "chat-thinking-true",
    "chat-unknown-option",
    "chat-warm-cached",
    "generate",
    "generate-raw",
    "generate-raw-unicode",
    "generate-thinking",
]


@pytest.fixture(scope="module")
def server():
    made = OllamaServer()
    yield made
    made.close()


@pytest.fixture(scope="module")
def engine(server, tmp_path_factory):
    made = OllamaEngine(server.url)
    load(made, tmp_path_factory.mktemp("run") / "engine.log")
    yield made
    made.close()


def load(engine, log_path, name=MODEL, **changes):
    variant = Variant(
        key="k",
        label="Q4_1",
        quant="Q4_1",
        engine="ollama",
        engine_model=name,
        load_settings=LoadSettings(**{"n_ctx": 2048, **changes}),
        weights_sha256=None,
        file_sha256=None,
        model=None,
        need=None,
    )
    return engine.load(variant, variant.load_settings, log_path=log_path, load_s=5.0)


def request_for(exchange):
    """The request that LIOB would send for a recorded one."""
    n_out = exchange.request["options"]["num_predict"]
    if exchange.path == "/api/generate":
        return replace(RAW, sampling=Sampling(max_tokens=n_out))
    turns = tuple(Message(role="user", content=turn["content"]) for turn in exchange.request["messages"])
    return replace(RAW, sampling=Sampling(max_tokens=n_out), messages=turns)


def ended(engine, request=RAW):
    """The chunks that came, and the failure that ended them, if one did."""
    chunks = []
    try:
        chunks.extend(engine.generate(request))
    except EngineFailure as failure:
        return chunks, failure
    return chunks, None


def failure_of(engine, request=RAW):
    """The failure, and the text that came before it."""
    text = ""
    chunks = engine.generate(request)
    while True:
        try:
            text += next(chunks).text
        except EngineFailure as failure:
            return failure, text


def parts(exchange):
    """Text and thinking of a recording, put together by hand."""
    text, thinking = "", ""
    for one in exchange.body.strip().split(b"\n"):
        value = json.loads(one)
        message = value.get("message", {})
        text += value.get("response", "") + message.get("content", "")
        thinking += value.get("thinking", "") + message.get("thinking", "")
    return text, thinking


@pytest.mark.parametrize("name", STREAMS)
def test_replay_whole_gives_the_exact_numbers_and_text(server, engine, name):
    exchange = recording(name)
    server.replay(exchange)
    chunks = list(engine.generate(request_for(exchange)))
    last = exchange.last
    counters = chunks[-1].counters
    assert replace(counters, cold=None) == Counters(
        prompt_tokens=last["prompt_eval_count"],
        cached_tokens=None,
        output_tokens=last["eval_count"],
        engine_prompt_ms=last["prompt_eval_duration"] / 1e6,
        engine_eval_ms=last["eval_duration"] / 1e6,
        engine_load_ms=last["load_duration"] / 1e6,
        engine_total_ms=last["total_duration"] / 1e6,
        stop_type="limit" if last["done_reason"] == "length" else "stop",
    )
    text, thinking = parts(exchange)
    assert "".join(chunk.text for chunk in chunks) == text
    assert "".join(chunk.thinking for chunk in chunks) == thinking
    assert [chunk.counters for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert not chunks[-1].truncated
    assert all(chunk.n_tokens is None for chunk in chunks[:-1]), "pieces are not tokens"


@pytest.mark.parametrize(
    ("name", "rate", "reason"),
    [
        ("chat-cold", 33 / 1.156192, ""),  # the first of 34 tokens costs nothing in the engine's time
        ("generate-raw", 47 / 1.679854, ""),
        ("chat-num-predict-1", None, "too short"),  # 1 token in 1000 ns is no million tokens a second
        ("chat-num-predict-2", None, "too short"),
        ("chat-exceed-context-default", None, "too short"),
    ],
)
def test_replay_rates_follow_the_first_token_rule(server, engine, name, rate, reason):
    exchange = recording(name)
    server.replay(exchange)
    counters = list(engine.generate(request_for(exchange)))[-1].counters
    metrics = sample_metrics(make_sample(counters=counters, stamps=Stamps(end_ns=10**10)))
    assert metrics.decode_tps == (None if rate is None else pytest.approx(rate, rel=1e-9))
    assert metrics.unknown.get("decode_tps", "") == reason
    assert metrics.unknown["prefill_tps"] == "cache unknown"


@given(sizes=st.integers(1, 400))
@settings(max_examples=20, deadline=None)
def test_replay_in_pieces_of_any_size_is_the_same(server, engine, sizes):
    exchange = recording("chat-emoji")
    server.answer(exchange.path, *in_pieces(exchange.body, sizes))
    chunks = list(engine.generate(request_for(exchange)))
    assert "".join(chunk.text for chunk in chunks) == parts(exchange)[0]
    assert chunks[-1].counters.output_tokens == 40


@given(cut=st.integers(0, len(recording("chat-num-predict-2").body) - 2), is_whole=st.booleans())
@example(cut=recording("chat-num-predict-2").body.index(b"\n"), is_whole=True)
@example(cut=recording("chat-num-predict-2").body.index(b"\n"), is_whole=False)
@settings(max_examples=60, deadline=None)
def test_replay_cut_at_any_byte_is_incomplete_and_keeps_its_text(server, engine, cut, is_whole):
    exchange = recording("chat-num-predict-2")
    server.answer(exchange.path, exchange.body[:cut], is_whole=is_whole)
    failure, text = failure_of(engine, request_for(exchange))
    assert failure.outcome is Outcome.INCOMPLETE
    # A line that lacks nothing but its end is whole too.
    lines = [line for line in exchange.body[:cut].split(b"\n") if is_json(line)]
    assert text == "".join(json.loads(line)["message"]["content"] for line in lines)


def is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


@given(place=st.integers(0, 1300), byte=st.integers(0, 255))
@settings(max_examples=80, deadline=None)
def test_replay_garbled_at_any_byte_ends_in_one_tagged_way(server, engine, place, byte):
    exchange = recording("chat-num-predict-2")
    body = bytearray(exchange.body)
    body[place % len(body)] = byte
    server.answer(exchange.path, bytes(body))
    chunks, failure = ended(engine, request_for(exchange))
    outcomes = {Outcome.BAD_REPLY, Outcome.INCOMPLETE}
    assert (failure is None and chunks[-1].counters is not None) or failure.outcome in outcomes


def test_stall_after_one_piece_is_a_timeout_within_the_deadline(server, engine):
    gone = threading.Event()
    server.answer("/api/generate", line(response="The", done=False), lambda: gone.wait(20))
    began = time.monotonic()
    failure, text = failure_of(engine, replace(RAW, limits=Limits(request_s=0.3)))
    gone.set()
    assert (failure.outcome, text) == (Outcome.TIMEOUT, "The")
    assert time.monotonic() - began < 10  # the server would be silent for 20 s


def test_stall_longer_than_between_tokens_is_a_timeout(server, engine):
    gone = threading.Event()
    server.answer("/api/generate", lambda: gone.wait(20))
    limits = Limits(first_token_s=0.2, between_tokens_s=0.2)
    failure, _ = failure_of(engine, replace(RAW, limits=limits))
    gone.set()
    assert failure.outcome is Outcome.TIMEOUT


def test_drip_that_never_ends_is_a_timeout(server, engine):
    drops = [piece for _ in range(40) for piece in (line(response="", done=False), lambda: time.sleep(0.05))]
    server.answer("/api/generate", *drops, last_line())
    failure, _ = failure_of(engine, replace(RAW, limits=Limits(request_s=0.3)))
    assert failure.outcome is Outcome.TIMEOUT


@pytest.mark.parametrize(
    ("name", "outcome", "words"),
    [
        ("chat-exceed-context-400", Outcome.CONTEXT_EXCEEDED, "3014 tokens"),
        ("chat-404", Outcome.ENGINE_ERROR, "model 'nope:latest' not found"),
        ("chat-bad-name", Outcome.ENGINE_ERROR, "invalid model name"),
        ("chat-bad-json-400", Outcome.ENGINE_ERROR, "unexpected EOF"),
        ("chat-images-400", Outcome.ENGINE_ERROR, "does not support multimodal requests"),
        ("chat-tools-400", Outcome.ENGINE_ERROR, "does not support tools"),
        ("chat-wrong-type", Outcome.ENGINE_ERROR, "must be of type integer"),
        ("chat-keepalive-string-400", Outcome.ENGINE_ERROR, "missing unit in duration"),
        ("generate-404", Outcome.ENGINE_ERROR, "not found"),
        ("generate-raw-system-400", Outcome.ENGINE_ERROR, "raw mode does not support"),
        ("chat-runner-killed", Outcome.ENGINE_DIED, "unexpected EOF"),
        ("chat-client-closed", Outcome.INCOMPLETE, "without its end mark"),
        ("blob-wrong", Outcome.ENGINE_ERROR, "digest mismatch"),
    ],
)
def test_replay_error_is_its_outcome_in_the_servers_words(server, engine, name, outcome, words):
    exchange = recording(name)
    server.replay(exchange, "/api/generate")
    failure, text = failure_of(engine)
    assert failure.outcome is outcome
    assert words in str(failure)
    assert text == {
        "chat-runner-killed": "In the land of the fox",
        "chat-client-closed": "The cat was a cat",
    }.get(name, "")


def test_replay_prompt_cut_in_silence_is_context_exceeded(server, engine, tmp_path):
    exchange = recording("chat-exceed-context-default")
    other = OllamaEngine(server.url)
    load(other, tmp_path / "x.log", n_ctx=512)
    server.replay(exchange)
    long = replace(request_for(exchange), prompt=exchange.request["messages"][0]["content"])
    assert list(other.generate(long))[-1].truncated
    server.replay(exchange)
    counted = replace(RAW, messages=request_for(exchange).messages, expected_prompt_tokens=3014)
    assert list(other.generate(counted))[-1].truncated
    other.close()


def test_stream_died_with_its_server_is_engine_died(tmp_path):
    server = OllamaServer()
    engine = OllamaEngine(server.url)
    load(engine, tmp_path / "x.log")
    server.answer("/api/generate", line(response="a", done=False), server.close, is_whole=False)
    failure, text = failure_of(engine)
    assert (failure.outcome, text, failure.needs_reload) == (Outcome.ENGINE_DIED, "a", True)
    engine.close()
