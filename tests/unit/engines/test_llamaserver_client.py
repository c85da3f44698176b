import json
import threading
import time
from dataclasses import replace

import pytest

from liob_core.engines.llamaserver import LlamaServerClient
from liob_core.engines.protocol import Request
from liob_core.errors import EngineFailure
from liob_core.types import Counters, Limits, Message, Outcome, Sampling
from tests.unit.engines.scripted import GENERATION_SETTINGS, event, last_event

REQUEST = Request(prompt="Hi", sampling=Sampling(max_tokens=8))
WORDS = [("Smile", 1), (" 😀", 4), ("", 5)]
STREAM = b"".join(event(text, n) for text, n in WORDS) + last_event(5)


@pytest.fixture
def client(server):
    made = LlamaServerClient(server.url, "secret")
    yield made
    made.close()


def failure_of(client, request=REQUEST):
    with pytest.raises(EngineFailure) as caught:
        list(client.generate(request))
    return caught.value


def test_generate_counts_tokens_not_events(client, server):
    server.answer_stream(STREAM)
    chunks = list(client.generate(REQUEST))
    assert [(chunk.text, chunk.n_tokens) for chunk in chunks] == [("Smile", 1), (" 😀", 3), ("", 1), ("", 0)]
    assert chunks[-1].counters == Counters(
        prompt_tokens=10,
        cached_tokens=3,
        output_tokens=5,
        engine_prompt_ms=5.5,
        engine_eval_ms=20.25,
        stop_type="eos",
        eval_excludes_first_token=True,
    )
    assert [chunk.counters for chunk in chunks[:-1]] == [None] * 3
    assert not chunks[-1].truncated


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_generate_bytes_in_any_pieces_give_the_same_chunks(client, server, size):
    server.answer_stream(*(STREAM[i : i + size] for i in range(0, len(STREAM), size)))
    assert "".join(chunk.text for chunk in client.generate(REQUEST)) == "Smile 😀"


def test_generate_pings_are_no_tokens(client, server):
    server.answer_stream(b": ping\n\n", event("a", 1), b": ping\n\n", last_event(1))
    assert [chunk.text for chunk in client.generate(REQUEST)] == ["a", ""]


def test_generate_thinking_is_divided_where_the_prompt_opened_the_tag(client, server):
    server.answer_stream(event("hm</thi", 3), event("nk>Yes", 6), last_event(6))
    chunks = list(client.generate(replace(REQUEST, starts_thinking=True)))
    assert ("".join(c.thinking for c in chunks), "".join(c.text for c in chunks)) == ("hm", "Yes")


def test_generate_event_without_a_count_has_unknown_tokens(client, server):
    server.answer_stream(b'data: {"content":"a","stop":false}\n\n', last_event(1))
    assert next(client.generate(REQUEST)).n_tokens is None


def test_generate_sends_key_and_options_on_a_new_connection_each(client, server):
    for _ in range(2):
        server.answer_stream(STREAM)
        list(client.generate(REQUEST))
    assert len(server.requests) == 2
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert b"POST /completion" in head
    assert b"Authorization: Bearer secret" in head
    assert json.loads(body)["cache_prompt"] is False


@pytest.mark.parametrize(
    ("pieces", "outcome", "words"),
    [
        ([event("a", 1)], Outcome.INCOMPLETE, "without its end mark"),
        ([b"data: {not json\n\n"], Outcome.BAD_REPLY, "cannot be read"),
        ([b'data: {"content": 5}\n\n'], Outcome.BAD_REPLY, "(content)"),
        ([b'data: {"content": "", "stop": true}\n\n'], Outcome.BAD_REPLY, "no timings"),
        ([b"<html>hello</html>"], Outcome.INCOMPLETE, "end mark"),
        (
            [b'data: {"error":{"message":"slot lost","type":"server_error"}}\n\n'],
            Outcome.ENGINE_ERROR,
            "slot lost",
        ),
        (
            [last_event(5, generation_settings={**GENERATION_SETTINGS, "seed": 0})],
            Outcome.ENGINE_ERROR,
            "'seed'",
        ),
    ],
)
def test_generate_broken_stream_has_its_own_outcome(client, server, pieces, outcome, words):
    server.answer_stream(*pieces)
    failure = failure_of(client)
    assert failure.outcome is outcome
    assert words in str(failure)


