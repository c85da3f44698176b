"""How long each page's script takes on a large database.

    python -m tests.bench.bench_pages BIG.duckdb

Prints one JSON document. Each page is opened three times by a session of its own: the first with nothing
cached, as after a run was stored, the others as when a reader comes back. Wanted: every one under 1 s.
Make the database with `python -m tests.bench.make_big_database BIG.duckdb`.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from liob_core.analysis.runs import list_runs
from liob_core.config import PROJECT_DIR
from liob_core.ui import source

PAGES = ("overview", "new", "run", "results", "answers", "resources", "runs", "data", "settings")
N_VISITS = 3


def visit(page: str, run_id: str) -> dict[str, float]:
    """Wall and processor time of one visit in s; raises where the page shows an error."""
    app = AppTest.from_file(str(PROJECT_DIR / "streamlit_app.py"), default_timeout=120)
    if page not in {"new", "run"}:
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


def main() -> None:
    """Print the times of each page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", type=Path)
    database = parser.parse_args().database.resolve()
    source.SAMPLE_DATABASE = database
    runs = list_runs(database)
    largest = str(runs.sort_values("n_samples", ascending=False)["run_id"].iloc[0])
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LIOB_DATA_DIR"] = folder
        for page in PAGES:
            visit(page, largest)  # imports, which a server does once
            st.cache_data.clear()
            times[page] = [visit(page, largest) for _ in range(N_VISITS)]
    print(json.dumps({"n_samples": int(runs["n_samples"].max()), "visits": times}, indent=2))


if __name__ == "__main__":
    main()
