"""A model without a library: logits are a function of the tokens, so that every way to them must agree."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from liob_core.quality.closeness.model import ModelError
from liob_core.quality.closeness.windows import Piece

N_VOCAB = 60


class ScriptedModel:
    """Follows the words in its file's name: `noise3` is how far it strays, the others are faults."""

    opened: list[str] = []  # noqa: RUF012 - shared on purpose: tests count what is loaded

    def __init__(self, order: Mapping[str, Any], *, n_ctx: int, n_batch: int, threads: int) -> None:
        self.words = Path(order["path"]).stem.split("-")
        if "corrupt" in self.words:
            raise ModelError("it could not be loaded: tensor data is out of bounds")
        self.n_vocab = N_VOCAB + ("larger" in self.words)
        self.load_ns = 1000
        self.bos = 1 if "bos" in self.words else None
        noise = [word for word in self.words if word.startswith("noise")]
        self.noise = int(noise[0].removeprefix("noise")) / 10 if noise else 0.0
        self.n_batch = n_batch
        self.n_windows = 0
        self.seen: list[int] = []
        self.opened.append(order["label"])

    def tokenize(self, text: bytes) -> np.ndarray:
        return np.frombuffer(text, dtype=np.uint8).astype(np.int32) % N_VOCAB

    def vocabulary_digest(self) -> str:
        return "other" if "foreign" in self.words else "same"

    def start_window(self) -> None:
        self.seen = []
        self.n_windows += 1

    def prefill(self, tokens: np.ndarray, piece: Piece) -> tuple[np.ndarray, int]:
        assert piece.start == len(self.seen)
        assert piece.stop - piece.start <= self.n_batch
        self.fault()
        self.seen += tokens[piece.start : piece.stop].tolist()
        span = range(piece.first_scored, piece.first_scored + piece.n_scored)
        rows = [self.row(self.seen[: position + 1]) for position in span]
        logits = np.array(rows, dtype=np.float32).reshape(piece.n_scored, self.n_vocab)
        if "nan" in self.words and self.n_windows == 2:
            logits[:] = np.nan
        return logits, 1000 * (piece.stop - piece.start)

    def fault(self) -> None:
        """What a test adds: a crash, a wait."""
        if "fails" in self.words and self.n_windows == 2:
            raise ModelError("evaluating a window failed with code -3")

    def row(self, history: list[int]) -> np.ndarray:
        seed = int.from_bytes(hashlib.sha256(bytes(history)).digest()[:4], "little")
        rng = np.random.default_rng(seed)
        return rng.standard_normal(self.n_vocab) * 2 + self.noise * rng.standard_normal(self.n_vocab)

    def close(self) -> None:
        self.words = []
