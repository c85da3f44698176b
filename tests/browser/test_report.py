"""The report as a person opens it: from disk, with the network off, in a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from liob_core.report.make import write_report
from tests.unit.analysis.conftest import RUN, RunWriter, empty_database, writer

__all__ = ["empty_database", "writer"]
pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
HOSTILE = (
    "</script><script>window.owned = 1</script><img src=http://evil.example/x onerror='window.owned = 1'>"
)


@pytest.fixture
def report(writer: RunWriter, tmp_path: Path) -> Path:
    writer.run()
    writer.machine()
    for label, bits in (("F16", 16), ("Q4_0", 4.5)):
        writer.variant(label, bits)
        writer.load(label)
        for block in range(3):
            writer.speed(label, block, chat_ms=1270.0 + block)
        writer.answer(label, "p0", "pass", response=f"{label} {HOSTILE}")
    writer.prompt("p0")
    writer.summarize()
    return write_report(writer.close(), RUN, tmp_path / "report.html").html


@pytest.fixture
def offline(chromium: Browser) -> Iterator[tuple[Page, list[str], list[str]]]:
    """A page without a network, with what it asked for and what went wrong."""
    asked: list[str] = []
    errors: list[str] = []
    context = chromium.new_context(viewport={"width": 1200, "height": 900}, offline=True)
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    yield page, asked, errors
    context.close()


def test_report_is_whole_offline(report: Path, offline: tuple[Page, list[str], list[str]]) -> None:
    page, asked, errors = offline
    page.goto(report.as_uri())

    expect(page.locator(".chart[data-live=yes]")).to_have_count(7)
    assert page.locator(".chart svg").count() == 7
    page.locator(".chart").nth(1).locator("path[aria-roledescription=point]").first.hover()
    expect(page.locator("#vg-tooltip-element")).to_contain_text("F16")
    assert page.evaluate("window.owned") is None
    assert page.locator("img").count() == 0
    expect(page.get_by_text("window.owned").first).to_be_visible()
    assert asked == [report.as_uri()]
    assert errors == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_report_reads_without_scripts_and_prints(report: Path, chromium: Browser, tmp_path: Path) -> None:
    context = chromium.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(report.as_uri())
    expect(page.locator(".chart svg")).to_have_count(7)
    pdf = page.pdf(path=tmp_path / "report.pdf", format="A4")
    context.close()
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8
