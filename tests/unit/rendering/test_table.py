from liob_core.rendering.table import Cell, Column, Note, as_markdown, table_html
from liob_core.rendering.text import as_html, literal, markdown_html

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(1)> | ![a](http://evil.example) `x` \u202e"


HINT = f'" onmouseover="{HOSTILE}'


def hostile_table() -> tuple[list[Column], list[list[Cell]]]:
    cell = Cell(
        text=HOSTILE, notes=(Note(HOSTILE), Note(HOSTILE, "better")), hint=f'" onmouseover="{HOSTILE}'
    )
    return [Column(label=HOSTILE, hint=HOSTILE)], [[cell]]


def test_text_in_a_table_is_text_in_cells_hints_headings_and_caption() -> None:
    columns, rows = hostile_table()
    html = table_html(columns, rows, caption=HOSTILE)

    assert "<script" not in html
    assert "<img" not in html
    assert '" onmouseover="' not in html
    assert html.count("<td") == html.count("</td>") == 1


def test_copied_markdown_keeps_its_columns_and_holds_no_html_and_no_picture() -> None:
    columns, rows = hostile_table()
    lines = as_markdown(columns, rows).splitlines()

    assert [line.replace("\\|", "").count("|") for line in lines] == [2, 2, 2]
    assert "<script" not in "\n".join(lines)
    assert "<img" not in "\n".join(lines)
    assert "![" not in "\n".join(lines).replace("\\!", "").replace("!\\[", "")


def test_words_of_a_model_are_inert_wherever_they_stand() -> None:
    for made in (as_html(HOSTILE), markdown_html(HOSTILE)):
        assert "<script" not in made
        assert "<img" not in made
        assert "\u202e" not in made
    assert "\\<script" in literal(HOSTILE)
    assert "\\!\\[a" in literal(HOSTILE)
