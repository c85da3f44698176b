"""axe looks at every page, in both themes, on a laptop and on a phone."""

import shutil
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from liob_core.config import load_settings
from liob_core.ui.nav import SCREENS
from tests.app.conftest import made_database  # noqa: F401 - a fixture
from tests.browser.conftest import CHROMIUM, QUIET

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
SIZES = {"laptop": (1400, 900), "phone": (390, 844)}
# Streamlit's own parts that LIOB cannot change; each with why it is no barrier.
NOT_OURS = {
    "list",  # its navigation puts the headings of sections between list items
    "listitem",
}


@pytest.fixture(scope="module")
def browser() -> Browser:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser
        browser.close()


def open_(browser: Browser, url: str, size: str, theme: str) -> Page:
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(url)
    expect(page.get_by_role("heading", level=1).first).to_be_visible(timeout=60_000)
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=60_000)
    # What is about to be replaced is faded for a moment, and then has another contrast.
    expect(page.locator("[data-stale='true']")).to_have_count(0, timeout=60_000)
    page.wait_for_timeout(600)
    return page


def problems_of(page: Page) -> list[str]:
    """Serious findings in words: the rule, where, and what axe says."""
    found = Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found
        if rule["impact"] in {"serious", "critical"} and rule["id"] not in NOT_OURS
        for node in rule["nodes"]
    ]


def test_no_serious_barrier_and_no_sideways_scrolling(
    app_url: str,
    browser: Browser,
    made_database: Path,  # noqa: F811 - the fixture
) -> None:
    data = load_settings().data_dir
    data.mkdir(parents=True, exist_ok=True)
    shutil.copy(made_database, data / "liob.duckdb")
    barriers: list[str] = []
    for screen in SCREENS:
        for size, theme in (("laptop", "light"), ("laptop", "dark"), ("phone", "light")):
            page = open_(browser, f"{app_url}/{screen.name}", size, theme)
            barriers += [f"{screen.name} {size} {theme}: {problem}" for problem in problems_of(page)]
            if page.evaluate("document.documentElement.scrollWidth > window.innerWidth + 1"):
                barriers.append(f"{screen.name} {size}: the page scrolls sideways")
            page.context.close()
    assert barriers == []
