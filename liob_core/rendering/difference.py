"""Where an answer departs from the reference's, word by word."""

import html
import re
from difflib import SequenceMatcher

from liob_core.rendering.text import visible

# Comparing takes time that grows with the square of the length; a page must not wait for it.
_MOST_WORDS = 3_000


def marked_html(text: str, reference: str) -> str:
    """`text` as HTML, with the words marked that the reference does not have at that place."""
    words, others = _words(text), _words(reference)
    if len(words) > _MOST_WORDS or len(others) > _MOST_WORDS:
        return html.escape("".join(words))
    stripped, bare = [word.strip() for word in others], [word.strip() for word in words]
    matcher = SequenceMatcher(None, stripped, bare, autojunk=False)
    pieces = []
    for tag, _, _, start, end in matcher.get_opcodes():
        piece = html.escape("".join(words[start:end]))
        pieces.append(f"<mark>{piece}</mark>" if tag in {"insert", "replace"} and piece.strip() else piece)
    return "".join(pieces)


def _words(text: str) -> list[str]:
    """The words with the space that follows them."""
    return re.findall(r"\S+\s*|\s+", visible(text))
