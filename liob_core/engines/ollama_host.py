"""Where Ollama is: `OLLAMA_HOST` in any form that Ollama takes, and the HTTP clients for that place."""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpx

from liob_core.errors import UsageError

HOST_VARIABLE = "OLLAMA_HOST"
KEY_VARIABLE = "OLLAMA_API_KEY"
DEFAULT_PORT = 11434
DEFAULT_PORTS = {"http": 80, "https": 443}  # of an address that names its scheme but no port
# What a server listens on when it listens everywhere; nobody can connect to it on every system.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104
CALL_TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 4.0


@dataclass(frozen=True, slots=True)
class OllamaHost:
    """One address of an Ollama server, without a slash at its end."""

    url: str
    is_loopback: bool

    @property
    def is_private(self) -> bool:
        """Whether nobody on the way can read what is sent."""
        return self.is_loopback or self.url.startswith("https://")


def find_host(given: str | None = None) -> OllamaHost:
    """The server at `given`, else at OLLAMA_HOST, else where Ollama listens by default."""
    text = (given or os.environ.get(HOST_VARIABLE) or "").strip().strip("\"'").strip()
    parts = _split(text)
    host, port = parts.hostname or "", _port(parts, text)
    if port is None:
        port = DEFAULT_PORTS[parts.scheme] if "://" in text else DEFAULT_PORT
    host = EVERYWHERE.get(host, host)
    shown = f"[{host}]" if ":" in host else host
    return OllamaHost(f"{parts.scheme}://{shown}:{port}{parts.path.rstrip('/')}", _is_loopback(host))


def _split(text: str) -> SplitResult:
    """The parts of an address; one without a scheme may be a bare IPv6 address, a name or name and port."""
    bare = text
    if "://" not in text:
        host, slash, path = text.partition("/")
        if host.count(":") > 1 and not host.startswith("["):
            host = f"[{host}]"
        bare = f"http://{host}{slash}{path}"
    try:
        parts = urlsplit(bare)
        if parts.hostname and ":" in parts.hostname:
            ipaddress.IPv6Address(parts.hostname)
    except ValueError as error:
        raise _unusable(text) from error
    is_plain = not (parts.username or parts.password or parts.query or parts.fragment)
    if parts.scheme not in DEFAULT_PORTS or not is_plain or any(c.isspace() for c in text):
        raise _unusable(text)
    return parts


def _port(parts: SplitResult, text: str) -> int | None:
    try:
        port = parts.port
    except ValueError as error:
        raise _unusable(text) from error
    if port == 0 or parts.netloc.endswith(":"):
        raise _unusable(text)
    return port


def _unusable(text: str) -> UsageError:
    return UsageError(
        f"{text!r} is no address of an Ollama server: write it like 127.0.0.1:11434 or https://host:443 "
        f"(it comes from {HOST_VARIABLE} where none is given)."
    )


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def make_http(host: OllamaHost) -> httpx.Client:
    """The HTTP client for measured requests: a connection for each, and never a proxy on loopback."""
    try:
        return httpx.Client(
            base_url=host.url,
            headers={"Accept-Encoding": "identity", **_key_header(host)},
            limits=httpx.Limits(max_keepalive_connections=0),
            timeout=httpx.Timeout(CALL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            trust_env=not host.is_loopback,
        )
    except (ValueError, ImportError) as error:
        raise _unusable_proxy(host, error) from error


def make_client(host: OllamaHost) -> Any:
    """Ollama's own client for everything that is not measured, with finite timeouts."""
    with _without_environment():
        import ollama  # noqa: PLC0415 - its import makes a client, which the environment can make fail
    try:
        client = ollama.Client(
            host.url,
            timeout=httpx.Timeout(CALL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            follow_redirects=False,
            trust_env=not host.is_loopback,
            event_hooks={"request": [_key_guard(host)]},
        )
    except (ValueError, ImportError) as error:
        raise _unusable_proxy(host, error) from error
    return client


def _key_header(host: OllamaHost) -> Mapping[str, str]:
    key = os.environ.get(KEY_VARIABLE)
    return {"Authorization": f"Bearer {key}"} if key and host.is_private else {}


def _key_guard(host: OllamaHost) -> Any:
    def remove_key(request: httpx.Request) -> None:
        if not host.is_private:  # the library sends the key to any host
            request.headers.pop("Authorization", None)

    return remove_key


def _unusable_proxy(host: OllamaHost, error: Exception) -> UsageError:
    return UsageError(
        f"The proxy in the environment cannot be used to reach {host.url}: {error}. "
        "Correct HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or name the host in NO_PROXY."
    )


class _without_environment:  # noqa: N801 - reads as a statement
    """Within it no variable of Ollama's or of a proxy is set."""

    def __enter__(self) -> None:
        names = [name for name in os.environ if name.upper().endswith("_PROXY") or name == HOST_VARIABLE]
        self._hidden = {name: os.environ.pop(name) for name in names}

    def __exit__(self, *_: object) -> None:
        os.environ.update(self._hidden)
