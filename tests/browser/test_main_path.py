"""What a new user does, in a real browser, on the real engine and model; the tests go on from each other."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from liob_core.config import SAMPLE_DATABASE
from tests.browser.conftest import Served, serve

pytestmark = [pytest.mark.browser, pytest.mark.model, pytest.mark.timeout(600)]
RUN_TIMEOUT_MS = 400_000


def open_new_benchmark(page: Page, app: Served, *paths: Path) -> None:
    page.goto(app.url)
    page.get_by_role("link", name="New benchmark").click()
    files = page.get_by_role("textbox", name="GGUF files or folders, one a line")
    files.fill("\n".join(map(str, paths)))
    files.press("Control+Enter")


def test_first_visit_shows_measured_results_and_one_button(page: Page, app: Served) -> None:
    if not SAMPLE_DATABASE.exists():
        pytest.skip("the sample database is not there")
    page.goto(app.url)
    expect(page.get_by_role("heading", level=1)).to_contain_text("F16")
    expect(page.get_by_text("Sample results")).to_be_visible()
    page.get_by_role("button", name="Benchmark your own model").click()
    expect(page.get_by_role("heading", name="New benchmark")).to_be_visible()
    expect(page).to_have_url(re.compile("/new"))


def test_first_visitor_of_a_fresh_server_may_come_by_any_address(page: Page, tmp_path: Path) -> None:
    with serve(tmp_path) as fresh:
        page.goto(f"{fresh.url}/results?source=sample")
        expect(page.get_by_role("heading", level=1)).to_contain_text("How fast, how big?")
        expect(page).to_have_url(re.compile(r"/results\?.*source=sample"))
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.goto(f"{fresh.url}/overview")  # the first page by its name, not only by the bare address
        expect(page.get_by_role("heading", level=1)).to_contain_text("F16")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_wrong_file_is_one_sentence_beside_the_field(page: Page, app: Served, tmp_path: Path) -> None:
    wrong = tmp_path / "page.gguf"
    wrong.write_text("<!doctype html><title>Sign in</title>")
    open_new_benchmark(page, app, wrong)
    expect(page.get_by_text("page.gguf").last).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)
    expect(page.get_by_role("button", name="Start benchmark")).to_be_disabled()


def test_cancel_and_a_second_tab(page: Page, app: Served, model_path: Path) -> None:
    open_new_benchmark(page, app, model_path)
    page.get_by_role("button", name="Start benchmark").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Running")
    other = page.context.new_page()
    other.goto(f"{app.url}/run")
    other.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Cancelled")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()


def test_benchmark_from_click_to_result(page: Page, app: Served, model_path: Path) -> None:
    open_new_benchmark(page, app, model_path)
    expect(page.get_by_text("Q4_1").first).to_be_visible()
    page.get_by_role("button", name="Answers to a suite").click()  # off: speed alone is enough here
    page.get_by_role("button", name="Start benchmark").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Running")
    page.reload()  # a run is not the tab's
    expect(page.get_by_role("heading", level=1)).to_contain_text(re.compile("Running|Finished"))
    page.get_by_role("button", name="See results").click(timeout=RUN_TIMEOUT_MS)
    expect(page.get_by_role("heading", level=1)).to_contain_text("How fast, how big?")
    expect(page.get_by_text("Q4_1").first).to_be_visible()
    expect(page).to_have_url(re.compile("run="))
