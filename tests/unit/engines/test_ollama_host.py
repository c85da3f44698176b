import subprocess
import sys

import httpx
import pytest

from liob_core.engines.ollama_host import find_host, make_client, make_http
from liob_core.errors import UsageError


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:11434", "http://127.0.0.1:11434"),
        ("http://0.0.0.0", "http://127.0.0.1:80"),
        ("http://0.0.0.0:9", "http://127.0.0.1:9"),
        ("::1", "http://[::1]:11434"),
        ("[::1]:9", "http://[::1]:9"),
        ("[::]:9", "http://[::1]:9"),
        ("::", "http://[::1]:11434"),
        ("localhost", "http://localhost:11434"),
        ('"127.0.0.1:11434"', "http://127.0.0.1:11434"),
        (" 127.0.0.1:9/ ", "http://127.0.0.1:9"),
        (":9", "http://127.0.0.1:9"),
        ("https://box.example", "https://box.example:443"),
        ("http://box.example", "http://box.example:80"),
        ("box.example:8080/ollama/", "http://box.example:8080/ollama"),
    ],
)
def test_find_host_every_form_is_a_connectable_url(monkeypatch, given, url):
    monkeypatch.setenv("OLLAMA_HOST", given)
    assert find_host().url == url
    assert httpx.URL(url).host


@pytest.mark.parametrize(
    "given",
    ["host:abc", "host:99999", "ftp://x", "http:// 127.0.0.1 :11434", "h:0", "h:", "http://a:b@c", "1:2:3"],
)
def test_find_host_what_is_no_address_is_told_in_one_sentence(given):
    with pytest.raises(UsageError, match="is no address of an Ollama server") as caught:
        find_host(given)
    assert repr(given.strip()) in str(caught.value)


@pytest.mark.parametrize(
    ("given", "is_loopback"),
    [("127.9.9.9", True), ("LOCALHOST:1", True), ("::1", True), ("192.168.1.7", False), ("box", False)],
)
def test_find_host_loopback_is_told_apart(given, is_loopback):
    assert find_host(given).is_loopback is is_loopback


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_clients_reach_loopback_past_any_proxy(monkeypatch, ollama, variable):
    monkeypatch.setenv(variable, "http://127.0.0.1:1")
    host = find_host(ollama.url)
    assert make_http(host).get("/api/version").json() == {"version": "0.33.0"}
    assert len(make_client(host).ps().models) == 0


def test_clients_use_the_proxy_for_another_machine(monkeypatch, ollama):
    monkeypatch.setenv("HTTP_PROXY", ollama.url)
    host = find_host("http://box.invalid:11434")
    ollama.answer("http://box.invalid:11434/api/version", b'{"version": "9"}')
    assert make_http(host).get("/api/version").json() == {"version": "9"}


def test_clients_unusable_proxy_is_told_only_where_it_is_needed(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks9://x")
    make_client(find_host("127.0.0.1")).close()
    for make in (make_http, make_client):
        with pytest.raises(UsageError, match="The proxy in the environment cannot be used"):
            make(find_host("box.invalid"))


@pytest.mark.parametrize(("name", "value"), [("ALL_PROXY", "socks9://x"), ("OLLAMA_HOST", "host:abc")])
def test_client_is_made_though_the_library_cannot_be_imported_here(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    code = (
        "from liob_core.engines.ollama_host import OllamaHost, make_client;"
        "make_client(OllamaHost('http://127.0.0.1:1', True)); import os; print(os.environ["
        + repr(name)
        + "])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == value


@pytest.mark.parametrize(
    ("url", "is_sent"),
    [("http://127.0.0.1:1", True), ("https://box.invalid", True), ("http://box.invalid", False)],
)
def test_clients_send_the_key_only_where_nobody_can_read_it(monkeypatch, url, is_sent):
    monkeypatch.setenv("OLLAMA_API_KEY", "secret")
    host = find_host(url)
    assert ("authorization" in make_http(host).headers) is is_sent
    sent = []
    client = make_client(host)._client
    client._mounts.clear()
    client._transport = httpx.MockTransport(
        lambda request: sent.append(request) or httpx.Response(200, json={"models": []})
    )
    client.get("/api/ps")
    assert ("authorization" in sent[0].headers) is is_sent
