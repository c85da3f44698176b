"""Pictures are drawn once for all visitors, and never shown for another run, look, file or choice."""

import gc
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from liob_core.analysis import summary
from liob_core.analysis.runs import list_runs
from liob_core.charts.pictures import Picture
from liob_core.charts.theme import DARK, LIGHT, Look
from liob_core.store import database
from liob_core.ui import reads
from liob_core.ui.pictures import draw
from liob_core.ui.run_pictures import PICTURES
from liob_core.ui.run_view import RunView
from tests.app.support import Open

OTHER_RUN = "20260101-000000-again"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the pictures that were drawn anew."""
    names: list[str] = []

    def counted(name: str, make: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *keys: names.append(name) or make(*keys)

    for name, make in PICTURES.items():
        monkeypatch.setitem(PICTURES, name, counted(name, make))
    return names


@pytest.fixture
def two_runs(made_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The made run, and the same run again on the next day, in one file."""
    path = Path(shutil.copy(made_database, tmp_path / "two.duckdb"))
    with database.write(path) as con:
        (first,) = con.execute("SELECT run_id FROM raw.runs").fetchone()
        own = con.execute(
            "SELECT table_name, list(column_name) FROM information_schema.columns WHERE table_schema = 'raw' "
            "GROUP BY table_name HAVING list_contains(list(column_name), 'run_id')"
        ).fetchall()
        for table, columns in own:
            new = [f"'{OTHER_RUN}' AS run_id"]
            new += [f"{key} || '+' AS {key}" for key in ("sample_id", "load_id") if key in columns]
            new += ["created_utc + INTERVAL 1 DAY AS created_utc"] if table == "runs" else []
            con.execute(f"INSERT INTO raw.{table} SELECT * REPLACE ({', '.join(new)}) FROM raw.{table}")
        summary.summarize(con, OTHER_RUN)
    monkeypatch.setattr("liob_core.ui.source.SAMPLE_DATABASE", path)
    return str(first), OTHER_RUN


def charts_of(app: AppTest) -> list[tuple[str, list[bytes]]]:
    """Each chart as the browser gets it: its specification and its data."""
    assert not app.exception
    protos = [element.proto for element in app.get("vega_lite_chart")]
    return [(proto.spec, [one.data.data for one in proto.datasets]) for proto in protos]


@pytest.mark.parametrize(
    ("page", "pictures"),
    [
        ("results", ["rates", "latencies", "memory"]),
        ("tradeoffs", ["tradeoff"]),
        ("resources", ["timeline"]),
    ],
)
@pytest.mark.usefixtures("with_sample")
def test_a_second_visitor_gets_the_same_pictures_and_nothing_is_drawn_again(
    open_page: Open, drawn: list[str], page: str, pictures: list[str]
) -> None:
    first, second = charts_of(open_page(page)), charts_of(open_page(page))

    assert first == second
    assert len(first) >= len(pictures)
    assert drawn == pictures


@pytest.mark.parametrize("page", ["overview", "resources"])
def test_another_run_has_pictures_of_its_own(open_page: Open, two_runs: tuple[str, str], page: str) -> None:
    first, other = (charts_of(open_page(page, run=run_id)) for run_id in two_runs)

    assert len(first) == len(other)
    assert first != other
    assert charts_of(open_page(page, run=two_runs[0])) == first


@pytest.mark.usefixtures("with_sample")
def test_another_look_has_pictures_of_its_own(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    light = charts_of(open_page("overview"))
    monkeypatch.setattr("liob_core.ui.pictures.current_look", lambda: DARK)
    dark = charts_of(open_page("overview"))

    assert all(LIGHT.page in spec and DARK.page not in spec for spec, _ in light)
    assert all(DARK.page in spec and LIGHT.page not in spec for spec, _ in dark)


def test_a_picture_is_drawn_anew_for_whatever_it_depends_on(
    made_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[object, ...]] = []

    def make(view: RunView, look: Look, *keys: object) -> list[Picture]:
        calls.append((view.database, view.run_id, look, *keys))
        return [Picture(name=str(calls[-1]), title="", alt_text="", data=pd.DataFrame({"n": [len(calls)]}))]

    monkeypatch.setitem(PICTURES, "one", make)
    monkeypatch.setitem(PICTURES, "two", make)
    path = Path(shutil.copy(made_database, tmp_path / "one.duckdb"))
    run_id = str(list_runs(path)["run_id"].iloc[0])
    view = RunView(database=path, run_id=run_id, facts=reads.facts(path, run_id), is_sample=False)

    def number() -> int:
        (one,) = draw(view, "one", "key", (1.5, None), ())
        return int(one["data"]["n"].iloc[0])

    assert (number(), number()) == (1, 1)
    draw(view, "two", "key", (1.5, None), ())
    draw(view, "one", "key", (1.5, 0), ())
    draw(view, "one", "key", (1.5, None), (("axis", 1.0, True),))
    draw(replace(view, run_id=OTHER_RUN), "one", "key", (1.5, None), ())
    draw(replace(view, database=made_database), "one", "key", (1.5, None), ())
    assert len(calls) == 6
    with monkeypatch.context() as dark:
        dark.setattr("liob_core.ui.pictures.current_look", lambda: DARK)
        assert number() == 7
    assert number() == 1
    with database.write(path) as con:
        con.execute("UPDATE raw.runs SET title = 'renamed'")
    assert number() == 8


@pytest.mark.usefixtures("with_sample")
def test_what_one_visitor_does_to_a_picture_no_other_sees(made_database: Path) -> None:
    run_id = str(list_runs(made_database)["run_id"].iloc[0])
    facts = reads.facts(made_database, run_id)
    view = RunView(database=made_database, run_id=run_id, facts=facts, is_sample=True)
    (mine,) = draw(view, "memory")
    mine["spec"].clear()
    mine["data"]["added"] = 1

    (theirs,) = draw(view, "memory")

    assert theirs["spec"]["title"]["text"] == "Memory at its peak"
    assert "added" not in theirs["data"]


@pytest.mark.usefixtures("with_sample")
def test_what_a_page_has_loaded_is_no_longer_searched_for_garbage(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.unfreeze()
    monkeypatch.delitem(sys.modules, "pages.overview_page", raising=False)
    open_page("overview")
    n_kept = gc.get_freeze_count()
    open_page("overview")

    assert n_kept > 100_000
    assert abs(gc.get_freeze_count() - n_kept) < 1_000
