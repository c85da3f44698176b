"""A server on the wire whose every byte is scripted."""

import json
import socket
import threading
from collections.abc import Callable

GENERATION_SETTINGS = {
    "n_predict": 8,
    "seed": 1,
    "temperature": 0.0,
    "top_k": 40,
    "top_p": 0.949999988079071,
    "min_p": 0.05000000074505806,
    "repeat_penalty": 1.0,
    "stop": [],
    "ignore_eos": False,
    "typical_p": 1.0,
    "xtc_probability": 0.0,
    "dry_multiplier": 0.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "mirostat": 0,
    "dynatemp_range": 0.0,
    "grammar": "",
}


def event(content: str, n_so_far: int) -> bytes:
    """One event of a stream as llama-server writes it."""
    body = {"index": 0, "content": content, "stop": False, "tokens_predicted": n_so_far}
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


def last_event(n_out: int, **changes: object) -> bytes:
    """The last event of a stream."""
    body = {
        "content": "",
        "stop": True,
        "tokens_predicted": n_out,
        "stop_type": "eos",
        "truncated": False,
        "generation_settings": GENERATION_SETTINGS,
        "timings": {
            "cache_n": 3,
            "prompt_n": 7,
            "prompt_ms": 5.5,
            "predicted_n": n_out,
            "predicted_ms": 20.25,
        },
        **changes,
    }
    return b"data: " + json.dumps(body).encode() + b"\n\n"


class ScriptedServer:
    """Answers each connection with the next scripted list of byte pieces, then closes it."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self._answers: list[list[bytes | Callable[[], None]]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def answer_raw(self, *pieces: bytes | Callable[[], None]) -> None:
        """Script one answer, to the byte; a callable is called in its place (to wait)."""
        self._answers.append(list(pieces))

    def answer_stream(self, *pieces: bytes | Callable[[], None]) -> None:
        """Script a stream of events that ends with its connection."""
        self.answer_raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", *pieces)

    def answer(self, status: int, body: bytes) -> None:
        """Script one plain answer."""
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.answer_raw(head.encode() + body)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection:
                self.requests.append(self._read(connection))
                for piece in self._answers.pop(0) if self._answers else []:
                    if callable(piece):
                        piece()
                        continue
                    try:
                        connection.sendall(piece)
                    except OSError:
                        break

    def _read(self, connection: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        length = int(lengths[0].split(b":")[1]) if lengths else 0
        while len(body) < length:
            body += connection.recv(65536)
        return head + b"\r\n\r\n" + body

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