def test_generate_cut_connection_is_the_engine_s_death(client, server):
    server.answer_raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nda")
    failure = failure_of(client)
    assert failure.outcome is Outcome.ENGINE_DIED
    assert failure.needs_reload


def test_generate_text_before_a_cut_is_kept(client, server):
    server.answer_stream(event("kept", 1))
    chunks = client.generate(REQUEST)
    assert next(chunks).text == "kept"
    with pytest.raises(EngineFailure):
        next(chunks)


def test_generate_broken_utf8_becomes_visible_text(client, server):
    server.answer_stream(b'data: {"content":"a\xffb","tokens_predicted":1}\n\n', last_event(1))
    assert next(client.generate(REQUEST)).text == "a\ufffdb"


@pytest.mark.parametrize("text", ["\x00", "\x1b[31mred", "<script>", "**bold**", "\u2028"])
def test_generate_any_text_passes_unchanged(client, server, text):
    server.answer_stream(event(text, 1), last_event(1))
    assert next(client.generate(REQUEST)).text == text


@pytest.mark.parametrize(
    ("changes", "truncated"),
    [
        ({"stop_type": "limit", "truncated": True}, True),
        ({"stop_type": "limit"}, True),  # 5 tokens where 8 were asked for
        ({"stop_type": "eos"}, False),
    ],
)
def test_generate_limit_before_the_one_asked_for_is_truncated(client, server, changes, truncated):
    server.answer_stream(event("a", 5), last_event(5, **changes))
    assert list(client.generate(REQUEST))[-1].truncated is truncated


@pytest.mark.parametrize(
    ("status", "body", "outcome", "words"),
    [
        (
            400,
            {"error": {"type": "exceed_context_size_error", "message": "request (9 tokens) exceeds"}},
            Outcome.CONTEXT_EXCEEDED,
            "(9 tokens)",
        ),
        (
            500,
            {"error": json.dumps({"error": {"message": "inner", "type": "exceed_context_size_error"}})},
            Outcome.CONTEXT_EXCEEDED,
            "inner",
        ),
        (
            400,
            {"error": {"type": "invalid_request_error", "message": "no"}},
            Outcome.ENGINE_ERROR,
            "says: no",
        ),
        (500, {"error": "plain"}, Outcome.ENGINE_ERROR, "plain"),
        (401, {}, Outcome.ENGINE_ERROR, "LLAMA_API_KEY"),
        (502, None, Outcome.ENGINE_ERROR, "HTTP status 502"),
    ],
)
def test_generate_error_status_is_told(client, server, status, body, outcome, words):
    server.answer(status, json.dumps(body).encode() if body is not None else b"<html>")
    failure = failure_of(client)
    assert failure.outcome is outcome
    assert words in str(failure)


def test_generate_unusable_options_are_refused_before_sending(client, server):
    failure = failure_of(client, replace(REQUEST, sampling=Sampling(max_tokens=8, seed=2**40)))
    assert failure.outcome is Outcome.ENGINE_ERROR
    assert not failure.needs_reload
    assert server.requests == []


@pytest.mark.parametrize(("text", "is_fine"), [('{"a": 1}', True), ('{"a": "x"}', False), ("Sure", False)])
def test_generate_reply_is_checked_against_the_schema(client, server, text, is_fine):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    request = replace(REQUEST, sampling=replace(REQUEST.sampling, json_schema=schema))
    echoed = {**GENERATION_SETTINGS, "grammar": "root ::= x"}
    server.answer_stream(event(text, 4), last_event(4, generation_settings=echoed))
    if is_fine:
        assert list(client.generate(request))[-1].counters is not None
    else:
        assert failure_of(client, request).outcome is Outcome.BAD_REPLY


