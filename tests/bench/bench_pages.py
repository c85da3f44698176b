"""How long each page's script takes on a large database, and how long a browser until it paints.

    python -m tests.bench.bench_pages BIG.duckdb [--browser]

Prints one JSON document. Each page is opened three times by a session of its own: the first with nothing
cached, as after a run was stored, the others as when a reader comes back. Wanted: every one under 1 s.
With `--browser` a served app is visited too: ms until the first paint, and until the page has its heading
and its script has ended; the browser has LIOB's files from the page before.
Make the database with `python -m tests.bench.make_big_database BIG.duckdb`.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import streamlit as st
from playwright.sync_api import expect, sync_playwright
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from liob_core.analysis.runs import list_runs
from liob_core.config import PROJECT_DIR
from liob_core.ui import source
from liob_core.ui.nav import SCREENS
from tests.browser.conftest import CHROMIUM, QUIET, serve

N_VISITS = 3
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def visit(page: str, run_id: str) -> dict[str, float]:
    """Wall and processor time of one visit in s; raises where the page shows an error."""
    app = AppTest.from_file(str(PROJECT_DIR / "streamlit_app.py"), default_timeout=120)
    if page not in {"new", "run", "models", "settings"}:
        app.query_params["run"] = run_id
    app._page_hash = calc_hash(page)
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    app.run()
    took = {
        "wall_s": round(time.perf_counter() - began_s, 3),
        "cpu_s": round(time.process_time() - began_cpu_s, 3),
    }
    if app.exception or app.error:
        raise RuntimeError(f"{page}: {[*app.exception, *app.error]}")
    return took


def paint(database: Path, run_id: str) -> dict[str, dict[str, float | None]]:
    """Of each page in a browser: ms until the first paint, and until all of it is there."""
    painted = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        (Path(folder) / "data").mkdir()
        (Path(folder) / "data" / "liob.duckdb").symlink_to(database)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        with serve(Path(folder)) as app:
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            page.goto(app.url)
            expect(page.locator("h1")).to_be_visible(timeout=120_000)
            for screen in SCREENS:
                began_s = time.perf_counter()
                page.goto(f"{app.url}/{screen.name}?source=own&run={run_id}")
                expect(page.locator("h1").first).to_be_visible(timeout=120_000)
                expect(page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=120_000)
                painted[screen.name] = {
                    "first_paint_ms": page.evaluate(FIRST_PAINT),
                    "complete_ms": round((time.perf_counter() - began_s) * 1e3),
                }
        browser.close()
    return painted


def main() -> None:
    """Print the times of each page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", type=Path)
    parser.add_argument("--browser", action="store_true")
    asked = parser.parse_args()
    database = asked.database.resolve()
    source.SAMPLE_DATABASE = database
    runs = list_runs(database)
    largest = str(runs.sort_values("n_samples", ascending=False)["run_id"].iloc[0])
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LIOB_DATA_DIR"] = folder
        for page in (screen.name for screen in SCREENS):
            visit(page, largest)  # imports, which a server does once
            st.cache_data.clear()
            times[page] = [visit(page, largest) for _ in range(N_VISITS)]
    found = {"n_samples": int(runs["n_samples"].max()), "visits": times}
    if asked.browser:
        found["painted"] = paint(database, largest)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
