"""The cutting rule is llama.cpp's; spread windows are spread, whole and in part."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from liob_core.quality.closeness.windows import (
    Piece,
    choose_windows,
    n_scored_tokens,
    pieces,
    window_tokens,
)


def test_windows_of_512_score_255_tokens() -> None:
    assert n_scored_tokens(512) == 255
    assert list(pieces(512, 512)) == [Piece(start=0, stop=512, first_scored=256, n_scored=255)]


def test_long_windows_come_in_pieces_that_score_the_second_half() -> None:
    assert [(one.start, one.stop, one.n_scored) for one in pieces(2048, 512)] == [
        (0, 512, 0),
        (512, 1024, 0),
        (1024, 1536, 512),
        (1536, 2048, 511),
    ]


@settings(deadline=None)
@given(n_ctx=st.integers(8, 3000), n_batch=st.integers(8, 512))
def test_pieces_cover_the_window_and_score_each_position_once(n_ctx: int, n_batch: int) -> None:
    parts = list(pieces(n_ctx, min(n_ctx, n_batch)))
    assert [one.start for one in parts[1:]] == [one.stop for one in parts[:-1]]
    assert (parts[0].start, parts[-1].stop) == (0, n_ctx)
    scored = [
        position for one in parts for position in range(one.first_scored, one.first_scored + one.n_scored)
    ]
    assert scored == list(range(n_ctx // 2, n_ctx - 1))
    assert len(scored) == n_scored_tokens(n_ctx)


def test_windows_from_the_start_are_the_first_in_order() -> None:
    assert choose_windows(5000, 512, 4, from_start=True) == (0, 1, 2, 3)


@pytest.mark.parametrize("from_start", [True, False])
def test_no_more_windows_than_the_text_has(from_start: bool) -> None:
    assert sorted(choose_windows(5 * 512 + 511, 512, 99, from_start=from_start)) == [0, 1, 2, 3, 4]
    assert sorted(choose_windows(5 * 512, 512, None, from_start=from_start)) == [0, 1, 2, 3, 4]
    assert choose_windows(511, 512, 8, from_start=from_start) == ()


def test_spread_windows_stand_in_the_middle_of_equal_shares() -> None:
    assert sorted(choose_windows(100 * 512, 512, 4, from_start=False)) == [12, 37, 62, 87]


@settings(deadline=None)
@given(n_available=st.integers(1, 700), n_windows=st.integers(1, 700))
def test_spread_windows_hold_the_middle_of_each_share(n_available: int, n_windows: int) -> None:
    chosen = choose_windows(n_available * 16, 16, n_windows, from_start=False)
    n = min(n_available, n_windows)
    assert len(set(chosen)) == len(chosen) == n
    middles = [(index + 0.5) * n_available / n for index in range(n)]
    assert all(w <= middle < w + 1 for w, middle in zip(sorted(chosen), middles, strict=True))


def test_the_first_eight_of_many_spread_windows_lie_in_eight_parts_of_the_text() -> None:
    chosen = choose_windows(640 * 512, 512, 64, from_start=False)
    assert sorted(window // 80 for window in chosen[:8]) == list(range(8))


def test_first_token_gives_way_to_bos_in_every_window() -> None:
    tokens = np.arange(100, 132, dtype=np.int32)
    assert window_tokens(tokens, 1, 8, bos=1).tolist() == [1, 109, 110, 111, 112, 113, 114, 115]
    assert window_tokens(tokens, 1, 8, bos=None)[0] == 108
    assert tokens[8] == 108  # the text itself is left alone
