"""A served app in a data folder of its own, and the system's Chromium to drive it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, sync_playwright

from liob_core.config import PROJECT_DIR

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture
def app_url(tmp_path: Path) -> Iterator[str]:
    """The address of a freshly started app whose data folder is empty."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (tmp_path / "app.log").open("wb") as log:
        app = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "streamlit_app.py",
             "--server.port", str(port), "--server.address", "127.0.0.1", "--server.headless", "true",
             "--server.fileWatcherType", "none"],
            cwd=PROJECT_DIR, env=dict(os.environ), stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url)
        yield url
    finally:
        app.send_signal(signal.SIGTERM)
        app.wait(timeout=30)


@pytest.fixture
def page() -> Iterator[Page]:
    """A page of the system's Chromium; fails the test on any script error."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
        page.set_default_timeout(120_000)  # the first script run looks for engines in a child
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        browser.close()
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
