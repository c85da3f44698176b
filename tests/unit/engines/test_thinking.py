from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from liob_core.engines.thinking import Splitter, opens_thinking

CASES = [
    # text, whether the prompt opened the tag, answer, thinking
    ("Paris.", False, "Paris.", ""),
    ("<think>It is in France.</think>\n\nParis.", False, "Paris.", "It is in France."),
    ("It is in France.</think>\n\nParis.", True, "Paris.", "It is in France."),
    ("<think>\nIt is.</think>Paris.", True, "Paris.", "\nIt is."),
    ("Write <think> in <b>code</b></think>", False, "Write <think> in <b>code</b></think>", ""),
    ("<thinking>a </think> b</thinking>c", False, "c", "a </think> b"),
    ("<think></think><think>x</think>y", False, "y", "x"),
    ("[THINK]x[/THINK]y", False, "y", "x"),
    ("  indented", False, "  indented", ""),
    ("<thi", False, "<thi", ""),
    ("a < b", False, "a < b", ""),
    ("never ends </thin", True, "", "never ends </thin"),
    ("", True, "", ""),
]


def divide(pieces, starts_inside):
    splitter = Splitter(starts_inside)
    parts = [splitter.feed(piece) for piece in pieces] + [splitter.finish()]
    return "".join(part[0] for part in parts), "".join(part[1] for part in parts)


@pytest.mark.parametrize(("text", "starts_inside", "answer", "thinking"), CASES)
def test_splitter_whole_text_is_divided(text, starts_inside, answer, thinking):
    assert divide([text], starts_inside) == (answer, thinking)


@given(st.sampled_from(CASES), st.lists(st.integers(0, 60)))
def test_splitter_cut_anywhere_divides_the_same(case, cuts):
    text, starts_inside, answer, thinking = case
    edges = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    pieces = [text[a:b] for a, b in pairwise(edges)]
    assert divide(pieces, starts_inside) == (answer, thinking)


@given(st.text(alphabet="<>/think [a\n", max_size=40), st.booleans())
def test_splitter_text_without_a_tag_loses_nothing(text, starts_inside):
    answer, thinking = divide(list(text), starts_inside)
    if "think>" not in text:
        assert answer + thinking == text


def test_splitter_first_word_is_not_held_back():
    splitter = Splitter(False)
    assert splitter.feed("The") == ("The", "")
    assert splitter.feed(" end") == (" end", "")


def test_splitter_first_word_of_thinking_is_not_held_back():
    assert Splitter(True).feed("Well") == ("", "Well")


@pytest.mark.parametrize(
    ("prompt", "opens"),
    [
        ("<|im_start|>assistant\n<think>\n", True),
        ("<|im_start|>assistant\n", False),
        ("What does <think> mean?", False),
        ("<think>\n\n</think>\n\n", False),
    ],
)
def test_opens_thinking_only_at_the_end_of_the_prompt(prompt, opens):
    assert opens_thinking(prompt) is opens
