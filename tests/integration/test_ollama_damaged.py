"""Everything a real server sent, cut, stalled, broken off and garbled anywhere: always one tagged end.

The bytes come through the real HTTP client from a transport in memory, so that hundreds of cases take
seconds; `test_ollama_replay` does a few of them over sockets.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from liob_core.engines.ollama import OllamaEngine
from liob_core.engines.ollama_host import OllamaHost
from liob_core.engines.ollama_models import OllamaModels
from liob_core.engines.ollama_register import OllamaRegistry
from liob_core.engines.ollama_stream import OllamaStream
from liob_core.errors import EngineFailure
from liob_core.metrics import sample_metrics
from liob_core.types import Message, Outcome, Stamps
from tests.integration.ollama_server import MODEL, RECORDINGS, OllamaServer, recording
from tests.integration.test_ollama_replay import RAW, STREAMS, load, parts, request_for
from tests.unit.test_metrics import make_sample

ALL = sorted(path.stem for path in RECORDINGS.glob("*.json") if path.stem != "processes")
SOME = settings(max_examples=60, deadline=None)
HOST = OllamaHost("http://127.0.0.1:11434", is_loopback=True)
BREAKS = (httpx.ReadError, httpx.RemoteProtocolError, httpx.ReadTimeout)


class Body(httpx.SyncByteStream):
    """The pieces of one answer, and what the connection then does."""

    def __init__(self, pieces: list[bytes], end: type[Exception] | None = None) -> None:
        self._pieces, self._end = pieces, end

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces
        if self._end is not None:
            raise self._end("as scripted")


class Wire:
    """Gives the scripted answer to what is measured; says what a server says to all else."""

    def __init__(self) -> None:
        self.status, self.body, self.is_up = 200, Body([]), True

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/version":
            if not self.is_up:
                raise httpx.ConnectError("refused")
            return httpx.Response(200, json={"version": "0.33.0"})
        if request.url.path == "/api/ps":
            return httpx.Response(200, json={"models": [{"name": MODEL, "context_length": 2048}]})
        return httpx.Response(self.status, stream=self.body)


@pytest.fixture(scope="module")
def wire() -> Wire:
    return Wire()


@pytest.fixture(scope="module")
def engine(wire, tmp_path_factory):
    server = OllamaServer()
    made = OllamaEngine(server.url)
    load(made, tmp_path_factory.mktemp("run") / "engine.log")
    server.close()
    made._measured._http = httpx.Client(base_url=server.url, transport=httpx.MockTransport(wire))
    yield made
    made.close()


def answer(engine, wire, body, *, request=RAW, status=200, sizes=(), end=None, is_up=True):
    """Text, thinking, the last chunk's counters and the failure, if there was one."""
    places = [0, *sorted(min(size, len(body)) for size in sizes), len(body)]
    wire.status, wire.is_up = status, is_up
    wire.body = Body([body[a:b] for a, b in pairwise(places)], end)
    text, thinking, counters = "", "", None
    try:
        for chunk in engine.generate(request):
            text, thinking = text + chunk.text, thinking + chunk.thinking
            assert counters is None, "nothing comes after the counters"
            counters = chunk.counters
    except EngineFailure as failure:
        return text, thinking, counters, failure
    return text, thinking, counters, None


def as_turns(exchange):
    """The request for a recorded exchange; what was no request for an answer is taken as a chat's."""
    body = exchange.request if isinstance(exchange.request, dict) else {}
    if "options" in body and ("messages" in body or exchange.path == "/api/generate"):
        return request_for(exchange)
    return replace(RAW, messages=(Message(role="user", content="Hi"),))


@pytest.mark.parametrize("name", STREAMS)
def test_any_split_of_every_recorded_stream_gives_the_same(engine, wire, name):
    exchange = recording(name)
    whole = answer(engine, wire, exchange.body, request=request_for(exchange))
    assert whole[:2] == parts(exchange)
    body, n = exchange.body, len(exchange.body)
    for sizes in (range(n), range(0, n, 7), range(n - 40, n), (n // 3,)):
        assert answer(engine, wire, body, request=request_for(exchange), sizes=sizes) == whole


@st.composite
def cuts(draw):
    """A recorded stream and a place in it."""
    name = draw(st.sampled_from(STREAMS))
    return name, draw(st.integers(0, len(recording(name).body)))


@given(cuts(), st.sampled_from([None, *BREAKS]), st.booleans())
@example(("chat-emoji", 401), None, False)  # between an object and the end of its line
@SOME
def test_stream_that_ends_anywhere_keeps_what_came_and_says_how_it_ended(engine, wire, cut, end, is_up):
    name, place = cut
    exchange = recording(name)
    whole = answer(engine, wire, exchange.body, request=request_for(exchange))
    got = answer(engine, wire, exchange.body[:place], request=request_for(exchange), end=end, is_up=is_up)
    text, thinking, counters, failure = got
    if place >= len(exchange.body.rstrip(b"\n")):  # only the last line's end is missing, if anything
        assert got == whole or end is not None
        return
    assert counters is None
    expected = {
        None: Outcome.INCOMPLETE,
        httpx.ReadTimeout: Outcome.TIMEOUT,
    }.get(end, Outcome.INCOMPLETE if is_up else Outcome.ENGINE_DIED)
    assert failure.outcome is expected, str(failure)
    assert whole[0].startswith(text)
    assert whole[1].startswith(thinking)
    # An object that is whole is a line, though only its end is missing.
    n_came = place + exchange.body.startswith(b"\n", place)
    lines = [json.loads(one) for one in exchange.body[:n_came].split(b"\n")[:-1]]
    came = "".join(one.get("response", "") + one.get("message", {}).get("content", "") for one in lines)
    assert came.startswith(text)
    assert len(came) - len(text) < len("</thinking>"), "only what may begin a tag is held back"


@st.composite
def damages(draw):
    """Anything a server sent, with bytes changed, lost, doubled, inserted or swapped at any place."""
    name = draw(st.sampled_from(ALL))
    body = bytearray(recording(name).body)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(0, len(body) - 1)))
        end = min(len(body), place + draw(st.integers(1, 40)))
        kind = draw(st.sampled_from(["change", "lose", "double", "insert", "swap"]))
        if kind == "change" and body:
            body[place] = draw(st.integers(0, 255))
        elif kind == "lose":
            del body[place:end]
        elif kind == "double":
            body[place:place] = body[place:end]
        elif kind == "insert":
            body[place:place] = draw(st.sampled_from(PIECES))
        else:
            body = body[end:] + body[:end]
    return name, bytes(body)


