"""Numbers in a model's answer: thousand separators, fractions, percent, LaTeX, powers of ten."""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from liob_core.quality.answer_text import END_CHARS, answer_line

_MAX_LINE_CHARS = 2000
_MAX_DIGITS = 60  # longer runs of digits are noise, and cost time to convert

_LATEX = (
    (
        re.compile(r"\\[dt]?frac\s{0,4}\{\s{0,4}(-?\d{1,15})\s{0,4}\}\s{0,4}\{\s{0,4}(\d{1,15})\s{0,4}\}"),
        r"\1/\2",
    ),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\(?:times|cdot)"), "×"),
    (re.compile(r"\\([%$])"), r"\1"),
    (re.compile(r"\\[,;:! ]"), " "),
    (re.compile(r"-\s?[$€£¥]"), "-"),
    (re.compile(r"[$€£¥`]|\*\*"), " "),
    (re.compile("½"), " 1/2"),
    (re.compile("¼"), " 1/4"),
    (re.compile("¾"), " 3/4"),
)

_NUMBER = re.compile(
    r"""(?x)
    (?<!\w) (?<!\w\.)
    (?P<sign>[-+])?
    (?: (?P<whole>\d{1,9})\ +(?P<part>\d{1,9})/(?P<parts>\d{1,9})(?!\d)
      | (?P<top>\d{1,15})\ ?/\ ?(?P<bottom>\d{1,15})(?![\d/]|\.\d)
      | (?P<dotted>\d{1,3}(?P<dot>[.\ '])\d{3}(?:(?P=dot)\d{3})*,\d+)(?!\d)
      | (?P<grouped>\d{1,3}(?P<separator>[,\ '])\d{3}(?:(?P=separator)\d{3})*(?:\.\d+)?)(?!\d)
      | (?<!\d,)(?P<comma>\d+,\d+)(?![,\d])
      | (?P<plain>\d+(?:\.\d+)?|\.\d+)
    )
    (?: (?:[eE]|\ ?[×x*]\ ?10\ ?\^\ ?[{(]?)(?P<exponent>[-+]?\d{1,3})(?!\d) )?
    (?P<percent>\ ?(?:%|percent\b))?
    """
)

_BOXED = re.compile(r"\\boxed\s?\{([^\n]{0,200})")
_BEGINNING = re.compile(r"\W{0,6}")
_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One number of a text: its value, whether a percent sign follows, where it stands."""

    value: Fraction
    is_percent: bool
    text: str
    start: int
    end: int


def final_number(cleaned: str) -> Found | str:
    """The number an answer settles on, or why there is none.

    After the last "Answer:" (and the last "=" there): the number it begins with, else the last one of
    that line. Without "Answer:", the last boxed number, else the last number of the text.
    Only the end of a very long text is read.
    """
    text = _plain(cleaned[-END_CHARS:])
    line = answer_line(text)
    if line is not None:
        return _in_answer_line(line[:_MAX_LINE_CHARS])
    boxed = _BOXED.findall(text)
    if boxed:
        # What follows the closing brace is no longer in the box; a fraction has no braces left here.
        found = find_numbers(boxed[-1].split("}")[0])
        return found[-1] if found else "there is no number in the box"
    found = find_numbers(text)
    return found[-1] if found else "there is no number in the answer"


def find_numbers(text: str) -> list[Found]:
    """Every number in the text, in order."""
    found = []
    for match in _NUMBER.finditer(text):
        value = _value(match)
        if value is not None:
            found.append(
                Found(
                    value=value,
                    is_percent=match["percent"] is not None,
                    text=match[0].strip(),
                    start=match.start(),
                    end=match.end(),
                )
            )
    return found


def _in_answer_line(line: str) -> Found | str:
    part = re.split(r"[=≈]", line)[-1]
    found = find_numbers(part) or find_numbers(line)
    if not found:
        word = line.strip(" .!*_\"'").lower()
        if word in _WORDS:
            value = Fraction(_WORDS.index(word))
            return Found(value=value, is_percent=False, text=word, start=0, end=len(line))
        return 'there is no number after "Answer:"'
    source = part if find_numbers(part) else line
    begins = _BEGINNING.match(source)
    first = found[0]
    if begins is None or first.start > begins.end():
        return found[-1]
    if len(found) > 1 and re.fullmatch(r"[^\w]*(?:or|and|to)\s*", source[first.end : found[1].start]):
        return f"it gives two answers, {first.text} and {found[1].text}"
    return first


def _plain(text: str) -> str:
    for pattern, replacement in _LATEX:
        text = pattern.sub(replacement, text)
    return text


def _value(match: re.Match[str]) -> Fraction | None:
    if len(match[0]) > _MAX_DIGITS:
        return None
    if match["part"] is not None:
        if int(match["parts"]) == 0:
            return None
        value = int(match["whole"]) + Fraction(int(match["part"]), int(match["parts"]))
    elif match["top"] is not None:
        if int(match["bottom"]) == 0:
            return None
        value = Fraction(int(match["top"]), int(match["bottom"]))
    else:
        value = Fraction(Decimal(_digits(match)))
    if match["exponent"] is not None:
        value *= Fraction(10) ** int(match["exponent"])
    return -value if match["sign"] == "-" else value


def _digits(match: re.Match[str]) -> str:
    if match["dotted"] is not None:
        return match["dotted"].replace(match["dot"], "").replace(",", ".")
    if match["grouped"] is not None:
        return match["grouped"].replace(match["separator"], "")
    if match["comma"] is not None:
        return match["comma"].replace(",", ".")
    return match["plain"]
