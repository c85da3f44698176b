"""The one HTML file: everything inside it, nothing fetched, model text inert."""

import base64
import functools
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import vl_convert

from liob_core.charts.files import as_svg
from liob_core.charts.pictures import Picture
from liob_core.charts.theme import LIGHT
from liob_core.rendering.text import as_html

_FOLDER = Path(__file__).parent


def document(title: str, body: str) -> str:
    """A whole page with its own styles and scripts; the policy in its head forbids every other source."""
    script = _script()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src '{_digest(script)}' 'unsafe-eval'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{as_html(title)}</title><style>{_variables()}\n{_read('report.css')}</style></head>"
        f"<body><main>{body}</main><script>{script}</script></body></html>\n"
    )


def section(name: str, title: str, *parts: str) -> str:
    """A part of the page that its navigation can name."""
    return f'<section id="{name}"><h2>{as_html(title)}</h2>{"".join(parts)}</section>'


def figure(picture: Picture, *, width: int) -> str:
    """A picture that is drawn already and comes alive where scripts run, or why there is none."""
    if picture.chart is None:
        return (
            f'<figure class="unknown"><strong>{as_html(picture.title)}</strong>'
            f"<figcaption>— {as_html(picture.reason)}</figcaption></figure>"
        )
    name = f"spec-{picture.name}"
    spec = picture.chart.to_dict()
    still = as_svg(spec, width=width)
    return (
        f'<figure role="img" aria-label="{as_html(picture.alt_text)}">'
        f'<div class="chart" data-spec="{name}"><div>{still}</div></div>'
        f'<script type="application/json" id="{name}">{_inert_json(spec)}</script>'
        "</figure>"
    )


def bullets(lines: Sequence[str]) -> str:
    """The lines as a list; nothing where there is none."""
    return f"<ul>{''.join(f'<li>{as_html(line)}</li>' for line in lines)}</ul>" if lines else ""


def _inert_json(value: Any) -> str:
    """JSON that cannot end the element it stands in."""
    return json.dumps(value).replace("<", "\\u003c")


@functools.cache
def _script() -> str:
    """Vega with the lines that wake the pictures; the closing tag cannot occur in it."""
    return vl_convert.javascript_bundle(_read("report.js")).replace("</script", "<\\/script")


def _digest(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _variables() -> str:
    colours = {
        "page": LIGHT.page,
        "ink": LIGHT.ink,
        "muted": LIGHT.muted,
        "grid": LIGHT.grid,
        "line": LIGHT.grid,
        "better": LIGHT.better,
        "worse": LIGHT.worse,
        "same": LIGHT.same,
        "accent": LIGHT.accent,
        "accent-ink": LIGHT.ramp[1],
        "mark": LIGHT.accent + "2b",
    }
    return ":root {" + "".join(f"--{name}: {colour};" for name, colour in colours.items()) + "}"


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
