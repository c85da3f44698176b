"""Tables whose numbers never stand alone: each cell has a value, a lighter second line, and a hint."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from liob_core.rendering.text import as_html, markdown_cell

_MARKS = {"better": "▲", "worse": "▼", "same": "○", "unknown": "—"}


@dataclass(frozen=True, slots=True)
class Note:
    """A lighter line under a cell's text; a verdict (better, worse, same, unknown) has its own look."""

    text: str
    verdict: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: its text, what stands under it, and what hovering tells."""

    text: str
    notes: tuple[Note, ...] = ()
    hint: str = ""
    swatch: str = ""  # a colour before the text
    diamond: bool = False  # the swatch of the reference
    bar: tuple[float, float] | None = None  # shares of a bar: good, bad


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its heading, what hovering over it explains, and whether it holds numbers."""

    label: str
    hint: str = ""
    is_number: bool = True


def table_html(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, caption: str) -> str:
    """The table as HTML; `caption` is read out by screen readers."""
    head = "".join(
        f'<th scope="col" class="{_align(column)}" title="{html.escape(column.hint)}">'
        f"<span{' class=help' if column.hint else ''}>{html.escape(column.label)}</span></th>"
        for column in columns
    )
    body = "".join(
        "<tr>" + "".join(_cell(cell, column) for cell, column in zip(row, columns, strict=True)) + "</tr>"
        for row in rows
    )
    return (
        '<div class="liob-scroll" tabindex="0"><table class="liob-table">'
        f"<caption>{html.escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _align(column: Column) -> str:
    return "num" if column.is_number else "txt"


def _cell(cell: Cell, column: Column) -> str:
    swatch = ""
    if cell.swatch:
        shape = "swatch diamond" if cell.diamond else "swatch"
        swatch = f'<i class="{shape}" style="background:{html.escape(cell.swatch)}"></i>'
    notes = "".join(f'<div class="note">{note_html(note)}</div>' for note in cell.notes)
    bar = ""
    if cell.bar:
        good, bad = (round(100 * share, 1) for share in cell.bar)
        bar = (
            f'<div class="liob-bar"><i style="width:{good}%"></i>'
            f'<i class="bad" style="width:{bad}%"></i></div>'
        )
    return (
        f'<td class="{_align(column)}" title="{html.escape(cell.hint)}">'
        f"<div>{swatch}{as_html(cell.text)}</div>{bar}{notes}</td>"
    )


def note_html(note: Note) -> str:
    """The note's words with the mark and the colour of its verdict; without one, the words alone."""
    if note.verdict not in _MARKS:
        return as_html(note.text)
    mark = f'<b aria-hidden="true">{_MARKS[note.verdict]}</b>'
    return f'<span class="liob-{note.verdict}">{mark} {as_html(note.text)}</span>'


def as_markdown(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> str:
    """The same table for pasting elsewhere, as Markdown."""
    lines = [
        "| " + " | ".join(markdown_cell(column.label) for column in columns) + " |",
        "|" + "|".join("---:" if column.is_number else "---" for column in columns) + "|",
    ]
    for row in rows:
        texts = (", ".join([cell.text, *(note.text for note in cell.notes)]) for cell in row)
        lines.append("| " + " | ".join(map(markdown_cell, texts)) + " |")
    return "\n".join(lines)
