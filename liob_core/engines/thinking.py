"""Divides what a model thinks from what it answers, by the tags that models write around thinking."""

from enum import Enum, auto

TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
)


def opens_thinking(prompt: str) -> bool:
    """Whether the prompt itself opened a thinking tag, so that the answer starts inside it."""
    end = prompt.rstrip()
    return any(end.endswith(opening) for opening, _ in TAGS)


class _Part(Enum):
    """Where in an answer the splitter is; in the two `START` parts only white space has come so far."""

    ANSWER_START = auto()
    ANSWER = auto()
    THINKING_START = auto()
    THINKING = auto()


class Splitter:
    """Takes text in any pieces and returns it divided.

    A tag opens only where an answer begins (or directly after an earlier block): later in the text it is
    part of the answer, e.g. in code. A tag may be cut anywhere between two pieces, so what could still
    become one is held back, and nothing else is. The tags and the white space after a closing one belong to
    neither part.
    """

    def __init__(self, starts_inside: bool) -> None:
        self._part = _Part.THINKING_START if starts_inside else _Part.ANSWER_START
        self._closings = tuple(closing for _, closing in TAGS)
        self._held = ""
        self._is_after_block = False

    def feed(self, text: str) -> tuple[str, str]:
        """The answer and the thinking that `text` adds."""
        self._held += text
        answer, thinking = "", ""
        while True:
            part = self._part
            if part in {_Part.ANSWER_START, _Part.THINKING_START}:
                released = self._pass_start()
            elif part is _Part.THINKING:
                released = self._pass_thinking()
            else:
                released, self._held = self._held, ""
            if part in {_Part.THINKING_START, _Part.THINKING}:
                thinking += released
            elif not self._is_after_block or part is _Part.ANSWER:
                answer += released
            if part is self._part:
                return answer, thinking

    def finish(self) -> tuple[str, str]:
        """What was held back, now that no more text comes."""
        held, self._held = self._held, ""
        return ("", held) if self._part in {_Part.THINKING_START, _Part.THINKING} else (held, "")

    def _pass_start(self) -> str:
        """The white space at the start of a part; moves on once it is clear whether a tag opens there.

        A tag that the prompt already opened is written once more by some models.
        """
        text = self._held.lstrip()
        blank = self._held[: len(self._held) - len(text)]
        self._held = text
        for opening, closing in TAGS:
            if text.startswith(opening):
                self._held = text[len(opening) :]
                self._closings, self._part = (closing,), _Part.THINKING
                return blank
        if not any(opening.startswith(text) for opening, _ in TAGS):
            self._part = _Part.ANSWER if self._part is _Part.ANSWER_START else _Part.THINKING
        return blank

    def _pass_thinking(self) -> str:
        """The thinking up to a closing tag, or up to what could become one."""
        text = self._held
        places = [(text.find(closing), closing) for closing in self._closings if closing in text]
        if places:
            place, closing = min(places)
            self._held = text[place + len(closing) :]
            self._part, self._is_after_block = _Part.ANSWER_START, True
            return text[:place]
        longest = max(len(closing) for closing in self._closings)
        for start in range(max(0, len(text) - longest + 1), len(text)):
            if any(closing.startswith(text[start:]) for closing in self._closings):
                self._held = text[start:]
                return text[:start]
        self._held = ""
        return text
