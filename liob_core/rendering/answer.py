"""One answer of one variant as inert HTML: who wrote it, how it was graded, what it says."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from liob_core.analysis import words
from liob_core.rendering.difference import marked_html
from liob_core.rendering.table import Note, note_html
from liob_core.rendering.text import as_html, markdown_html

Row = dict[Any, Any]
_CHECKS = {
    "pass": ("better", "✓ passed"),
    "fail": ("worse", "✗ failed"),
    "unchecked": ("same", "○ not checked"),
}
_USABLE = {"ok", "length"}


def head_html(row: Row, colour: str, notes: Sequence[Note] = ()) -> str:
    """What stands above an answer: the variant, whether it differs, its check, `notes`, its cost."""
    shape = "swatch diamond" if row["is_reference"] else "swatch"
    bits: str = "" if pd.isna(row["bpw"]) else f"{row['bpw']:.2f} bits"
    role = "reference" if row["is_reference"] else _likeness(row)
    told = "".join(f'<div class="note">{note_html(note)}</div>' for note in notes)
    return (
        f'<div class="liob-answer"><div class="name"><i class="{shape}" style="background:{colour}"></i>'
        f"{as_html(row['variant'])} <span>{as_html(bits)}</span></div>"
        f'<div class="note">{as_html(role)}</div>{_check_html(row)}{told}'
        f'<div class="note">{as_html(_cost(row))}</div></div>'
    )


def body_html(row: Row, reference: str, *, is_rendered: bool = False) -> str:
    """The text: rendered, or as it was written with what differs from the `reference` text marked."""
    text = text_of(row["response"])
    if is_rendered:
        body = markdown_html(text)
    elif row["is_reference"] or not reference:
        body = as_html(text)
    else:
        body = marked_html(text, reference)
    kind = "liob-text rendered" if is_rendered else "liob-text"
    return f'<div class="{kind}" tabindex="0">{body or "<em>no text</em>"}</div>'


def _likeness(row: Row) -> str:
    if pd.isna(row["same_text"]):
        return ""
    return "the same text as the reference" if row["same_text"] else "differs from the reference"


def _check_html(row: Row) -> str:
    """The check's result and why, or how the answer ended where it is not usable."""
    lines = []
    outcome = text_of(row["outcome"])
    if not outcome:
        lines.append('<div class="liob-unknown">— no answer was recorded</div>')
    elif outcome not in _USABLE:
        why = text_of(row["reason"])
        lines.append(
            f'<div class="liob-worse">▼ {as_html(outcome)}{as_html(": " + why) if why else ""}</div>'
        )
    elif outcome == "length":
        lines.append('<div class="liob-same">○ cut off at the token limit</div>')
    known = _CHECKS.get(text_of(row["check_result"]))
    if known:
        look, shown = known
        why = as_html(text_of(row["check_reason"]))
        score = row.get("check_score")
        shown += "" if score is None or pd.isna(score) else f" · score {score:.2f}"
        lines.append(f'<div class="liob-{look}" title="{why}">{shown}</div><div class="note">{why}</div>')
    return "".join(lines)


def _cost(row: Row) -> str:
    parts: list[str] = []
    if not pd.isna(row["output_tokens"]):
        parts.append(f"{row['output_tokens']:.0f} tokens")
    parts += [
        words.value(metric, row[metric]) for metric in ("e2e_ms", "decode_tps") if not pd.isna(row[metric])
    ]
    return " · ".join(parts)


def text_of(value: object) -> str:
    """A text column's value; NULL is empty."""
    return value if isinstance(value, str) else ""
