"""Pictures of a run on a page, each with its downloads. What is the same for every reader is made once."""

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import pandas as pd
import streamlit as st

from liob_core.charts.theme import look_of
from liob_core.rendering.csv import as_csv
from liob_core.ui import reads
from liob_core.ui.blocks import as_spec, show_chart, show_unknown
from liob_core.ui.run_pictures import PICTURES
from liob_core.ui.run_view import RunView
from liob_core.ui.style import current_look

Key = str | int | float | bool | None | tuple[Any, ...]


class Drawn(TypedDict):
    """A `Picture` as plain data; `spec` is its chart's, empty where the `reason` says why there is none."""

    name: str
    title: str
    reason: str
    spec: dict[str, Any]
    data: pd.DataFrame


def draw(view: RunView, question: str, *keys: Key) -> list[Drawn]:
    """The pictures that PICTURES has under that name, in the reader's own look."""
    run = (str(view.database), reads.stamp(view.database), view.run_id)
    return _draw(question, run, current_look().name, keys, view)


@st.cache_data(ttl=3600, max_entries=128, show_spinner=False)
def _draw(
    question: str,
    run: tuple[str, tuple[int, int], str],  # the database, its stamp, the run's id
    look: str,
    keys: tuple[Key, ...],
    _view: RunView,  # is what `run` names, and so no part of the cache's key
) -> list[Drawn]:
    return [
        Drawn(
            name=picture.name,
            title=picture.title,
            reason=picture.reason,
            spec={} if picture.chart is None else as_spec(picture.chart, alt_text=picture.alt_text),
            data=picture.data,
        )
        for picture in PICTURES[question](_view, look_of(look), *keys)
    ]


def show_picture(drawn: Drawn, *, file_stem: str) -> None:
    """The picture and its files; where there is nothing to draw, why."""
    if not drawn["spec"]:
        show_unknown(drawn["title"], drawn["reason"])
        return
    show_chart(drawn["spec"])
    show_downloads(drawn, file_stem=file_stem)


def show_downloads(drawn: Drawn, *, file_stem: str) -> None:
    """The files of a picture that has been drawn; each is made when its button is used."""
    files: tuple[tuple[str, str, str, Callable[[], str | bytes]], ...] = (
        ("PNG", "png", "image/png", lambda: _png(_with_rows(drawn))),
        ("SVG", "svg", "image/svg+xml", lambda: _svg(_with_rows(drawn))),
        ("Data as CSV", "csv", "text/csv", lambda: as_csv(drawn["data"])),
    )
    with st.popover("Download", icon=":material/download:", type="tertiary"):
        for label, suffix, mime, make in files:
            st.download_button(
                label,
                make,
                file_name=f"{file_stem}-{drawn['name']}.{suffix}",
                mime=mime,
                key=f"download_{drawn['name']}_{suffix}",
                on_click="ignore",
            )


def _with_rows(drawn: Drawn) -> dict[str, Any]:
    """The specification as a file needs it, its data as rows."""
    spec = drawn["spec"]
    tables: Mapping[str, Any] = spec["datasets"]
    return {**spec, "datasets": {name: table.to_pylist() for name, table in tables.items()}}


def _png(spec: Mapping[str, Any]) -> bytes:
    from liob_core.charts.files import as_png  # noqa: PLC0415 - its renderer is large, and few ask for it

    return as_png(spec)


def _svg(spec: Mapping[str, Any]) -> str:
    from liob_core.charts.files import as_svg  # noqa: PLC0415 - its renderer is large, and few ask for it

    return as_svg(spec)
