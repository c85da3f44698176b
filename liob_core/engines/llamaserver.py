"""The client of llama.cpp's own server, embedded or the user's."""

import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import httpx

from liob_core.engines.options import request_body, sampling_problem, schema_problem, unaccepted_option
from liob_core.engines.protocol import Chunk, Request
from liob_core.engines.sse import EventReader
from liob_core.engines.stream import StreamEvent, read_event, told_failure, whole_events
from liob_core.engines.thinking import Splitter
from liob_core.errors import EngineFailure
from liob_core.types import Counters, JsonValue, Message, Outcome

KEY_VARIABLE = "LLAMA_API_KEY"  # the name that llama-server itself reads
CALL_TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 5.0
READ_SLACK_S = 60.0  # the runner's deadlines come first; this only ends what nobody watches


class LlamaServerClient:
    """llama-server's native HTTP interface; every failure is an `EngineFailure`."""

    def __init__(self, url: str, api_key: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._aborted = threading.Event()
        self._socket: socket.socket | None = None
        # A kept connection breaks after a stream, so each request gets its own.
        self._http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            limits=httpx.Limits(max_keepalive_connections=0),
            timeout=httpx.Timeout(CALL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            trust_env=False,
            # Reading the certificate store would cost a load 30 ms, and plain HTTP needs none.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if self.url.startswith("http://") else True,
        )

    def is_healthy(self) -> bool:
        """Whether the server answers and has its model loaded."""
        try:
            return self._http.get("/health").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def props(self) -> Mapping[str, JsonValue]:
        """What the server says of itself and its model."""
        return _as_object(self._call("GET", "/props"))

    def slots(self) -> list[JsonValue]:
        """The state of each slot."""
        reply = self._call("GET", "/slots")
        return reply if isinstance(reply, list) else []

    def metrics(self) -> str:
        """The server's counters in Prometheus text form."""
        with self._translated():
            return self._checked(self._http.get("/metrics")).text

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt text that the server's template makes of `messages`, without a leading BOS."""
        body = {"messages": [{"role": message.role, "content": message.content} for message in messages]}
        return str(_field(self._call("POST", "/apply-template", body), "prompt", str))

    def tokenize(self, text: str, *, add_special: bool) -> list[int]:
        """The token ids of `text`; with `add_special`, as `/completion` would read it."""
        body = {"content": text, "add_special": add_special, "parse_special": True}
        tokens = _field(self._call("POST", "/tokenize", body), "tokens", list)
        return [int(token) for token in tokens]

    def bos_id(self) -> int | None:
        """The id of the token that begins a sequence, or None where the vocabulary has none."""
        piece = self.props().get("bos_token")
        if not isinstance(piece, str) or not piece:
            return None
        ids = self.tokenize(piece, add_special=False)
        return ids[0] if len(ids) == 1 else None

    def generate(self, request: Request) -> Iterator[Chunk]:
        """The chunks of one answer as they arrive."""
        if problem := sampling_problem(request.sampling):
            raise EngineFailure(Outcome.ENGINE_ERROR, problem)
        splitter, n_counted, whole_answer = Splitter(request.starts_thinking), 0, ""
        for event in self._stream(request):
            answer, thinking = splitter.feed(event.content)
            n_tokens = None
            if event.tokens_predicted is not None:
                # One piece of text may carry several tokens, and a token may carry no text.
                n_tokens, n_counted = event.tokens_predicted - n_counted, event.tokens_predicted
            if not event.stop:
                whole_answer += answer
                yield Chunk(text=answer, thinking=thinking, n_tokens=n_tokens)
                continue
            rest, rest_thinking = splitter.finish()
            answer, thinking = answer + rest, thinking + rest_thinking
            counters = _final_counters(request, event, whole_answer + answer)
            yield Chunk(
                text=answer,
                thinking=thinking,
                n_tokens=n_tokens,
                counters=counters,
                truncated=event.truncated or _is_short(request, counters),
            )
            return
        if self._aborted.is_set():
            raise EngineFailure(Outcome.CANCELLED, "the request was stopped", needs_reload=True)
        raise EngineFailure(
            Outcome.INCOMPLETE, "the engine's answer ended without its end mark", needs_reload=True
        )

    def _stream(self, request: Request) -> Iterator[StreamEvent]:
        limits = request.limits
        patience_s = max(limits.first_token_s, limits.between_tokens_s) + READ_SLACK_S
        outgoing = self._http.build_request(
            "POST",
            "/completion",
            json=request_body(request),
            # The connection serves one request; saying so spares the client work on every token.
            headers={"Connection": "close"},
            timeout=httpx.Timeout(patience_s, connect=CONNECT_TIMEOUT_S),
            extensions={"trace": self._keep_socket},
        )
        with self._translated():
            response = self._http.send(outgoing, stream=True)
            try:
                if response.status_code != httpx.codes.OK:
                    response.read()
                self._checked(response)
                reader = EventReader()
                for piece in response.iter_raw():
                    for data in whole_events(reader, piece):
                        yield read_event(data)
            finally:
                self._socket = None
                response.close()

    def _keep_socket(self, event_name: str, info: Mapping[str, Any]) -> None:
        if event_name.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")
            if self._aborted.is_set():
                self._shut()

    def abort(self) -> None:
        """Make a `generate` under way fail at once; holds until `reset`."""
        self._aborted.set()
        self._shut()

    def reset(self) -> None:
        """Allow requests again after an abort."""
        self._aborted.clear()

    def _shut(self) -> None:
        kept = self._socket
        if kept is not None:
            with suppress(OSError):  # closing would not wake the thread that waits for bytes
                kept.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the client."""
        self._http.close()

    def _call(self, method: str, path: str, body: Mapping[str, JsonValue] | None = None) -> JsonValue:
        with self._translated():
            response = self._checked(self._http.request(method, path, json=body))
            try:
                return response.json()
            except ValueError as error:
                raise EngineFailure(
                    Outcome.BAD_REPLY, f"{self.url}{path} does not answer in JSON: is it a llama-server?"
                ) from error

    def _checked(self, response: httpx.Response) -> httpx.Response:
        if response.status_code == httpx.codes.OK:
            return response
        if response.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            raise EngineFailure(
                Outcome.ENGINE_ERROR,
                f"The server at {self.url} refuses the key: set {KEY_VARIABLE} to the one it started with.",
            )
        try:
            error = response.json()["error"]
        except (ValueError, KeyError, TypeError):
            error = f"HTTP status {response.status_code}"
        raise told_failure(error)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            if self._aborted.is_set():
                raise EngineFailure(Outcome.CANCELLED, "the engine was stopped", needs_reload=True)
            yield
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            if self._aborted.is_set():
                outcome, reason = Outcome.CANCELLED, "the request was stopped"
            elif isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                outcome, reason = Outcome.ENGINE_DIED, f"no llama-server answers at {self.url}"
            elif isinstance(error, httpx.TimeoutException):
                outcome, reason = Outcome.TIMEOUT, f"the server at {self.url} fell silent"
            else:
                outcome, reason = Outcome.ENGINE_DIED, f"the connection to the engine was lost ({error})"
            raise EngineFailure(outcome, reason, needs_reload=True) from error


def _final_counters(request: Request, event: StreamEvent, answer: str) -> Counters:
    """The counters of the last event, once everything it says has been checked against what was asked."""
    sampling, timings = request.sampling, event.timings
    if timings is None or event.generation_settings is None:
        raise EngineFailure(Outcome.BAD_REPLY, "the engine's last event has no timings or no settings")
    if unaccepted := unaccepted_option(sampling, event.generation_settings):
        raise EngineFailure(Outcome.ENGINE_ERROR, unaccepted)
    if sampling.json_schema is not None and event.stop_type != "limit":
        problem = schema_problem(sampling.json_schema, answer)
        if problem:
            raise EngineFailure(Outcome.BAD_REPLY, problem)
    return Counters(
        prompt_tokens=timings.cache_n + timings.prompt_n,
        cached_tokens=timings.cache_n,
        output_tokens=timings.predicted_n,
        engine_prompt_ms=timings.prompt_ms,
        engine_eval_ms=timings.predicted_ms,
        stop_type=event.stop_type,
        eval_excludes_first_token=True,
    )


def _is_short(request: Request, counters: Counters) -> bool:
    """Whether the engine stopped at a limit before the one that was asked for: its context was full."""
    n_out = counters.output_tokens
    return counters.stop_type == "limit" and n_out is not None and n_out < request.sampling.max_tokens


def _as_object(reply: JsonValue) -> Mapping[str, JsonValue]:
    if not isinstance(reply, dict):
        raise EngineFailure(Outcome.BAD_REPLY, "the server answers with something else than a JSON object")
    return reply


def _field(reply: JsonValue, name: str, kind: type) -> JsonValue:
    value = _as_object(reply).get(name)
    if not isinstance(value, kind):
        raise EngineFailure(Outcome.BAD_REPLY, f"the server's answer lacks {name!r}: is it a llama-server?")
    return value
