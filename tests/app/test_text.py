import pytest

from liob_core.ui.difference import marked_html
from liob_core.ui.text import as_html, literal, markdown_html, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb", "a\nb"),
        ("\x1b[31mred", "‹ESC›[31mred"),
        ("nul\x00", "nul‹NUL›"),
        ("\x9b31m", "‹U+009B›31m"),
        ("\u202eevil", "‹U+202E›evil"),
        ("broken \ud800 half", "broken \N{REPLACEMENT CHARACTER} half"),
        ("größer 東京 👩\u200d🔬", "größer 東京 👩\u200d🔬"),
    ],
)
def test_visible_shows_what_would_hide(text: str, shown: str) -> None:
    assert visible(text) == shown
    shown.encode()


def test_visible_cuts_what_no_page_can_hold() -> None:
    shown = visible("x" * 300_000)

    assert len(shown) < 210_000
    assert "100,000 more characters" in shown


def test_html_is_escaped() -> None:
    assert as_html('<b a="1">&') == "&lt;b a=&quot;1&quot;&gt;&amp;"


@pytest.mark.parametrize(
    "text",
    [
        "![x](http://e/x.png)",
        "![x][r]\n\n[r]: http://e/x.png",
        "[x](javascript:alert(1))",
        "<http://e>",
        "<img src=x>",
        "<script>alert(1)</script>",
        "a\n<div onclick=x>\nb",
        "[![a](http://e/a)](http://e)",
    ],
)
def test_markdown_never_makes_a_link_or_picture(text: str) -> None:
    page = markdown_html(text)

    for tag in ("<img", "<a ", "<script", "<div"):
        assert tag not in page


def test_markdown_keeps_code_as_it_was_written() -> None:
    page = markdown_html("**x**\n\n```python\nprint(a[0])  # <b>\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")

    assert "<strong>x</strong>" in page
    assert "print(a[0])  # &lt;b&gt;" in page
    assert "<td>2</td>" in page


def test_literal_leaves_no_markdown() -> None:
    assert literal("*a* :red[b] [c](d) $e$ Ends: so") == r"\*a\* \:red\[b\] \[c\](d) \$e\$ Ends: so"


def test_an_address_is_code_since_streamlit_makes_a_link_of_one_that_is_escaped() -> None:
    assert literal("at http://127.0.0.1:11434: start it") == "at `http://127.0.0.1:11434`: start it"
    assert literal("(www.evil.example/a`b), me@evil.example.") == (
        r"(`www.evil.example/a`\`b), `me@evil.example`."
    )
    assert literal("http://") == r"http\://"


def test_difference_marks_only_other_words() -> None:
    marked = marked_html("the cat sat <here>", "the dog sat")

    assert marked == "the <mark>cat </mark>sat <mark>&lt;here&gt;</mark>"


def test_equal_texts_have_no_mark() -> None:
    assert marked_html("a b\nc", "a b\nc") == "a b\nc"
