"""What is gathered of one variant in one window, piece by piece."""

import numpy as np
from numpy.typing import NDArray

from liob_core.quality.closeness import scoring
from liob_core.quality.closeness.model import FailedError, Model, ModelError
from liob_core.quality.closeness.records import Ending, WindowScore
from liob_core.quality.closeness.windows import Piece


class Gathered:
    """One window of one variant: scores of the pieces so far and the prefill time they took."""

    def __init__(self, tokens: NDArray[np.int32]) -> None:
        self._tokens = tokens
        self._parts: list[scoring.Scores] = []
        self._prefill_ns = 0

    def prefill(self, model: Model, piece: Piece) -> scoring.Logits:
        """The logits of the model's next piece, valid until its next one; FailedError if it cannot."""
        try:
            logits, took_ns = model.prefill(self._tokens, piece)
        except ModelError as error:
            raise FailedError(Ending.ENGINE_ERROR, str(error)) from error
        self._prefill_ns += took_ns
        return logits

    def keep(self, scores: scoring.Scores) -> None:
        """Add what a piece's logits were found to be worth."""
        self._parts.append(scores)

    def finished(self, variant: str, window: int) -> WindowScore:
        """All of it; FailedError where a value is no number."""
        nll = np.concatenate([part.nll for part in self._parts])
        kld = [part.kld for part in self._parts if part.kld is not None]
        same_top = [part.same_top for part in self._parts if part.same_top is not None]
        if not all(np.isfinite(values).all() for values in (nll, *kld)):
            raise FailedError(Ending.NOT_FINITE, f"its logits in window {window} are not finite numbers")
        return WindowScore(
            variant=variant,
            window=window,
            n_ctx=len(self._tokens),
            prefill_ns=self._prefill_ns,
            nll=nll.astype(np.float32),
            kld=np.concatenate(kld).astype(np.float32) if kld else None,
            same_top=np.concatenate(same_top) if same_top else None,
        )
