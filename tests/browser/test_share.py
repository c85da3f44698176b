"""The hosted app as its visitors see it: result pages alone, and what a model wrote shown as text."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from liob_core.analysis.runs import list_runs
from liob_core.store.share import export_run
from liob_core.ui.nav import SCREENS
from tests.browser.conftest import Served, serve

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
SHARED = [screen for screen in SCREENS if screen.is_shared]


@pytest.fixture(scope="module")
def hosted(made_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("hosted")
    run_id = str(list_runs(made_database)["run_id"].iloc[0])
    shared = export_run(made_database, run_id, "duckdb", folder / "results.duckdb")
    with serve(folder, LIOB_SHARE=str(shared)) as served:
        yield served


def test_visitors_have_the_pages_with_results_and_no_other(page: Page, hosted: Served) -> None:
    page.goto(hosted.url)
    expect(page.locator("h1")).to_be_visible()
    first = page.locator("h1").inner_text()
    links = page.get_by_test_id("stSidebarNavLink")
    for name in ("new", "settings"):
        expect(links).to_have_count(len(SHARED))
        page.goto(f"{hosted.url}/{name}")  # a box says that there is no such page, over the first one
        expect(page.locator("h1")).to_have_text(first)
    for screen in SCREENS:
        link = page.locator(f"a[href$='/{screen.name}']")
        assert link.count() == (screen.is_shared and screen is not SCREENS[0])


def test_answer_that_tries_to_run_a_script_is_text(page: Page, hosted: Served) -> None:
    asked: list[str] = []
    opened: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: (opened.append(dialog.message), dialog.dismiss()))
    page.goto(f"{hosted.url}/answers?prompt=p1")
    expect(page.get_by_text("<script>alert(1)</script>").first).to_be_visible()
    page.get_by_text("Render Markdown").click()
    expect(page.locator("strong", has_text="bold").first).to_be_visible()
    assert page.locator("img[src='x'], img[src*='evil'], a[href*='evil']").count() == 0
    assert opened == []
    assert [url for url in asked if "evil.example" in url] == []
