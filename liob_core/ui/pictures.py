"""Pictures of a run on a page, each with its downloads."""

from collections.abc import Callable

import streamlit as st

from liob_core.charts.pictures import Picture
from liob_core.rendering.csv import as_csv
from liob_core.ui.blocks import show_chart, show_unknown


def show_picture(picture: Picture, *, file_stem: str) -> None:
    """The picture and its files; where there is nothing to draw, why."""
    if picture.chart is None:
        show_unknown(picture.title, picture.reason)
        return
    show_chart(picture.chart, alt_text=picture.alt_text)
    show_downloads(picture, file_stem=file_stem)


def show_downloads(picture: Picture, *, file_stem: str) -> None:
    """The files of a picture that has been drawn; each is made when its button is used."""
    files: tuple[tuple[str, str, str, Callable[[], str | bytes]], ...] = (
        ("PNG", "png", "image/png", lambda: _png(picture)),
        ("SVG", "svg", "image/svg+xml", lambda: _svg(picture)),
        ("Data as CSV", "csv", "text/csv", lambda: as_csv(picture.data)),
    )
    with st.popover("Download", icon=":material/download:", type="tertiary"):
        for label, suffix, mime, make in files:
            st.download_button(
                label,
                make,
                file_name=f"{file_stem}-{picture.name}.{suffix}",
                mime=mime,
                key=f"download_{picture.name}_{suffix}",
                on_click="ignore",
            )


def _png(picture: Picture) -> bytes:
    from liob_core.charts.files import as_png  # noqa: PLC0415 - its renderer is large, and few ask for it

    return as_png(picture.chart)


def _svg(picture: Picture) -> str:
    from liob_core.charts.files import as_svg  # noqa: PLC0415 - its renderer is large, and few ask for it

    return as_svg(picture.chart)
