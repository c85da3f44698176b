"""An Ollama server on the wire: it keeps what is loaded, and replays what a real one sent.

`tests/data/ollama` holds exchanges of a real server (0.33.0, no GPU), byte for byte. An answer can be
replayed whole, in pieces of any size, cut at any byte, stalled there, or garbled.
"""

import json
import socket
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RECORDINGS = Path(__file__).parent.parent / "data" / "ollama"
MODEL = "smollm2-135m:q4_1"
Piece = bytes | Callable[[], None]


@dataclass(frozen=True)
class Recording:
    """One exchange with a real server."""

    name: str
    method: str
    path: str
    request: Any
    status: int
    pieces: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def last(self) -> dict[str, Any]:
        """The last line of the answer, as JSON."""
        return json.loads(self.body.strip().split(b"\n")[-1])


def recording(name: str) -> Recording:
    """The exchange of that name."""
    data = json.loads((RECORDINGS / f"{name}.json").read_text("utf-8"))
    request, response = data["request"], data["response"]
    pieces = tuple(event["data"].encode() for event in response["events"])
    return Recording(name, request["method"], request["path"], request["body"], response["status"], pieces)


def line(**fields: object) -> bytes:
    """One line of a stream."""
    return json.dumps({"model": MODEL, **fields}, ensure_ascii=False).encode() + b"\n"


def last_line(**fields: object) -> bytes:
    """The last line of a stream of `generate`, with the counters of a short answer."""
    counts = {
        "total_duration": 500_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_count": 20,
        "prompt_eval_duration": 40_000_000,
        "eval_count": 11,
        "eval_duration": 400_000_000,
    }
    return line(**{"response": "", "done": True, "done_reason": "stop", **counts, **fields})


@dataclass
class Answer:
    """One scripted answer; a callable among the pieces is called in its place (to wait)."""

    status: int = 200
    pieces: Sequence[Piece] = ()
    is_whole: bool = True  # False: the connection is closed without the end of the body
    content_type: str = "application/x-ndjson"


