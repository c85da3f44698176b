"""axe looks at every page, in both themes, on a laptop and on a phone."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from liob_core.ui.nav import SCREENS
from tests.browser.conftest import Served, serve

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
SIZES = {"laptop": (1400, 900), "phone": (390, 844)}
# Streamlit's own parts that LIOB cannot change; each with why it is no barrier.
NOT_OURS = {
    "list",  # its navigation puts the headings of sections between list items
    "listitem",
}


@pytest.fixture(scope="module")
def app(made_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An app with a run of its user's own."""
    folder = tmp_path_factory.mktemp("axe")
    (folder / "data").mkdir()
    shutil.copy(made_database, folder / "data" / "liob.duckdb")
    with serve(folder) as served:
        yield served


def go(page: Page, url: str) -> None:
    """Open a page and wait until it has settled."""
    page.goto(url)
    expect(page.get_by_role("heading", level=1).first).to_be_visible()
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
    assert page.get_by_role("dialog").count() == 0, "a box lies over the page"
    # What is about to be replaced is faded for a moment, and then has another contrast.
    expect(page.locator("[data-stale='true']")).to_have_count(0)
    page.wait_for_timeout(600)


def problems_of(page: Page) -> list[str]:
    """Serious findings in words: the rule, where, and what axe says."""
    found = Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found
        if rule["impact"] in {"serious", "critical"} and rule["id"] not in NOT_OURS
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize(("size", "theme"), [("laptop", "light"), ("laptop", "dark"), ("phone", "light")])
def test_no_serious_barrier_and_no_sideways_scrolling(
    app: Served, chromium: Browser, size: str, theme: str
) -> None:
    width, height = SIZES[size]
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    page = context.new_page()
    page.set_default_timeout(60_000)
    barriers: list[str] = []
    for screen in SCREENS:
        go(page, f"{app.url}/{screen.name}")
        barriers += [f"{screen.name}: {problem}" for problem in problems_of(page)]
        if page.evaluate("document.documentElement.scrollWidth > window.innerWidth + 1"):
            barriers.append(f"{screen.name}: the page scrolls sideways")
    context.close()
    assert barriers == []
