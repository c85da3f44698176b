"""The one HTTP stream of measured requests to Ollama, and its plain calls."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import httpx

from liob_core.engines.ollama_errors import told, told_status, translated
from liob_core.engines.ollama_host import CALL_TIMEOUT_S, CONNECT_TIMEOUT_S, OllamaHost, make_http
from liob_core.engines.ollama_lines import LineReader, StreamLine, read_line, read_object
from liob_core.errors import EngineFailure
from liob_core.types import JsonValue, Limits, Outcome

PING_TIMEOUT_S = 2.0
# On a stream without `done`: so many equal pieces in a row were the server's own repetition guard at work.
GUARD_PIECES = 30
JSON_HEADERS = {"Content-Type": "application/json"}


class OllamaStream:
    """Requests to one server that another thread can stop; every failure is an `EngineFailure`."""

    def __init__(self, host: OllamaHost) -> None:
        self.host = host
        self._http = make_http(host)
        self._aborted = threading.Event()
        self._socket: socket.socket | None = None

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, JsonValue] | None = None,
        *,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> dict[str, JsonValue]:
        """The JSON object that a plain call answers with."""
        timeout = httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S)
        with translated(self.host, self._aborted.is_set):
            outgoing = self._request(method, path, body, timeout)
            response = self._http.send(outgoing)
        self._socket = None
        if response.status_code != httpx.codes.OK:
            raise told_status(response.status_code, response.content)
        reply = read_object(response.content)
        if reply.get("error") is not None:
            raise told(reply["error"], response.status_code)
        return reply

    def lines(self, path: str, body: Mapping[str, JsonValue], limits: Limits) -> Iterator[StreamLine]:
        """The lines of one stream up to the one with `done`; the request goes out with the first `next`."""
        silence_s = max(limits.first_token_s, limits.between_tokens_s)
        outgoing = self._request("POST", path, body, httpx.Timeout(silence_s, connect=CONNECT_TIMEOUT_S))
        with self._deadline(limits.request_s) as is_overdue:
            guard = _RepetitionGuard()
            try:
                for line in self._lines(outgoing):
                    guard.see(line)
                    yield line
                    if line.done:
                        return
            except EngineFailure as failure:
                if is_overdue():
                    raise _overdue(limits) from failure
                raise
            if is_overdue():
                raise _overdue(limits)
            if self._aborted.is_set():
                raise EngineFailure(Outcome.CANCELLED, "the request was stopped", needs_reload=True)
            raise guard.ending()

    def _lines(self, outgoing: httpx.Request) -> Iterator[StreamLine]:
        reader = LineReader()
        with translated(self.host, self._aborted.is_set):
            response = self._http.send(outgoing, stream=True)
        try:
            if response.status_code != httpx.codes.OK:
                raise told_status(response.status_code, b"".join(self._pieces(response)))
            for piece in self._pieces(response):
                for data in reader.feed(piece):
                    yield _checked(data)
            for data in reader.finish():
                yield _last(data)
        finally:
            self._socket = None
            response.close()

    def _pieces(self, response: httpx.Response) -> Iterator[bytes]:
        """The body's bytes as they come; one that breaks off just ends, if the server still lives."""
        pieces = response.iter_raw()
        while True:
            try:
                with translated(self.host, self._aborted.is_set):
                    piece = next(pieces, None)
            except EngineFailure as failure:
                if failure.outcome is Outcome.ENGINE_DIED and self.is_reachable():
                    return
                raise
            if piece is None:
                return
            yield piece

    def is_reachable(self) -> bool:
        """Whether a server answers now."""
        try:
            self._http.get("/api/version", timeout=PING_TIMEOUT_S)
        except (httpx.HTTPError, OSError):
            return False
        return True

    def _request(
        self, method: str, path: str, body: Mapping[str, JsonValue] | None, timeout: httpx.Timeout
    ) -> httpx.Request:
        # A lone surrogate in a prompt cannot be sent as UTF-8, but as an escape.
        content = None if body is None else json.dumps(body).encode()
        return self._http.build_request(
            method,
            path,
            content=content,
            headers=JSON_HEADERS,
            timeout=timeout,
            extensions={"trace": self._keep_socket},
        )

    def _keep_socket(self, event_name: str, info: Mapping[str, Any]) -> None:
        if event_name.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")
            if self._aborted.is_set():
                self._shut()

    def _shut(self) -> None:
        kept = self._socket
        if kept is not None:
            with suppress(OSError):  # closing would not wake the thread that waits for bytes
                kept.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _deadline(self, seconds: float) -> Iterator[Any]:
        """Within it the stream is cut after `seconds`; gives whether that has happened."""
        until = time.monotonic() + seconds
        timer = threading.Timer(seconds, self._shut)
        timer.daemon = True
        timer.start()
        try:
            yield lambda: time.monotonic() >= until
        finally:
            timer.cancel()

    def abort(self) -> None:
        """Make a request under way fail at once; holds until `reset`."""
        self._aborted.set()
        self._shut()

    @property
    def is_aborted(self) -> bool:
        """Whether it was stopped and not reset since."""
        return self._aborted.is_set()

    def reset(self) -> None:
        """Allow requests again after an abort."""
        self._aborted.clear()

    def close(self) -> None:
        """Close the client."""
        self._http.close()


class _RepetitionGuard:
    """Tells a stream that the server's own guard ended from one that just ended."""

    def __init__(self) -> None:
        self._last: str | None = None
        self._n_equal = 0

    def see(self, line: StreamLine) -> None:
        piece = (line.answer or line.thoughts).strip()
        self._n_equal = self._n_equal + 1 if piece == self._last else 1
        self._last = piece

    def ending(self) -> EngineFailure:
        # The piece at which the guard struck was not sent any more.
        if self._n_equal >= GUARD_PIECES:
            return EngineFailure(
                Outcome.REPETITION, f"Ollama ended the answer after {self._n_equal} equal pieces in a row"
            )
        return EngineFailure(Outcome.INCOMPLETE, "Ollama's answer ended without its end mark")


def _overdue(limits: Limits) -> EngineFailure:
    return EngineFailure(
        Outcome.TIMEOUT, f"the answer took longer than {limits.request_s:g} s", needs_reload=True
    )


def _checked(data: bytes) -> StreamLine:
    value = read_object(data)
    if value.get("error") is not None:
        raise told(value["error"])
    return read_line(value, data)


def _last(data: bytes) -> StreamLine:
    """What came after the last line's end: a whole object, or a line that was cut."""
    try:
        return _checked(data)
    except EngineFailure as failure:
        if failure.outcome is Outcome.BAD_REPLY and data.lstrip().startswith(b"{"):
            raise EngineFailure(
                Outcome.INCOMPLETE, "Ollama's answer ended in the middle of a line"
            ) from failure
        raise
