"""A scripted Hub: speaks what the Hub library asks for, and fails as it is told to.

Small answers come from the Hub's host; a file's bytes come from a second host, as on the real Hub.
"""

import hashlib
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import huggingface_hub
import pytest

REPO = "owner/Tiny-GGUF"
COMMIT = "1234567890abcdef1234567890abcdef12345678"


@dataclass
class Asked:
    """One request that a host received."""

    host: str  # hub | store
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]


@dataclass
class ScriptedHub:
    """What the Hub holds, and what is wrong with it."""

    files: dict[str, bytes] = field(default_factory=dict)
    in_git: set[str] = field(default_factory=set)  # small files without LFS
    commit: str = COMMIT
    revisions: set[str] = field(default_factory=lambda: {"main", "v1"})
    gated: str | bool = False
    private: bool = False
    disabled: bool = False
    tokens: set[str] = field(default_factory=set)  # that may read a gated or private repository
    url: str = ""
    store_url: str = ""
    asked: list[Asked] = field(default_factory=list)
    # The next answers of either host: an HTTP status, "close" (no answer) or "html".
    next_api: list[int | str] = field(default_factory=list)
    next_bytes: list[int | str] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)  # the next bodies end after so many bytes
    stall_after: int | None = None  # the next body waits for ever after so many bytes
    knows_ranges: bool = True
    lies: dict[str, bytes] = field(default_factory=dict)  # other bytes than the list describes
    xet: bool = False
    go_on: threading.Event = field(default_factory=threading.Event)

    def requests(self, host: str, method: str | None = None) -> list[Asked]:
        return [one for one in self.asked if one.host == host and method in (None, one.method)]

    def bytes_asked(self) -> list[str]:
        """The ranges that the store was asked for."""
        return [one.headers.get("range", "") for one in self.requests("store")]

    def sha256(self, path: str) -> str:
        return hashlib.sha256(self.files[path]).hexdigest()

    def git_sha1(self, path: str) -> str:
        content = self.files[path]
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    def sibling(self, path: str) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "rfilename": path, "size": len(self.files[path]), "blobId": self.git_sha1(path),
        }  # fmt: skip
        if path not in self.in_git:
            entry["lfs"] = {"sha256": self.sha256(path), "size": len(self.files[path]), "pointerSize": 134}
        return entry


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: ScriptedHub
    host: str

    def do_GET(self) -> None:
        query = urlsplit(self.path)
        path = unquote(query.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.hub.asked.append(Asked(self.host, self.command, path, parse_qs(query.query), headers))
        script = self.hub.next_api if self.host == "hub" else self.hub.next_bytes
        if script and self._misbehave(script.pop(0)):
            return
        if self.host == "store":
            self._send_bytes(path.removeprefix("/blob/"))
        elif path.startswith("/api/models/"):
            self._api(path.removeprefix("/api/models/"))
        else:
            self._resolve(path.lstrip("/"))

    do_HEAD = do_GET  # noqa: N815

    def _misbehave(self, what: int | str) -> bool:
        if what == "close":
            self._hang_up()
        elif what == "html":
            self._reply(200, b"<html>Log in to this network</html>", {"Content-Type": "text/html"})
        elif isinstance(what, int) and what != 200:
            self._reply(what, b"{}")
        return what != 200

    def _hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def _api(self, path: str) -> None:
        repo, _, revision = path.partition("/revision/")
        # A gated repository's list is public; a private one is not.
        if self._is_refused(repo, revision or "main", is_listing=True):
            return
        with_sizes = parse_qs(urlsplit(self.path).query).get("blobs", [""])[0].lower() == "true"
        siblings = [self.hub.sibling(name) if with_sizes else {"rfilename": name} for name in self.hub.files]
        info = {
            "_id": "1", "id": REPO, "sha": self.hub.commit, "private": self.hub.private,
            "gated": self.hub.gated, "disabled": self.hub.disabled, "tags": ["gguf"], "siblings": siblings,
            "lastModified": "2025-01-01T00:00:00.000Z", "usedStorage": 1,
        }  # fmt: skip
        self._reply(200, json.dumps(info).encode(), {"Content-Type": "application/json"})

    def _resolve(self, path: str) -> None:
        repo, _, rest = path.partition("/resolve/")
        revision, _, name = rest.partition("/")
        if self._is_refused(repo, revision, is_listing=False):
            return
        commit = {"X-Repo-Commit": self.hub.commit}
        if name not in self.hub.files:
            self._reply(404, b"Entry not found", {**commit, "X-Error-Code": "EntryNotFound"})
            return
        if name in self.hub.in_git:
            content = self.hub.files[name]
            self._send_content(content, {**commit, "ETag": f'"{self.hub.git_sha1(name)}"'})
            return
        digest = self.hub.sha256(name)
        headers = {
            **commit,
            "X-Linked-Etag": f'"{digest}"',
            "X-Linked-Size": str(len(self.hub.files[name])),
            "Accept-Ranges": "bytes",
            "Location": f"{self.hub.store_url}/blob/{digest}?signature=secret",
        }
        if self.hub.xet:
            headers |= {
                "X-Xet-Hash": "0" * 64,
                "Link": f'<{self.hub.url}/api/models/{REPO}/xet-read-token/{COMMIT}>; rel="xet-auth"',
            }
        self._reply(302, b"Found", headers)

    def _is_refused(self, repo: str, revision: str, *, is_listing: bool) -> bool:
        hub = self.hub
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if token and token not in hub.tokens and token.startswith("expired"):
            message = "Invalid credentials in Authorization header"
            self._reply(401, b'{"error":"bad token"}', {"X-Error-Message": message})
        elif repo != REPO or (hub.private and token not in hub.tokens):
            self._reply(401, b'{"error":"Repository not found"}', {"X-Error-Code": "RepoNotFound"})
        elif hub.disabled:
            self._reply(403, b"{}", {"X-Error-Message": "Access to this resource is disabled."})
        elif revision not in {*hub.revisions, hub.commit}:
            self._reply(404, b'{"error":"Invalid rev id"}', {"X-Error-Code": "RevisionNotFound"})
        elif hub.gated and not is_listing and token not in hub.tokens:
            self._reply(403 if token else 401, b"{}", {"X-Error-Code": "GatedRepo"})
        else:
            return False
        return True

    def _send_bytes(self, digest: str) -> None:
        names = [name for name in self.hub.files if self.hub.sha256(name) == digest]
        if not names:
            self._reply(404, b"no such blob")
            return
        self._send_content(self.hub.lies.get(names[0], self.hub.files[names[0]]), {"ETag": '"store"'})

    def _send_content(self, content: bytes, headers: dict[str, str]) -> None:
        status, body = 200, content
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked and self.hub.knows_ranges:
            start, end = int(asked[1]), int(asked[2] or len(content) - 1)
            if start >= len(content):
                self._reply(416, b"", {"Content-Range": f"bytes */{len(content)}"})
                return
            end = min(end, len(content) - 1)
            status, body = 206, content[start : end + 1]
            headers = {**headers, "Content-Range": f"bytes {start}-{end}/{len(content)}"}
        cut = self.hub.cuts.pop(0) if self.hub.cuts and self.command == "GET" else None
        self._reply(status, body, headers, cut=cut)

    def _reply(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, *, cut: int | None = None
    ) -> None:
        try:
            self.send_response(status)
            for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                stall = None
                if self.host == "store":
                    stall, self.hub.stall_after = self.hub.stall_after, None
                self.wfile.write(body[: cut if stall is None else stall])
                if stall is not None:
                    self.hub.go_on.wait()
            if cut is not None:
                self._hang_up()
        except ConnectionError:  # the client has read enough
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Say nothing of clients that hang up: some tests kill them."""


@contextmanager
def scripted_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedHub]:
    """A Hub with its store; the library is pointed to it, with an empty cache and no token."""
    hub = ScriptedHub()
    servers = []
    for host in ("hub", "store"):
        handler = type("Handler", (_Handler,), {"hub": hub, "host": host})
        server = _Server(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        servers.append(server)
    hub.url, hub.store_url = (
        f"http://{name}:{server.server_address[1]}"
        for name, server in zip(("127.0.0.1", "localhost"), servers, strict=True)
    )
    home = tmp_path / "hf"
    constants = huggingface_hub.constants
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(home / "token"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)  # one request more a day, of its own
    monkeypatch.setattr("liob_core.models.hub_stream.FIRST_WAIT_S", 0.0)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    huggingface_hub.close_session()
    try:
        yield hub
    finally:
        hub.go_on.set()
        huggingface_hub.close_session()
        for server in servers:
            server.shutdown()
            server.server_close()
