"""A model's answer made plain: what graders read, whatever bytes the model wrote."""

import re

END_CHARS = 50_000  # of a very long answer, only this much of its end is searched for what it settles on

_ANSI = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,8}[@-~]|[@-Z\\^_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u2060\ufeff]")
_PLAIN = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2010": "-",
        "\u2011": "-",
        "\u2212": "-",
        "\u2044": "/",
        "\u00a0": " ",
        "\u2009": " ",
        "\u202f": " ",
    }
)

# "Answer:", "The answer is", "**Final answer:**", or a heading; not "Answer: <number>", which is the
# instruction itself when a model repeats it.
_MARKER = re.compile(
    r"""(?ix)
    (?: \banswer\b ["'*_\ \t]{0,8} (?: is\b [*_\ \t]{0,4} :? | [:=] )
      | ^[\#*\ \t]{0,8} (?:final\ )? answer [*\ \t]{0,8} $ )
    (?! [\s*_]{0,8} < (?!b>|i>|u>|em>|strong>|code>) [a-z,\ -]{1,40} > )
    """,
    re.MULTILINE,
)


def clean(text: str) -> str:
    """The text without escape sequences and control characters, quotes and blanks made plain."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    lines = whole.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", _ANSI.sub("", lines)).translate(_PLAIN).strip()


def answer_line(cleaned: str) -> str | None:
    """The first line of text after the last "Answer:"; None where there is no such mark."""
    end = None
    for match in _MARKER.finditer(cleaned):
        end = match.end()
    if end is None:
        return None
    for line in cleaned[end:].split("\n"):
        plain = line.strip(" \t*_#>`")
        if plain:
            return plain
    return ""


def shorten(text: str, n_chars: int = 120) -> str:
    """At most `n_chars` characters of the text, for a reason or a table."""
    return text if len(text) <= n_chars else text[: n_chars - 1] + "…"


def holds(text: str, item: str, *, whole_words: bool) -> bool:
    """Whether `item` occurs in `text`, with `whole_words` not as a part of a longer word or number."""
    at = text.find(item)
    while at >= 0:
        end = at + len(item)
        starts_clean = not item[0].isalnum() or at == 0 or not text[at - 1].isalnum()
        ends_clean = not item[-1].isalnum() or end == len(text) or not text[end].isalnum()
        if not whole_words or (starts_clean and ends_clean):
            return True
        at = text.find(item, at + 1)
    return False
