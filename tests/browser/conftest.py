"""Served apps with data folders of their own, and the system's Chromium to drive them.

Starting a server and a browser takes seconds, so a module's tests share both; each test has a context,
and so a session, of its own.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from liob_core.config import PROJECT_DIR
from tests.app.conftest import made_database

__all__ = ["made_database"]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
expect.set_options(timeout=60_000)


@dataclass(frozen=True, slots=True)
class Served:
    """A running app: its address, and the folder it writes to."""

    url: str
    data_dir: Path


@contextmanager
def serve(folder: Path, **environment: str) -> Iterator[Served]:
    """A freshly started app that nobody has visited; its data folder is empty unless `folder/data` is not."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = {"LIOB_DATA_DIR": str(folder / "data"), "LIOB_MACHINE_DIR": str(folder / "machine")}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LIOB_")}
    with (folder / "app.log").open("wb") as log:
        app = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "streamlit_app.py",
             "--server.port", str(port), "--server.address", "127.0.0.1", "--server.headless", "true",
             "--server.fileWatcherType", "none"],
            cwd=PROJECT_DIR, env=inherited | own | environment, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    served = Served(f"http://127.0.0.1:{port}", folder / "data")
    try:
        _wait_for(served.url)
        yield served
    finally:
        app.send_signal(signal.SIGTERM)
        app.wait(timeout=30)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An app as a new user finds it, shared by the tests of a module in their order."""
    with serve(tmp_path_factory.mktemp("app")) as served:
        yield served


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page of a session of its own; fails the test on any script error."""
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.set_default_timeout(120_000)  # the first script run looks for engines in a child
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert errors == []


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            httpx.get(f"{url}/_stcore/health", trust_env=False, timeout=2).raise_for_status()
        except httpx.HTTPError:
            assert time.monotonic() < deadline, "the app did not start"
            time.sleep(0.2)
        else:
            return