def test_generate_answer_cut_off_is_not_blamed_for_its_schema(client, server):
    request = replace(
        REQUEST, sampling=replace(REQUEST.sampling, json_schema={"type": "object"}, max_tokens=5)
    )
    echoed = {**GENERATION_SETTINGS, "grammar": "x", "n_predict": 5}
    server.answer_stream(event('{"a', 5), last_event(5, generation_settings=echoed, stop_type="limit"))
    assert list(client.generate(request))[-1].counters.stop_type == "limit"


def test_generate_nobody_listens_is_told_at_once(client, server):
    server.close()
    assert "no llama-server answers at" in str(failure_of(LlamaServerClient("http://127.0.0.1:9")))


def test_abort_ends_a_waiting_stream(client, server):
    release = threading.Event()
    server.answer_stream(event("a", 1), lambda: release.wait(20) and None)
    chunks = client.generate(REQUEST)
    next(chunks)
    threading.Timer(0.05, client.abort).start()
    started = time.monotonic()
    with pytest.raises(EngineFailure) as caught:
        next(chunks)
    assert time.monotonic() - started < 10  # the server would be silent for 20 s
    release.set()
    assert caught.value.outcome is Outcome.CANCELLED
    assert caught.value.needs_reload


def test_abort_ends_a_request_whose_headers_never_come(client, server):
    release = threading.Event()
    server.answer_raw(lambda: release.wait(20) and None)
    threading.Timer(0.05, client.abort).start()
    started = time.monotonic()
    assert failure_of(client).outcome is Outcome.CANCELLED
    assert time.monotonic() - started < 10
    release.set()


def test_abort_holds_until_reset(client, server):
    client.abort()
    assert failure_of(client).outcome is Outcome.CANCELLED
    client.reset()
    server.answer_stream(STREAM)
    assert list(client.generate(REQUEST))[-1].counters is not None


def test_generate_silent_server_is_a_timeout(client, server, monkeypatch):
    monkeypatch.setattr("liob_core.engines.llamaserver.READ_SLACK_S", 0.05)
    release = threading.Event()
    server.answer_stream(lambda: release.wait(20) and None)
    limits = Limits(first_token_s=0.05, between_tokens_s=0.05)
    assert failure_of(client, replace(REQUEST, limits=limits)).outcome is Outcome.TIMEOUT
    release.set()


def test_render_and_tokenize_speak_the_server_s_language(client, server):
    server.answer(200, b'{"prompt": "<|user|>hi"}')
    assert client.render([Message(role="user", content="hi")]) == "<|user|>hi"
    server.answer(200, b'{"tokens": [1, 5]}')
    assert client.tokenize("hi", add_special=True) == [1, 5]
    assert json.loads(server.requests[1].partition(b"\r\n\r\n")[2]) == {
        "content": "hi",
        "add_special": True,
        "parse_special": True,
    }


@pytest.mark.parametrize(
    ("props", "tokens", "bos"),
    [({"bos_token": "<s>"}, [7], 7), ({"bos_token": "<s>"}, [7, 8], None), ({}, [], None)],
)
def test_bos_id_is_the_one_token_of_the_vocabulary_s_bos(client, server, props, tokens, bos):
    server.answer(200, json.dumps(props).encode())
    server.answer(200, json.dumps({"tokens": tokens}).encode())
    assert client.bos_id() == bos


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b'{"other": 1}'])
def test_render_other_server_is_a_bad_reply(client, server, body):
    server.answer(200, body)
    with pytest.raises(EngineFailure) as caught:
        client.render([])
    assert caught.value.outcome is Outcome.BAD_REPLY


def test_is_healthy_only_where_the_model_is_loaded(client, server):
    server.answer(503, b'{"error": {"message": "Loading model"}}')
    assert not client.is_healthy()
    server.answer(200, b'{"status": "ok"}')
    assert client.is_healthy()
    assert not LlamaServerClient("http://127.0.0.1:9").is_healthy()


def test_client_ignores_proxies_of_the_environment(server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    server.answer(200, b"{}")
    assert LlamaServerClient(server.url).is_healthy()