PIECES = (
    b"\n",
    b"\x00",
    b"\xff\xfe",
    b"\xe2\x80\xa8",
    b'"',
    b"}\n{",
    b"null\n",
    b"[]\n",
    b'{"done":true}\n',
    b'{"error":{"error":{"error":1}}}\n',
    b'{"error":"\\ud800"}\n',
    b'{"response":"\\ud800","done":false}\n',
    b'{"done":true,"eval_count":-1}\n',
    b'{"done":true,"eval_count":1e999,"eval_duration":NaN}\n',
    b'{"message":null,"done":"yes"}\n',
    b'{"done":true,"eval_count":9007199254740993}\n',
    b"[" * 3000 + b"\n",
    b"<html>\r\n",
)


@given(damages())
@settings(max_examples=300, deadline=None)
@example(("chat-cold", b""))
@example(("chat-cold", b'{"error":"\\ud800"}\n'))
def test_anything_garbled_ends_in_one_tagged_way_and_can_be_stored(engine, wire, damage):
    name, body = damage
    exchange = recording(name)
    text, thinking, counters, failure = answer(
        engine, wire, body, request=as_turns(exchange), status=exchange.status
    )
    json.dumps([text, thinking, str(failure)]).encode()
    (text + thinking + str(failure or "")).encode("utf-8")
    assert (failure is None) is (counters is not None), "an answer is whole, or it has failed"
    if failure is not None:
        assert failure.outcome in set(Outcome) - {Outcome.OK, Outcome.LENGTH}
        return
    sample = make_sample(counters=counters, stamps=Stamps(end_ns=10**10, first_text_ns=10**9))
    metrics = sample_metrics(sample)
    numbers = [value for value in vars_of(metrics) if isinstance(value, float)]
    assert all(math.isfinite(number) for number in numbers)
    for value in vars_of(counters):
        assert not isinstance(value, int | float) or value >= 0


def vars_of(record) -> list[object]:
    return [getattr(record, name) for name in record.__dataclass_fields__]


def test_the_next_answer_is_right_after_any_of_them(engine, wire):
    exchange = recording("chat-cold")
    text, _, counters, failure = answer(engine, wire, exchange.body, request=request_for(exchange))
    assert (failure, text) == (None, parts(exchange)[0])
    assert counters.output_tokens == exchange.last["eval_count"]


QUESTIONS: dict[str, Callable[[OllamaModels], object]] = {
    "tags": lambda models: models.installed(),
    "tags-three": lambda models: models.installed(),
    "ps-loaded": lambda models: models.loaded(),
    "show": lambda models: models.show("m"),
    "show-gemma": lambda models: models.show("m"),
}


@pytest.fixture(scope="module")
def stream(wire):
    made = OllamaStream(HOST)
    made._http = httpx.Client(base_url=HOST.url, transport=httpx.MockTransport(lambda _: spoilt.reply()))
    yield made
    made.close()


@pytest.fixture(scope="module")
def registry(wire):
    made = OllamaRegistry(HOST)
    made._client._client = httpx.Client(
        base_url=HOST.url, transport=httpx.MockTransport(lambda _: spoilt.reply())
    )
    yield made
    made.close()


class Spoilt:
    """The answer to the next plain call."""

    body = b""

    def reply(self) -> httpx.Response:
        return httpx.Response(200, content=self.body)


spoilt = Spoilt()


@st.composite
def spoiled(draw, names):
    """A recorded reply with a piece of something else in it."""
    name = draw(st.sampled_from(names))
    body = bytearray(recording(name).body)
    place = draw(st.integers(0, len(body) - 1))
    body[place : place + draw(st.integers(0, 3))] = draw(st.sampled_from(PIECES))
    return name, bytes(body)


def outcome_of(ask: Callable[[], object]) -> Outcome | None:
    try:
        ask()
    except EngineFailure as failure:
        return failure.outcome
    return None


@given(spoiled(sorted(QUESTIONS)))
@SOME
def test_garbled_reply_to_a_question_is_read_or_a_failure(stream, reply):
    name, spoilt.body = reply
    outcome = outcome_of(lambda: QUESTIONS[name](OllamaModels(stream)))
    assert outcome in {None, Outcome.BAD_REPLY, Outcome.ENGINE_ERROR}


@given(spoiled(["create-from-gguf", "create-gemma", "pull-offline"]))
@SOME
def test_garbled_progress_of_a_pull_succeeds_or_fails(registry, reply):
    name, spoilt.body = reply
    seen: list[tuple[int | None, int | None]] = []
    outcome = outcome_of(lambda: registry.pull("m", lambda _, done, total: seen.append((done, total))))
    assert outcome in {None, Outcome.BAD_REPLY, Outcome.ENGINE_ERROR, Outcome.INCOMPLETE}
    assert outcome is not None or name != "pull-offline"
    assert all(done is None or total is None or 0 <= done <= total for done, total in seen)
