"""Model text as text: nothing in it is executed, fetched, or able to hide."""

import functools
import html
import re
import unicodedata

from markdown_it import MarkdownIt

# No link and no image: a picture in an answer would call out to the network as soon as it is shown.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_MARKDOWN.disable(["image", "link", "autolink", "reference", "html_inline", "html_block"])

# Streamlit's Markdown makes links of bare addresses, escaped or not; only in a code span they stay text.
_ADDRESS = re.compile(
    r"((?:https?://|www\.)[^\s`]*[^\s`.,:;!?)\]}'\"]|[-.\w+]+@[-\w]+(?:\.[-\w]+)+)", re.IGNORECASE
)

_LONGEST = 200_000
_NAMES = {"\0": "NUL", "\a": "BEL", "\b": "BS", "\r": "CR", "\x1b": "ESC", "\x7f": "DEL"}


def visible(text: str) -> str:
    """`text` with control, direction and broken characters replaced by ones that can be seen."""
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + f"\n[{len(text) - _LONGEST:,} more characters are in the database]"
    text = text.replace("\r\n", "\n")
    return re.sub(r"[^\n\t -~]", lambda match: _shown(match.group()), text)


@functools.lru_cache(maxsize=4096)
def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cs":
        return "\N{REPLACEMENT CHARACTER}"
    if category == "Cc" or (category == "Cf" and character not in "\u200c\u200d"):
        return f"‹{_NAMES.get(character) or f'U+{ord(character):04X}'}›"
    return character


def as_html(text: str) -> str:
    """`text` escaped for HTML, ready to stand inside an element."""
    return html.escape(visible(text))


def markdown_html(text: str) -> str:
    """`text` rendered as Markdown without HTML, links or images."""
    return str(_MARKDOWN.render(visible(text)))


def markdown_cell(text: str) -> str:
    """`text` in one line of a Markdown table: no cell ends early, no HTML, link or picture begins."""
    line = " ".join(visible(text).split())
    return re.sub(r"([|\[\]`\\])", r"\\\1", line).replace("<", "&lt;")


def literal(text: str) -> str:
    """`text` for places where Streamlit reads Markdown (labels, captions), with its marks escaped.

    Addresses become code, so that nothing that a model writes can be clicked.
    """
    parts = _ADDRESS.split(visible(text))
    return "".join(f"`{part}`" if place % 2 else _escaped(part) for place, part in enumerate(parts))


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#$~|!]|:(?=[\w/]))", r"\\\1", text)