@dataclass
class Seen:
    """One request that came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class OllamaServer:
    """Answers from a script where there is one for a path, else as a server with a few models."""

    version: str = "0.33.0"
    tags: dict[str, Any] = field(default_factory=lambda: json.loads(recording("tags-three").body))
    shown: dict[str, Any] = field(default_factory=lambda: json.loads(recording("show").body))
    context_length: int | None = None  # None: as asked
    stays_loaded: bool = False

    def __post_init__(self) -> None:
        self.seen: list[Seen] = []
        self.loaded: dict[str, int] = {}
        self.blobs: dict[str, bytes] = {}
        self.n_answers = 0
        self.faults: dict[int, Answer] = {}  # in place of the n-th unscripted answer, from 1
        self._script: dict[str, deque[Answer]] = defaultdict(deque)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    # --- scripting ----------------------------------------------------------------------------

    def answer(self, path: str, *pieces: Piece, status: int = 200, is_whole: bool = True) -> None:
        """Script the next answer on `path`."""
        self._script[path].append(Answer(status, pieces, is_whole))

    def replay(self, exchange: Recording, path: str | None = None, *, cut: int | None = None) -> None:
        """Script a recorded answer, whole or cut after so many bytes."""
        if cut is None:
            self.answer(path or exchange.path, *exchange.pieces, status=exchange.status)
        else:
            kept = exchange.body[:cut]
            self.answer(path or exchange.path, kept, status=exchange.status, is_whole=False)

    def bodies(self, path: str) -> list[Any]:
        """The bodies of the requests on `path`."""
        return [seen.body for seen in self.seen if seen.path == path]

    def close(self) -> None:
        """Stop listening; a plain close would leave the thread in `accept` one more connection."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    # --- serving ------------------------------------------------------------------------------

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, suppress(OSError, ConnectionError):
            seen = _read(connection)
            if seen is None:
                return
            self.seen.append(seen)
            script = self._script[seen.path]
            is_load = isinstance(seen.body, dict) and seen.body.get("prompt") == ""
            answer = script.popleft() if script and not is_load else self._usual(seen)
            _send(connection, answer, has_body=seen.method != "HEAD")

    def _usual(self, seen: Seen) -> Answer:
        body = seen.body if isinstance(seen.body, dict) else {}
        if seen.path == "/api/version":
            return _json({"version": self.version})
        if seen.path == "/api/tags":
            return _json(self.tags)
        if seen.path == "/api/ps":
            return _json({"models": [self._entry(name) for name in list(self.loaded)]})
        if seen.path == "/api/show":
            return self._show(body)
        if seen.path == "/api/generate" and body.get("prompt") == "":
            return self._load(body)
        if seen.path.startswith("/api/blobs/"):
            return self._blob(seen)
        if seen.path in {"/api/generate", "/api/chat"}:
            return self._generate(body)
        return _json({"error": f"nothing scripted for {seen.path}"}, 404)

    def _entry(self, name: str) -> dict[str, Any]:
        entry = json.loads(recording("ps-loaded").body)["models"][0]
        return {**entry, "name": name, "model": name, "context_length": self.loaded[name]}

    def _show(self, body: dict[str, Any]) -> Answer:
        names = {model["name"] for model in self.tags["models"]}
        if body.get("model") not in names:
            return _json({"error": f"model '{body.get('model')}' not found"}, 404)
        return _json(self.shown)

    def _load(self, body: dict[str, Any]) -> Answer:
        name = body["model"]
        if body.get("keep_alive") == 0:
            if not self.stays_loaded:
                self.loaded = {one: n for one, n in self.loaded.items() if one.lower() != name.lower()}
            return _json({"model": name, "response": "", "done": True, "done_reason": "unload"})
        self.loaded[name] = self.context_length or body["options"]["num_ctx"]
        return _json({"model": name, "response": "", "done": True, "done_reason": "load"})

    def _generate(self, body: dict[str, Any]) -> Answer:
        """As many tokens as asked; a prompt has one a word, and three more."""
        n_out = body["options"]["num_predict"]
        n_in = str(body.get("prompt", body.get("messages"))).count(" ") + 3
        pieces = [line(response=f" {number}", done=False) for number in range(min(n_out, 5))]
        counts = {"prompt_eval_count": n_in, "eval_count": n_out, "done_reason": "length"}
        times = {"prompt_eval_duration": n_in * 2_000_000, "eval_duration": max(1, n_out - 1) * 10_000_000}
        self.n_answers += 1
        usual = Answer(pieces=(*pieces, last_line(**counts, **times)))
        return self.faults.get(self.n_answers, usual)

    def _blob(self, seen: Seen) -> Answer:
        digest = seen.path.rpartition("/")[2]
        if seen.method == "HEAD":
            return Answer(200 if digest in self.blobs else 404)
        self.blobs[digest] = seen.body
        return Answer(201)


def _json(value: Any, status: int = 200) -> Answer:
    return Answer(status, (json.dumps(value).encode(),), content_type="application/json; charset=utf-8")


def _send(connection: socket.socket, answer: Answer, *, has_body: bool) -> None:
    head = f"HTTP/1.1 {answer.status} X\r\nContent-Type: {answer.content_type}\r\nConnection: close\r\n"
    if not has_body:
        connection.sendall(f"{head}Content-Length: 0\r\n\r\n".encode())
        return
    connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
    for piece in answer.pieces:
        if callable(piece):
            piece()
        elif piece:
            connection.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
    if answer.is_whole:
        connection.sendall(b"0\r\n\r\n")


def _read(connection: socket.socket) -> Seen | None:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in rest)}
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(1 << 20)
    method, path, _ = first.split(" ")
    return Seen(method, path, headers, _parsed(body))


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body


def in_pieces(body: bytes, size: int) -> Iterable[bytes]:
    """The bytes of a body in pieces of `size`."""
    return (body[start : start + size] for start in range(0, len(body), size))
