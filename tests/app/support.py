"""What the tests of pages share: hostile text, variants of the scripted engine, the HTML of a page."""

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from liob_core.config import PROJECT_DIR
from liob_core.models.variant import fake_variant
from liob_core.types import Variant

ENTRY = PROJECT_DIR / "streamlit_app.py"
LABELS = ("F16", "Q8_0", "Q4_K_M", "Q2_K")
HOSTILE = (
    "<script>alert(1)</script> ![spy](http://evil.example/a.png) [go](http://evil.example) "
    "<img src=x onerror=alert(1)> <http://evil.example> \x1b[31mred\x1b[0m \x00 \u202egnp \ufffd\n\n"
    "[ref]: http://evil.example\n\n![spy][ref] **bold**\n\n```\na[0] = 1\n```\n"
)
Open = Callable[..., AppTest]


def fake_variants() -> tuple[Variant, ...]:
    return tuple(
        fake_variant(label, bpw=bits) for label, bits in zip(LABELS, (16, 8.5, 6.2, 5.1), strict=True)
    )


def html_of(app: AppTest) -> str:
    """Every piece of HTML on the page, styles left out."""
    return "\n".join(
        element.proto.body for element in app.get("html") if not element.proto.body.startswith("<style")
    )


def collect_charts(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Fills with every chart that pages show from now on: its Vega-Lite with data as rows, and `options`."""
    charts: list[dict[str, Any]] = []

    def show(spec: dict[str, Any], **options: object) -> None:
        rows = {name: table.to_pylist() for name, table in spec["datasets"].items()}
        charts.append({**spec, "datasets": rows, "options": options})

    monkeypatch.setattr("streamlit.vega_lite_chart", show)
    return charts
