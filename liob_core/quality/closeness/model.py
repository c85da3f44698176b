"""What the evaluator needs of a model, and the two ways in which one fails."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from liob_core.quality.closeness.records import Ending
from liob_core.quality.closeness.windows import Piece


class ModelError(Exception):
    """A model could not do it; the message is the library's own reason."""


class Model(Protocol):
    """What is evaluated: `llama_model.LlamaModel`, or a scripted one in tests."""

    n_vocab: int
    load_ns: int

    @property
    def bos(self) -> int | None:
        """The id that starts every window, or None where the vocabulary adds none."""

    def tokenize(self, text: bytes) -> NDArray[np.int32]:
        """The ids of the whole text."""

    def vocabulary_digest(self) -> str:
        """A digest over the text of every token."""

    def start_window(self) -> None:
        """Forget the tokens of the window before."""

    def prefill(self, tokens: NDArray[np.int32], piece: Piece) -> tuple[NDArray[np.float32], int]:
        """The logits of a piece's scored positions, valid until the next piece, and the ns that it took."""

    def close(self) -> None:
        """Give back the memory."""


class FailedError(Exception):
    """One variant cannot go on; the others can."""

    def __init__(self, ending: Ending, reason: str) -> None:
        super().__init__(reason)
        self.ending = ending
