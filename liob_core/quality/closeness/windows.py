"""How a text becomes windows: llama.cpp's rule, so that figures agree with its own tool.

A text's tokens are cut into disjoint windows of `n_ctx`. Only the second half of a window is scored, so
that every scored token has at least half a window before it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_CONTEXT = 8  # below it hardly a token is left to score
SPREAD, FROM_START = "spread", "from start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a window that is evaluated at once: token positions `start` to `stop`, the latter excluded.

    `first_scored` is the first position whose prediction is scored and `n_scored` how many are: none in
    the pieces of the first half.
    """

    start: int
    stop: int
    first_scored: int
    n_scored: int


def n_scored_tokens(n_ctx: int) -> int:
    """Tokens of one window that are scored: 255 at 512."""
    return n_ctx - 1 - n_ctx // 2


def choose_windows(n_tokens: int, n_ctx: int, n_windows: int | None, *, from_start: bool) -> tuple[int, ...]:
    """Numbers of the windows to evaluate, in the order to visit them; all there are where fewer were asked.

    From the start they come in order, as llama.cpp takes them. Spread, each stands in the middle of an
    equal share of the text, and they are visited so that any first few are spread over it too: stopping
    early then leaves a smaller sample of the whole text, not its beginning.
    """
    available = n_tokens // n_ctx
    wanted = available if n_windows is None else min(n_windows, available)
    if from_start:
        return tuple(range(wanted))
    spread = [(2 * index + 1) * available // (2 * wanted) for index in range(wanted)]
    return tuple(spread[index] for index in _bit_reversed(wanted))


def _bit_reversed(n: int) -> Sequence[int]:
    n_bits = max(1, (n - 1).bit_length())
    return sorted(range(n), key=lambda index: int(f"{index:0{n_bits}b}"[::-1], 2))


def window_tokens(tokens: NDArray[np.int32], window: int, n_ctx: int, bos: int | None) -> NDArray[np.int32]:
    """The token ids of one window; the first gives way to `bos` where the vocabulary adds one."""
    ids = tokens[window * n_ctx : (window + 1) * n_ctx].copy()
    if bos is not None:
        ids[0] = bos
    return ids


def pieces(n_ctx: int, n_batch: int) -> Iterator[Piece]:
    """The parts of a window of `n_ctx` tokens, each of at most `n_batch`."""
    first, last = n_ctx // 2, n_ctx - 1  # the last token's prediction lies outside the window
    for start in range(0, n_ctx, n_batch):
        stop = min(start + n_batch, n_ctx)
        first_scored = max(start, first)
        n_scored = max(0, min(stop, last) - first_scored)
        yield Piece(start=start, stop=stop, first_scored=first_scored, n_scored=n_scored)
