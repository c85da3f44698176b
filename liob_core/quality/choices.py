"""The option that an answer to a multiple-choice question settles on."""

import re
from collections.abc import Iterable, Mapping

from liob_core.quality.answer_text import END_CHARS, answer_line, holds

_NOISE = re.compile(r"\*\*|__|[`$}]|\\(?:boxed|text|textbf|mathbf|mathrm)\s?\{")

_LEAD = re.compile(r"[\W_]{0,6}(?:(?:option|choice|letter)\W{1,3})?([A-Za-z])(?![\w'])(.{0,200})", re.I)


def chosen(cleaned: str, options: Mapping[str, str]) -> tuple[str | None, str]:
    """The label of the one option an answer names and how it was found; None and why not."""
    text = _NOISE.sub(" ", cleaned[-END_CHARS:]).strip()
    line = answer_line(text)
    if line is not None:
        return _from_line(line, options)
    leads = {}
    for each in text.split("\n"):
        label = _leading_label(each, options)
        if label is not None:
            leads[label] = each
    if len(leads) == 1:
        label, each = leads.popitem()
        return _unless_hedged(label, each, options)
    if leads:
        return _from_last_line(text, leads, options)
    return _from_mentions(text, options)


def _from_line(line: str, options: Mapping[str, str]) -> tuple[str | None, str]:
    label = _leading_label(line, options)
    if label is not None:
        return _unless_hedged(label, line, options)
    return _from_mentions(line, options)


def _from_last_line(text: str, leads: Iterable[str], options: Mapping[str, str]) -> tuple[str | None, str]:
    last = text.rsplit("\n", 1)[-1].strip(" ().[]:*_")
    if last.upper() in options:
        return last.upper(), "its last line is this label"
    return None, f"it lists several options ({', '.join(leads)}) and settles on none"


def _leading_label(line: str, options: Mapping[str, str]) -> str | None:
    """The label a line begins with: "B", "(b)", "B) Paris", "Option B."; not the article of "A cat"."""
    match = re.match(
        r"[\W_]{0,6}(?:(?:option|choice|letter)\W{1,3})?([A-Za-z])(?![\w'])(.{0,200})", line, re.I
    )
    if match is None or match[1].upper() not in options:
        return None
    label, rest = match[1].upper(), match[2]
    if re.match(r"\s*(?:[)\].:,;*/(—–-]|$)", rest):
        return label
    follows = rest.strip(" \"'").casefold()
    if follows.startswith(options[label].casefold()) or re.match(r"\s+(?:or|and|because|is)\b", rest):
        return label
    return label if match[1].isupper() and label not in "AI" else None


def _unless_hedged(label: str, line: str, options: Mapping[str, str]) -> tuple[str | None, str]:
    labels = "".join(options)
    others = {
        other
        for other in re.findall(rf"(?:\bor|\band|[/,&])\s{{0,4}}(?:option )?\(?([{labels}])(?![\w'])", line)
        if other != label
    }
    others |= {other for other in re.findall(rf"(?<!\w)([{labels}])\)", line) if other != label}
    if others and not re.match(r".{0,12}\bbecause\b", line):
        return None, f"it names several options: {', '.join(sorted({label, *others}))}"
    return label, "it begins with this label"


def _from_mentions(text: str, options: Mapping[str, str]) -> tuple[str | None, str]:
    labels = "".join(options)
    named = set(
        re.findall(rf"(?:\b(?:[Oo]ption|[Cc]hoice|[Ll]etter|is)\s{{1,4}}|\()\(?([{labels}])(?![\w'])", text)
    ) | set(re.findall(rf"(?<![\w'])([{labels}])\)", text))
    if not named:
        named = _named_by_text(text.casefold(), options)
    if len(named) == 1:
        return named.pop(), "it names this option alone"
    if named:
        return None, f"it names several options: {', '.join(sorted(named))}"
    return None, "it names none of the options"


def _named_by_text(text: str, options: Mapping[str, str]) -> set[str]:
    found = {
        label: wording.casefold()
        for label, wording in options.items()
        if holds(text, wording.casefold(), whole_words=True)
    }
    # "light blue" also holds "blue": the longer wording is what was said.
    return {
        label
        for label, wording in found.items()
        if not any(wording != other and wording in other for other in found.values())
    }
